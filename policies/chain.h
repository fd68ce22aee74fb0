/* Drafting a chain at one fixed exit layer: what layerskip, fsm, dv and del share (METHODS §2, §4). */
#ifndef POLICIES_CHAIN_H
#define POLICIES_CHAIN_H

#include "engine/session/round.h"

#define CHAIN_KNOB_EXIT 0 /* index of the knob that chain_exit_knob() declares: it comes first */

/* Declares `exit_layer` in [1, L - 1], a quarter of the depth by default. False for a model of one layer. */
bool chain_exit_knob(struct policy *, const struct model_info *, struct err *);

struct chain_rule {
    uint32_t exit_layer; /* E */
    uint32_t most;       /* drafts */
    double stop_before;  /* a token of less confidence is not taken; 0: all are */
    double stop_after;   /* a token of less confidence is taken and the last one; 0: none is */
};

enum chain_stop { CHAIN_MOST, CHAIN_CONFIDENCE, CHAIN_BUDGET };

/* Each draft's row runs layers 1..E when the next one is asked for; the last draft's row stays at depth 0, unless
 * drafting stopped before a token. False: stop now. */
bool chain_draft(struct round *, const struct chain_rule *, uint32_t *drafted, enum chain_stop *);

#endif
