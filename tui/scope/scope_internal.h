/* What the scope's files share, from the bottom up: scope.c (its life, the vocabulary), scope_read.c, scope_rounds.c,
 * scope_layers.c, scope_events.c (taking events in). Nobody else includes it. */
#ifndef TUI_SCOPE_SCOPE_INTERNAL_H
#define TUI_SCOPE_SCOPE_INTERNAL_H

#include "tui/scope/scope.h"

struct scope_word { /* a token's text */
    uint32_t n;     /* raw bytes; 0 and !known: the id occurred before its VOCAB event */
    uint32_t safe;  /* where the safe text begins in data */
    bool known;
    char data[];
};

struct scope {
    const struct run_info *info;
    struct scope_now now;

    struct scope_word **words; /* (vocab) */

    bool seq_known;
    uint32_t seq;    /* the one sequence that is shown: the first that is heard of */
    uint32_t policy; /* index in info->policies */
    double *values;  /* (n_policies * POLICY_KNOBS) applied knob values */
    uint32_t knob_events[POLICY_KNOBS];
    struct progress_event progress;
    bool in_progress;

    struct scope_column *columns; /* (SCOPE_POSITIONS) position p at p % SCOPE_POSITIONS */
    uint32_t *cells_of;           /* (SCOPE_COLUMNS) 1 + the position whose cells stand there, 0: none */
    struct scope_cell *cells[2];  /* (SCOPE_COLUMNS * (L + 1)) by head; a trained one's come with its first guess */
    uint64_t *probed;             /* (L + 1) */
    char head[8];                 /* in use: "", "lens", "trained" */
    bool show_trained;
    uint64_t *compared,
        *agreed[2]; /* (L + 1) positions that both heads were asked about; by head: the last layer's word */

    struct scope_round *rounds; /* (SCOPE_ROUNDS) ring; round number i is rounds[i % SCOPE_ROUNDS] */
    uint64_t n_rounds;          /* ever, the open one counted */
    bool open;                  /* the newest round is under way */
    uint32_t base;              /* positions committed when it began */
    int32_t node[VERIFY_NODES]; /* index in its drafts of a candidate, -1 */
    int32_t main_tail;          /* candidate at the end of the main line; 0: none yet */
    uint32_t left_main;         /* first position after which another branch than the main line was taken; */
                                /* UINT32_MAX: none */
    struct scope_draft struck[SCOPE_DRAFTS];
    uint32_t n_struck;

    struct scope_series series[POLICY_SERIES];
    uint32_t n_series; /* of the current policy */
};

/* scope.c */
void scope_vocab_event(struct scope *, const struct vocab_event *);
void scope_need_word(struct scope *, token_t); /* so that an id has a text, even without a VOCAB event */
void scope_choose_policy(struct scope *, const char *name);
/* A run begins: its positions, rounds and series are new. Policy, knobs and vocabulary stay. */
void scope_begin_run(struct scope *);
/* scope_rounds.c */
/* The column of a position, made if it is new. NULL: beyond the context, or older than what is held. */
struct scope_column *scope_touch(struct scope *, uint32_t pos);
/* The event's round, begun if it is new; pos is its first then. */
struct scope_round *scope_open_round(struct scope *, const struct event *, uint32_t pos);
struct scope_cell *scope_cells_at(struct scope *, int head, uint32_t pos);
void scope_forget_tail(struct scope *); /* what is beyond the committed positions */
void scope_token_event(struct scope *, const struct event *);
void scope_verdict_event(struct scope *, const struct verdict_event *);
void scope_round_event(struct scope *, const struct event *);
/* scope_layers.c */
void scope_layer_event(struct scope *, const struct event *);
void scope_series_event(struct scope *, const struct event *);

#endif
