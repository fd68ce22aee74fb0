/* forecasts OPTIONS OF BENCH: measures the accuracy of time forecasts (docs/forecasts.md: Cost model). It measures a
 * grid of settings like any benchmark, and forecasts each of them from the layers' predictions in one run of each
 * prompt. Corrections are learned as in a live run: a setting's forecast is made before its own rounds correct the cost
 * model. Settings run in random order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "base/rng.h"
#include "cli/bench/bench.h"
#include "cli/options/commands.h"
#include "cli/options/files.h"
#include "engine/measure/forecast.h"
#include "engine/scope/scope.h"
#include "engine/tune/results.h"
#include "policies/registry.h"

#define VALUES 4 /* values of a knob, at most */
#define KNOBS  3

static const struct grid {
    const char *policy;
    struct {
        const char *knob;
        bool depth;           /* values are shares of the model's layers */
        double value[VALUES]; /* 0: no further values */
    } axis[KNOBS];
} grids[] = {
    {"layerskip", {{"exit_layer", true, {0.125, 0.25, 0.5, 0.75}}, {"gamma", false, {2, 4, 8}}}},
    {"fsm", {{"exit_layer", true, {0.25, 0.5, 0.75}}, {"gamma_max", false, {4, 12}}}},
    {"dv", {{"exit_layer", true, {0.25, 0.5, 0.75}}, {"th", false, {0.5, 0.8}}, {"w_max", false, {6, 12}}}},
    {"specbound", {{"d_max", true, {0.25, 0.5, 0.75}}, {"tau", false, {0.3, 0.55, 0.8}}, {"w_max", false, {4, 8}}}},
    {"del", {{"d_max", false, {4, 8, 18}}, {"omega", false, {0.5, 0.95}}}},
    {"ngram", {{"k", false, {4, 8, 16}}, {"n_min", false, {1, 2}}}},
    {"sd", {{"k", false, {1, 2, 3, 4}}}},
};

struct forecast_row {
    const struct bench_candidate *candidate;
    double values[POLICY_KNOBS];
    const struct policy_ops *ops;
    double measured, forecast, plain, modelled; /* speedups; plain: without corrections */
    double noise;                               /* standard error of `measured`, relative; NAN: a single pass */
    double us[COST_PHASES];                     /* per token */
    double draft_us, heads_us, verify_us;       /* measured, per token; draft_us without heads */
};

struct forecasts {
    struct bench *b;
    struct layer_record *record; /* (n_records) of each prompt with the logit lens, then with trained heads; owned */
    size_t n_records;
    struct cost_model cost, plain;
    struct forecast_row *row; /* (n) owned; without ar */
    size_t n;
};

/* ---- settings ---- */

static uint32_t
count(const double *value)
{
    uint32_t n = 0;
    while (n < VALUES && value[n] > 0)
        n++;
    return n;
}

/* Appends a candidate at a point of the grid, and its row with the values of all knobs. */
static bool
append_point(struct forecasts *f, const struct grid *g, const struct policy *p, uint32_t point, struct err *err)
{
    struct bench_candidate candidate = {.policy = g->policy};
    struct forecast_row *row = &f->row[f->n];
    size_t used = 0;
    row->ops = p->ops;
    memcpy(row->values, p->value, sizeof row->values);
    for (int a = 0; a < KNOBS && g->axis[a].knob != NULL; a++) {
        const uint32_t n = count(g->axis[a].value), layers = f->b->engine->model->desc.n_layers;
        const int k = policy_knob_index(&p->info, g->axis[a].knob);
        double value = g->axis[a].value[point % n];
        point /= n;
        if (k < 0)
            continue;
        if (g->axis[a].depth)
            value = fmax(1, round(value * layers));
        if (!knob_check(&p->info.knobs[k], value, &row->values[k], err))
            return false;
        struct knob_setting *set = &candidate.set[candidate.n_set++];
        snprintf(set->name, sizeof set->name, "%s", g->axis[a].knob);
        knob_format(&p->info.knobs[k], row->values[k], set->text, sizeof set->text);
        used += (size_t)snprintf(candidate.point + used, sizeof candidate.point - used, "%s%s=%s", used > 0 ? " " : "",
                                 set->name, set->text);
    }
    f->n++;
    return bench_append(f->b, &candidate, err);
}

