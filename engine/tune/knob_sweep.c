#include "engine/tune/knob_sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "engine/tune/results.h"

static uint32_t sweep_baselines_left(const struct knob_sweep *s);

static bool
number(const char **at, char end, double *out)
{
    char *stop;
    *out = strtod(*at, &stop);
    if (stop == *at || *stop != end || !isfinite(*out))
        return false;
    *at = stop + 1;
    return true;
}

bool
knob_axis_parse(struct knob_axis *a, const char *text, const char *who, struct err *err)
{
    double to = 0;
    const char *equals = strchr(text, '='), *at = equals != NULL ? equals + 1 : text;
    *a = (struct knob_axis){.text = text};
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof a->name || !number(&at, ':', &a->from) ||
        !number(&at, ':', &to) || !number(&at, '\0', &a->step) || !(a->step > 0) || !(to >= a->from))
        return err_set(err, ERR_USAGE, "%s %.60s: KNOB=from:to:step is wanted, as in %s exit_layer=2:8:2", who, text,
                       who);
    memcpy(a->name, text, (size_t)(equals - text));
    const double points = floor((to - a->from) / a->step + 1e-9) + 1;
    if (!(points <= KNOB_GRID_MOST))
        return err_set(err, ERR_USAGE, "%s %.60s: that is %.0f points; %d are possible, take a larger step", who, text,
                       points, KNOB_GRID_MOST);
    a->n = (uint32_t)points;
    return true;
}

bool
knob_axis_check(const struct knob_axis *a, const struct knob *k, const char *policy, const char *who, struct err *err)
{
    if (k->kind == KNOB_CHOICE)
        return err_set(err, ERR_USAGE, "%s %.60s: %s is a choice by name, which has no steps; set it", who, a->text,
                       k->name);
    for (uint32_t i = 0; i < a->n; i++) {
        const double value = a->from + i * a->step;
        double got;
        struct err inner = {0};
        if (!knob_check(k, value, &got, &inner))
            return err_set(err, ERR_USAGE, "%s %.60s: policy %s: %.200s", who, a->text, policy, inner.text);
        if (fabs(got - value) > 1e-9 * (1 + fabs(value)))
            return err_set(err, ERR_USAGE, "%s %.60s: %s goes in steps of %.9g from %.9g, %.9g is between them", who,
                           a->text, k->name, k->step, k->min, value);
    }
    return true;
}

double
knob_axis_value(const struct knob_axis *a, const struct knob *k, uint32_t i)
{
    double value = NAN;
    knob_check(k, a->from + i * a->step, &value, NULL);
    return value;
}

uint32_t
knob_grid_points(const struct knob_axis *const *axes, size_t n)
{
    uint32_t points = 1;
    for (size_t i = 0; i < n; i++)
        if ((points *= axes[i]->n) > KNOB_GRID_MOST)
            return KNOB_GRID_MOST + 1;
    return points;
}

void
knob_grid_at(const struct knob_axis *const *axes, size_t n, uint32_t point, uint32_t *at)
{
    for (size_t i = n; i-- > 0; point /= axes[i]->n)
        at[i] = point % axes[i]->n;
}

const char *const sweep_measure_names[SWEEP_MEASURES] = {"tokens/s", "× ar", "tokens/round", "acceptance",
                                                         "modelled ×"};

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

double
sweep_left_s(const struct knob_sweep *s)
{
    const double prompts = s->n_prompts > 0 ? s->n_prompts : 1, mean = s->runs_us / s->runs;
    const double runs = (s->n_points - sweep_done(s) + sweep_baselines_left(s)) * prompts - s->prompt_at;
    return s->runs > 0 ? fmax(runs * mean - fmin((double)s->run_us, mean), 0) * 1e-6 : (double)NAN;
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
    return knob_axis_value(&s->axis[axis], s->knob[axis], at[axis]);
}

