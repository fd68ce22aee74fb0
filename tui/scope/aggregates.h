/* What is counted of rounds: where drafts left and how far they were accepted, how well their confidence told so, and how often a
 * layer was sure of a wrong token. Of the run and of the newest segment they are summed as rounds come, over all sequences
 * (of two settings those in focus); of other rounds, as far as they are held, when they are asked for. */
#ifndef TUI_SCOPE_AGGREGATES_H
#define TUI_SCOPE_AGGREGATES_H

#include "tui/scope/draft_steps.h"
#include "tui/scope/scope.h"

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