static bool
append_grid(struct forecasts *f, const struct grid *g, struct err *err)
{
    const struct model_desc *d = &f->b->engine->model->desc;
    const struct model_info model = engine_model_info(f->b->engine);
    const struct policy_ops *ops = policy_named(policy_registry, g->policy);
    struct policy p;
    uint32_t points = 1;
    if (ops == NULL || ops->what_if == NULL || ops->no_what_if != NULL ||
        engine_missing(f->b->engine, ops->needs) != 0 || d->n_layers < ops->least_layers)
        return true;
    for (int a = 0; a < KNOBS && g->axis[a].knob != NULL; a++)
        points *= count(g->axis[a].value);
    struct forecast_row *more = realloc(f->row, (f->n + points) * sizeof *more);
    if (more == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    f->row = more;
    memset(f->row + f->n, 0, points * sizeof *more);
    bool ok = policy_open(&p, ops, &model, &f->b->o->sampling, err);
    for (uint32_t i = 0; i < points && ok; i++)
        ok = append_point(f, g, &p, i, err);
    policy_close(&p);
    return ok;
}

/* ---- records ---- */

/* Runs a prompt and records the predictions of all layers. */
static bool
record_prompt(struct bench *b, const char *prompt, enum head_mode head, struct layer_record *out, struct err *err)
{
    const bool draft = engine_has(b->engine, AUX_DRAFT);
    const struct bench_candidate plain = {.policy =
                                              draft ? "sd" : "ar"}; /* the draft model is read if the policy needs it */
    struct session_options so = bench_session(b, &plain);
    struct live *session = NULL;
    struct scope *scope = NULL;
    struct event_reader *reader = NULL;
    so.probe = PROBE_ALL;
    so.head = head;
    so.prompt = prompt;
    so.prompt_len = strlen(prompt);
    bool ok = session_open(&session, b->engine, &so, err) && scope_open(&scope, session->ops->info(session), err);
    if (ok && (reader = event_reader_open(session->ops->log(session))) == NULL)
        ok = err_set(err, ERR_WORK, "out of memory for events");
    ok = ok && session->ops->start(session, err);
    for (bool over = !ok; !over && !generation_interrupted();) {
        const struct event *e;
        while ((e = event_reader_next(reader)) != NULL) {
            scope_event(scope, e);
            over = over || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_END);
        }
        if (!over)
            event_reader_wait(reader, 100);
    }
    const char *why = ok ? scope_record(scope, out) : NULL;
    if (why != NULL)
        ok = err_set(err, ERR_USAGE, "no forecast of the prompt '%.40s': %s", prompt, why);
    if (reader != NULL)
        event_reader_close(reader);
    live_close(session);
    scope_close(scope);
    return ok;
}

static bool
record_all(struct forecasts *f, struct err *err)
{
    const size_t n = f->b->prompts.n, heads = f->b->engine->heads != HEAD_LENS ? 2 : 1;
    f->record = calloc(n * heads, sizeof *f->record);
    bool ok = f->record != NULL || err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < n * heads && ok && !generation_interrupted(); i++) {
        ok = layer_record_open(&f->record[i], f->b->engine->model->desc.n_layers, err);
        f->n_records += ok;
        ok = ok &&
             record_prompt(f->b, f->b->prompts.texts[i % n], i < n ? HEADS_LENS : HEADS_TRAINED, &f->record[i], err);
    }
    return ok;
}

/* ---- forecasts ---- */

