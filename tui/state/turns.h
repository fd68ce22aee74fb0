/* Changes of knobs, policies and heads that can be taken back, and made again: a history of what was posted. Nothing is posted
 * here. */
#ifndef TUI_STATE_TURNS_H
#define TUI_STATE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/session/session.h"

#define TURNS 256 /* remembered; the oldest go */

struct turn {
    enum control_kind kind;               /* CONTROL_KNOB, CONTROL_POLICY or CONTROL_HEAD */
    char name[24], before[32], after[32]; /* a knob's name, "policy", "head", and its requested values */
    uint32_t seq;                         /* in a versus whose setting it was */
    uint32_t group;                       /* those of one group are taken back together; 0: none */
    uint64_t round;                       /* in which it was posted */
};

struct turns {
    struct turn turn[TURNS]; /* (n) */
    uint32_t n, at;          /* those below `at` are requested */
    uint32_t groups, group;  /* the one that turns belong to now; 0: none */
};

/* Was posted, in a round with that number: several turns of one knob in one round are one. Nothing changed: it is no turn. */
void turns_add(struct turns *, const struct turn *);
void turns_group(struct turns *, bool begin); /* those added until it ends are one group */
void turns_forget_second(struct turns *);     /* another second setting, or none, was requested */

/* The next to take back, or to make again; NULL: there is none. */
const struct turn *turns_back(const struct turns *);
const struct turn *turns_forth(const struct turns *);
void turns_undo(struct turns *); /* the one that turns_back() gives was taken back */
void turns_redo(struct turns *); /* the one that turns_forth() gives was made again */

#endif
