/* SpecDec++ (docs/methods.md: SpecDec++): a draft model goes on until its acceptance head finds it likely that the target
 * will reject one of the candidates. */
#include <math.h>

#include "engine/session/round.h"
#include "policies/policy.h"

enum { KNOB_H, KNOB_MIN, KNOB_MAX };

#define MOST 32 /* drafts */

static bool
specdecpp_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "h", "h", 0, 1, 0.01, 0.7,
                         "stop when a rejection among the drafts is likelier than this") &&
           policy_number(p, "min", "min", 1, MOST, 1, 2, "least drafts a round") &&
           policy_number(p, "max", "max", 1, MOST, 1, 20, "most drafts a round") &&
           policy_series(p, "p", "p̂", SERIES_DRAFTS, 1, MOST) &&
           policy_series(p, "reject", "1 − Π p̂ against h", SERIES_DRAFTS, 2, MOST) &&
           policy_series(p, "stop", "1 − Π p̂ at the end, and h", SERIES_BAND, 1, 1);
}

/* A node's row, through the draft model. SLOT_NONE: stop now. */
static slot_t
run_row(struct round *draft, int32_t node)
{
    const slot_t row = round_slot(draft, node);
    return row != SLOT_NONE && context_advance(draft->ctx, &row, 1, draft->exit_layer, NULL) ? row : SLOT_NONE;
}

/* The next candidate after a node. -1: stop now. */
static int32_t
propose(struct round *draft, int32_t node)
{
    const slot_t row = run_row(draft, node);
    const struct context_probe probe = {.slot = row, .layer = draft->exit_layer, .temperature = 1};
    struct proposal next = {.parent = node, .exit_layer = draft->exit_layer};
    struct guess g;
    if (row == SLOT_NONE || !round_guess(draft, &probe, 1, &g) ||
        !round_choose(draft, row, draft->exit_layer, &g, &next.token, &next.q))
        return -1;
    next.guess = &g;
    return round_propose(draft, &next);
}

/* Every candidate's row runs, the last one's too: p̂ is read from it. Candidates are kept whatever p̂ says: dropping one for
 * its own value would favour others. */
static bool
specdecpp_draft(struct policy *p, struct round *r)
{
    const double h = p->value[KNOB_H];
    const uint32_t least = (uint32_t)p->value[KNOB_MIN], most = (uint32_t)p->value[KNOB_MAX];
    struct round *draft = round_model(r, HELPER_DRAFT);
    if (draft == NULL)
        return false;
    const char *reason = NULL;
    double all = 1; /* Π p̂ */
    uint32_t judged = 0;
    for (int32_t node = 0; reason == NULL && !round_full(r); judged++) {
        if ((node = propose(draft, node)) < 0)
            return false;
        if (round_slot(r, node) == SLOT_NONE) /* a token that the target lacks: nothing to judge */
            break;
        double accepted;
        const slot_t row = run_row(draft, node);
        if (row == SLOT_NONE || !round_acceptance(draft, row, &accepted))
            return false;
        all *= accepted;
        round_report(r, "p", (int)judged, accepted);
        round_report(r, "reject", (int)judged, 1 - all);
        round_report(r, "reject", MOST + (int)judged, h);
        if (1 - all > h && judged + 1 >= least)
            reason = "h";
        else if (judged + 1 >= most)
            reason = "max";
    }
    round_report(r, "stop", 0, judged > 0 ? 1 - all : NAN);
    round_report(r, "stop", 1, h);
    round_summary(draft, reason != NULL ? reason : "budget", (int)draft->exit_layer, NAN, -1, (int)most);
    return true;
}

extern const struct policy_ops policy_specdecpp;
const struct policy_ops policy_specdecpp = {
    .name = "specdecpp",
    .title = "SpecDec++: drafts while acceptance is likely",
    .paper = "Huang et al. 2024, arXiv:2405.19715",
    .needs = NEEDS(HELPER_DRAFT) | NEEDS_ACCEPT_HEAD,
    .open = specdecpp_open,
    .draft = specdecpp_draft,
};
