/* Confidence intervals of a benchmark's speeds, and its results as a table as wide as the terminal allows, CSV and
 * JSON. One list of columns serves all three. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/plural.h"
#include "cli/bench/bench.h"
#include "cli/options/files.h"
#include "engine/tune/results.h"

bool
bench_is_ahead(const struct bench *b, const struct bench_candidate *candidate, const struct bench_candidate *other)
{
    return estimate_compare(passes_ratio(candidate->pass, other->pass, b->passes)).verdict == DIFFERENCE_MORE;
}

#define NAMED 3 /* at most; more are counted */

const char *
bench_standing(const struct bench *b, const struct bench_candidate *candidate, char *out, size_t n)
{
    char names[NAMED * sizeof candidate->point] = "";
    unsigned near = 0, others = 0;
    out[0] = '\0';
    for (size_t i = 0; i < b->n_candidates; i++) {
        const struct bench_candidate *other = &b->candidates[i];
        if (other == candidate || strcmp(other->policy, candidate->policy) != 0)
            continue;
        others++;
        if (bench_is_ahead(b, candidate, other))
            continue;
        const size_t used = strlen(names);
        if (near++ < NAMED)
            snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", other->point);
    }
    if (others == 0)
        return out;
    if (b->passes < 2)
        snprintf(out, n, "; one pass has no interval");
    else if (near == 0)
        snprintf(out, n, "; faster than each other point");
    else if (near <= NAMED)
        snprintf(out, n, "; no clear difference from %s", names);
    else
        snprintf(out, n, "; no clear difference from %u others", near);
    return out;
}

enum { WIDE = 140 }; /* columns of a terminal that takes the whole table */

static const char *
lossless(const struct bench *b, const struct bench_candidate *candidate)
{
    if (b->o->sampling.temperature > 0)
        return "sampled";
    return candidate->compared == 0 ? "-" : candidate->differing == 0 ? "yes" : "NO";
}

static struct result
result_of(const struct bench *b, const struct bench_candidate *candidate)
{
    struct metrics metrics;
    metrics_begin(&metrics, b->engine->model->desc.n_layers, b->engine->model->rho);
    struct result r = {.policy = candidate->policy,
                       .total = &candidate->total,
                       .m = metrics_measures(&metrics, &candidate->total),
                       .lossless = lossless(b, candidate),
                       .model = b->engine->model->name,
                       .machine = b->engine->ops->describe(b->engine->backend)};
    const struct measures ar = metrics_measures(&metrics, &b->candidates[0].total);
    r.speedup = r.m.tokens_per_s / ar.tokens_per_s;
    r.speedup_all_in = r.m.tokens_per_s_all_in / ar.tokens_per_s;
    const struct estimate times = passes_ratio(candidate->pass, b->candidates[0].pass, b->passes);
    r.samples = b->passes > 0 ? b->passes : (double)NAN;
    r.speedup_se = candidate == &b->candidates[0] ? NAN : times.se;
    r.interval = estimate_compare(candidate == &b->candidates[0] ? (struct estimate){.value = NAN, .se = NAN} : times);
    r.speed_se = passes_speed(candidate->pass, b->passes).se;
    r.ratio = r.speedup / r.m.modelled;
    return r;
}

struct figures { /* a line of the table */
    const struct bench_candidate *candidate;
    struct result r;
};

static double
speedup(const struct figures *f)
{
    return f->r.speedup;
}

static double
etpl(const struct figures *f)
{
    return f->r.m.etpl;
}

static int
terminal_columns(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                                                    : WIDE;
}

static int
faster_first(const void *a, const void *b)
{
    const struct figures *x = a, *y = b;
    if (x->r.speedup != y->r.speedup)
        return x->r.speedup > y->r.speedup || isnan(y->r.speedup) ? -1 : 1;
    return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

/* Returns the policy's point with the largest `value`. */
static const struct figures *
best(const struct figures *f, size_t n, const char *policy, double (*value)(const struct figures *))
{
    const struct figures *top = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(f[i].candidate->policy, policy) == 0 && (top == NULL || value(&f[i]) > value(top)))
            top = &f[i];
    return top;
}

