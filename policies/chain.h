/* Drafting a chain at one fixed exit layer: what layerskip, fsm, dv and del share (docs/methods.md: The LayerSkip
 * family, DEL). */
#ifndef POLICIES_CHAIN_H
#define POLICIES_CHAIN_H

#include "engine/session/round.h"
#include "policies/what_if.h"

#define CHAIN_KNOB_EXIT 0 /* index of the knob that chain_exit_knob() declares: it comes first */

/* Declares `exit_layer` in [1, L - 1], a quarter of the depth by default. */
bool chain_exit_knob(struct policy *, const struct model_info *);

/* A token below the threshold: as any other; not taken, and drafting stops; taken, and drafting stops. */
enum chain_below { CHAIN_GOES_ON, CHAIN_STOPS_BEFORE, CHAIN_STOPS_AFTER };

struct chain_rule {
    uint32_t exit_layer; /* E */
    uint32_t most;       /* drafts */
    const char *full;    /* why drafting stopped when there are as many: "gamma", "w_max" */
    double threshold;    /* of confidence; NAN: none */
    enum chain_below below;
};

/* Looks at drafts that were just proposed, by a rule of its own: one of each chain that goes on, `node` of `round`, row
 * at depth 0. */
struct chain_end {
    struct round *round;
    uint32_t chain;     /* its index */
    int32_t node;       /* its end */
    const char *reason; /* why it stopped, a string that stays; NULL: it goes on */
};
struct chain_hook {
    bool (*proposed)(void *user, struct chain_end *const *, uint32_t n); /* sets reasons. False: stop now */
    void *user;
};

/* Drafts n chains in step, each by its own rule (all with the same E), and writes their rounds' summaries. Each draft's row
 * runs layers 1..E when the next one is asked for; the last draft's row stays at depth 0, unless drafting stopped before
 * a token, or the hook ran it. The hook may be NULL. False: stop now. */
bool chain_draft(struct round *const *, uint32_t n, const struct chain_rule *rules, const struct chain_hook *);
/* The rows of the chains' ends, through layers 1..to. */
bool chain_run(struct chain_end *const *, uint32_t n, uint32_t to, slot_t *rows);
/* The same on a record; it isn't verified yet. */
void chain_what_if(struct what_if *, const struct chain_rule *);

#endif
