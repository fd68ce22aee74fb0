/* LayerSkip with a length that follows acceptance, a finite-state machine (docs/policies/layerskip.md): γ
 * grows by one after a fully accepted round, up to a cap, and shrinks by one after a rejection, down to one. */
#include <math.h>

#include "engine/events/policy.h"
#include "policies/chain.h"
#include "policies/engine_commands.h"

enum { KNOB_E = CHAIN_KNOB_EXIT, KNOB_START, KNOB_CAP };

struct fsm {
    uint32_t gamma;
    double start; /* the knob's value that gamma began from; another value begins again; 0: not begun */
};

static bool
fsm_open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)sampling, (void)err;
    return chain_exit_knob(p, model) &&
           policy_number(p, "gamma", "γ₀", 1, 32, 1, 5, "first length; a change restarts from it") &&
           policy_number(p, "gamma_max", "γ_max", 1, 32, 1, 12, "largest length") &&
           policy_series(p, "gamma", "speculation length γ", SERIES_LINE, 1, 1);
}

static bool
fsm_prefilled(struct policy *p, struct round *r)
{
    (void)r;
    *(struct fsm *)p->state = (struct fsm){0};
    return true;
}

static struct chain_rule
begin_round(struct fsm *f, const double *value)
{
    if (f->start != value[KNOB_START])
        *f = (struct fsm){(uint32_t)value[KNOB_START], value[KNOB_START]};
    if (f->gamma > (uint32_t)value[KNOB_CAP])
        f->gamma = (uint32_t)value[KNOB_CAP];
    return (struct chain_rule){
        .exit_layer = (uint32_t)value[KNOB_E], .most = f->gamma, .full = "gamma", .threshold = NAN};
}

/* Learns from the verdict of a round that the text's end did not cut. */
static void
learn(struct fsm *f, const double *value, uint32_t drafted, uint32_t accepted)
{
    if (drafted == 0)
        return;
    if (accepted == drafted)
        f->gamma += f->gamma < (uint32_t)value[KNOB_CAP];
    else
        f->gamma -= f->gamma > 1;
}

static bool
fsm_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    struct chain_rule rules[ROUNDS_MOST];
    for (uint32_t i = 0; i < n; i++) {
        rules[i] = begin_round(p[i]->state, p[i]->value);
        round_report(r[i], "gamma", 0, rules[i].most);
    }
    return chain_draft(r, n, rules, NULL);
}

static bool
fsm_observe(struct policy *p, struct round *r)
{
    if (!r->cut)
        learn(p->state, p->value, r->drafted, r->accepted);
    return true;
}

static bool
fsm_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    struct fsm f = {0};
    if (layer_record_follows(record, "fsm", 1))
        f = (struct fsm){(uint32_t)record->series[0], record->value[KNOB_START]};
    struct what_if w;
    what_if_begin(&w, record, out);
    while (what_if_round(&w)) {
        const struct chain_rule rule = begin_round(&f, value);
        chain_what_if(&w, &rule);
        what_if_verify(&w);
        if (!w.cut)
            learn(&f, value, w.drafted, w.accepted);
    }
    return true;
}

const struct policy_ops policy_fsm = {
    .name = "fsm",
    .title = "LayerSkip with an adaptive length",
    .paper = "baseline of DEL, arXiv:2504.05598",
    .least_layers = 2,
    .state_size = sizeof(struct fsm),
    .open = fsm_open,
    .draft_vocab = KNOB_CAP + 1,
    .prefilled = fsm_prefilled,
    .draft = fsm_draft,
    .observe = fsm_observe,
    .what_if = fsm_what_if,
    .command[ENGINE_TRANSFORMERS] = LOAD DRAFTS("model", "<gamma>", "heuristic", "0") EXIT,
    .no_command = "it cannot draft with the target's first layers",
};
