/* Autoregressive: no drafts; one row through all layers a token. The baseline of every ratio. */
#include "policies/policy.h"

static bool
ar_draft(struct policy *p, struct round *r)
{
    (void)p, (void)r;
    return true;
}

extern const struct policy_ops policy_ar;
const struct policy_ops policy_ar = {
    .name = "ar",
    .title = "autoregressive",
    .paper = "",
    .draft = ar_draft,
};