static void
name_the_best(const struct bench *b, const struct figures *f)
{
    for (size_t i = 0; i < b->n_candidates; i++) {
        const struct bench_candidate *candidate = &b->candidates[i];
        if (candidate->point[0] == '\0' || (i > 0 && strcmp(candidate->policy, b->candidates[i - 1].policy) == 0))
            continue; /* one line per policy, at the first of its points */
        const struct figures *fast = best(f, b->n_candidates, candidate->policy, speedup),
                             *lean = best(f, b->n_candidates, candidate->policy, etpl);
        char standing[sizeof candidate->point * 4], interval[40] = "";
        if (!isnan(fast->r.interval.low))
            snprintf(interval, sizeof interval, ", %.2f to %.2f", fast->r.interval.low, fast->r.interval.high);
        printf("best %s: by speedup %s (%.2f x ar%s%s), by eTPL %s (%.3f)\n", candidate->policy, fast->candidate->point,
               fast->r.speedup, interval, bench_standing(b, fast->candidate, standing, sizeof standing),
               lean->candidate->point, lean->r.m.etpl);
    }
}

/* Prints for the fastest point of every policy the measured and the modelled speedup, and where the rounds' time was
 * spent. */
static void
print_why_not_faster(const struct bench *b, const struct figures *f)
{
    printf("\n%-12s %21s %7s %7s %7s %7s %7s %7s\n", "time", "measured of modelled", "draft", "heads", "verify",
           "probes", "waited", "learned");
    for (size_t i = 1; i < b->n_candidates; i++) {
        const struct bench_candidate *candidate = &b->candidates[i];
        if (strcmp(candidate->policy, b->candidates[i - 1].policy) == 0)
            continue;
        const struct figures *top = best(f, b->n_candidates, candidate->policy, speedup);
        printf("  %-10s %8.2f of %.2f (%2.0f%%)", candidate->policy, top->r.speedup, top->r.m.modelled,
               top->r.ratio * 100);
        const double shares[] = {top->r.m.layers_share, top->r.m.heads_share, top->r.m.verify_share,
                                 top->r.m.probe_share,  top->r.m.wait_share,  top->r.m.learning_share};
        int percent[4]; /* of the rounds' work; the other percentages have other totals */
        metrics_percents(shares, percent, 4);
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            char text[16] = "-";
            if (!isnan(shares[k]))
                snprintf(text, sizeof text, "%.0f%%", k < 4 ? percent[k] : shares[k] * 100);
            printf(" %7s", text);
        }
        printf("%s%s\n", candidate->point[0] != '\0' ? "  " : "", top->candidate->point);
    }
}

/* Prints acceptance by position of each policy's fastest point. */
static void
print_acceptance(const struct bench *b, const struct figures *f)
{
    bool title = false;
    for (size_t i = 0; i < b->n_candidates; i++) {
        const struct acceptance *a = &f[i].candidate->acceptance;
        if (positions_count(&a->all.positions) == 0 ||
            best(f, b->n_candidates, f[i].candidate->policy, speedup) != &f[i])
            continue;
        if (!title)
            acceptance_print_title(stdout);
        title = true;
        acceptance_print(stdout, f[i].candidate->policy, a);
    }
}

bool
bench_table(const struct bench *b, struct err *err)
{
    struct figures *f = calloc(b->n_candidates, sizeof *f);
    if (f == NULL)
        return err_set(err, ERR_WORK, "out of memory for the table");
    const enum result_shown least = terminal_columns() >= WIDE ? SHOWN_WIDE : SHOWN;
    int point = 0;
    for (size_t i = 0; i < b->n_candidates; i++) {
        f[i] = (struct figures){&b->candidates[i], result_of(b, &b->candidates[i])};
        int len = (int)strlen(b->candidates[i].point);
        point = len > point ? len : point;
    }
    if (point > 0)
        qsort(f, b->n_candidates, sizeof *f, faster_first);
    char batch[32] = "";
    if (b->o->batch > 0)
        snprintf(batch, sizeof batch, " %u at a time", (unsigned)b->o->batch);
    printf("%s, %s, %zu prompt%s%s x %u pass%s, %u token%s, %s\n", b->engine->model->name,
           b->engine->ops->describe(b->engine->backend), b->prompts.n, plural(b->prompts.n), batch,
           (unsigned)b->o->repeat, b->o->repeat == 1 ? "" : "es", (unsigned)b->o->tokens, plural(b->o->tokens),
           b->o->sampling.temperature > 0 ? "sampled" : "greedy");
    printf("%-10s", "policy");
    for (int k = 0; k < RESULT_COLUMNS; k++)
        if (result_columns[k].shown >= least)
            printf(" %9s", result_columns[k].title);
    printf(" %8s%s%s\n", "lossless", point > 0 ? "  " : "", point > 0 ? "at" : "");
    for (size_t i = 0; i < b->n_candidates; i++) {
        printf("%-10s", f[i].candidate->policy);
        for (int k = 0; k < RESULT_COLUMNS; k++) {
            char text[24] = "-";
            double value = result_value(&f[i].r, k);
            if (!isnan(value))
                snprintf(text, sizeof text, result_columns[k].format, value);
            if (result_columns[k].shown >= least)
                printf(" %9s", text);
        }
        printf(" %8s%s%s\n", lossless(b, f[i].candidate), f[i].candidate->point[0] != '\0' ? "  " : "",
               f[i].candidate->point);
    }
    print_acceptance(b, f);
    name_the_best(b, f);
    if (b->n_candidates > 1)
        print_why_not_faster(b, f);
    free(f);
    return true;
}

