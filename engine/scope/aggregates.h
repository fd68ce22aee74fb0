/* Sums over rounds: exit layers, acceptance by depth, calibration of the drafts' confidence, and how often layers were
 * confident and wrong. Those of the run and of the newest segment are updated with each round, over all sequences (with
 * two settings: of the one in focus). Those of other rounds are computed on request, as far as the rounds are in
 * memory. Figures share the statistics and the steps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/events/event.h"
#include "engine/measure/positions.h"
#include "engine/scope/scope.h"

/* ---- statistics ---- */

/* Wilson's 95% interval of a share: n successes in `of` trials. Without trials: 0 and 1. */
void share_interval(uint64_t n, uint64_t of, double *low, double *high);

/* Confidence and outcome in bins of equal width over [0, 1]. */
#define CALIBRATION_BINS 10

struct calibration {
    uint64_t n[CALIBRATION_BINS], right[CALIBRATION_BINS];
    double confidence[CALIBRATION_BINS]; /* sums */
    uint64_t all;
};

/* Ignores confidences outside [0, 1]. */
void calibration_add(struct calibration *, double confidence, int right);
/* Expected calibration error: sum over bins of n / all * |right / n - mean confidence|. NAN: nothing was added. */
double calibration_error(const struct calibration *);

/* ---- steps: the drafts of a round by depth ---- */

struct step_draft {            /* a draft, from its TOKEN and VERDICT events */
    int32_t parent, candidate; /* node numbers within the round; parent 0: the pending token */
    int32_t exit_layer;        /* below 1: no layer of the target */
    float confidence;
    int8_t accepted; /* -1: not verified */
};

/* The drafts at one depth are one step: a chain's steps are its drafts, a tree's the tokens of its longest path
 * (docs/methods.md, Measures). */
struct draft_step {
    uint32_t depth;     /* 1 for a child of the pending token */
    int32_t exit_layer; /* of the accepted draft, else of the first; below 1: none */
    float confidence;
    int8_t accepted; /* -1: none was verified */
    bool tried;      /* it was verified, and all steps before it were accepted */
};

/* Computes the steps of a round's drafts, which are in the order of their candidates, parents before children. Ignores
 * a draft without its parent. Returns the number of steps, at most n, by ascending depth. */
uint32_t draft_steps(const struct step_draft *, uint32_t n, struct draft_step *out);

#define DRAFT_DEPTHS VERIFY_NODES

struct depth_counts {
    uint64_t verified, accepted; /* of all verified steps at this depth */
    uint64_t tried, passed;      /* of those after accepted steps */
};

struct draft_counts {
    uint32_t layers;
    uint64_t *accepted, *others; /* (layers + 1) steps by exit layer; others: rejected or not verified; owned */
    uint64_t steps, elsewhere;   /* elsewhere: steps without an exit layer */
    struct depth_counts depth[DRAFT_DEPTHS + 1];
    uint32_t deepest;
    struct calibration calibration; /* of tried steps */
};

bool draft_counts_open(struct draft_counts *, uint32_t layers); /* empty; false: out of memory */
void draft_counts_close(struct draft_counts *);
void draft_counts_reset(struct draft_counts *);
void draft_counts_add(struct draft_counts *, const struct draft_step *);
uint64_t draft_counts_most(const struct draft_counts *); /* the most steps of one exit layer */

struct aggregates {
    struct draft_counts drafts;
    struct positions positions;
    uint64_t rounds;
    uint64_t forecasts; /* drafts with a forecast of the block drafter's confidence head, in place of a probability */
    /* (layers + 1) asked: positions with a known final prediction where both heads were probed (with the lens alone:
     * all probed ones); spurious: those where the head (0: lens, 1: trained) was confident and wrong; owned */
    uint64_t *asked, *spurious[2];
    float low, high; /* range of the thresholds; NAN: none */
};

bool aggregates_open(struct aggregates *, uint32_t layers); /* empty; false: out of memory */
void aggregates_close(struct aggregates *);
void aggregates_reset(struct aggregates *);

const struct aggregates *scope_run_aggregates(const struct scope *);
const struct aggregates *scope_segment_aggregates(const struct scope *); /* of the newest segment */
/* Sums rounds first … last of the sequence in focus, as far as they are in memory. */
void scope_aggregate(const struct scope *, uint32_t first, uint32_t last, struct aggregates *);