/* Forecasts a setting on all records: the time per token by phase, and the speedup. */
static bool
forecast(const struct forecasts *f, const struct policy_ops *ops, const double *values, const struct cost_model *cost,
         double us[COST_PHASES], double *speedup, double *modelled)
{
    double tokens = 0, sum = 0, plain = 0, weights = 0;
    memset(us, 0, COST_PHASES * sizeof *us);
    const size_t n = f->b->prompts.n, from = ops->trained_heads && f->n_records > n ? n : 0;
    for (size_t i = 0; i < n; i++) {
        struct forecast one;
        if (!forecast_make(ops, &f->record[from + i], values, f->b->engine->model->rho, cost, &one) || !one.in_time)
            return false;
        tokens += one.tokens;
        plain += (double)one.autoregressive * one.tokens;
        weights += one.tokens / (double)one.modelled;
        for (int p = 0; p < COST_PHASES; p++)
            us[p] += (double)one.us[p] * one.tokens;
    }
    for (int p = 0; p < COST_PHASES; p++) {
        sum += us[p];
        us[p] /= tokens;
    }
    *speedup = plain / sum;
    *modelled = tokens / weights;
    return true;
}

/* ---- measurements ---- */

/* Sums up a candidate's runs in every other pass, or in all passes. The machine's speed changes while the settings run,
 * so times are converted to a common speed, at which autoregressive decoding takes ar_us per token. Returns the
 * speedup. */
enum passes { EVEN, ODD, ALL };

static double
sum_up(const struct forecasts *f, const struct bench_candidate *c, double ar_us, enum passes which, struct tally *t)
{
    *t = (struct tally){0};
    for (size_t i = 0; i < f->b->passes * f->b->prompts.n; i++) {
        struct tally run = c->run[i].tally;
        if (which != ALL && (i / f->b->prompts.n) % 2 != which)
            continue;
        const double speed = ar_us / c->run[i].plain_us;
        run.draft_us *= speed;
        run.heads_us *= speed;
        run.verify_us *= speed;
        tally_add(t, &run);
    }
    return ar_us * (double)t->emitted / (t->draft_us + t->verify_us);
}

/* The difference between the two halves of the passes has twice the standard error of their mean. */
static void
measure(const struct forecasts *f, struct forecast_row *r, double ar_us, struct tally *t)
{
    struct tally half;
    r->noise = log(sum_up(f, r->candidate, ar_us, EVEN, &half) / sum_up(f, r->candidate, ar_us, ODD, &half)) / 2;
    r->measured = sum_up(f, r->candidate, ar_us, ALL, t);
    r->draft_us = (t->draft_us - t->heads_us) / (double)t->emitted;
    r->heads_us = t->heads_us / (double)t->emitted;
    r->verify_us = t->verify_us / (double)t->emitted;
}

/* Corrects the cost model with a candidate's rounds. */
static void
correct(struct forecasts *f, const double us[COST_PHASES], const struct tally *t)
{
    double price[COST_PHASES];
    for (int p = 0; p < COST_PHASES; p++)
        price[p] = us[p] * (double)t->emitted;
    cost_correct(&f->cost, price, t->draft_us, t->heads_us, t->verify_us);
}

static bool
compare(struct forecasts *f, struct err *err)
{
    const struct tally *ar = &f->b->candidates[0].total;
    const double ar_us = (ar->draft_us + ar->verify_us) / (double)ar->emitted;
    double us[COST_PHASES], speedup, modelled;
    f->plain = f->cost = f->b->engine->costs;
    if (!forecast(f, policy_named(policy_registry, POLICY_BASELINE), f->row[0].values, &f->cost, us, &speedup,
                  &modelled))
        return err_set(err, ERR_WORK, "the costs of steps could not be measured");
    correct(f, us, ar);
    const struct layer_record *first = &f->record[0];
    cost_correct_autoregressive(&f->cost, first->layers, first->first + (first->begin + first->n) / 2.0, ar_us);
    uint64_t random = f->b->o->seed;
    for (size_t i = f->n; i > 1; i--) {
        const size_t k = splitmix64(&random) % i;
        const struct forecast_row other = f->row[k];
        f->row[k] = f->row[i - 1];
        f->row[i - 1] = other;
    }
    for (size_t i = 0; i < f->n; i++) {
        struct forecast_row *r = &f->row[i];
        struct tally t;
        if (r->candidate->total.emitted == 0 ||
            !forecast(f, r->ops, r->values, &f->plain, r->us, &r->plain, &r->modelled) ||
            !forecast(f, r->ops, r->values, &f->cost, r->us, &r->forecast, &r->modelled))
            return err_set(err, ERR_WORK, "no forecast of %s %s", r->candidate->policy, r->candidate->point);
        measure(f, r, ar_us, &t);
        correct(f, r->us, &t);
    }
    return true;
}

