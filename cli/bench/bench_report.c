/* What came of a benchmark: a table as wide as the terminal allows, CSV, JSON. One list of columns serves all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/base/files.h"
#include "cli/bench/bench_passes.h"

enum { WIDE = 140 }; /* columns of a terminal that takes the whole table */

struct figures {
    const struct lane *lane;
    struct measures m;
    double speedup, speedup_all_in; /* against ar in this run */
    double speedup_se, speed_se;    /* over passes; NAN: not known */
    double modelled, ratio;         /* likewise: in a batch ar, too, reads a layer once for all; measured over that */
};

static struct figures
figures_of(const struct bench *b, const struct lane *lane)
{
    struct metrics metrics;
    metrics_begin(&metrics, b->engine->model->desc.n_layers, b->engine->model->rho);
    struct figures f = {.lane = lane, .m = metrics_measures(&metrics, &lane->total)};
    const struct measures ar = metrics_measures(&metrics, &b->lanes[0].total);
    f.speedup = f.m.tokens_per_s / ar.tokens_per_s;
    f.speedup_all_in = f.m.tokens_per_s_all_in / ar.tokens_per_s;
    f.speedup_se = lane == &b->lanes[0] ? NAN : bench_ratio(b, lane, &b->lanes[0]).se;
    f.speed_se = bench_tokens_per_s(b, lane).se;
    f.modelled = f.m.modelled / ar.modelled;
    f.ratio = f.speedup / f.modelled; /* overhead beyond autoregressive decoding's */
    return f;
}

static const char *
lossless(const struct bench *b, const struct lane *lane)
{
    if (b->o->sampling.temperature > 0)
        return "sampled";
    return lane->compared == 0 ? "-" : lane->differing == 0 ? "yes" : "NO";
}

#define MEASURE(name)                                                                                                  \
    static double name(const struct figures *f)                                                                        \
    {                                                                                                                  \
        return f->m.name;                                                                                              \
    }
MEASURE(tokens_per_s)
MEASURE(tokens_per_round)
MEASURE(acceptance_rate)
MEASURE(per_token_acceptance)
MEASURE(etpl)
MEASURE(discard_rate)
MEASURE(verification_rate)
MEASURE(heads_share)
MEASURE(verify_share)
MEASURE(probe_share)
MEASURE(wait_share)
MEASURE(aside_share)
MEASURE(tokens_per_s_all_in)

static double
layers_share(const struct figures *f) /* of the draft's work what is not the heads' */
{
    return f->m.draft_share - f->m.heads_share;
}

static double
speedup(const struct figures *f)
{
    return f->speedup;
}

static double
speedup_se(const struct figures *f)
{
    return f->speedup_se;
}

static double
speed_se(const struct figures *f)
{
    return f->speed_se;
}

static double
speedup_all_in(const struct figures *f)
{
    return f->speedup_all_in;
}

static double
modelled(const struct figures *f)
{
    return f->modelled;
}

static double
ratio(const struct figures *f)
{
    return f->ratio;
}

enum shown { FILES, WIDE_TABLE, TABLE }; /* in CSV only; in a table that has room, too; in every table */

static const struct column {
    const char *title, *csv, *format;
    double (*value)(const struct figures *);
    enum shown shown;
} columns[] = {
    {"tokens/s", "tok_per_s", "%.1f", tokens_per_s, TABLE},
    {"x ar", "speedup", "%.2f", speedup, TABLE},
    {"+-", "speedup_se", "%.3f", speedup_se, TABLE},
    {"all in", "speedup_all_in", "%.2f", speedup_all_in, TABLE},
    {"tok/round", "tokens_per_round", "%.2f", tokens_per_round, TABLE},
    {"accept", "acceptance_rate", "%.2f", acceptance_rate, TABLE},
    {"per token", "per_token_acceptance", "%.2f", per_token_acceptance, WIDE_TABLE},
    {"eTPL", "etpl", "%.3f", etpl, TABLE},
    {"discard", "discard_rate", "%.2f", discard_rate, WIDE_TABLE},
    {"verify", "verification_rate", "%.2f", verification_rate, WIDE_TABLE},
    {"modelled", "modelled_speedup", "%.2f", modelled, WIDE_TABLE},
    {"meas/mod", "measured_over_modelled", "%.2f", ratio, WIDE_TABLE},
    {"", "draft_share", "", layers_share, FILES},
    {"", "heads_share", "", heads_share, FILES},
    {"", "verify_share", "", verify_share, FILES},
    {"", "probe_share", "", probe_share, FILES},
    {"", "wait_share", "", wait_share, FILES},
    {"", "aside_share", "", aside_share, FILES},
    {"", "tok_per_s_all_in", "", tokens_per_s_all_in, FILES},
    {"", "tok_per_s_se", "", speed_se, FILES},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

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
    if (x->speedup != y->speedup)
        return x->speedup > y->speedup || isnan(y->speedup) ? -1 : 1;
    return x->lane < y->lane ? -1 : x->lane > y->lane;
}

