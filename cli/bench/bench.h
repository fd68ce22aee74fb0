/* The benchmark: bench.c runs it, bench_grid.c makes the list of settings, bench_report.c prints table, CSV and JSON,
 * and bench_speed.c measures speed and steps without a policy. */
#pragma once

#include "cli/generation/acceptance.h"
#include "cli/generation/generation.h"
#include "cli/options/options.h"
#include "engine/session/engine.h"

struct paired_run { /* of a candidate on a prompt */
    struct tally tally;
    double plain_us; /* time per token of autoregressive decoding, just before and just after it; 0: no such run */
};

#define BENCH_CANDIDATES 1000 /* most points of a grid, over all policies */

struct bench_candidate { /* one policy at one point of the grid */
    const char *policy;
    struct knob_setting set[OPTIONS_MOST];
    size_t n_set;
    enum head_mode head;
    char point[200]; /* "head=lens exit_layer=3 gamma=5", "" without a grid and several heads */
    /* Learned by the policy at this point in earlier prompts and passes. */
    struct policy_memory memory;
    struct tally total;
    struct acceptance acceptance; /* by position, of the first pass; a sample is a prompt */
    struct pass *pass;            /* (repeat) over the prompts; owned */
    struct paired_run *run;       /* (repeat x prompts) owned; NULL: runs are not paired */
    uint64_t compared, differing; /* runs against ar's */
    struct outcome_text *first;   /* (n_texts) of the first pass, for the JSON; owned */
};

struct bench {
    const struct options *o;
    struct engine *engine;
    struct prompt_list prompts;
    struct prompt_text *batch; /* (prompts.n) the same for a batch session; owned; NULL: a session per prompt */
    size_t n_texts;            /* of a pass: as many as there are prompts, or sequences */
    struct bench_candidate *candidates; /* (n_candidates) owned; the first is ar */
    size_t n_candidates;
    uint32_t passes; /* that all candidates ran to their ends */
    bool paired;     /* ar runs again after every second candidate, so that a run is compared with its neighbours */
};

/* Reads the prompts and opens the engine; *load_s: seconds for the latter. Call bench_end() also after a failure. */
bool bench_begin(struct bench *, const struct options *, double *load_s, struct err *);
void bench_end(struct bench *);

/* Returns the session options of a candidate, without a prompt. */
struct session_options bench_session(const struct bench *, const struct bench_candidate *);

/* Makes the candidates: `ar`, then every policy given (all if none was) at the product of the grids of its knobs. A
 * --set applies to each policy that has the knob. ERR_USAGE: a knob that no policy has, a value out of its bounds, a
 * grid of more than BENCH_CANDIDATES points. */
bool bench_candidates(struct bench *, struct err *);
void bench_candidates_free(struct bench *);

/* Appends a copy of a candidate, with room for its results. */
bool bench_append(struct bench *, const struct bench_candidate *, struct err *);
/* Runs all candidates on all prompts, in turn, in every pass. */
bool bench_run(struct bench *, struct err *);

bool bench_table(const struct bench *, struct err *);                 /* to stdout */
bool bench_csv(const struct bench *, const char *path, struct err *); /* RFC 4180, one line a candidate */
cJSON *bench_json(const struct bench *);

/* Returns whether the 95% interval of the ratio of their speeds is above 1; passes are the samples
 * (engine/measure/estimate.h). */
bool bench_is_ahead(const struct bench *, const struct bench_candidate *, const struct bench_candidate *other);
/* Compares a candidate with the other candidates of its policy: "; faster than each other point", "; no clear
 * difference from gamma=3, gamma=4", "; one pass has no interval"; "" if it is the only one. */
const char *bench_standing(const struct bench *, const struct bench_candidate *, char *out, size_t n);

/* --speed: measures how fast a model loads, reads a prompt and decodes without speculation. Prints a table, or writes
 * JSON to options->json: medians of options->repeat passes, prompt and decoding in turn. options->tokens are decoded
 * greedily from an empty context; load_s is the time of engine_open(), in seconds. */
bool bench_speed(struct engine *, const struct options *, double load_s, struct err *);

/* --steps: measures the parts of a round: rows verified together relative to one row, a probe relative to a layer.
 * Prints a table, or JSON to options->json. All figures are medians of interleaved repetitions in one run. */
bool bench_steps(struct engine *, const struct options *, struct err *);
