/* What the files of `train accept` share: train_accept.c (the command: models, responses), train_accept_loop.c (the
 * schedule), train_accept_going_on.c (after an interruption), train_accept_report.c (results). */
#ifndef CLI_TRAIN_TRAIN_ACCEPT_H
#define CLI_TRAIN_TRAIN_ACCEPT_H

#include "cli/options/options.h"
#include "cli/train/train_partial.h"
#include "cli/train/train_state.h"
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

struct accept_place {     /* where the schedule is */
    uint64_t head;        /* which of options->accept.blocks is trained, */
    uint64_t done;        /* on so many candidates, */
    uint64_t looked;      /* and how many when held-out ones were looked at last */
    uint64_t random;      /* the state of random numbers */
    uint64_t best_blocks; /* of the best head */
    double best_loss;
};

struct accept_job {
    const struct options *options;
    struct engine *engine; /* with the draft model */
    struct blas *blas;     /* who multiplies while a head is trained; NULL: the CPU */
    struct accept_rows train, held;
    struct accept_head *best;                             /* is in the file; NULL: none is */
    struct accept_result results[ACCEPT_HEAD_BLOCKS + 1]; /* (n_results) */
    size_t n_results;
    struct train_partial partial; /* candidates of each prompt */
    size_t n_prompts;             /* whose candidates are there */
    struct accept_place place;
    struct train_settings settings; /* what the candidates were made with, then those of the training */
    struct train_state state;
    bool whole; /* all heads were trained */
    uint64_t start_us;
};

struct accept_pass { /* what training one head needs */
    struct accept_head *head;
    struct accept_training *training;
    size_t *order;    /* (train.n) candidates in the order of this pass over them */
    float *x, *label; /* (batch, width), (batch) */
};

/* One head for every number of blocks in options->accept.blocks; the best so far is in the file. Until all are trained or
 * Ctrl-C, from where it was interrupted. */
bool train_accept_loop(struct accept_job *, struct err *);
/* A head for the models at hand, with its names. */
bool train_accept_head(struct accept_head **, const struct accept_job *, uint32_t blocks, struct err *);

/* Refuses a training that was begun otherwise. Of one to go on with it says which head (place.head) and makes the best one. */
bool train_accept_going_on_open(struct accept_job *, struct err *);
/* That head's training, results and schedule are where they were, and the best head is in the file. */
bool train_accept_going_on(struct accept_job *, struct accept_pass *, struct err *);
/* So that it can be gone on with from here. */
void train_accept_going_on_put(struct accept_job *, struct accept_pass *);

/* Held-out loss and KL by blocks, and how well the best head's p̂ is calibrated, to stdout. */
bool train_accept_report(const struct accept_job *, struct err *);

#endif