/* Of the policy's points the one that `value` is greatest at. */
static const struct figures *
best(const struct figures *f, size_t n, const char *policy, double (*value)(const struct figures *))
{
    const struct figures *top = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(f[i].lane->policy, policy) == 0 && (top == NULL || value(&f[i]) > value(top)))
            top = &f[i];
    return top;
}

static void
name_the_best(const struct bench *b, const struct figures *f)
{
    for (size_t i = 0; i < b->n_lanes; i++) {
        const struct lane *lane = &b->lanes[i];
        if (lane->point[0] == '\0' || (i > 0 && strcmp(lane->policy, b->lanes[i - 1].policy) == 0))
            continue; /* once a policy, at the first of its points */
        const struct figures *fast = best(f, b->n_lanes, lane->policy, speedup),
                             *lean = best(f, b->n_lanes, lane->policy, etpl);
        char standing[sizeof lane->point * 4], se[24] = "";
        if (!isnan(fast->speedup_se))
            snprintf(se, sizeof se, " +-%.3f", fast->speedup_se);
        printf("best %s: by speedup %s (%.2f%s x ar%s), by eTPL %s (%.3f)\n", lane->policy, fast->lane->point,
               fast->speedup, se, bench_standing(b, fast->lane, standing, sizeof standing), lean->lane->point,
               lean->m.etpl);
    }
}

/* For every policy, at the fastest of its points: measured against modelled, and where the rounds' time went. */
static void
say_why_not_faster(const struct bench *b, const struct figures *f)
{
    printf("\n%-12s %21s %7s %7s %7s %7s %7s %7s\n", "time", "measured of modelled", "draft", "heads", "verify",
           "probes", "waited", "learned");
    for (size_t i = 1; i < b->n_lanes; i++) {
        const struct lane *lane = &b->lanes[i];
        if (strcmp(lane->policy, b->lanes[i - 1].policy) == 0)
            continue;
        const struct figures *top = best(f, b->n_lanes, lane->policy, speedup);
        printf("  %-10s %8.2f of %.2f (%2.0f%%)", lane->policy, top->speedup, top->modelled, top->ratio * 100);
        const double shares[] = {layers_share(top),  top->m.heads_share, top->m.verify_share,
                                 top->m.probe_share, top->m.wait_share,  top->m.aside_share};
        int percent[4]; /* of the rounds' work; the others are shares of something else */
        metrics_percents(shares, percent, 4);
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            char text[16] = "-";
            if (!isnan(shares[k]))
                snprintf(text, sizeof text, "%.0f%%", k < 4 ? percent[k] : shares[k] * 100);
            printf(" %7s", text);
        }
        printf("%s%s\n", lane->point[0] != '\0' ? "  " : "", top->lane->point);
    }
}

void
bench_table(const struct bench *b)
{
    struct figures *f = calloc(b->n_lanes, sizeof *f);
    if (f == NULL) {
        fputs("specscope: out of memory for the table\n", stderr);
        return;
    }
    const enum shown least = terminal_columns() >= WIDE ? WIDE_TABLE : TABLE;
    int point = 0;
    for (size_t i = 0; i < b->n_lanes; i++) {
        f[i] = figures_of(b, &b->lanes[i]);
        int len = (int)strlen(b->lanes[i].point);
        point = len > point ? len : point;
    }
    if (point > 0)
        qsort(f, b->n_lanes, sizeof *f, faster_first);
    char batch[32] = "";
    if (b->o->batch > 0)
        snprintf(batch, sizeof batch, " %u at a time", (unsigned)b->o->batch);
    printf("%s, %s, %zu prompts%s x %u passes, %u tokens, %s\n", b->engine->model->name,
           b->engine->ops->describe(b->engine->backend), b->n_prompts, batch, (unsigned)b->o->repeat,
           (unsigned)b->o->tokens, b->o->sampling.temperature > 0 ? "sampled" : "greedy");
    printf("%-10s", "policy");
    for (int k = 0; k < COLUMNS; k++)
        if (columns[k].shown >= least)
            printf(" %9s", columns[k].title);
    printf(" %8s%s%s\n", "lossless", point > 0 ? "  " : "", point > 0 ? "at" : "");
    for (size_t i = 0; i < b->n_lanes; i++) {
        printf("%-10s", f[i].lane->policy);
        for (int k = 0; k < COLUMNS; k++) {
            char text[24] = "-";
            double value = columns[k].value(&f[i]);
            if (!isnan(value))
                snprintf(text, sizeof text, columns[k].format, value);
            if (columns[k].shown >= least)
                printf(" %9s", text);
        }
        printf(" %8s%s%s\n", lossless(b, f[i].lane), f[i].lane->point[0] != '\0' ? "  " : "", f[i].lane->point);
    }
    name_the_best(b, f);
    if (b->n_lanes > 1)
        say_why_not_faster(b, f);
    free(f);
}

