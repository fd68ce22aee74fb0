/* Doctor's check of a model: what its steps cost here, and for each policy the forecast on a short text of its own,
 * with the reason where there is no gain (engine/measure/reason.h). */
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/generation/generation.h"
#include "engine/measure/reason.h"
#include "engine/scope/scope.h"
#include "policies/registry.h"

#define TOKENS   64  /* of the text */
#define COSTS_US 5e6 /* that measuring the costs may take; otherwise forecasts count weights */

struct model_check {
    struct live *live;   /* the source, which the scope's description belongs to */
    struct scope *scope; /* NULL before the first event */
    bool failed;
};

static void
take_event(void *user, const struct event *e)
{
    struct model_check *c = user;
    c->failed = c->failed || (c->scope == NULL && !scope_open(&c->scope, c->live->ops->info(c->live), NULL));
    if (!c->failed)
        scope_event(c->scope, e);
}

static void
add_costs(struct findings *f, const struct engine *e)
{
    const struct cost_model *c = &e->costs;
    const uint32_t layers = e->model->desc.n_layers;
    if (cost_known(c))
        doctor_add(f, FINDING_OK, "costs", "%.0f tokens/s by plain decoding; a probe of all tokens costs %.1f layers",
                   1e6 / cost_autoregressive(c, layers, c->context), c->us[COST_OF_PROBE][0] / c->us[COST_OF_LAYER][0]);
    else
        doctor_add(f, FINDING_NOTE, "costs",
                   "steps take too long to be measured here, so forecasts count weights; a probe of all tokens has the "
                   "weights of %.1f layers",
                   e->model->rho);
}

/* Adds a finding about a policy that has a forecast over the record. */
static void
add_policy(struct findings *f, const struct engine *e, const struct policy_info *info, const struct policy_ops *ops,
           const struct layer_record *r)
{
    const uint32_t layers = e->model->desc.n_layers;
    double value[POLICY_KNOBS];
    struct forecast forecast;
    struct reason_line line;
    char text[500];
    for (uint32_t k = 0; k < POLICY_KNOBS; k++)
        value[k] = k < info->n_knobs ? info->knobs[k].def : 0;
    if (!forecast_make(ops, r, value, e->model->rho, &e->costs, &forecast))
        return;
    const struct reason_rounds rounds = reason_simulated(&forecast, info, layers, e->model->rho);
    struct reason why = reason_find(&rounds, layers, e->model->rho, &e->costs, r);
    if (why.kind == REASON_NONE && !(forecast.speedup - 2 * forecast.se > 1)) /* a gain that is not clear */
        why.kind = REASON_NOISE;
    reason_print(&why, NULL, NULL, &line);
    doctor_add(f, why.kind == REASON_NONE ? FINDING_OK : FINDING_NOTE, ops->name, "%.2f× ±%.2f by forecast%s%s",
               (double)forecast.speedup, (double)forecast.se, line.n > 0 ? ": " : "",
               reason_text(&line, text, sizeof text));
}

static void
add_policies(struct findings *f, const struct engine *e, const struct scope *scope, bool trained)
{
    struct layer_record record = {.n = 0};
    const struct run_info *info = scope_info(scope);
    const char *lacks = NULL;
    if (!layer_record_open(&record, info->layers, NULL) || (lacks = scope_record(scope, &record)) != NULL)
        doctor_add(f, FINDING_NOTE, "policies", "no forecast: %s", lacks != NULL ? lacks : "out of memory");
    for (uint32_t i = 0; i < info->n_policies && record.n > 0; i++) {
        const struct policy_info *p = &info->policies[i];
        const struct policy_ops *ops = policy_named(policy_registry, p->name);
        if (!policy_is_baseline(p->name) && p->missing == 0 && info->layers >= ops->least_layers &&
            (e->heads == HEAD_LENS || ops->trained_heads == trained) && layer_record_lacks(&record, p->needs) == NULL)
            add_policy(f, e, p, ops, &record);
    }
    layer_record_close(&record);
}

/* Generates the text with all layers probed, by the lens or by trained heads. */
static bool
check_heads(struct findings *f, const struct options *o, struct engine *e, bool trained, struct err *err)
{
    struct model_check check = {.scope = NULL};
    struct outcome out;
    struct generation g = {.session = generation_options(o), .event = take_event, .user = &check};
    g.session.policy = POLICY_BASELINE;
    g.session.probe = PROBE_ALL;
    g.session.head = trained ? HEADS_TRAINED : HEADS_LENS;
    g.session.tokens = TOKENS;
    g.session.ignore_eos = true;
    g.session.sampling.top_p = 1;
    g.session.chat.on = generation_chat_unused(o, e);
    bool ok = session_open(&check.live, e, &g.session, err);
    g.live = check.live;
    ok = ok && generate(&g, &out, err);
    if (ok && check.scope != NULL)
        add_policies(f, e, check.scope, trained);
    if (ok)
        outcome_free(&out);
    scope_close(check.scope);
    live_close(check.live);
    return ok && (!check.failed || err_set(err, ERR_WORK, "out of memory"));
}

bool
doctor_model(struct findings *f, const struct options *o, struct err *err)
{
    struct engine *e = NULL;
    double need_us;
    generation_catch_signals();
    bool ok = generation_engine(o, &e, err);
    if (ok) {
        engine_repack(e, NULL);
        engine_costs(e, COSTS_US, generation_interruption(), &need_us);
        add_costs(f, e);
        ok = check_heads(f, o, e, false, err) && (e->heads == HEAD_LENS || check_heads(f, o, e, true, err));
    }
    engine_close(e);
    return ok;
}
