/* What figures need to know of a trace: one run's rounds, drafts, tokens, series and turns of knobs, as lists; and, where it
 * is asked for, the scope as it stood when the range was over. */
#ifndef TUI_FIGURES_RECORD_H
#define TUI_FIGURES_RECORD_H

#include "traces/reader.h"
#include "tui/scope/draft_steps.h"
#include "tui/scope/scope.h"

struct record_round {
    uint32_t number, seq, lines; /* lines: of the round, one for each sequence that takes part in it */
    struct round_event end;
};

struct record_draft {
    uint32_t round, seq, pos, depth; /* depth: 1 for a child of the pending token */
    int32_t parent, candidate, exit_layer;
    token_t token;
    float confidence;
    int8_t accepted, committed; /* -1: not verified */
};

struct record_step {
    struct draft_step of;
};

struct record_token { /* of the text, the prompt not counted */
    uint32_t seq, pos;
    token_t token;
};

struct record_value {
    uint32_t round;
    int32_t series, index;
    float value;
};

struct record_turn { /* of a knob, the policy or the head, after the first round of the range */
    uint32_t round;
    char text[64]; /* "τ 0.55 → 0.70" */
};

struct record_setting { /* what stood from a round on */
    uint32_t round;
    const struct policy_info *policy;
    double knobs[POLICY_KNOBS];
    bool trained; /* trained heads looked at layers */
};

struct record_wanted {
    uint32_t run;      /* 0: the last one with a round */
    int64_t seq;       /* -1: all sequences; the scope then follows the first */
    uint32_t from, to; /* rounds */
    bool scope;
    uint32_t
        scope_to; /* the scope stops when positions beyond this one stand; UINT32_MAX: SCOPE_SPAN after the prompt */
};
#define SCOPE_SPAN 512

struct record {
    const char *path; /* the caller's */
    struct trace_reader *reader;
    const struct run_info *info; /* the reader's */
    uint32_t run;
    struct record_round *rounds;
    struct record_draft *drafts;
    struct record_step *steps;
    struct record_token *tokens;
    struct record_value *values;
    struct record_turn *turns;
    size_t n_rounds, n_drafts, n_steps, n_tokens, n_values, n_turns, n_settings, most_rounds, most_drafts, most_steps,
        most_tokens, most_values, most_settings, most_turns;
    struct record_setting *settings;  /* the first stood at the first round of the range */
    const struct policy_info *policy; /* its policy */
    uint64_t prompt;                  /* a hash of the prompt's tokens, of all sequences taken in */
    float baseline;                   /* autoregressive tokens/s; 0: not measured */
    struct metrics metrics;           /* of the rounds in the range */
    bool versus;                      /* a run of two settings in turns */
    char (*texts)[48];                /* (vocab) printable; "" where an id did not occur */
    struct scope *scope;              /* NULL: not asked for */
};

/* ERR_USAGE where the trace has nothing of what is wanted: no such run or sequence, no round in the range. The trace's own
 * errors are the reader's. record_close() also after a failure. */
bool record_open(struct record *, const char *folder, const struct record_wanted *, struct err *);
void record_close(struct record *);

/* The sums of a round of one sequence. */
struct tally record_tally(const struct record_round *);
/* What stood in a round; before the first one, what stood in that. */
const struct record_setting *record_setting(const struct record *, uint32_t round);
/* What a series of the policy held at the end of each round, of one sequence: out[i] belongs to rounds[i]; NAN before the
 * first report, and under another policy. */
void record_values(const struct record *, int series, int index, double *out);

#endif