/* ---- files ---- */

static void
csv_text(FILE *out, const char *text) /* RFC 4180: a quote is written twice */
{
    fputs(",\"", out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void
csv_line(FILE *out, const struct bench *b, const struct lane *lane)
{
    const struct figures f = figures_of(b, lane);
    const struct tally *t = &lane->total;
    fprintf(out, "%s,\"", lane->policy);
    if (b->o->n_heads_given > 1)
        fprintf(out, "head=%s%s", head_mode_names[lane->head], lane->n_set > 0 ? " " : "");
    for (size_t i = 0; i < lane->n_set; i++) /* names and values were checked: no quotes in them */
        fprintf(out, "%s%s=%s", i > 0 ? " " : "", lane->set[i].name, lane->set[i].text);
    fputc('"', out);
    for (int k = 0; k < COLUMNS; k++) {
        double value = columns[k].value(&f);
        fputc(',', out);
        if (!isnan(value))
            fprintf(out, "%.9g", value);
    }
    fprintf(out, ",%s,%llu,%llu,%llu,%llu,%llu,%.9g,%.9g,%.9g", lossless(b, lane), (unsigned long long)t->rounds,
            (unsigned long long)t->drafted, (unsigned long long)t->verified, (unsigned long long)t->accepted,
            (unsigned long long)t->emitted, t->layers, t->heads, (t->draft_us + t->verify_us) * 1e-6);
    csv_text(out, b->engine->model->name);
    csv_text(out, b->engine->ops->describe(b->engine->backend));
    fputs("\r\n", out);
}

bool
bench_csv(const struct bench *b, const char *path, struct err *err)
{
    FILE *out;
    if (!results_open(&out, path, err))
        return false;
    fputs("policy,params", out);
    for (int k = 0; k < COLUMNS; k++)
        fprintf(out, ",%s", columns[k].csv);
    fputs(",lossless,rounds,drafted,verified,accepted,emitted,layers_loaded,heads_loaded,decode_s,model,machine\r\n",
          out);
    for (size_t i = 0; i < b->n_lanes; i++)
        csv_line(out, b, &b->lanes[i]);
    return results_close(out, path, err);
}

cJSON *
bench_json(const struct bench *b)
{
    cJSON *root = cJSON_CreateObject(), *results = cJSON_AddArrayToObject(root, "results");
    for (size_t i = 0; i < b->n_lanes; i++) {
        const struct lane *lane = &b->lanes[i];
        struct outcome out = {
            .metrics = {.layers = b->engine->model->desc.n_layers, .rho = b->engine->model->rho, .total = lane->total}};
        const struct session_options so = bench_session(b, lane);
        cJSON *j = outcome_json(&out, b->engine, &so);
        cJSON *ids = cJSON_CreateArray(); /* of every prompt in the first pass */
        for (size_t p = 0; p < b->n_texts; p++) {
            cJSON *list = cJSON_CreateArray();
            for (size_t t = 0; t < lane->first[p].n_tokens; t++)
                cJSON_AddItemToArray(list, cJSON_CreateNumber(lane->first[p].tokens[t]));
            cJSON_AddItemToArray(ids, list);
        }
        cJSON_DeleteItemFromObject(j, "sequences");
        cJSON_AddItemToObject(j, "token_ids", ids);
        cJSON_DeleteItemFromObject(j, "end");
        struct figures f = figures_of(b, lane);
        json_number(j, "speedup", f.speedup);
        json_number(j, "speedup_all_in", f.speedup_all_in);
        json_number(j, "speedup_se", f.speedup_se);
        json_number(j, "tok_per_s_se", f.speed_se);
        json_number(j, "measured_over_modelled", f.ratio);
        cJSON_AddStringToObject(j, "lossless", lossless(b, lane));
        cJSON_AddItemToArray(results, j);
    }
    return root;
}
