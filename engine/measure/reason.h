/* Why a setting is not faster than plain decoding (docs/forecasts.md: Why there is no gain): three numbers of its
 * rounds, the reason that follows from them, and the remedies that a forecast found. Rounds are measured, or simulated
 * by a forecast. */
#pragma once

#include "engine/measure/forecast.h"
#include "engine/measure/metrics.h"

#define REASON_GAINS 1.05 /* × plain decoding: a faster setting needs no reason */

enum reason_kind {
    REASON_NONE,         /* it gains, or its rounds or the costs are unknown */
    REASON_COSTS,        /* it would be slower if all drafts were accepted */
    REASON_DRAFTS,       /* too few drafts are accepted */
    REASON_VERIFICATION, /* verifying several rows costs much more than one */
    REASON_NO_DRAFTS,    /* nothing was drafted */
    REASON_SMALL,        /* none of these: the gain is small, */
    REASON_NOISE         /* or within noise */
};

/* The part of a round besides verification that takes the most time. */
enum reason_part { REASON_HEADS, REASON_LAYERS, REASON_MODEL };

struct reason { /* NAN where not known */
    enum reason_kind kind;
    double speedup, speedup_se; /* × plain decoding */
    double ceiling;             /* the same if every draft were accepted */
    double need;                /* the acceptance, equal at all positions, at which it would be as fast; 1: more */
    struct estimate have;       /* accepted ÷ tested drafts: a draft is tested if those before it were accepted */
    enum reason_part part;
    double share;        /* of the rounds' time in that part */
    double probe_layers; /* time of a head call on one row ÷ time of a layer, */
    bool draft_vocab;    /* over a draft vocabulary instead of all tokens */
    uint32_t layer;      /* layer that most drafts come from; 0: other drafts, or unknown */
    double agreement;    /* share of the record's positions at which this layer has the target's token */
    uint32_t rows;       /* rows of a verification with drafts, */
    double rows_cost;    /* and its time ÷ that of one row */
};

/* The rounds of one setting. */
struct reason_rounds {
    struct tally of;
    double plain_us;   /* time of a step of autoregressive decoding; NAN: unknown */
    bool model;        /* a draft model or a feature drafter drafts */
    bool draft_vocab;  /* heads compute a draft vocabulary */
    double speedup_se; /* standard error of the speedup; NAN: unknown */
};

/* Returns the reason, for a target of so many layers. `cost` and the record may be NULL; unknown costs are those of the
 * weights, in which a head call is as expensive as rho layers. */
struct reason reason_find(const struct reason_rounds *, uint32_t layers, double rho, const struct cost_model *cost,
                          const struct layer_record *);
/* Returns the rounds that a forecast simulated. If it is not in time, a microsecond is a layer's load. */
struct reason_rounds reason_simulated(const struct forecast *, const struct policy_info *, uint32_t layers, double rho);

/* Something to do next, with its forecast. */
struct remedy {
    char text[48];    /* "draft_vocab 4096" */
    char command[48]; /* the ':' line that does it */
    double forecast;  /* × plain decoding */
};

#define REMEDIES 2

struct remedies {
    struct remedy at[REMEDIES]; /* (n) the fastest ones, in descending order */
    uint32_t n;
};

/* Adds a value of a knob, or another policy with the knobs that it has now. Keeps the fastest REMEDIES. */
void remedies_add_knob(struct remedies *, const struct knob *, double value, double forecast);
void remedies_add_policy(struct remedies *, const char *policy, double forecast);

/* The parts of a line: the reason, its figures, what to do next. */
#define REASON_PARTS 8

struct reason_line {
    uint32_t n; /* 0: there is no reason */
    struct {
        char text[112], command[48]; /* command: the ':' line of a remedy; "" */
    } part[REASON_PARTS];
};

/* Writes the parts. `policy` begins the line if it is not NULL: "suffix: no gain: …". A reason of NULL is that of plain
 * decoding, which has only remedies. */
void reason_print(const struct reason *, const struct remedies *, const char *policy, struct reason_line *);
/* Writes the parts as one sentence, separated by semicolons. Returns out. */
const char *reason_text(const struct reason_line *, char *out, size_t n);
/* Returns a few words for the kind: "no gain: wrong drafts". */
const char *reason_verdict(const struct reason *);
