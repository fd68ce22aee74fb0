/* LayerSkip with a length that follows acceptance, a finite-state machine (METHODS §2): γ grows by one after a fully
 * accepted round, up to a cap, and shrinks by one after a rejection, down to one. */
#include <math.h>
#include <stdlib.h>

#include "policies/chain.h"
#include "policies/policy.h"

enum { KNOB_E = CHAIN_KNOB_EXIT, KNOB_START, KNOB_CAP };

struct fsm {
    uint32_t gamma;
    double start; /* the knob that gamma began from: turning it begins again */
};

static bool
fsm_open(struct policy *p, const struct model_info *model, const struct policy_args *args, struct err *err)
{
    (void)args;
    p->state = calloc(1, sizeof(struct fsm));
    if (p->state == NULL)
        return err_set(err, ERR_WORK, "out of memory opening fsm");
    return chain_exit_knob(p, model, err) &&
           policy_knob(p, &(struct knob){.name = "gamma",
                                         .symbol = "γ₀",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = 32,
                                         .step = 1,
                                         .def = 5,
                                         .help = "length to begin with; turning it begins again"}) &&
           policy_knob(p, &(struct knob){.name = "gamma_max",
                                         .symbol = "γ_max",
                                         .kind = KNOB_INTEGER,
                                         .min = 1,
                                         .max = 32,
                                         .step = 1,
                                         .def = 12,
                                         .help = "the length grows no further"}) &&
           policy_series(p, "gamma", "speculation length γ", SERIES_LINE, 1, 1);
}

static bool
fsm_prefilled(struct policy *p, struct round *r)
{
    (void)r;
    *(struct fsm *)p->state = (struct fsm){.start = -1};
    return true;
}

static bool
fsm_draft(struct policy *p, struct round *r)
{
    struct fsm *f = p->state;
    if (f->start != p->value[KNOB_START])
        *f = (struct fsm){(uint32_t)p->value[KNOB_START], p->value[KNOB_START]};
    if (f->gamma > (uint32_t)p->value[KNOB_CAP])
        f->gamma = (uint32_t)p->value[KNOB_CAP];
    const struct chain_rule rule = {.exit_layer = (uint32_t)p->value[KNOB_E], .most = f->gamma};
    uint32_t drafted;
    enum chain_stop stop;
    if (!chain_draft(r, &rule, &drafted, &stop))
        return false;
    round_report(r, "gamma", 0, f->gamma);
    round_summary(r, stop == CHAIN_BUDGET ? "budget" : "gamma", (int)rule.exit_layer, NAN, -1, (int)f->gamma);
    return true;
}

static bool
fsm_observe(struct policy *p, struct round *r)
{
    struct fsm *f = p->state;
    if (r->cut || r->drafted == 0)
        return true;
    if (r->accepted == r->drafted)
        f->gamma += f->gamma < (uint32_t)p->value[KNOB_CAP];
    else
        f->gamma -= f->gamma > 1;
    return true;
}

static void
fsm_close(struct policy *p)
{
    free(p->state);
}

extern const struct policy_ops policy_fsm;
const struct policy_ops policy_fsm = {
    .name = "fsm",
    .title = "LayerSkip with an adaptive length",
    .paper = "baseline of DEL, arXiv:2504.05598",
    .open = fsm_open,
    .prefilled = fsm_prefilled,
    .draft = fsm_draft,
    .observe = fsm_observe,
    .close = fsm_close,
};
