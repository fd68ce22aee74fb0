/* What-if promises that using its best value costs almost nothing, and that its forecasts have no bias. For each
 * prompt, policy and knob a run with the defaults is recorded, and the knob's values are forecast from the record. The
 * text is then generated again with the best value, the smallest, the largest and random ones. The test compares
 * modelled speedups, which count loads, not times.
 *
 * make test takes one prompt and one knob of each policy. SPECSCOPE_LONG=1 takes all bundled prompts, or those of the
 * file SPECSCOPE_PROMPTS, and all knobs. Both print a table. */
#include <math.h>

#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "engine/measure/forecast.h"
#include "engine/measure/metrics.h"
#include "policies/registry.h"
#include "tests/rigs/observed_run.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"
#include "tui/panels/landscape.h"

enum { TOKENS = 120, PROMPTS = 10, VALUES = 128 };

static struct engine *engine;
static struct prompt_list prompts;
static struct layer_record record;

static struct session_options
options_of(const char *policy, size_t prompt)
{
    return (struct session_options){.policies = policy_registry,
                                    .policy = policy,
                                    .sampling = {.top_p = 1},
                                    .seed = 1,
                                    .tokens = TOKENS,
                                    .ctx = 512,
                                    .ignore_eos = true,
                                    .prompt = prompts.texts[prompt],
                                    .prompt_len = strlen(prompts.texts[prompt])};
}

/* The record of a run with the policy's defaults. */
static void
observe(const char *policy, size_t prompt)
{
    const struct session_options o = options_of(policy, prompt);
    struct err err = {0};
    assert_ok(observe_record(engine, &o, &record, &err), err);
}

/* The modelled speedup of a run with these values. */
static double
measure(const struct policy *p, size_t prompt, const double *values)
{
    struct knob_setting set[POLICY_KNOBS];
    struct session_options o = options_of(p->info.name, prompt);
    struct session_rig_result r;
    struct err err = {0};
    for (uint32_t k = 0; k < p->info.n_knobs; k++) {
        snprintf(set[k].name, sizeof set[k].name, "%s", p->info.knobs[k].name);
        knob_format(&p->info.knobs[k], values[k], set[k].text, sizeof set[k].text);
    }
    o.set = set;
    o.n_set = p->info.n_knobs;
    if (!session_rig_generate(engine, &o, NULL, NULL, &r, &err))
        fail_msg("%s: %s", p->info.name, err.text);
    const double modelled = metrics_measures(&r.metrics, &r.metrics.total).modelled;
    session_rig_free(&r);
    return modelled;
}

/* ---- a line of the table: a policy's knob, over prompts ---- */

struct line {
    double bias, off, worst; /* relative errors of forecasts: sum, sum of absolute values, largest absolute value */
    uint32_t n;
    double promised, gain, least; /* gains of the best values over the defaults: sums, and the smallest real gain */
    uint32_t named;
};

static void
add_forecast(struct line *line, double forecast, double real)
{
    const double by = forecast / real - 1;
    line->bias += by;
    line->off += fabs(by);
    line->worst = fmax(line->worst, fabs(by));
    line->n++;
}

static void
add_best(struct line *line, double promised, double gain)
{
    line->promised += promised;
    line->gain += gain;
    line->least = fmin(line->least, gain);
    line->named++;
}

static void
print_line(const struct line *l, const char *policy, const char *knob)
{
    const double n = l->named > 0 ? l->named : 1;
    print_message(
        "%-9s %-10s %3u forecasts: bias %+5.2f%%, off %4.2f%%, at most %4.1f%%; %2u best: promised %+5.1f%%, real "
        "%+5.1f%%, least %+5.1f%%\n",
        policy, knob, (unsigned)l->n, l->bias / l->n * 100, l->off / l->n * 100, l->worst * 100, (unsigned)l->named,
        l->promised / n * 100, l->gain / n * 100, l->least * 100);
}

/* ---- the comparison ---- */