/* ---- the report ---- */

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum quantity { OFF, OFF_PLAIN, NOISE };

/* Returns a quantile of |forecast ÷ measured − 1|, or of the absolute standard error. */
static double
quantile(const struct forecasts *f, enum quantity quantity, double share)
{
    double *off = malloc(f->n * sizeof *off);
    if (off == NULL)
        return NAN;
    for (size_t i = 0; i < f->n; i++) {
        const struct forecast_row *r = &f->row[i];
        off[i] = fabs(quantity == NOISE ? r->noise : (quantity == OFF ? r->forecast : r->plain) / r->measured - 1);
    }
    qsort(off, f->n, sizeof *off, ascending);
    const double value = off[(size_t)(share * (double)(f->n - 1) + 0.5)];
    free(off);
    return value;
}

static double
drafting(const struct forecast_row *r)
{
    return r->us[COST_HOST] + r->us[COST_DRAFTING] + r->us[COST_MODEL];
}

static void
print_table(const struct forecasts *f)
{
    printf("%-40s %17s %6s %9s  %s\n", "", "x ar", "", "", "us a token: forecast, measured");
    printf("%-40s %8s %8s %6s %9s %13s %13s %13s\n", "setting", "forecast", "measured", "off", "modelled", "draft",
           "heads", "verify");
    for (size_t i = 0; i < f->n; i++) {
        const struct forecast_row *r = &f->row[i];
        const int wide = printf("%s %s", r->candidate->policy, r->candidate->point);
        printf("%*s %8.2f %8.2f %5.0f%% %9.2f %6.0f %6.0f %6.0f %6.0f %6.0f %6.0f\n", wide < 40 ? 40 - wide : 0, "",
               r->forecast, r->measured, (r->forecast / r->measured - 1) * 100, r->modelled, drafting(r), r->draft_us,
               r->us[COST_HEADS] + r->us[COST_EXIT_HEADS], r->heads_us, r->us[COST_VERIFICATION], r->verify_us);
    }
    printf("\nforecast against measured, %zu settings: median %.1f%%, 90th percentile %.1f%% off\n", f->n,
           quantile(f, OFF, 0.5) * 100, quantile(f, OFF, 0.9) * 100);
    if (f->b->passes > 1)
        printf("noise of the measured speedups alone, %u passes: median %.1f%%, 90th percentile %.1f%%\n", f->b->passes,
               quantile(f, NOISE, 0.5) * 100, quantile(f, NOISE, 0.9) * 100);
    else
        puts("noise of the measured speedups: unknown; it needs --repeat 2 or more");
    printf("without corrections by rounds: median %.1f%%, 90th percentile %.1f%% off\n",
           quantile(f, OFF_PLAIN, 0.5) * 100, quantile(f, OFF_PLAIN, 0.9) * 100);
}

