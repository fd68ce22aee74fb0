/* Autoregressive: no drafts; one row through all layers a token. The baseline of every ratio. */
#include <math.h>

#include "engine/session/round.h"
#include "policies/policy.h"

static bool
ar_open(struct policy *p, const struct model_info *model, const struct policy_args *args, struct err *err)
{
    (void)p, (void)model, (void)args, (void)err;
    return true;
}

static bool
ar_draft(struct policy *p, struct round *r)
{
    (void)p;
    round_summary(r, "", -1, NAN, -1, -1);
    return true;
}

extern const struct policy_ops policy_ar;
const struct policy_ops policy_ar = {
    .name = "ar",
    .title = "autoregressive",
    .paper = "",
    .open = ar_open,
    .draft = ar_draft,
};