/* Forecasts a knob's values, and runs the best one, as the sliders name it, and some others. */
static void
follow_knob(const struct policy *p, uint32_t k, size_t prompt, double real_now, uint64_t *random, struct line *line)
{
    const struct knob *knob = &p->info.knobs[k];
    const uint32_t n = landscape_points(knob, VALUES);
    struct forecast now, at[VALUES];
    double values[POLICY_KNOBS];
    uint32_t best = n;
    assert_true(forecast_make(p->ops, &record, p->value, engine->model->rho, NULL, &now));
    memcpy(values, p->value, sizeof values);
    for (uint32_t i = 0; i < n; i++) {
        values[k] = landscape_value(knob, n, i, p->value[k]);
        if (forecast_make(p->ops, &record, values, engine->model->rho, NULL, &at[i]) && forecast_better(&at[i], &now) &&
            (best == n || at[i].modelled > at[best].modelled))
            best = i;
    }
    const uint32_t samples[] = {0, n - 1, (uint32_t)(splitmix64(random) % n), (uint32_t)(splitmix64(random) % n)};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (isnan(at[samples[i]].modelled)) /* the prompt has too few probed positions for it */
            continue;
        values[k] = landscape_value(knob, n, samples[i], p->value[k]);
        add_forecast(line, (double)at[samples[i]].modelled, measure(p, prompt, values));
    }
    if (best == n)
        return;
    values[k] = landscape_value(knob, n, best, p->value[k]);
    add_best(line, (double)(at[best].modelled / now.modelled) - 1, measure(p, prompt, values) / real_now - 1);
}

/* Compares all knobs, or the one of that name. Returns whether no best value costs more than 3%, and no bias is above
 * 1% (3% with few forecasts). */
static bool
follow_policy(const char *name, const char *only, size_t most, size_t step)
{
    const struct model_info model = engine_model_info(engine);
    const struct sampling greedy = {.top_p = 1};
    struct policy p;
    struct err err;
    struct line lines[POLICY_KNOBS] = {{.least = 0}};
    uint64_t random = 7;
    bool kept = true;
    assert_ok(policy_open(&p, policy_named(policy_registry, name), &model, &greedy, &err), err);
    for (size_t prompt = 0; prompt < most; prompt += step) {
        observe(name, prompt);
        const double real = measure(&p, prompt, p.value);
        for (uint32_t k = 0; k < p.info.n_knobs; k++)
            if (only == NULL || strcmp(p.info.knobs[k].name, only) == 0)
                follow_knob(&p, k, prompt, real, &random, &lines[k]);
    }
    for (uint32_t k = 0; k < p.info.n_knobs; k++) {
        if (lines[k].n == 0)
            continue;
        print_line(&lines[k], name, p.info.knobs[k].name);
        kept = kept && lines[k].least > -0.03 && fabs(lines[k].bias / lines[k].n) < (only == NULL ? 0.01 : 0.03);
    }
    policy_close(&p);
    return kept;
}

static const struct {
    const char *policy, *knob;
} cases[] = {{"layerskip", "exit_layer"}, {"fsm", "gamma_max"}, {"dv", "th"}, {"del", "omega"}, {"specbound", "tau"}};

TEST(following_the_best_value_costs_next_to_nothing)
{
    const bool all = getenv("SPECSCOPE_LONG") != NULL;
    bool kept = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        kept = follow_policy(cases[i].policy, all ? NULL : cases[i].knob, prompts.n < PROMPTS ? prompts.n : PROMPTS,
                             all ? 1 : PROMPTS) &&
               kept;
    assert_true(kept);
}

static int
open_model(void **state)
{
    (void)state;
    struct err err = {0};
    const char *file = getenv("SPECSCOPE_PROMPTS");
    if (!session_rig_engine_with(&engine, bundled_model_path(), "none", "cpu", 2, &err) ||
        !layer_record_open(&record, engine->model->desc.n_layers, &err) ||
        !(file != NULL ? prompts_read(file, &prompts, &err) : prompts_bundled("prompts", &prompts, &err))) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}

static int
close_model(void **state)
{
    (void)state;
    prompts_free(&prompts);
    layer_record_close(&record);
    engine_close(engine);
    return 0;
}

FIXTURE(open_model, close_model);
