/* The cost model: measured times of the steps that rounds consist of (docs/forecasts.md: Cost model). It prices the
 * steps that a simulation counts, and is corrected by the run's own rounds. Times are in microseconds. */
#ifndef ENGINE_EVENTS_COST_MODEL_H
#define ENGINE_EVENTS_COST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cJSON;

#define COST_ROWS 12
/* Numbers of rows that are measured; the cost of other numbers is interpolated linearly. */
extern const uint32_t cost_rows[COST_ROWS]; /* 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 */

/* Kinds of steps, each a call for some rows; passes and exits are calls for some layers. */
enum cost_step {
    COST_DRAFT_PASS,    /* a forward pass of one row through layers 1..E, while drafting. Passes through few layers find
                         * them in the processor's caches, so a layer costs less in them */
    COST_DRAFT_ROWS,    /* one layer of the target for several rows, in such a pass */
    COST_PROBE,         /* a head call on hidden states of any layers, for a policy */
    COST_TRAINED_PROBE, /* the same with trained heads */
    COST_EXITS,         /* probes of one row within a pass, one after each of some layers */
    COST_TRAINED_EXITS, /* the same with trained heads */
    COST_DRAFT,         /* a forward pass of the draft model */
    COST_DRAFT_HEAD,    /* its head call */
    COST_FEED,          /* rows of a block drafter that read the target's features; its blocks are COST_DRAFT */
    COST_MARKOV,        /* a call of its Markov head, which changes the logits of a head call */
    COST_SET_PROBE,     /* a head call of the target over cost_set_tokens() tokens */
    COST_SET_EXITS,     /* probes within a pass over as many */
    COST_PASS,          /* the pass of a single row up to the layer where other rows join, in a verification */
    COST_LAYER,         /* one layer of the target for several rows, in a verification */
    COST_HEAD,          /* the head call of a verification */
    COST_STEPS
};

/* Parts of a round's time, each with a correction of its own. In ROUND events heads_us is that of both kinds of heads,
 * verify_us that of verification, and draft_us the sum of all others and of heads. */
enum cost_phase {
    COST_HOST,       /* fixed costs of drafts and rounds */
    COST_DRAFTING,   /* layers of the target */
    COST_MODEL,      /* layers of the draft model */
    COST_HEADS,      /* head calls */
    COST_EXIT_HEADS, /* probes within passes */
    COST_VERIFICATION,
    COST_PHASES
};

/* Steps of simulated rounds. A simulation adds to it; the price is linear in it. */
struct cost_count {
    double calls[COST_STEPS][COST_ROWS]; /* calls by rows; one with other numbers of rows is shared by two neighbours */
    double thousands[COST_STEPS][COST_ROWS]; /* Σ over these calls of the position, in thousands */
    double passes;                           /* forward passes of the target while drafting */
    double rounds;
    double first, first_draft; /* rounds that draft with layers, with the draft model */
};

/* Adds `calls` calls for `rows` rows (above 0; of passes and exits: layers) at a position. */
void cost_add(struct cost_count *, enum cost_step, uint32_t rows, double calls, double position);
void cost_add_all(struct cost_count *to, const struct cost_count *, double share); /* adds a share of another count */

/* Measured arrays: layers for a number of rows, passes of one row through a number of layers. */
enum cost_array {
    COST_OF_LAYER,
    COST_OF_PASS,
    COST_OF_HEAD,
    COST_OF_PROBE,
    COST_OF_TRAINED_PROBE,
    COST_OF_EXITS,
    COST_OF_TRAINED_EXITS,
    COST_OF_DRAFT,
    COST_OF_DRAFT_HEAD,
    COST_OF_SET_PROBE,
    COST_OF_SET_EXITS,
    COST_OF_FEED,
    COST_OF_MARKOV,
    COST_ARRAYS
};

/* Returns the number of tokens of the measured head calls over a draft vocabulary. */
static inline uint32_t
cost_set_tokens(uint32_t vocab)
{
    return vocab < 8192 ? (vocab + 1) / 2 : 4096;
}

/* Arrays whose times depend on the position. Passes of a single row have that of layers for one row. */
enum cost_far { COST_FAR_LAYER, COST_FAR_DRAFT, COST_FAR };

struct cost_model {
    double us[COST_ARRAYS]
             [COST_ROWS]; /* of a call; all 0: there is no such model or head. us[COST_OF_LAYER][0] 0: no costs */
    /* Further time of a call at 1,000 more positions, which is attention's. Not proportional to the rows, because
     * several rows share what they read. */
    double far[COST_FAR][COST_ROWS];
    double draft; /* fixed cost of a draft, and of drafting in a round */
    double round; /* fixed cost of a verification */
    /* Further time of a round's first draft, because a verification has taken the caches: by layers, by the draft
     * model. */
    double first, first_draft;
    uint32_t context; /* rows before the measured ones */
    /* Corrections, learned from rounds; not stored. */
    double factor[COST_PHASES];
    double autoregressive; /* factor of autoregressive steps; 0: that of verification */
    bool corrected;        /* a first correction set all factors to the machine's present speed */
    double error;          /* relative error of a forecast's time */
};

static inline bool
cost_known(const struct cost_model *m)
{
    return m->us[COST_OF_LAYER][0] > 0;
}

void cost_reset(struct cost_model *); /* to uncorrected costs */
/* Prices the steps by phase, with corrections. Returns the sum; NAN if it contains passes of a model without costs. */
double cost_price(const struct cost_model *, const struct cost_count *, double us[COST_PHASES]);
/* Returns the time of an autoregressive step of a target of so many layers. */
double cost_autoregressive(const struct cost_model *, uint32_t layers, double position);
/* The same for n sequences that run in step (docs/forecasts.md: Scoring finished texts). */
double cost_price_sequences(const struct cost_model *, const struct cost_count *, uint32_t n, double us[COST_PHASES]);
double cost_autoregressive_sequences(const struct cost_model *, uint32_t layers, double position, uint32_t n);

/* Corrects the model by rounds: `priced` is their price by cost_price(), the others are their times by ROUND events
 * (heads_us may be NAN). Smoothed exponentially; the first correction changes all factors alike. Ignores rounds without
 * a price. */
void cost_correct(struct cost_model *, const double priced[COST_PHASES], double draft_us, double heads_us,
                  double verify_us);
/* Corrects autoregressive steps by the measured time of one. */
void cost_correct_autoregressive(struct cost_model *, uint32_t layers, double position, double measured_us);

/* As JSON, in run.json and in the text of a control: {"context": 64, "layer": [12 numbers], …}. The caller deletes the
 * object; NULL: out of memory. Reading checks everything; its message continues a sentence: "has no 'layer'". */
struct cJSON *cost_model_json(const struct cost_model *);
bool cost_model_read(const struct cJSON *, struct cost_model *, struct err *);
/* The same as a line of text; false: out of memory, or the text is too long or not valid. */
#define COST_TEXT 2048
bool cost_model_print(const struct cost_model *, char out[COST_TEXT]);
bool cost_model_parse(const char *, struct cost_model *, struct err *);

#endif
