/* LayerSkip's self-speculation (METHODS §2): draft with layers 1..E and the head at E, a fixed number of tokens γ;
 * verification runs layers E+1..L on all rows in one pass, on the keys, values and hidden states that drafting left. */
#include <math.h>

#include "policies/chain.h"
#include "policies/policy.h"

enum { KNOB_E = CHAIN_KNOB_EXIT, KNOB_GAMMA };

static bool
layerskip_open(struct policy *p, const struct model_info *model, const struct policy_args *args, struct err *err)
{
    (void)args;
    return chain_exit_knob(p, model, err) && policy_knob(p, &(struct knob){.name = "gamma",
                                                                           .symbol = "γ",
                                                                           .kind = KNOB_INTEGER,
                                                                           .min = 1,
                                                                           .max = 32,
                                                                           .step = 1,
                                                                           .def = 5,
                                                                           .help = "tokens drafted a round"});
}

static bool
layerskip_draft(struct policy *p, struct round *r)
{
    const struct chain_rule rule = {.exit_layer = (uint32_t)p->value[KNOB_E], .most = (uint32_t)p->value[KNOB_GAMMA]};
    uint32_t drafted;
    enum chain_stop stop;
    if (!chain_draft(r, &rule, &drafted, &stop))
        return false;
    round_summary(r, stop == CHAIN_BUDGET ? "budget" : "gamma", (int)rule.exit_layer, NAN, -1, (int)rule.most);
    return true;
}

extern const struct policy_ops policy_layerskip;
const struct policy_ops policy_layerskip = {
    .name = "layerskip",
    .title = "LayerSkip: fixed exit, fixed length",
    .paper = "Elhoushi et al. 2024, arXiv:2404.16710",
    .open = layerskip_open,
    .draft = layerskip_draft,
};
