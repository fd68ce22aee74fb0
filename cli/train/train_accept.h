/* What the two files of `train accept` share: train_accept.c collects candidates, train_accept_loop.c trains heads on them and
 * prints the report. */
#ifndef CLI_TRAIN_TRAIN_ACCEPT_H
#define CLI_TRAIN_TRAIN_ACCEPT_H

#include "cli/options/options.h"

struct accept_rows { /* candidates */
    size_t n, room;
    float *x, *label; /* (room, width), (room) */
};

struct accept_job {
    const struct options *options;
    struct engine *engine; /* with the draft model */
    struct accept_rows train, held;
    size_t n_prompts; /* whose candidates were collected */
    uint64_t start_us;
};

/* Trains a head for each number of blocks in options->accept.blocks and prints the results; the file has the best head so far
 * at any time. After Ctrl-C it does so with the heads trained until then and fails with ERR_CANCELLED. */
bool train_accept_loop(const struct accept_job *, struct err *);

#endif
