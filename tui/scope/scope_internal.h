/* What the scope's files share, from the bottom up: helper_cells.c, scope_sequence.c (what is one sequence's), scope.c
 * (its life, the vocabulary), scope_read.c, scope_models.c, scope_rounds.c, scope_layers.c, scope_events.c (taking events
 * in). Nobody else includes it. */
#ifndef TUI_SCOPE_SCOPE_INTERNAL_H
#define TUI_SCOPE_SCOPE_INTERNAL_H

#include "tui/scope/scope_sequence.h"

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

    uint32_t policy; /* index in info->policies */
    double *values;  /* (n_policies * POLICY_KNOBS) applied knob values */
    uint32_t knob_events[POLICY_KNOBS];
    struct progress_event progress;
    bool in_progress;

    char head[8]; /* in use: "", "lens", "trained" */
    bool show_trained;

    struct scope_sequence *focus; /* the one sequence that is shown: the first that is heard of */
};

/* scope.c */
void scope_vocab_event(struct scope *, const struct vocab_event *);
void scope_need_word(struct scope *, token_t); /* so that an id has a text, even without a VOCAB event */
void scope_choose_policy(struct scope *, const char *name);
/* A run begins: its positions, rounds and series are new. Policy, knobs and vocabulary stay. */
void scope_begin_run(struct scope *);
/* scope_rounds.c; the event is one of that sequence */
void scope_token_event(struct scope *, struct scope_sequence *, const struct event *);
void scope_verdict_event(struct scope_sequence *, const struct verdict_event *);
void scope_round_event(struct scope_sequence *, const struct event *);
/* scope_layers.c */
void scope_layer_event(struct scope *, struct scope_sequence *, const struct event *);
void scope_series_event(const struct scope *, struct scope_sequence *, const struct event *);

#endif
