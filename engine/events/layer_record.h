/* What the layers of the target say at the latest positions of a text: what turns of knobs are judged by before they are
 * made (docs/methods.md: What-if). Row i of a record is the token at position first + i; its cells are about the token
 * after it. Rows are neighbours, and all of one text. */
#ifndef ENGINE_EVENTS_LAYER_RECORD_H
#define ENGINE_EVENTS_LAYER_RECORD_H

#include "engine/events/event.h"
#include "engine/events/policy.h"

#define RECORD_TOKENS 256 /* rows that rounds are simulated over, at most */
#define RECORD_LEAD   64  /* rows before them, which only teach, at most */
#define RECORD_ROWS   (RECORD_TOKENS + RECORD_LEAD)
#define RECORD_TEXT   8192 /* token ids of the text, at most: the latest ones */

#define RECORD_LISTED (GUESS_TOP - 1)

struct layer_word {
    bool agrees; /* its token is the target's */
    float confidence;
    /* For layer_record_annealed(): how far the logits of the next likeliest tokens lie below the highest, and a polynomial in
     * 1/T for the logarithm of the sum over all other tokens. */
    float gap[RECORD_LISTED], fit[4];
};

/* Before a wrong draft was seen (docs/methods.md: What-if). Measured on the bundled model, whose layers have 0.19 to 0.38. */
#define RECORD_LOST    0.3
#define RECORD_LOST_SE 0.2

#define RECORD_BLOCKS 16 /* parts of the text that loads are told apart by */

struct
    record_loads { /* of simulated rounds, by block: a round's loads are spread evenly over the tokens that it emits */
    double layers[RECORD_BLOCKS], heads[RECORD_BLOCKS];
    uint64_t drawn; /* words after wrong drafts that were drawn */
};

struct layer_record {
    uint32_t layers;    /* L */
    uint32_t sequence;  /* whose text it is */
    uint32_t first, n;  /* position of row 0; rows */
    uint32_t begin;     /* the first round's pending token is row `begin`; those before only teach */
    double head_load;   /* what a head call at a layer below L counts, */
    double layers_load; /* and one that asks all layers, in units of the target's head */
    char policy[16]; /* the policy of the run, with its knobs and the first values of its series in the latest round; */
                     /* "": not known, or the first round of the record is the run's first one */
    double value[POLICY_KNOBS], series[POLICY_SERIES]; /* NAN: not reported */
    /* After a wrong draft a layer's word is drawn: with probability `lost` from the rows where the layer does not agree with the
     * target, else it is what the layer says at the same position of the text. */
    double lost, lost_se;       /* lost_se: its standard error */
    uint32_t draw;              /* another number gives other draws; forecast.h averages over some */
    struct record_loads *loads; /* what a simulation adds its loads to; NULL: they are not wanted. Borrowed */
    uint32_t probes;            /* rows × layers in such a call, at most: more are several */
    struct layer_word *cells;   /* (RECORD_ROWS, L); owned */
    uint32_t n_text;            /* token ids that are held, the prompt's included */
    token_t *text;              /* (RECORD_TEXT) the last one is at position first + n, after the last row; owned */
};

bool layer_record_open(struct layer_record *, uint32_t layers, struct err *); /* no rows */
void layer_record_close(struct layer_record *);
/* Appends a row: what layers 1..L predict at temperature 1. When the record is full the oldest row goes. methods.md says how
 * exact the annealed confidences are. */
struct layer_told {
    bool agrees; /* its token is the target's */
    float confidence, entropy,
        top_p[GUESS_TOP]; /* descending, the first is the confidence; NAN or 0 where there are fewer */
};
void layer_record_add(struct layer_record *, const struct layer_told *, uint32_t vocab);

static inline const struct layer_word *
layer_word(const struct layer_record *r, uint32_t row, uint32_t layer)
{
    return &r->cells[(size_t)row * r->layers + layer - 1];
}

/* The token at a position up to first + n; TOKEN_NONE where it is not held. */
static inline token_t
layer_record_token(const struct layer_record *r, uint32_t position)
{
    const uint32_t back = r->first + r->n - position;
    return back < r->n_text ? r->text[r->n_text - 1 - back] : TOKEN_NONE;
}

/* True: value[] and the first n of series[] are those that this policy had in the latest round. Else it begins afresh. */
bool layer_record_follows(const struct layer_record *, const char *policy, uint32_t n);

/* max softmax(z/T) for T in [1, 3]; exact at 1. */
float layer_record_annealed(const struct layer_word *, float temperature);

/* Confidences of layers after a wrong draft, collected from the events of one sequence. Drafts that follow a rejected draft continue a
 * text that the target did not write, so a layer record (layer_record.h) has no words for them. Simulated rounds need them to decide
 * how long drafting continues (docs/methods.md: What-if). */

#define WRONG_PATH_WORDS 512 /* of the latest wrong paths */
#define WRONG_PATH_ROUND 512 /* of the round under way, at most: further ones are not counted */

struct wrong_path_word {
    uint32_t pos, layer;
    float confidence; /* at temperature 1 */
};

struct wrong_paths {
    uint32_t n_words, oldest;
    struct wrong_path_word words[WRONG_PATH_WORDS]; /* (n_words) a ring */
    uint32_t n_round, correction;                   /* correction: its position in this round, 0: none came yet */
    struct wrong_path_word round[WRONG_PATH_ROUND]; /* (n_round) what the policy asked in this round */
};

/* Takes an event of the sequence. The order of events within a round does not matter. */
void wrong_paths_event(struct wrong_paths *, const struct event *);
void wrong_paths_reset(struct wrong_paths *); /* no words */
/* Sets record->lost and lost_se from the words (docs/methods.md: What-if). Without words they are the prior's. */
void wrong_paths_estimate(const struct wrong_paths *, struct layer_record *);

#endif
