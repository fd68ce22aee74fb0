#include "policies/chain.h"

#include <math.h>

bool
chain_exit_knob(struct policy *p, const struct model_info *model)
{
    return policy_number(p, "exit_layer", "E", 1, model->layers - 1, 1, fmax(1, floor(model->layers / 4.0)),
                         "draft with layers 1..E, then the head");
}

bool
chain_draft(struct round *r, const struct chain_rule *rule)
{
    const char *reason = rule->full;
    int32_t node = 0;
    for (uint32_t drafted = 0; drafted < rule->most; drafted++) {
        if (round_full(r)) {
            reason = "budget";
            break;
        }
        slot_t row = round_slot(r, node);
        const struct context_probe probe = {.slot = row, .layer = rule->exit_layer, .temperature = 1};
        struct guess g;
        if (!context_advance(r->ctx, &row, 1, rule->exit_layer, NULL) || !round_guess(r, &probe, 1, &g))
            return false;
        const bool unsure = rule->below != CHAIN_GOES_ON && (double)g.confidence < rule->threshold;
        if (unsure)
            reason = "threshold";
        if (unsure && rule->below == CHAIN_STOPS_BEFORE)
            break;
        struct proposal draft = {.parent = node, .exit_layer = rule->exit_layer, .guess = &g};
        if (!round_choose(r, row, rule->exit_layer, &g, &draft.token, &draft.q) ||
            (node = round_propose(r, &draft)) < 0)
            return false;
        if (unsure)
            break;
    }
    round_summary(r, reason, (int)rule->exit_layer, rule->threshold, -1, (int)rule->most);
    return true;
}