/* Columns of the CSV file, members of the JSON. */
static const struct {
    const char *name;
    size_t at;
} columns[] = {
    {"forecast", offsetof(struct forecast_row, forecast)},
    {"measured", offsetof(struct forecast_row, measured)},
    {"measured_noise", offsetof(struct forecast_row, noise)},
    {"uncorrected", offsetof(struct forecast_row, plain)},
    {"modelled", offsetof(struct forecast_row, modelled)},
    {"forecast_fixed_us", offsetof(struct forecast_row, us[COST_HOST])},
    {"forecast_draft_layers_us", offsetof(struct forecast_row, us[COST_DRAFTING])},
    {"forecast_draft_model_us", offsetof(struct forecast_row, us[COST_MODEL])},
    {"measured_draft_us", offsetof(struct forecast_row, draft_us)},
    {"forecast_heads_us", offsetof(struct forecast_row, us[COST_HEADS])},
    {"forecast_exit_heads_us", offsetof(struct forecast_row, us[COST_EXIT_HEADS])},
    {"measured_heads_us", offsetof(struct forecast_row, heads_us)},
    {"forecast_verify_us", offsetof(struct forecast_row, us[COST_VERIFICATION])},
    {"measured_verify_us", offsetof(struct forecast_row, verify_us)},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static double
column(const struct forecast_row *r, size_t i)
{
    return *(const double *)((const char *)r + columns[i].at);
}

static bool
write_csv(const struct forecasts *f, const char *path, struct err *err)
{
    struct output output;
    if (!output_open(&output, path, &results_csv_file, err))
        return false;
    FILE *out = output.f;
    fputs("policy,params", out);
    for (size_t i = 0; i < N_COLUMNS; i++)
        fprintf(out, ",%s", columns[i].name);
    for (size_t k = 0; k < f->n; k++) {
        fprintf(out, "\r\n%s,%s", f->row[k].candidate->policy, f->row[k].candidate->point);
        for (size_t i = 0; i < N_COLUMNS; i++)
            fprintf(out, ",%.6g", column(&f->row[k], i));
    }
    fputs("\r\n", out);
    return output_close(&output, true, err);
}

static bool
write_json(const struct forecasts *f, const char *path, struct err *err)
{
    cJSON *root = cJSON_CreateObject(), *results = cJSON_AddArrayToObject(root, "results");
    for (size_t k = 0; k < f->n; k++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(results, row);
        cJSON_AddStringToObject(row, "policy", f->row[k].candidate->policy);
        cJSON_AddStringToObject(row, "params", f->row[k].candidate->point);
        for (size_t i = 0; i < N_COLUMNS; i++)
            json_number(row, columns[i].name, column(&f->row[k], i));
    }
    json_number(root, "median_off", quantile(f, OFF, 0.5));
    json_number(root, "p90_off", quantile(f, OFF, 0.9));
    json_number(root, "noise_median", quantile(f, NOISE, 0.5));
    json_number(root, "noise_p90", quantile(f, NOISE, 0.9));
    json_number(root, "uncorrected_median_off", quantile(f, OFF_PLAIN, 0.5));
    json_number(root, "uncorrected_p90_off", quantile(f, OFF_PLAIN, 0.9));
    cJSON_AddItemToObject(root, "cost", cost_model_json(&f->plain));
    return json_write(root, path, err);
}

static bool
report(const struct forecasts *f, struct err *err)
{
    const struct options *o = f->b->o;
    if (!output_is_stdout(o->json) && !output_is_stdout(o->csv))
        print_table(f);
    const bool ok = o->csv == NULL || write_csv(f, o->csv, err);
    return (o->json == NULL || write_json(f, o->json, ok ? err : NULL)) && ok;
}

static bool
forecasts(struct bench *b, struct err *err)
{
    struct forecasts f = {.b = b};
    double need_us;
    b->paired = true;
    bool ok = bench_append(b, &(struct bench_candidate){.policy = "ar"}, err);
    for (size_t i = 0; i < sizeof grids / sizeof *grids && ok; i++)
        ok = append_grid(&f, &grids[i], err);
    for (size_t i = 0; i < f.n && ok; i++) /* candidates do not move in memory from here on */
        f.row[i].candidate = &b->candidates[i + 1];
    ok = ok && record_all(&f, err);
    if (ok)
        engine_costs(b->engine, INFINITY, NULL, &need_us);
    ok = ok && bench_run(b, err);
    if (ok && !generation_interrupted())
        ok = compare(&f, err) && report(&f, err);
    for (size_t i = 0; i < f.n_records; i++)
        layer_record_close(&f.record[i]);
    free(f.record);
    free(f.row);
    return ok;
}

int
main(int argc, char **argv)
{
    struct options o;
    struct bench b = {0};
    struct err err = {0};
    double load_s;
    program_called(argv[0]);
    bool ok = options_read(&o, COMMAND_BENCH, argc, argv, &err) && options_find_models(&o, &err);
    if (ok && !o.finished)
        ok = bench_begin(&b, &o, &load_s, &err) && forecasts(&b, &err);
    bench_end(&b);
    options_free(&o);
    return !ok ? command_failed(&err) : generation_interrupted() ? command_interrupted() : 0;
}