/* ---- files ---- */

/* Writes "head=lens exit_layer=3 gamma=5". */
static void
write_params(const struct bench *b, const struct bench_candidate *candidate, char *out, size_t n)
{
    int used = 0;
    if (b->o->n_heads_given > 1)
        used = snprintf(out, n, "head=%s%s", head_mode_names[candidate->head], candidate->n_set > 0 ? " " : "");
    generation_params(candidate->set, candidate->n_set, out + used, n - (size_t)used);
}

bool
bench_csv(const struct bench *b, const char *path, struct err *err)
{
    struct output output;
    char params[OPTIONS_MOST * sizeof(struct knob_setting) + 32];
    if (!output_open(&output, path, &results_csv_file, err))
        return false;
    FILE *out = output.f;
    results_csv_head(out);
    for (size_t i = 0; i < b->n_candidates; i++) {
        struct result r = result_of(b, &b->candidates[i]);
        write_params(b, &b->candidates[i], params, sizeof params);
        r.params = params;
        r.positions = &b->candidates[i].acceptance.all.positions;
        results_csv_line(out, &r);
        for (size_t k = 0; k < b->candidates[i].acceptance.n_parts; k++)
            acceptance_csv(out, &r, &b->candidates[i].acceptance.part[k]);
    }
    return output_close(&output, true, err);
}

cJSON *
bench_json(const struct bench *b)
{
    cJSON *root = cJSON_CreateObject(), *results = cJSON_AddArrayToObject(root, "results");
    for (size_t i = 0; i < b->n_candidates; i++) {
        const struct bench_candidate *candidate = &b->candidates[i];
        struct outcome out = {.positions = candidate->acceptance.all.positions,
                              .metrics = {.layers = b->engine->model->desc.n_layers,
                                          .rho = b->engine->model->rho,
                                          .total = candidate->total}};
        const struct session_options so = bench_session(b, candidate);
        cJSON *j = outcome_json(&out, b->engine, &so);
        acceptance_categories_json(j, &candidate->acceptance);
        cJSON *ids = cJSON_CreateArray(); /* of every prompt in the first pass */
        for (size_t p = 0; p < b->n_texts; p++) {
            cJSON *list = cJSON_CreateArray();
            for (size_t t = 0; t < candidate->first[p].n_tokens; t++)
                cJSON_AddItemToArray(list, cJSON_CreateNumber(candidate->first[p].tokens[t]));
            cJSON_AddItemToArray(ids, list);
        }
        cJSON_DeleteItemFromObject(j, "sequences");
        cJSON_AddItemToObject(j, "token_ids", ids);
        cJSON_DeleteItemFromObject(j, "end");
        const struct result r = result_of(b, candidate);
        json_number(j, "speedup", r.speedup);
        json_number(j, "speedup_all_in", r.speedup_all_in);
        json_number(j, "speedup_se", r.speedup_se);
        json_number(j, "speedup_low", r.interval.low);
        json_number(j, "speedup_high", r.interval.high);
        json_number(j, "tok_per_s_se", r.speed_se);
        json_number(j, "measured_over_modelled", r.ratio);
        cJSON_AddStringToObject(j, "lossless", lossless(b, candidate));
        cJSON_AddItemToArray(results, j);
    }
    return root;
}
