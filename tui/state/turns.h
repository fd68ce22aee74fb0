/* Turns of knobs, policies and heads that can be taken back, and brought again: a history that is made of the events
 * which say that they came, whoever asked for them. Nothing is posted here. */
#ifndef TUI_STATE_TURNS_H
#define TUI_STATE_TURNS_H

#include "engine/events/event.h"

#define TURNS 256 /* remembered; the oldest go */

struct turn {
    char name[24], before[32], after[32]; /* as its control says: a knob's name, "policy", "head" */
    uint32_t applied_round, seq;          /* seq: in a versus whose setting it was */
    uint32_t group;                       /* those of one group are taken back together */
};

struct turns {
    struct turn turn[TURNS];           /* (n) */
    uint32_t n, at;                    /* those below `at` are in force */
    uint32_t undoing, redoing;         /* asked for, and not seen yet */
    uint32_t groups, together, rounds; /* `together` further ones belong to the newest group; rounds seen meanwhile */
    bool other_second;                 /* the second one's turns go when the next run begins */
    uint64_t policy_event;             /* the number of the last policy's */
};

void turns_event(struct turns *, const struct event *); /* CONTROL and ROUND; others are passed over */
/* In a versus another second setting, or none, was asked for: it comes with the next run. One that only begins again keeps
 * its turns. */
void turns_other_second(struct turns *);
void turns_together(struct turns *, uint32_t n); /* the next n are one */

/* The next to take back, or to bring again; NULL: there is none. It counts as asked for once turns_undo() or
 * turns_redo() say so. */
const struct turn *turns_back(const struct turns *);
const struct turn *turns_forth(const struct turns *);
void turns_undo(struct turns *);
void turns_redo(struct turns *);

#endif
