/* Speculative decoding with a draft model (docs/methods.md: Speculative decoding): a fixed number of tokens K, from a
 * model of its own or from the target's own first layers. */
#include <math.h>

#include "policies/chain.h"
#include "policies/policy.h"

enum { KNOB_K };

static bool
sd_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, 32, 1, 5, "tokens drafted a round");
}

static bool
sd_draft(struct policy *p, struct round *r)
{
    struct round *draft = round_model(r, HELPER_DRAFT);
    if (draft == NULL)
        return false;
    const struct chain_rule rule = {
        .exit_layer = draft->exit_layer, .most = (uint32_t)p->value[KNOB_K], .full = "k", .threshold = NAN};
    return chain_draft(draft, &rule);
}

extern const struct policy_ops policy_sd;
const struct policy_ops policy_sd = {
    .name = "sd",
    .title = "speculative decoding with a draft model",
    .paper = "Leviathan et al. 2023, arXiv:2211.17192",
    .needs = NEEDS(HELPER_DRAFT),
    .open = sd_open,
    .draft = sd_draft,
};
