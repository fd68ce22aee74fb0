/* Drafting a chain at one fixed exit layer, for layerskip, fsm, dv, del and the policies with a draft model
 * (docs/policies/layerskip.md, DEL). */
#pragma once

#include "engine/session/round.h"
#include "policies/what_if.h"

#define CHAIN_KNOB_EXIT 0 /* index of the knob that chain_exit_knob() declares: it comes first */

/* Declares `exit_layer` in [1, L - 1], a quarter of the depth by default. */
bool chain_exit_knob(struct policy *, const struct model_info *);

/* If a prediction is below the threshold, drafting continues, stops before it, or stops after it. */
enum chain_below { CHAIN_CONTINUES, CHAIN_STOPS_BEFORE, CHAIN_STOPS_AFTER };

struct chain_rule {
    uint32_t exit_layer; /* E */
    uint32_t most;       /* drafts */
    const char *full;    /* the reason for stopping at `most`: "gamma", "w_max" */
    double threshold;    /* of confidence; NAN: none */
    enum chain_below below;
};

/* The last draft of a chain; its row is at depth 0 after it was proposed. */
struct chain_end {
    struct round *round;
    uint32_t chain;     /* its index */
    int32_t node;       /* its end */
    const char *reason; /* why it ended, a constant; NULL: it continues */
};
/* A further rule, called after each step with the new drafts. */
struct chain_hook {
    bool (*proposed)(void *user, struct chain_end *const *, uint32_t n); /* sets reasons. False: stop now */
    void *user;
};

/* Runs n tokens, at most VERIFY_NODES, after the first `from` of the text in a fork, which it drops again, and returns
 * what the last of the layers predicts after each. plan may be NULL. */
bool chain_rerun(struct round *, uint32_t from, const token_t *, uint32_t n, uint32_t layers, const struct plan *,
                 struct prediction *);

/* Drafts n chains in step, each by its own rule (all with the same E), and writes their rounds' summaries. Each draft's
 * row runs layers 1..E before the next draft; the last draft's row stays at depth 0, unless drafting stopped before a
 * token, or the hook ran it. The hook may be NULL. False: stop now. */
bool chain_draft(struct round *const *, uint32_t n, const struct chain_rule *rules, const struct chain_hook *);
/* Drafts n chains of `most` tokens in step by an auxiliary model, with knob "k". */
bool chain_draft_aux(struct round *const *, uint32_t n, enum aux_role, uint32_t most);
/* Runs the rows of the chains' ends through layers 1..to. */
bool chain_run(struct chain_end *const *, uint32_t n, uint32_t to, slot_t *rows);
/* Drafts on a record; the caller verifies. */
void chain_what_if(struct what_if *, const struct chain_rule *);
/* The same for `most` drafts of the record's draft model. */
void chain_what_if_drafted(struct what_if *, uint32_t most);
/* Simulates rounds of such chains; returns true. There are none if the record has no drafter of this role. */
bool chain_what_if_aux(const struct layer_record *, enum aux_role, uint32_t most, struct tally *out);
