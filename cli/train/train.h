/* What the files of `train heads` share: train.c (the command), train_job.c (text and memory), train_loop.c (the schedule),
 * train_going_on.c (after an interruption), train_report.c (progress, results). */
#ifndef CLI_TRAIN_TRAIN_H
#define CLI_TRAIN_TRAIN_H

#include "cli/options/options.h"
#include "cli/train/train_state.h"
#include "engine/training/head_stream.h"
#include "engine/training/head_training.h"

#define HELD_EVERY 16 /* windows, of which one is held out */

struct train_place {   /* where the schedule is */
    uint64_t done;     /* tokens trained on, */
    uint64_t looked;   /* and how many when held-out text was looked at last */
    uint64_t at;       /* rows of the block that were trained on */
    uint64_t next;     /* when the block was begun: of all windows read so far, the next one, */
    uint64_t random;   /* and the state of random numbers */
    uint64_t n_turns;  /* windows to train on */
    uint64_t n_values; /* of all heads */
};

struct job {
    const struct options *options;
    struct engine *engine;
    struct blas *blas; /* who multiplies; NULL: the CPU */
    struct lens lens;
    struct exit_heads *heads;
    struct head_training *training;
    struct head_stream *stream;
    token_t *tokens;
    size_t n_tokens;
    uint32_t window, layers;
    size_t row;                  /* values of a row: (L + 1) * width */
    float *block, *batch, *held; /* (block_rows, row), (batch, row), (held_rows, row) */
    size_t block_rows, held_rows;
    size_t *order; /* (block_rows) a shuffle */
    size_t *turn;  /* (windows) the order of training windows, */
    size_t *begun; /* (windows) and as it was when the block was begun */
    size_t n_turns;
    struct head_score *lens_score, *score, *best_score; /* (L + 1) of held-out text: sums over rows */
    float *best;                                        /* values of every layer's best head so far */
    bool looked;
    uint64_t random;
    struct train_place place;
    struct train_settings settings;
    struct train_state state;
    uint64_t start_us;
};

/* Reads and tokenises the text, makes heads and memory, and reads the windows that are held out. job->engine is open. */
bool train_job_open(struct job *, struct err *);
void train_job_free(struct job *); /* the engine, too */

/* Refuses what was begun otherwise; before anything that takes long. */
bool train_going_on_open(struct job *, struct err *);
/* Goes on with what there is: heads, optimizer and schedule are where they were, and the best heads are in the file. */
bool train_going_on(struct job *, struct err *);
/* So that it can be gone on with from here. */
void train_going_on_put(struct job *);

/* Trains until options->train.tokens have been seen or Ctrl-C; the best heads so far are in the file all the time. */
bool train_loop(struct job *, struct err *);

/* Mean KL and agreement over layers, from sums over the held-out rows. */
void train_mean(const struct job *, const struct head_score *sums, double *loss, double *agreement);
/* A bar on a terminal's stderr; elsewhere a line where `line` says so. */
void train_progress(const struct job *, double done, double loss, double agreement, bool line);
/* The best heads against the lens, layer by layer, on held-out text, to stdout. */
void train_report(const struct job *);

#endif
