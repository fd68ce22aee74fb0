/* One run of a trace for figures: lists of its rounds, drafts, tokens, series and knob changes, and on request the
 * scope at the end of the range. */
#pragma once

#include "engine/scope/aggregates.h"
#include "engine/scope/scope.h"
#include "traces/reader.h"

struct record_round {
    uint32_t number, seq, lines; /* lines: sequences in the round */
    struct round_event end;
};

struct record_draft {
    uint32_t round, seq, pos, depth; /* depth: 1 for a child of the pending token */
    int32_t parent, candidate, exit_layer;
    token_t token;
    float confidence;           /* a block drafter's forecast by its confidence head, or the probability */
    int8_t accepted, committed; /* -1: not verified */
};

struct record_forecast { /* of a confidence head, about the draft at a position */
    uint32_t round, seq, pos;
    float p;
};

struct record_token { /* of the text, without the prompt */
    uint32_t seq, pos;
    token_t token;
};

struct record_value {
    uint32_t round;
    int32_t series, index;
    float value;
};

struct record_change { /* of a knob, the policy or the head, after the first round of the range */
    uint32_t round;
    char text[64]; /* "τ 0.55 → 0.70" */
};

struct record_setting { /* the settings from a round on */
    uint32_t round;
    const struct policy_info *policy;
    double knobs[POLICY_KNOBS];
    bool trained; /* with trained heads */
};

struct record_wanted {
    uint32_t run;      /* 0: the last run with a round */
    int64_t seq;       /* -1: all sequences; the scope then follows the first */
    uint32_t from, to; /* rounds */
    bool scope;
    uint32_t scope_to; /* last position of the scope; UINT32_MAX: SCOPE_SPAN after the prompt */
};
#define SCOPE_SPAN 512

struct record {
    const char *path; /* the caller's */
    struct trace_reader *reader;
    const struct run_info *info; /* the reader's */
    uint32_t run;
    struct record_round *rounds;
    struct record_draft *drafts;
    struct record_forecast *forecasts;
    struct draft_step *steps;
    struct record_token *tokens;
    struct record_value *values;
    struct record_change *changes;
    size_t n_rounds, n_drafts, n_forecasts, n_steps, n_tokens, n_values, n_changes, n_settings, most_rounds,
        most_drafts, most_forecasts, most_steps, most_tokens, most_values, most_settings, most_changes;
    struct record_setting *settings;  /* the first: at the first round of the range */
    const struct policy_info *policy; /* its policy */
    uint64_t prompt;                  /* hash of the tokens of all recorded sequences' prompts */
    float baseline;                   /* autoregressive tokens/s; 0: not measured */
    struct metrics metrics;           /* of the rounds in the range */
    bool versus;                      /* a run of two settings that take turns */
    char (*texts)[48];                /* (vocab) printable; "": the id did not occur */
    struct scope *scope;              /* NULL: not requested */
};

/* Reads a run. ERR_USAGE: the trace lacks the run, the sequence, or a round in the range; other errors are the
 * reader's. The caller calls record_close(), also after a failure. */
bool record_open(struct record *, const char *folder, const struct record_wanted *, struct err *);
void record_close(struct record *);

/* Returns the sums of a round of one sequence. */
struct tally record_tally(const struct record_round *);
/* Returns the settings of a round; before the first round, those of the first. */
const struct record_setting *record_setting(const struct record *, uint32_t round);
/* Computes the value of a policy's series at the end of each round of one sequence: out[i] belongs to rounds[i]; NAN
 * before the first report and under another policy. */
void record_values(const struct record *, int series, int index, double *out);

/* Reads the trace again for the target's prediction of the token at a position, which the trace may lack (false). */
bool record_prediction(struct record *, uint32_t seq, uint32_t pos, struct layer_event *);

/* The course of a saved run: tokens over the time of its rounds; and the length of the common beginning of two texts.
 * The figure of two runs and `specscope diff` use it. */

struct course {             /* of one sequence */
    const struct record *r; /* borrowed */
    double *seconds,
        *tokens; /* (n) time of drafting and verifying, emitted tokens, at the end of each round; before the first: 0 */
    size_t n;
};

bool course_open(struct course *, const struct record *, struct err *);
void course_close(struct course *); /* also after a failure, and of a zeroed struct */
/* Returns the time of the given number of tokens, in seconds, interpolated within a round. */
double course_when(const struct course *, double tokens);

#define TEXTS_APART SIZE_MAX
/* Returns the number of equal tokens at the begin; TEXTS_APART: the prompts or models differ. */
size_t texts_common(const struct record *, const struct record *);
/* Returns whether both texts continue after that, and differ. */
bool texts_part(const struct record *, const struct record *, size_t common);
