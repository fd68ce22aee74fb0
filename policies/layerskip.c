/* LayerSkip's self-speculation (METHODS §2): draft with layers 1..E and the head at E, a fixed number of tokens γ;
 * verification runs layers E+1..L on all rows in one pass, on the keys, values and hidden states that drafting left. */
#include <math.h>

#include "engine/round.h"
#include "policies/policy.h"

enum { KNOB_E, KNOB_GAMMA };

static bool
layerskip_open(struct policy *p, const struct model_info *model, const struct policy_args *args, struct err *err)
{
    (void)args;
    if (model->layers < 2)
        return err_set(err, ERR_WORK, "layerskip needs a model of 2 layers or more, this one has %u",
                       (unsigned)model->layers);
    double quarter = fmax(1, floor(model->layers / 4.0));
    return policy_knob(p, &(struct knob){.name = "exit_layer",
                                         .symbol = "E",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = model->layers - 1,
                                         .step = 1,
                                         .def = quarter,
                                         .help = "draft with layers 1..E, then the head"}) &&
           policy_knob(p, &(struct knob){.name = "gamma",
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
    uint32_t exit_layer = (uint32_t)p->value[KNOB_E], gamma = (uint32_t)p->value[KNOB_GAMMA];
    int32_t node = 0;
    for (uint32_t i = 0; i < gamma && !round_full(r); i++) {
        slot_t row = round_slot(r, node);
        struct guess g;
        struct proposal draft = {.parent = node, .exit_layer = exit_layer, .guess = &g};
        if (!round_advance(r, &row, 1, exit_layer, NULL) ||
            !round_guess(r, &(struct context_probe){.slot = row, .layer = exit_layer, .temperature = 1}, 1, &g) ||
            !round_choose(r, row, exit_layer, 0, &g, &draft.token, &draft.q) || (node = round_propose(r, &draft)) < 0)
            return false;
    }
    round_summary(r, round_full(r) ? "budget" : "gamma", (int)exit_layer, NAN, -1, (int)gamma);
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
