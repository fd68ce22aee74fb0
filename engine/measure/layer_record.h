/* Predictions of the target's layers at the latest positions of a text: what-if simulates changes of knobs on this
 * record before they are made (docs/forecasts.md: What-if). Row i of a record is the token at position first + i; its
 * cells are predictions of the token after it. Rows are consecutive, and all of one text. Records of runs are filled
 * from events, those of finished texts by engine/scoring/reading.h. */
#pragma once

#include "engine/events/cost_model.h"
#include "engine/events/draft_vocab.h"
#include "engine/events/event.h"
#include "engine/events/policy.h"

#define RECORD_TOKENS 256 /* maximum of rows of a run that rounds are simulated over */
#define RECORD_LEAD   64  /* maximum of rows before them, used only for learning */
#define RECORD_ROWS   (RECORD_TOKENS + RECORD_LEAD)
#define RECORD_TEXT   8192 /* maximum of token ids of a run that are stored: the latest ones */

#define RECORD_LISTED (PREDICTION_TOP - 1)

struct layer_prediction {
    bool agrees; /* the predicted token is the target's */
    float confidence;
    float annealed, temperature; /* the confidence at this temperature, as the run computed it; NAN: unknown */
    /* For layer_record_annealed(): the distance of the next likeliest tokens' logits from the highest, and a
     * polynomial in 1/T for the logarithm of the sum over all other tokens. */
    float gap[RECORD_LISTED], fit[4];
    token_t top[PREDICTION_TOP]; /* the likeliest tokens, of which gap[] are the distances from the second one on */
};

/* A draft model's prediction of the token after a row. */
struct draft_word {
    bool agrees;      /* the predicted token is the target's */
    float acceptance; /* of the row's own token: the probability by the draft model's acceptance head; NAN: unknown */
    token_t target, top[PREDICTION_TOP];
};

#define RECORD_REJECTED 256

/* The draft model or feature drafter of a record. */
struct record_drafter {
    enum aux_role role;  /* AUX_DRAFT, AUX_EAGLE, AUX_BLOCK, AUX_MTP */
    bool known;          /* word[] has all rows but the last; or the model is the target's layers 1..exit_layer */
    bool acceptance;     /* so has its `acceptance` */
    uint32_t exit_layer; /* 0: a model of its own */
    double pass_load, head_load, accept_load; /* as in run_info.h; accept_load of a block drafter's confidence head */
    double
        next_load; /* of a feature drafter's pass after the round's first one, which has no features of the target; */
                   /* of a block drafter: of feeding rows, without which pass_load is */
    /* (n_rejected) probabilities by the acceptance head of the run's latest drafts that were wrong or followed a wrong
     * one */
    float rejected[RECORD_REJECTED];
    uint32_t n_rejected;
    struct draft_word *word; /* (rows) owned */
    /* (rows) of a feature drafter, in place of word[]: the number of right drafts of a chain, or of a block, that begins
     * when this row's token is pending. Borrowed */
    uint8_t *run;
    /* Of a block drafter: rows and drafts of a block; whether its drafts have the bias of the Markov head, and the
     * bias's loads for one draft, in units of the target's head. */
    uint32_t block, drafts;
    bool markov;
    double markov_load;
    /* (rows, drafts) of each draft of such a block, also of those after a wrong one, which follow the drafts before it:
     * its acceptance by the confidence head, or its probability if there is no such head. Borrowed; NULL: unknown */
    float *confidence;
};

/* The prior of `lost`, before a wrong draft was recorded (docs/forecasts.md: What-if). Measured on the bundled model,
 * whose layers have 0.19 to 0.38. */
#define RECORD_LOST    0.3
#define RECORD_LOST_SE 0.2

struct positions;

#define RECORD_BLOCKS 16 /* parts of the text with separate sums of loads */

/* Loads and steps of simulated rounds, by block: those of a round are spread evenly over the tokens that it emits. */
struct record_loads {
    double layers[RECORD_BLOCKS], heads[RECORD_BLOCKS];
    struct cost_count steps[RECORD_BLOCKS];
    uint64_t drawn;              /* number of predictions drawn after wrong drafts */
    struct positions *positions; /* acceptance by position is added here; NULL: not. Borrowed */
};

struct layer_record {
    uint32_t layers;          /* L */
    uint32_t rows, text_room; /* room for rows and for token ids */
    uint32_t sequence;        /* sequence of the text */
    uint32_t first, n;        /* first: position of row 0; n: number of rows */
    uint32_t begin;           /* row of the first round's pending token; rows before it are used only for learning */
    bool
        from_prompt; /* that is the run's first round: the rows before `begin` are of the prompt, and it has begin + first */
    double head_load;   /* loads of a head call at a layer below L, in units of the target's head */
    bool trained;       /* layers below L predict with trained heads */
    double layers_load; /* loads of a head call on all layers, in the same unit */
    /* the policy of the run, with its knobs and the first values of its series in the latest round; */
    char policy[16];
    /* "": unknown, or the first round of the record is the first of the run */
    double value[POLICY_KNOBS], series[POLICY_SERIES]; /* NAN: not reported */
    /* After a wrong draft, the prediction of a layer is drawn: with probability `lost` from the rows where the layer
     * does not agree with the target, else it is the layer's prediction at the same position of the text. */
    double lost, lost_se; /* standard error of `lost` */
    /* number of the draw: each number gives different random draws; forecast.h averages over several */
    uint32_t draw;
    /* The draft vocabulary of a simulation: the number of tokens in its base (draft_vocab.h); 0: all tokens. */
    uint32_t base;
    double unlisted; /* with a base: the share of the probability of tokens that are not listed that is in it */
    /* The cells below the last layer are predictions over a draft vocabulary with this base and all tokens of the text:
     * only this base has forecasts of drafts by layers. 0: over all tokens. */
    uint32_t cells_base;
    const struct draft_rank *rank; /* borrowed, from the scope that made the record; NULL: unknown */
    uint32_t *seen;                /* (rank->vocab) the first position of a token in text[]; UINT32_MAX: none. Owned */
    uint32_t n_seen;
    bool accepts; /* simulated rounds accept all drafts of layers and of a draft model, and none of a text */
    struct record_loads *loads; /* a simulation adds its loads here; NULL: none. Borrowed */
    uint32_t probes; /* rows × layers in one call on all layers, at most: larger requests take several calls */
    struct layer_prediction *cells; /* (rows, L); owned */
    struct record_drafter draft;
    uint32_t n_text; /* token ids stored, the prompt's included */
    token_t *text;   /* (text_room) the last one is at position first + n, after the last row; owned */
};

