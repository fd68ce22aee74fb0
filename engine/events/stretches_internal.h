/* What the files of the stretches share: stretches.c (where one begins), stretches_read.c, stretch_verdicts.c (baselines and comparisons).
 * Nobody else includes it. */
#ifndef ENGINE_EVENTS_STRETCHES_INTERNAL_H
#define ENGINE_EVENTS_STRETCHES_INTERNAL_H

#include "engine/events/stretches.h"

#define OTHERS 4

struct stretch_side {     /* a setting, and what ran with it */
    struct stretch next;  /* the settings in force, and in what they differ from the newest's */
    uint32_t last;        /* 1 + the number of its newest one; 0: none */
    double *values, *ran; /* (n_policies * POLICY_KNOBS) of all policies, now and when the newest began */
    struct stretch_change other[OTHERS]; /* what turned that no policy known here declares */
    uint32_t n_other;
    struct estimate baseline[2]; /* of the prompt, and of one that is slowed down */
    uint64_t generated;          /* tokens of the run */
};

struct stretches {
    const struct run_info *info;
    struct stretch *ring;             /* (STRETCHES) stretch number i is ring[i % STRETCHES] */
    uint32_t n;                       /* ever */
    struct stretch none;              /* empty */
    struct stretch_side side[2], *at; /* in a versus two; whose event it is */
    bool versus;
    uint32_t focus;     /* the side that is looked at */
    char **prompt;      /* (STRETCHES) texts of prompts but the first, number i at i % STRETCHES; owned */
    double next_se;     /* of a baseline that is told next; NAN: not known */
    uint32_t sequences; /* that had a round in it */
};

/* What is in force begins a stretch with the next round. */
static inline bool
stretches_side_coming(const struct stretch_side *side)
{
    return side->last == 0 || side->next.cause[0] != '\0' || side->next.n_changes > 0;
}

/* stretch_verdicts.c: what a baseline measured, and what it compared. */
void stretches_take_baseline(struct stretches *, const char *text);
void stretches_take_lossless(struct stretches *, const char *text);

#endif
