/* What is counted of rounds: where drafts left and how far they were accepted, how well their confidence told so, and how often a
 * layer was sure of a wrong token. Of the run and of the newest segment they are summed as rounds come, over all sequences
 * (of two settings those in focus); of other rounds, as far as they are held, when they are asked for. */
#ifndef TUI_SCOPE_AGGREGATES_H
#define TUI_SCOPE_AGGREGATES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/events/event.h"
#include "tui/scope/scope.h"

/* What is counted of drafts, for panels and figures alike: intervals of shares, and confidence against acceptance. Lies below the
 * scope and knows nothing of it. */

/* Wilson's interval of 95% of a share of `of` trials that came out well `n` times. Without trials: 0 and 1. */
void share_interval(uint64_t n, uint64_t of, double *low, double *high);

/* Confidence against what came of it, in bins of equal width over [0, 1]. */
#define CALIBRATION_BINS 10

struct calibration {
    uint64_t n[CALIBRATION_BINS], right[CALIBRATION_BINS];
    double confidence[CALIBRATION_BINS]; /* sums */
    uint64_t all;
};

int calibration_bin(double confidence); /* -1: not within [0, 1] */
/* Confidences outside [0, 1] don't count. */
void calibration_add(struct calibration *, double confidence, int right);
/* Expected calibration error: sum over bins of n / all * |right / n - mean confidence|. NAN: nothing was added. */
double calibration_error(const struct calibration *);

/* A round's drafts as steps, and what is counted of them: where they left, how far they were accepted, how well their
 * confidence told so. Lies below the scope and knows nothing of it. */

struct step_draft {            /* a draft, as its TOKEN and VERDICT events tell it */
    int32_t parent, candidate; /* node numbers within the round; parent 0: the pending token */
    int32_t exit_layer;        /* below 1: of no layer of the target */
    float confidence;
    int8_t accepted; /* -1: not verified */
};

/* Drafts at one depth count as one: a chain's are its drafts, a tree's the tokens on its longest path (docs/methods.md,
 * Measures). */
struct draft_step {
    uint32_t depth;     /* 1 for a child of the pending token */
    int32_t exit_layer; /* of the accepted one, else of the first; below 1: of none */
    float confidence;
    int8_t accepted; /* -1: none was verified */
    bool tried;      /* verified, and so was accepted all before it: the verdict is about this step */
};

/* All drafts of a round, in the order of their candidates, so that parents stand before children; a draft without its
 * parent is passed over. Returns how many steps there are: at most n, by ascending depth. */
uint32_t draft_steps(const struct step_draft *, uint32_t n, struct draft_step *out);

#define DRAFT_DEPTHS VERIFY_NODES

struct depth_counts {
    uint64_t verified, accepted; /* of all steps at this depth that were verified */
    uint64_t tried, passed;      /* of those behind accepted ones alone */
};

struct draft_counts {
    uint32_t layers;
    uint64_t *accepted, *others; /* (layers + 1) steps by exit layer; others: rejected or not verified; owned */
    uint64_t steps, elsewhere;   /* elsewhere: of them, those that left at none of these layers */
    struct depth_counts depth[DRAFT_DEPTHS + 1];
    uint32_t deepest;
    struct calibration calibration; /* of tried ones */
};

bool draft_counts_open(struct draft_counts *, uint32_t layers); /* empty; false: out of memory */
void draft_counts_close(struct draft_counts *);
void draft_counts_reset(struct draft_counts *);
void draft_counts_add(struct draft_counts *, const struct draft_step *);
uint64_t draft_counts_most(const struct draft_counts *); /* steps of one exit layer */

struct aggregates {
    struct draft_counts drafts;
    uint64_t rounds;
    /* (layers + 1) by head, 0 the lens, 1 trained: positions where the last layer's word is known and both heads were asked (all that
     * were, where there is only the lens), and of them those where this one was sure and wrong. Owned. */
    uint64_t *asked, *spurious[2];
    float low, high; /* thresholds in force; NAN: none */
};

bool aggregates_open(struct aggregates *, uint32_t layers); /* empty; false: out of memory, and closed */
void aggregates_close(struct aggregates *);
void aggregates_reset(struct aggregates *);

const struct aggregates *scope_run_aggregates(const struct scope *);
const struct aggregates *scope_segment_aggregates(const struct scope *); /* of the newest one */
/* Of the rounds with these numbers, of the sequence in focus, as far as they are held. */
void scope_aggregate(const struct scope *, uint32_t first, uint32_t last, struct aggregates *);

#endif
