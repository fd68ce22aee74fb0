/* A round's drafts as steps, and what is counted of them: where they left, how far they were accepted, how well their
 * confidence told so. Lies below the scope and knows nothing of it. */
#ifndef TUI_SCOPE_DRAFT_STEPS_H
#define TUI_SCOPE_DRAFT_STEPS_H

#include <stdbool.h>

#include "engine/events/event.h"
#include "tui/scope/statistics.h"

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

#endif
