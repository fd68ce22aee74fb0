/* Scores settings of policies on finished texts (docs/forecasts.md: Scoring finished texts): simulates their rounds
 * (policy_ops.what_if) over layer records that were filled from the texts, and adds them up by conversation, category
 * and depth. Records are dropped after they were added, so the memory does not grow with the texts. */
#pragma once

#include "engine/events/cost_model.h"
#include "engine/measure/layer_record.h"
#include "engine/tune/score_report.h"

struct score;

/* Standard error of the logarithm of speedups by costs that no rounds have corrected: forecasts were off by 3 to 13% at
 * the median (docs/measurements.md: Forecasts in time). A setting whose ceiling is below 1 by two of them is hopeless. */
#define SCORE_COSTS_ERROR 0.1
#define SCORE_HOPELESS    0.8

/* A policy with a drafter, all borrowed. */
struct score_entry {
    const struct policy_ops *ops;
    const struct policy_info *info;
    char drafter[64];                   /* "": the policy needs none */
    struct cost_model costs;            /* with this drafter as the draft model; zeros: unknown */
    const double *value;                /* (n_knobs) a further setting that is scored; NULL: none */
    const char *why;                    /* why it is not scored; NULL: it is */
    const struct layer_record *records; /* (n_records) on which settings are chosen; only read by score_enter() */
    uint32_t n_records;
};

/* layers, rho: of the target. Ends with free(). NULL: out of memory. */
struct score *score_open(uint32_t layers, double rho);
/* Adds an entry, numbered from 0, with settings that are chosen by their forecasts (candidates_of()). Those whose
 * ceiling is below SCORE_HOPELESS are not scored. Returns false if there are SCORE_ENTRIES already. */
bool score_enter(struct score *, const struct score_entry *);
/* Begins the next conversation. category may be "". */
void score_conversation(struct score *, const char *category);
/* Adds the rounds of all settings of an entry over a record of a part of an answer of the conversation. `depth`: the
 * position at which the answer begins. Each answer is added once to each entry, or in several parts. */
void score_add(struct score *, uint32_t entry, const struct layer_record *, uint32_t depth);
/* Takes the costs of an entry's drafter that were measured again after the texts: speedups become the geometric means
 * by both, and their difference is a part of the intervals. */
void score_measured_again(struct score *, uint32_t entry, const struct cost_model *);
/* Writes everything but model, texts, conversations, of, read, seconds, left_s, stopped and own. */
void score_write(const struct score *, struct score_report *);
