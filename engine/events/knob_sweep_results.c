/* What a sweep measured. */
#include <math.h>
#include <string.h>

#include "engine/events/knob_sweep_internal.h"
#include "engine/events/results.h"

const char *const sweep_measure_names[SWEEP_MEASURES] = {"tokens/s", "× ar", "tokens/round", "acceptance",
                                                         "modelled ×"};

uint32_t
sweep_points(const struct knob_sweep *s)
{
    return s->n_points;
}

uint32_t
sweep_done(const struct knob_sweep *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_points; i++)
        n += s->point[i].passes >= s->pass;
    return n;
}

uint32_t
sweep_measured(const struct knob_sweep *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_points; i++)
        n += s->point[i].passes > 0;
    return n;
}

uint32_t
sweep_pass(const struct knob_sweep *s)
{
    return s->pass;
}

uint32_t
sweep_at(const struct knob_sweep *s)
{
    return s->at_ar ? s->n_points : s->at;
}

double
sweep_left_s(const struct knob_sweep *s)
{
    const double prompts = s->n_prompts > 0 ? s->n_prompts : 1, mean = s->runs_us / s->runs;
    const double runs = (s->n_points - sweep_done(s) + sweep_baselines_left(s)) * prompts - s->prompt_at;
    return s->runs > 0 ? fmax(runs * mean - fmin((double)s->run_us, mean), 0) * 1e-6 : (double)NAN;
}

uint32_t
sweep_axes(const struct knob_sweep *s, const struct knob_axis **axes)
{
    *axes = s->axis;
    return s->n_axes;
}

const struct policy_info *
sweep_policy(const struct knob_sweep *s)
{
    return &s->info->policies[s->setting.policy];
}

const struct knob *
sweep_knob(const struct knob_sweep *s, uint32_t axis)
{
    return &sweep_policy(s)->knobs[s->knob[axis]];
}

uint32_t
sweep_prompts(const struct knob_sweep *s)
{
    return s->n_prompts;
}

void
sweep_grid(const struct knob_sweep *s, char *out, size_t n)
{
    out[0] = '\0';
    for (uint32_t i = 0, used = 0; i < s->n_axes; i++, used = (uint32_t)strlen(out))
        snprintf(out + used, n - used, "%s%s", i > 0 ? " " : "", s->axis[i].text);
}

void
sweep_place(const struct knob_sweep *s, uint32_t point, uint32_t at[SWEEP_AXES])
{
    const struct knob_axis *axes[SWEEP_AXES];
    for (uint32_t i = 0; i < s->n_axes; i++)
        axes[i] = &s->axis[i];
    knob_grid_at(axes, s->n_axes, point, at);
}

uint32_t
sweep_point_at(const struct knob_sweep *s, const uint32_t at[SWEEP_AXES])
{
    uint32_t point = 0;
    for (uint32_t i = 0; i < s->n_axes; i++)
        point = point * s->axis[i].n + at[i];
    return point;
}

double
sweep_value(const struct knob_sweep *s, uint32_t point, uint32_t axis)
{
    uint32_t at[SWEEP_AXES];
    sweep_place(s, point, at);
    return knob_axis_value(&s->axis[axis], sweep_knob(s, axis), at[axis]);
}

void
sweep_text(const struct knob_sweep *s, uint32_t point, char *out, size_t n)
{
    out[0] = '\0';
    for (uint32_t i = 0; i < s->n_axes; i++) {
        char value[32];
        const size_t used = strlen(out);
        knob_format(sweep_knob(s, i), sweep_value(s, point, i), value, sizeof value);
        snprintf(out + used, n - used, "%s%s=%s", i > 0 ? " " : "", sweep_knob(s, i)->name, value);
    }
}

const struct sweep_point *
sweep_result(const struct knob_sweep *s, uint32_t point)
{
    return point < s->n_points && s->point[point].passes > 0 ? &s->point[point] : NULL;
}

struct estimates
sweep_estimates(const struct knob_sweep *s, uint32_t point)
{
    const struct round_sums none = {0};
    const struct sweep_point *p = sweep_result(s, point);
    return round_sums_estimates(p != NULL ? &p->sums : &none, s->info->layers, s->info->rho);
}

struct estimate
sweep_baseline(const struct knob_sweep *s)
{
    const struct round_sums none = {0};
    return round_sums_estimates(s->ar.passes > 0 ? &s->ar.sums : &none, s->info->layers, s->info->rho).tokens_per_s;
}

struct estimate
sweep_estimate(const struct knob_sweep *s, uint32_t point, enum sweep_measure measure)
{
    const struct estimates e = sweep_estimates(s, point);
    switch (measure) {
    case SWEEP_TIMES: return estimate_quotient(e.tokens_per_s, sweep_baseline(s));
    case SWEEP_LENGTH: return e.tokens_per_round;
    case SWEEP_ACCEPTANCE: return e.acceptance_rate;
    case SWEEP_MODELLED: return e.modelled;
    default: return e.tokens_per_s;
    }
}

bool
sweep_best(const struct knob_sweep *s, enum sweep_measure measure, uint32_t *point, uint32_t *near)
{
    struct estimate best = {.value = -INFINITY, .se = NAN};
    uint32_t measured = 0;
    for (uint32_t i = 0; i < s->n_points; i++) {
        const struct estimate e = sweep_estimate(s, i, measure);
        measured += isnan(e.value) ? 0 : 1;
        if (e.value > best.value) {
            best = e;
            *point = i;
        }
    }
    *near = 0;
    for (uint32_t i = 0; i < s->n_points && measured > 0; i++) {
        const struct estimate e = sweep_estimate(s, i, measure);
        if (i != *point && !isnan(e.value))
            *near += estimate_difference(best, e).verdict != DIFFERENCE_MORE ? 1 : 0;
    }
    return measured > 1;
}

static void
csv_line(const struct knob_sweep *s, const struct sweep_point *p, const char *policy, const char *params,
         struct estimate times, FILE *out)
{
    struct metrics metrics;
    metrics_begin(&metrics, s->info->layers, s->info->rho);
    const struct estimate speed = round_sums_estimates(&p->sums, s->info->layers, s->info->rho).tokens_per_s;
    struct result r = {.policy = policy,
                       .params = params,
                       .total = &p->total,
                       .m = metrics_measures(&metrics, &p->total),
                       .speedup = times.value,
                       .speedup_se = times.se,
                       .samples = times.n,
                       .interval = estimate_compare(times),
                       .speed_se = speed.se,
                       .lossless = s->setting.sampling.temperature > 0 ? "sampled" : "-",
                       .model = s->info->model_name,
                       .machine = s->info->isa};
    r.speedup_all_in = r.m.tokens_per_s_all_in / sweep_baseline(s).value;
    r.ratio = r.speedup / r.m.modelled;
    results_csv_line(out, &r);
}

void
sweep_csv(const struct knob_sweep *s, FILE *out)
{
    char params[SWEEP_AXES * 50];
    results_csv_head(out);
    if (s->ar.passes > 0)
        csv_line(s, &s->ar, "ar", "", (struct estimate){.value = 1, .se = NAN}, out);
    for (uint32_t i = 0; i < s->n_points; i++) {
        const struct sweep_point *p = sweep_result(s, i);
        if (p == NULL)
            continue;
        sweep_text(s, i, params, sizeof params);
        csv_line(s, p, sweep_policy(s)->name, params, sweep_estimate(s, i, SWEEP_TIMES), out);
    }
}
