/* What the files of the segments share: segments.c (where one begins), segments_read.c, segment_verdicts.c (baselines and comparisons).
 * Nobody else includes it. */
#ifndef ENGINE_EVENTS_SEGMENTS_INTERNAL_H
#define ENGINE_EVENTS_SEGMENTS_INTERNAL_H

#include "engine/events/segments.h"
#include "engine/events/settings.h"

#define OTHERS 4

struct segment_side {                    /* a setting, and what ran with it */
    struct segment next;                 /* the settings in force, and in what they differ from the newest's */
    uint32_t last;                       /* 1 + the number of its newest one; 0: none */
    struct settings now, ran;            /* in force; when the newest began */
    struct segment_change other[OTHERS]; /* what turned that no policy known here declares */
    uint32_t n_other;
    struct estimate baseline[2]; /* of the prompt, and of one that is slowed down */
    double next_se;              /* of a baseline that is told next; NAN: not known */
    uint64_t generated;          /* tokens of the run */
};

struct segments {
    const struct run_info *info;
    struct segment *ring;             /* (SEGMENTS) segment number i is ring[i % SEGMENTS] */
    uint32_t n;                       /* ever */
    struct segment none;              /* empty */
    struct segment_side side[2], *at; /* in a versus two; whose event it is */
    bool versus;
    uint32_t focus;     /* the side that is looked at */
    char **prompt;      /* (SEGMENTS) texts of prompts but the first, number i at i % SEGMENTS; owned */
    uint32_t sequences; /* that had a round in it */
};

/* What is in force begins a segment with the next round. */
static inline bool
segments_side_coming(const struct segment_side *side)
{
    return side->last == 0 || side->next.cause[0] != '\0' || side->next.n_changes > 0;
}

/* segment_verdicts.c: what a baseline measured, and what it compared. */
void segments_take_baseline(struct segments *, const char *text);
void segments_take_lossless(struct segments *, const char *text);

#endif
