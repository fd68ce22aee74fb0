/* What the files of `train accept` share: train_accept.c (the command: models, responses), train_accept_loop.c (the
 * schedule), train_accept_report.c (results). */
#ifndef CLI_TRAIN_TRAIN_ACCEPT_H
#define CLI_TRAIN_TRAIN_ACCEPT_H

#include "cli/options/options.h"
#include "cli/train/train_partial.h"
#include "engine/training/accept_data.h"
#include "engine/training/accept_training.h"

#define ACCEPT_HELD_EVERY 8  /* prompts, of which one is held out */
#define CALIBRATION_BINS  10 /* of p̂ */

struct accept_rows { /* candidates */
    size_t n, room;
    float *x, *label; /* (room, width), (room) */
};

struct accept_result { /* of a head with so many blocks, on held-out candidates */
    uint32_t blocks;
    double loss, kl; /* weighted; binary KL in nats, a candidate's */
};

struct accept_job {
    const struct options *options;
    struct engine *engine; /* with the draft model */
    struct blas *blas;     /* who multiplies while a head is trained; NULL: the CPU */
    struct accept_rows train, held;
    struct accept_head *best; /* is in the file */
    double best_loss;
    struct accept_result results[ACCEPT_HEAD_BLOCKS + 1]; /* (n_results) */
    size_t n_results;
    struct train_partial partial; /* candidates of each prompt, then looks */
    size_t n_prompts;             /* whose candidates are there */
    uint64_t schedule;            /* a number that tells the training of this schedule from others */
    size_t looks, looked;         /* at held-out candidates; of them before an interruption */
    uint64_t start_us;
};

/* A record of a look, so that one who goes on knows how good the head in the file is. */
bool train_accept_looked(struct accept_job *, struct err *);

/* One head for every number of blocks in options->accept.blocks; the best so far is in the file. Until all are trained or
 * Ctrl-C. Training that was interrupted begins anew, with the same numbers; until it is as far as it was, the file keeps the head
 * that it has. */
bool train_accept_loop(struct accept_job *, struct err *);

/* Held-out loss and KL by blocks, and how well the best head's p̂ is calibrated, to stdout. */
bool train_accept_report(const struct accept_job *, struct err *);

#endif
