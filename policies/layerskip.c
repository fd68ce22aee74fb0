/* LayerSkip's self-speculation (docs/policies/layerskip.md): draft with layers 1..E and the head at E, a
 * fixed number of tokens γ; verification runs layers E+1..L on all rows in one pass, with the keys, values and hidden
 * states of drafting. */
#include <math.h>

#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/engine_commands.h"

enum { KNOB_E = CHAIN_KNOB_EXIT, KNOB_GAMMA };

static bool
layerskip_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)sampling, (void)err;
    return chain_exit_knob(p, model) && policy_number(p, "gamma", "γ", 1, 32, 1, 5, "tokens drafted a round");
}

static struct chain_rule
rule_of(const double *value)
{
    return (struct chain_rule){
        .exit_layer = (uint32_t)value[KNOB_E], .most = (uint32_t)value[KNOB_GAMMA], .full = "gamma", .threshold = NAN};
}

static bool
layerskip_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct chain_rule rules[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++)
        rules[i] = rule_of(p[i]->value);
    return chain_draft(r, n, rules, NULL);
}

static bool
layerskip_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    const struct chain_rule rule = rule_of(value);
    struct what_if w;
    what_if_begin(&w, record, out);
    while (what_if_round(&w)) {
        chain_what_if(&w, &rule);
        what_if_verify(&w);
    }
    return true;
}

const struct policy_ops policy_layerskip = {
    .name = "layerskip",
    .title = "LayerSkip: fixed exit, fixed length",
    .paper = "Elhoushi et al. 2024, arXiv:2404.16710",
    .least_layers = 2,
    .open = layerskip_open,
    .draft_vocab = KNOB_GAMMA + 1,
    .draft = layerskip_draft,
    .what_if = layerskip_what_if,
    .command[ENGINE_TRANSFORMERS] = LOAD DRAFTS("model", "<gamma>", "constant", "0") EXIT,
    .no_command = "it cannot draft with the target's first layers",
};
