#include "policies/chain.h"

#include <math.h>

bool
chain_exit_knob(struct policy *p, const struct model_info *model, struct err *err)
{
    if (model->layers < 2)
        return err_set(err, ERR_WORK, "%s needs a model of 2 layers or more, this one has %u", p->info.name,
                       (unsigned)model->layers);
    return policy_knob(p, &(struct knob){.name = "exit_layer",
                                         .symbol = "E",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = model->layers - 1,
                                         .step = 1,
                                         .def = fmax(1, floor(model->layers / 4.0)),
                                         .help = "draft with layers 1..E, then the head"});
}

bool
chain_draft(struct round *r, const struct chain_rule *rule, uint32_t *drafted, enum chain_stop *stop)
{
    int32_t node = 0;
    *drafted = 0;
    *stop = CHAIN_MOST;
    while (*drafted < rule->most) {
        if (round_full(r)) {
            *stop = CHAIN_BUDGET;
            return true;
        }
        slot_t row = round_slot(r, node);
        const struct context_probe probe = {.slot = row, .layer = rule->exit_layer, .temperature = 1};
        struct guess g;
        if (!round_advance(r, &row, 1, rule->exit_layer, NULL) || !round_guess(r, &probe, 1, &g))
            return false;
        if ((double)g.confidence < rule->stop_before) {
            *stop = CHAIN_CONFIDENCE;
            return true;
        }
        struct proposal draft = {.parent = node, .exit_layer = rule->exit_layer, .guess = &g};
        if (!round_choose(r, row, rule->exit_layer, &g, &draft.token, &draft.q) ||
            (node = round_propose(r, &draft)) < 0)
            return false;
        ++*drafted;
        if ((double)g.confidence < rule->stop_after) {
            *stop = CHAIN_CONFIDENCE;
            return true;
        }
    }
    return true;
}
