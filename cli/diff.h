/* Two saved sequences compared: their settings, their measures, where their texts part. Counts are compared over rounds. Speeds are
 * compared only of the two settings of one versus run, which ran in turns on one machine; two runs of different times get none. */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include "engine/events/metrics.h"
#include "engine/events/paired.h"
#include "tui/figures/record.h"

#define DIFF_SPANS 16

struct diff_side {
    struct record record;
    struct course course;
    struct estimates measured; /* of all its rounds */
    struct estimate baseline;
};

struct diff_span {        /* of the emitted tokens; a round belongs to the one that its first token is in */
    uint64_t from, to;    /* from the 1st on, both counted */
    struct estimate a, b; /* tokens/s */
    struct comparison of; /* speed of B over A's; unknown unless diff.together */
};

struct diff {
    struct diff_side a, b;
    size_t common; /* texts_common() */
    bool together; /* both ran in turns: speeds can be compared */
    struct comparison speed;
    struct diff_span span[DIFF_SPANS];
    size_t n_spans;
    bool turned; /* spans end where a knob was turned; else they are equal */
};

bool diff_table(const struct diff *, struct err *); /* to stdout */
bool diff_json(const struct diff *, const char *path, struct err *);

/* Some tokens around the place where the texts part, or from their ends: printable. Returns out. */
char *diff_words(const struct record *, size_t from, size_t n, char *out, size_t size);

#endif
