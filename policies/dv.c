/* Draft & Verify's adaptive threshold on a fixed exit layer (docs/policies/layerskip.md): drafting stops
 * *after* the token whose confidence is below th, and th follows the acceptance of past rounds:
 *
 *   m̄  ← 0.5 m̄ + 0.5 m,  m = accepted / drafted
 *   th' = th + ε if m̄ < target;  th if the longest draft was reached;  else th − ε
 *   th ← 0.9 th + 0.1 th' */
#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/engine_commands.h"

enum { KNOB_E = CHAIN_KNOB_EXIT, KNOB_TH, KNOB_TARGET, KNOB_EPSILON, KNOB_BETA_M, KNOB_BETA_TH, KNOB_MOST };

struct dv {
    double th, mean; /* th, m̄ */
    double start;    /* the knob's value that th began from; another value begins again; -1: not begun */
};

static bool
dv_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)err;
    double th = sampling->temperature > 0 ? 0.5 : 0.8;
    return chain_exit_knob(p, model) &&
           policy_number(p, "th", "th₀", 0, 1, 0.01, th, "first threshold; a draft of less confidence is the last") &&
           policy_number(p, "target", "m*", 0, 1, 0.01, 0.9, "target of the mean acceptance") &&
           policy_number(p, "epsilon", "ε", 0, 0.2, 0.001, 0.01, "step of the threshold") &&
           policy_number(p, "beta_m", "β_m", 0, 0.99, 0.01, 0.5, "weight of the past in the mean acceptance") &&
           policy_number(p, "beta_th", "β_th", 0, 0.99, 0.01, 0.9, "weight of the past in the threshold") &&
           policy_number(p, "w_max", "w_max", 1, 32, 1, 12, "most drafts in a round") &&
           policy_series(p, "th", "threshold th", SERIES_LINE, 1, 1) &&
           policy_series(p, "matched", "mean acceptance", SERIES_LINE, 1, 1);
}

static bool
dv_prefilled(struct policy *p, struct round *r)
{
    (void)r;
    *(struct dv *)p->state = (struct dv){.start = -1};
    return true;
}

static struct chain_rule
begin_round(struct dv *d, const double *value)
{
    if (d->start != value[KNOB_TH])
        *d = (struct dv){.th = value[KNOB_TH], .start = value[KNOB_TH]};
    return (struct chain_rule){.exit_layer = (uint32_t)value[KNOB_E],
                               .most = (uint32_t)value[KNOB_MOST],
                               .full = "w_max",
                               .threshold = d->th,
                               .below = CHAIN_STOPS_AFTER};
}

/* Learns from the verdict of a round that the text's end did not cut. */
static void
learn(struct dv *d, const double *value, uint32_t drafted, uint32_t accepted)
{
    if (drafted == 0)
        return;
    const double beta = value[KNOB_BETA_M], epsilon = value[KNOB_EPSILON];
    d->mean = beta * d->mean + (1 - beta) * ((double)accepted / drafted);
    const bool longest = drafted == (uint32_t)value[KNOB_MOST];
    const double th = d->mean < value[KNOB_TARGET] ? d->th + epsilon : longest ? d->th : d->th - epsilon;
    d->th = value[KNOB_BETA_TH] * d->th + (1 - value[KNOB_BETA_TH]) * th;
}

static bool
dv_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct chain_rule rules[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++) {
        const struct dv *d = p[i]->state;
        rules[i] = begin_round(p[i]->state, p[i]->value);
        round_report(r[i], "th", 0, d->th);
        round_report(r[i], "matched", 0, d->mean);
    }
    return chain_draft(r, n, rules, NULL);
}

static bool
dv_observe(struct policy *p, struct round *r)
{
    if (!r->cut)
        learn(p->state, p->value, r->drafted, r->accepted);
    return true;
}

static bool
dv_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    struct dv d = {.start = -1};
    if (layer_record_follows(record, "dv", 2))
        d = (struct dv){record->series[0], record->series[1], record->value[KNOB_TH]};
    struct what_if w;
    what_if_begin(&w, record, out);
    while (what_if_round(&w)) {
        const struct chain_rule rule = begin_round(&d, value);
        chain_what_if(&w, &rule);
        what_if_verify(&w);
        if (!w.cut)
            learn(&d, value, w.drafted, w.accepted);
    }
    return true;
}

const struct policy_ops policy_dv = {
    .name = "dv",
    .title = "Draft & Verify's adaptive threshold",
    .paper = "Zhang et al. 2024, arXiv:2309.08168",
    .least_layers = 2,
    .state_size = sizeof(struct dv),
    .open = dv_open,
    .draft_vocab = KNOB_MOST + 1,
    .prefilled = dv_prefilled,
    .draft = dv_draft,
    .observe = dv_observe,
    .what_if = dv_what_if,
    .estimates = true,
    .command[ENGINE_TRANSFORMERS] = LOAD DRAFTS("model", "<w_max>", "constant", "<th>") EXIT,
    .no_command = "it cannot draft with the target's first layers",
};
