/* SpecDec++ (docs/policies/specdecpp.md): a draft model drafts until its acceptance head finds it likely that the
 * target will reject one of the candidates. */
#include <math.h>

#include "engine/events/policy.h"
#include "policies/chain.h"

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

struct batch {
    struct policy *const *policy;
    struct round *const *round; /* the target's */
    double all[ROUNDS_MOST];    /* Π p̂ of each sequence's candidates */
    uint32_t judged[ROUNDS_MOST];
};

/* Returns whether drafting ends after so many candidates, of which one is rejected with this probability. */
static bool
ends(double reject, uint32_t drafted, const double *value)
{
    return reject > value[KNOB_H] && drafted >= (uint32_t)value[KNOB_MIN];
}

/* A candidate is drafted for any p̂: dropping it for its own value would favour other tokens. */
static void
judge(struct batch *b, struct chain_end *c, double accepted)
{
    struct round *r = b->round[c->chain];
    const double *value = b->policy[c->chain]->value;
    const uint32_t at = b->judged[c->chain]++;
    const double reject = 1 - (b->all[c->chain] *= accepted);
    round_report(r, "p", (int)at, accepted);
    round_report(r, "reject", (int)at, reject);
    round_report(r, "reject", MOST + (int)at, value[KNOB_H]);
    if (ends(reject, at + 1, value))
        c->reason = "h";
}

/* Runs every candidate's row, because p̂ is computed from it. */
static bool
specdecpp_proposed(void *user, struct chain_end *const *chains, uint32_t n)
{
    struct batch *b = user;
    struct chain_end *some[ROUNDS_MOST] = {NULL};
    slot_t rows[ROUNDS_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (round_slot(b->round[chains[i]->chain], chains[i]->node) != SLOT_NONE)
            some[count++] = chains[i];
        else
            chains[i]->reason = "vocabulary"; /* the target lacks the token, so it has no row and no draft follows */
    if (!chain_run(some, count, chains[0]->round->exit_layer, rows))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        double accepted;
        if (!round_acceptance(some[i]->round, rows[i], &accepted))
            return false;
        judge(b, some[i], accepted);
    }
    return true;
}

static bool
specdecpp_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct round *draft[ROUNDS_MOST];
    struct chain_rule rules[ROUNDS_MOST];
    struct batch b = {.policy = p, .round = r};
    if (!rounds_model(r, n, AUX_DRAFT, draft))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        b.all[i] = 1;
        rules[i] = (struct chain_rule){.exit_layer = draft[i]->exit_layer,
                                       .most = (uint32_t)p[i]->value[KNOB_MAX],
                                       .full = "max",
                                       .threshold = NAN};
    }
    if (!chain_draft(draft, n, rules, &(struct chain_hook){specdecpp_proposed, &b}))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        round_report(r[i], "stop", 0, b.judged[i] > 0 ? 1 - b.all[i] : NAN);
        round_report(r[i], "stop", 1, p[i]->value[KNOB_H]);
    }
    return true;
}

static bool
specdecpp_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    struct what_if w;
    what_if_begin(&w, record, out);
    while (record->draft.acceptance && what_if_round(&w)) {
        double all = 1;
        for (bool over = false; !over && w.drafted < (uint32_t)value[KNOB_MAX] && !what_if_full(&w);) {
            what_if_draft(&w);
            all *= what_if_acceptance(&w);
            over = ends(1 - all, w.drafted, value);
        }
        what_if_verify(&w);
    }
    return true;
}

const struct policy_ops policy_specdecpp = {
    .name = "specdecpp",
    .title = "SpecDec++: drafts while acceptance is likely",
    .paper = "Huang et al. 2024, arXiv:2405.19715",
    .needs = NEEDS(AUX_DRAFT) | NEEDS_ACCEPT_HEAD,
    .open = specdecpp_open,
    .draft_vocab = KNOB_MAX + 1,
    .draft = specdecpp_draft,
    .what_if = specdecpp_what_if,
    .no_command = "it has no acceptance head for a draft model",
};
