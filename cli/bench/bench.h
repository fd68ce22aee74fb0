/* What the benchmark's files share: bench.c (running), bench_grid.c (which lanes there are), bench_passes.c (how sure it is), bench_report.c (table, CSV,
 * JSON). */
#ifndef CLI_BENCH_BENCH_H
#define CLI_BENCH_BENCH_H

#include "cli/generation/generation.h"

struct pass {         /* over the prompts */
    double tokens, s; /* emitted; drafting and verifying */
};

#define BENCH_LANES 1000 /* most points of a grid, over all policies */

struct lane { /* one policy at one point of the grid */
    const char *policy;
    struct knob_setting set[OPTIONS_MOST];
    size_t n_set;
    enum head_mode head;
    char point[200]; /* "head=lens exit_layer=3 gamma=5", "" without a grid and several heads */
    /* What the policy learns at this point goes from prompt to prompt and from pass to pass, and to no other lane. */
    struct policy_memory memory;
    struct tally total;
    struct pass *pass;            /* (repeat) owned */
    uint64_t compared, differing; /* runs against ar's */
    struct outcome_text *first;   /* (n_texts) of the first pass, for the JSON; owned */
};

struct bench {
    const struct options *o;
    struct engine *engine;
    char **prompts; /* (n_prompts) owned */
    size_t n_prompts;
    struct prompt_text
        *batch;         /* (n_prompts) the same, for a session that has them all; owned; NULL: each has its own */
    size_t n_texts;     /* of a pass: as many as there are prompts, or sequences */
    struct lane *lanes; /* (n_lanes) owned; the first is ar */
    size_t n_lanes;
    uint32_t passes; /* that all lanes ran to their ends */
};

/* What a lane asks of a session; its prompt is still to be set. */
struct session_options bench_session(const struct bench *, const struct lane *);

/* Lanes: `ar`, then every policy asked for (all when none was) at the product of the grids that it has knobs for. A
 * --set goes to every policy that has the knob. ERR_USAGE: a knob that nobody has, a value out of its bounds, a grid of
 * more than BENCH_LANES points. */
bool bench_lanes(struct bench *, struct err *);
void bench_lanes_free(struct bench *);

bool bench_table(const struct bench *, struct err *);                 /* to stdout */
bool bench_csv(const struct bench *, const char *path, struct err *); /* RFC 4180, one line a lane */
cJSON *bench_json(const struct bench *);

#endif
