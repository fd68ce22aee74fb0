/* The history of posted changes of knobs, policies and heads, for undo and redo. It posts nothing itself. */
#ifndef TUI_STATE_CHANGES_H
#define TUI_STATE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/session/session.h"

#define CHANGES_MOST 256 /* in memory; the oldest are dropped */

struct change {
    enum control_kind kind;               /* CONTROL_KNOB, CONTROL_POLICY or CONTROL_HEAD */
    char name[24], before[32], after[32]; /* a knob's name, "policy", "head", and its requested values */
    uint32_t seq;                         /* the sequence whose setting changed */
    uint32_t group;                       /* changes of a group are undone together; 0: none */
    uint64_t round;                       /* in which the change was posted */
};

struct changes {
    struct change change[CHANGES_MOST]; /* (n) */
    uint32_t n, at;                     /* changes below `at` are made, the others undone */
    uint32_t groups, group;             /* group: of changes that are added now; 0: none */
};

/* Adds a posted change and drops the undone ones. Changes of one knob in one round are joined; one that changes nothing is ignored. */
void changes_add(struct changes *, const struct change *);
void changes_group(struct changes *, bool begin); /* changes added until its end are one group */
void changes_forget_second(struct changes *);     /* drops the changes of sequence 1, whose setting was replaced */

/* The next change to undo, or to redo; NULL: none. */
const struct change *changes_back(const struct changes *);
const struct change *changes_forth(const struct changes *);
void changes_undo(struct changes *); /* marks the change of changes_back() as undone */
void changes_redo(struct changes *); /* marks the change of changes_forth() as made */

#endif