void
sweep_text(const struct knob_sweep *s, uint32_t point, char *out, size_t n)
{
    out[0] = '\0';
    for (uint32_t i = 0; i < s->n_axes; i++) {
        char value[32];
        const size_t used = strlen(out);
        knob_format(s->knob[i], sweep_value(s, point, i), value, sizeof value);
        snprintf(out + used, n - used, "%s%s=%s", i > 0 ? " " : "", s->knob[i]->name, value);
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

/* Returns the number of stored passes. */
static uint32_t
passes_of(const struct sweep_point *p)
{
    return p->passes < SWEEP_PASSES ? p->passes : SWEEP_PASSES;
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
    const struct sweep_point *p = &s->point[point];
    switch (measure) {
    case SWEEP_TIMES: return passes_ratio(p->pass, s->ar.pass, passes_of(p));
    case SWEEP_LENGTH: return e.tokens_per_round;
    case SWEEP_ACCEPTANCE: return e.acceptance_rate;
    case SWEEP_MODELLED: return e.modelled;
    default: return passes_of(p) > 1 ? passes_speed(p->pass, passes_of(p)) : e.tokens_per_s;
    }
}

static bool
is_of_time(enum sweep_measure measure)
{
    return measure == SWEEP_SPEED || measure == SWEEP_TIMES;
}

/* Is point `a` clearly better than point `b`? */
static bool
is_ahead(const struct knob_sweep *s, enum sweep_measure measure, uint32_t a, uint32_t b)
{
    const struct sweep_point *x = &s->point[a], *y = &s->point[b];
    const uint32_t n = passes_of(x) < passes_of(y) ? passes_of(x) : passes_of(y);
    const enum difference_verdict verdict =
        is_of_time(measure) ? estimate_compare(passes_ratio(x->pass, y->pass, n)).verdict
                            : estimate_difference(sweep_estimate(s, a, measure), sweep_estimate(s, b, measure)).verdict;
    return verdict == DIFFERENCE_MORE;
}

bool
sweep_best(const struct knob_sweep *s, enum sweep_measure measure, uint32_t *point, uint32_t *near)
{
    double best = -INFINITY;
    uint32_t measured = 0;
    for (uint32_t i = 0; i < s->n_points; i++) {
        const double value = sweep_estimate(s, i, measure).value;
        measured += isnan(value) ? 0 : 1;
        if (value > best) {
            best = value;
            *point = i;
        }
    }
    *near = 0;
    for (uint32_t i = 0; i < s->n_points && measured > 0; i++)
        if (i != *point && !isnan(sweep_estimate(s, i, measure).value))
            *near += !is_ahead(s, measure, *point, i);
    return measured > 1;
}

const char *
sweep_standing(const struct knob_sweep *s, enum sweep_measure measure, uint32_t point, uint32_t near, char *out,
               size_t n)
{
    if (near == 0)
        snprintf(out, n, "clearly");
    else if (is_of_time(measure) && s->point[point].passes < 2)
        snprintf(out, n, "no verdict after one pass");
    else
        snprintf(out, n, "no clear difference from %u other%s", (unsigned)near, plural(near));
    return out;
}

static void
csv_line(const struct knob_sweep *s, const struct sweep_point *p, const char *policy, const char *params,
         struct estimate times, FILE *out)
{
    struct metrics metrics;
    metrics_begin(&metrics, s->info->layers, s->info->rho);
    const struct estimate speed = passes_speed(p->pass, passes_of(p));
    struct result r = {.policy = policy,
                       .params = params,
                       .total = &p->total,
                       .m = metrics_measures(&metrics, &p->total),
                       .speedup = times.value,
                       .speedup_se = times.se,
                       .samples = p->passes,
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
        csv_line(s, &s->ar, POLICY_BASELINE, "", (struct estimate){.value = 1, .se = NAN}, out);
    for (uint32_t i = 0; i < s->n_points; i++) {
        const struct sweep_point *p = sweep_result(s, i);
        if (p == NULL)
            continue;
        sweep_text(s, i, params, sizeof params);
        csv_line(s, p, s->policy->name, params, sweep_estimate(s, i, SWEEP_TIMES), out);
    }
}

/* Selects the next run of a sweep, and detects the end of a run. */

#define WHO ":sweep"

/* ---- opening and closing ---- */

bool
sweep_open(struct knob_sweep **out, const struct run_info *info, struct err *err)
{
    if ((*out = calloc(1, sizeof **out)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for sweeps");
    (*out)->info = info;
    return true;
}

/* Clears the sweep's settings and results; a running sweep is over. */
static void
forget(struct knob_sweep *s)
{
    for (uint32_t i = 0; i < s->n_prompts; i++)
        free(s->prompts[i]);
    free(s->prompts);
    free(s->own_prompt);
    free(s->words);
    free(s->point);
    *s = (struct knob_sweep){.info = s->info};
}

void
sweep_close(struct knob_sweep *s)
{
    if (s == NULL)
        return;
    forget(s);
    free(s);
}

/* ---- beginning ---- */

/* Reads the words of the grid as axes of the policy's knobs. */
static bool
read_axes(struct knob_sweep *s, struct err *err)
{
    const struct policy_info *policy = s->policy;
    char *save = NULL;
    for (char *word = strtok_r(s->words, " \t", &save); word != NULL; word = strtok_r(NULL, " \t", &save)) {
        struct knob_axis a;
        if (!knob_axis_parse(&a, word, WHO, err))
            return false;
        const int index = policy_knob_index(policy, a.name);
        if (index < 0)
            return err_set(err, ERR_USAGE, WHO " %.60s: policy %s has no such knob", word, policy->name);
        const struct knob *k = &policy->knobs[index];
        if (s->n_axes == SWEEP_AXES)
            return err_set(err, ERR_USAGE, WHO " %.60s: more than %d knobs; sweep fewer at a time", word, SWEEP_AXES);
        for (uint32_t i = 0; i < s->n_axes; i++)
            if (s->knob[i] == k)
                return err_set(err, ERR_USAGE, WHO " %.60s: %s is swept already", word, k->name);
        if (!knob_axis_check(&a, k, policy->name, WHO, err))
            return false;
        s->knob[s->n_axes] = k;
        s->axis[s->n_axes++] = a;
    }
    if (s->n_axes == 0)
        return err_set(err, ERR_USAGE, "sweep which knobs? for example " WHO " tau=0.3:0.9:0.1 d_max=3:8:1");
    const struct knob_axis *axes[SWEEP_AXES];
    for (uint32_t i = 0; i < s->n_axes; i++)
        axes[i] = &s->axis[i];
    s->n_points = knob_grid_points(axes, s->n_axes);
    return s->n_points <= KNOB_GRID_MOST ||
           err_set(err, ERR_USAGE, WHO " has more than %d points: take larger steps, or fewer knobs", KNOB_GRID_MOST);
}

static bool
copy_prompts(struct knob_sweep *s, char *const *prompts, size_t n, const char *own)
{
    if (own != NULL && (s->own_prompt = strdup(own)) == NULL)
        return false;
    if (n > 0 && (s->prompts = calloc(n, sizeof *s->prompts)) == NULL)
        return false;
    for (; s->n_prompts < n; s->n_prompts++)
        if ((s->prompts[s->n_prompts] = strdup(prompts[s->n_prompts])) == NULL)
            return false;
    return true;
}

static bool
same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_prompts(const struct knob_sweep *a, const struct knob_sweep *b)
{
    if (a->n_prompts != b->n_prompts)
        return false;
    for (uint32_t i = 0; i < a->n_prompts; i++)
        if (strcmp(a->prompts[i], b->prompts[i]) != 0)
            return false;
    return a->n_prompts > 0 || same_text(a->own_prompt, b->own_prompt);
}

/* Are all settings equal that a point's results depend on, except the swept knobs? */
static bool
same_sweep(const struct knob_sweep *a, const struct knob_sweep *b)
{
    const struct settings *x = &a->setting, *y = &b->setting;
    if (a->n_axes != b->n_axes || x->policy != y->policy || x->head != y->head || x->seed != y->seed ||
        x->sampling.temperature != y->sampling.temperature || x->sampling.top_k != y->sampling.top_k ||
        x->sampling.top_p != y->sampling.top_p || !same_prompts(a, b))
        return false;
    bool swept[POLICY_KNOBS] = {false};
    for (uint32_t i = 0; i < a->n_axes; i++) {
        if (a->knob[i] != b->knob[i] || a->axis[i].from != b->axis[i].from || a->axis[i].step != b->axis[i].step ||
            a->axis[i].n != b->axis[i].n)
            return false;
        swept[a->knob[i] - a->policy->knobs] = true;
    }
    for (uint32_t k = 0; k < a->policy->n_knobs; k++)
        if (!swept[k] && x->value[x->policy][k] != y->value[x->policy][k])
            return false;
    return true;
}

/* Returns the next point that is not complete in this pass; n_points: none. Every other pass begins with the last
 * point, so that a machine that becomes steadily slower does not favour the first ones. */
static uint32_t
missing(const struct knob_sweep *s)
{
    for (uint32_t i = 0; i < s->n_points; i++) {
        const uint32_t point = s->pass % 2 == 1 ? i : s->n_points - 1 - i;
        if (s->point[point].passes < s->pass)
            return point;
    }
    return s->n_points;
}

/* Adds the difference between two tallies of a point to the current pass. */
static void
add_pass(struct sweep_point *p, const struct tally *before, uint32_t pass)
{
    struct pass *to = &p->pass[(pass - 1) % SWEEP_PASSES];
    to->tokens += (double)(p->total.emitted - before->emitted);
    to->s += (p->total.draft_us + p->total.verify_us - before->draft_us - before->verify_us) * 1e-6;
}

static void
begin_point(struct knob_sweep *s, uint32_t point)
{
    s->at = point;
    s->prompt_at = 0;
    if (point < s->n_points)
        s->now = s->point[point];
}

/* Returns how many baseline runs, over all prompts, are due after this number of points. */
static uint32_t
baselines_by(const struct knob_sweep *s, uint32_t points)
{
    const uint32_t among = points / SWEEP_BASELINE + 1;
    return !s->with_ar ? 0 : among > s->pass ? among : s->pass;
}

/* Returns the number of baseline runs left, over all prompts. */
static uint32_t
sweep_baselines_left(const struct knob_sweep *s)
{
    const uint32_t wanted = baselines_by(s, s->pass * s->n_points - 1);
    return wanted > s->ar.passes ? wanted - s->ar.passes : 0;
}

static void
want_baseline(struct knob_sweep *s)
{
    uint32_t points = 0;
    s->with_ar = run_info_policy(s->info, POLICY_BASELINE) != NULL;
    for (uint32_t i = 0; i < s->n_points; i++)
        points += s->point[i].passes;
    if (s->at < s->n_points && s->prompt_at == 0 && !s->at_ar && s->ar.passes < baselines_by(s, points)) {
        s->at_ar = true;
        s->now = s->ar;
    }
}

bool
sweep_begin(struct knob_sweep *s, const char *grid, char *const *prompts, size_t n_prompts,
            const struct settings *requested, const char *prompt, struct err *err)
{
    struct knob_sweep new = {.info = s->info, .setting = *requested, .pass = 1};
    if (sweep_running(s))
        return err_set(err, ERR_USAGE, "a sweep is under way; Esc or " WHO " stop ends it");
    if (new.setting.policy >= s->info->n_policies)
        return err_set(err, ERR_USAGE, WHO ": the policy is not known here");
    new.words = strdup(grid);
    bool ok = (new.words != NULL &&copy_prompts(&new, prompts, n_prompts, prompt)) ||
              err_set(err, ERR_WORK, "out of memory for a sweep");
    new.policy = &s->info->policies[new.setting.policy];
    ok = ok && read_axes(&new, err);
    if (ok && s->n_points > 0 && same_sweep(s, &new)) { /* the same sweep resumes at the missing points */
        new.point = s->point;
        s->point = NULL;
        new.pass = s->pass;
        new.ar = s->ar;
        if (missing(&new) == new.n_points)
            new.pass++;
    } else if (ok) {
        new.point = calloc(new.n_points, sizeof *new.point);
        ok = new.point != NULL || err_set(err, ERR_WORK, "out of memory for a sweep of %u points", new.n_points);
    }
    if (!ok) {
        forget(&new);
        return false;
    }
    forget(s);
    *s = new;
    s->state = SWEEP_DUE;
    begin_point(s, missing(s));
    return true;
}

/* ---- events ---- */

static void
end_round(struct knob_sweep *s)
{
    if (s->joint.rounds > 0)
        round_sums_add(&s->now.sums, &s->joint, s->info->rho);
    s->joint = (struct tally){0};
}

static void
take_round(struct knob_sweep *s, const struct event *e)
{
    const struct tally t = tally_of(&e->round_end);
    if (e->round != s->joint_round)
        end_round(s);
    tally_add(&s->now.total, &t);
    s->now.total.shared += tally_join(&s->joint, &t);
    s->joint_round = e->round;
}

static void
end_run(struct knob_sweep *s)
{
    end_round(s);
    s->runs++;
    s->runs_us += (double)s->run_us;
    s->run_us = 0;
    s->state = SWEEP_DUE;
    if (++s->prompt_at < s->n_prompts)
        return;
    if (s->at_ar) {
        s->now.passes++;
        add_pass(&s->now, &s->ar.total, s->pass);
        s->ar = s->now;
        s->at_ar = false;
        begin_point(s, s->at);
        return;
    }
    s->now.passes = s->pass;
    add_pass(&s->now, &s->point[s->at].total, s->pass);
    s->point[s->at] = s->now;
    begin_point(s, missing(s));
}

static void
take_control(struct knob_sweep *s, const struct control_event *c)
{
    const char *cause = s->n_prompts > 0 ? "prompt" : "restart";
    if (s->state == SWEEP_ASKED && c->kind == RECORDED_RUN && strcmp(c->new_text, cause) == 0) {
        s->state = SWEEP_RUNS;
        s->joint_round = 0;
        s->joint = (struct tally){0};
    } else if (s->state == SWEEP_RUNS && c->kind == RECORDED_END && strncmp(c->new_text, "error", 5) == 0) {
        snprintf(s->failed, sizeof s->failed, "%s", c->new_text);
        s->state = SWEEP_DUE;
    } else if (s->state == SWEEP_RUNS && c->kind == RECORDED_END) {
        end_run(s);
    }
}

void
sweep_event(struct knob_sweep *s, const struct event *e)
{
    if (s->state == SWEEP_RUNS)
        s->run_us = e->t_us;
    if (e->type == EVENT_CONTROL && s->state != SWEEP_OVER && e->control.new_text != NULL)
        take_control(s, &e->control);
    else if (e->type == EVENT_ROUND && s->state == SWEEP_RUNS)
        take_round(s, e);
}

/* ---- requests ---- */

/* Restores the settings; a failure of one does not stop the others. */
static bool
bring_back(struct knob_sweep *s, const struct run_host *host, struct err *err)
{
    bool ok = !s->under_ar || host->post(host->user, CONTROL_POLICY, NULL, s->policy->name, err);
    s->under_ar = s->at_ar = false;
    s->state = SWEEP_OVER;
    s->run_us = 0;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        char text[32];
        knob_format(s->knob[i], s->setting.value[s->setting.policy][s->knob[i] - s->policy->knobs], text, sizeof text);
        ok = host->post(host->user, CONTROL_KNOB, s->knob[i]->name, text, ok ? err : NULL) && ok;
    }
    if (s->n_prompts > 0 && s->own_prompt != NULL)
        ok = host->post(host->user, CONTROL_PROMPT, NULL, s->own_prompt, ok ? err : NULL) && ok;
    return ok;
}

bool
sweep_next(struct knob_sweep *s, const struct run_host *host, struct err *err)
{
    if (s->state != SWEEP_DUE)
        return true;
    if (s->failed[0] != '\0') {
        err_set(err, ERR_WORK, "the sweep stopped: %s", s->failed);
        s->failed[0] = '\0';
        bring_back(s, host, NULL);
        return false;
    }
    if (s->at == s->n_points)
        return bring_back(s, host, err);
    want_baseline(s);
    bool ok = s->under_ar == s->at_ar ||
              host->post(host->user, CONTROL_POLICY, NULL, s->at_ar ? POLICY_BASELINE : s->policy->name, err);
    s->under_ar = ok ? s->at_ar : s->under_ar;
    for (uint32_t i = 0; i < s->n_axes && ok && !s->at_ar; i++) {
        char text[32];
        knob_format(s->knob[i], sweep_value(s, s->at, i), text, sizeof text);
        ok = host->post(host->user, CONTROL_KNOB, s->knob[i]->name, text, err);
    }
    ok = ok && (s->n_prompts > 0 ? host->post(host->user, CONTROL_PROMPT, NULL, s->prompts[s->prompt_at], err)
                                 : host->post(host->user, CONTROL_RESTART, NULL, NULL, err));
    if (!ok)
        bring_back(s, host, NULL);
    else
        s->state = SWEEP_ASKED;
    return ok;
}

bool
sweep_stop(struct knob_sweep *s, const struct run_host *host, struct err *err)
{
    return !sweep_running(s) || bring_back(s, host, err);
}