bool layer_record_open(struct layer_record *, uint32_t layers, struct err *); /* of a run; no rows */
bool layer_record_open_room(struct layer_record *, uint32_t layers, uint32_t rows, uint32_t text_room, struct err *);
void layer_record_close(struct layer_record *);
/* Appends a row: the predictions of layers 1..L at temperature 1. A full record drops its oldest row. docs/forecasts.md
 * describes the accuracy of the annealed confidences. */
struct layer_sample {
    bool agrees; /* the predicted token is the target's */
    float confidence, entropy,
        top_p[PREDICTION_TOP]; /* descending, the first is the confidence; NAN or 0 for missing ones */
    token_t top[PREDICTION_TOP];
    float annealed, temperature; /* NAN or 0: unknown */
};
void layer_record_add(struct layer_record *, const struct layer_sample *, uint32_t vocab);
/* Returns the sample of a prediction; `final` is the target's token. */
struct layer_sample layer_sample_of(const struct prediction *, token_t final);

static inline const struct layer_prediction *
layer_prediction(const struct layer_record *r, uint32_t row, uint32_t layer)
{
    return &r->cells[(size_t)row * r->layers + layer - 1];
}

/* Sets the order of the vocabulary, borrowed, or NULL, after the text is complete. If memory runs out it is unknown. */
void layer_record_order(struct layer_record *, const struct draft_rank *);
/* Restricts the heads of simulated rounds to a draft vocabulary with this base; 0: to none. The record's order is
 * known. */
void layer_record_restrict(struct layer_record *, uint32_t base);
/* Returns how many tokens of the text become recent at positions `from` to `to` - 1. */
uint32_t layer_record_recent(const struct layer_record *, uint32_t from, uint32_t to);
/* Returns a layer's prediction over the draft vocabulary of a round that begins at row `at`. It is exact if one of the
 * listed tokens is in it; otherwise it counts as another token than the target's. Its confidence is an estimate. Of
 * texts with more than DRAFT_RECENT recent tokens, all count as recent. */
struct layer_prediction layer_record_drafts(const struct layer_record *, uint32_t row, uint32_t layer, uint32_t at);
/* Returns whether draft i of a round that begins at row `at`, counted from 0, is the target's token; the drafts before
 * it are right. Of a feature drafter's chain over a draft vocabulary, only drafts that it makes over all tokens are. */
bool layer_record_draft_agrees(const struct layer_record *, uint32_t i, uint32_t at);

/* Returns what the record lacks for a what-if of a policy with these needs; NULL: nothing. */
const char *layer_record_lacks(const struct layer_record *, unsigned needs);

/* Returns the token at a position up to first + n; TOKEN_NONE if it is not stored. */
static inline token_t
layer_record_token(const struct layer_record *r, uint32_t position)
{
    const uint32_t back = r->first + r->n - position;
    return back < r->n_text ? r->text[r->n_text - 1 - back] : TOKEN_NONE;
}

/* Returns true if value[] and the first n of series[] are those of this policy in the latest round. If false, the
 * policy starts with its initial state. */
bool layer_record_follows(const struct layer_record *, const char *policy, uint32_t n);

/* max softmax(z/T) for T in [1, 3]; exact at 1, and at the temperature of the run. */
float layer_record_annealed(const struct layer_prediction *, float temperature);

/* Confidences of layers after a wrong draft, collected from the events of one sequence. Drafts after a rejected draft
 * continue a text that the target did not write, so a layer record has no predictions for them. Simulated rounds need
 * these confidences to decide how long drafting continues (docs/forecasts.md: What-if). */

#define WRONG_PATH_WORDS 512 /* confidences stored, of the latest wrong paths */
#define WRONG_PATH_ROUND 512 /* confidences stored of the current round; further ones are not counted */

struct wrong_path_word {
    uint32_t pos, layer;
    float confidence; /* at temperature 1 */
};

struct wrong_paths {
    uint32_t n_words, oldest;
    struct wrong_path_word words[WRONG_PATH_WORDS]; /* (n_words) a ring */
    uint32_t n_round, correction;                   /* correction: its position in this round, 0: none yet */
    /* (n_round) predictions that the policy asked for in this round */
    struct wrong_path_word round[WRONG_PATH_ROUND];
};

/* Adds an event of the sequence. The order of events within a round does not matter. */
void wrong_paths_event(struct wrong_paths *, const struct event *);
void wrong_paths_reset(struct wrong_paths *); /* removes all confidences */
/* Sets record->lost and lost_se from the confidences (docs/forecasts.md: What-if). Without any, they are the
 * prior's. */
void wrong_paths_estimate(const struct wrong_paths *, struct layer_record *);
