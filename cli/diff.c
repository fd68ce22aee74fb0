/* specscope diff: compares settings and measures of two saved sequences, and finds where their texts differ. Counts
 * are compared over rounds. Speeds are compared only for the two settings of one versus run, which ran in turns on one
 * machine. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/plural.h"
#include "base/program.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/generation/generation.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "cli/partings.h"
#include "cli/replay.h"
#include "engine/measure/estimate.h"
#include "engine/measure/metrics.h"
#include "traces/reader.h"
#include "tui/figures/bench_table.h"
#include "tui/figures/record.h"
#include "tui/terminal/terminal.h"

struct diff_side {
    struct record record;
    struct estimates measured; /* of all its rounds */
    struct layer_event there;  /* the target's prediction where the texts part, */
    bool predicted;            /* if both are greedy, and the trace has it */
    struct estimate baseline;
};

struct diff {
    struct diff_side a, b;
    size_t common; /* texts_common() */
    bool together; /* both ran in turns: speeds can be compared */
    struct comparison speed;
    struct parting_engines engines; /* of the model of both, */
    struct divergence parting;      /* if the parting was measured with them */
};

/* ---- the table: three columns; a clear difference of counts has its size ---- */

#define NAME_COLS 28
#define SIDE_COLS 26
#define CELL      200
#define AROUND    8 /* tokens shown before and after the position where the texts diverge */

static char *
diff_words(const struct record *r, size_t from, size_t n, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = from; i < r->n_tokens && i - from < n; i++) {
        const char *text = r->texts != NULL ? r->texts[r->tokens[i].token] : "?";
        if (used + strlen(text) + 1 > size)
            break;
        used += (size_t)snprintf(out + used, size - used, "%s", text);
    }
    return out;
}

static void
put_cell(const char *text, int cols)
{
    printf("%s%*s", text, text_width(text) < cols ? cols - text_width(text) : 1, "");
}

static void
put_row(const char *name, const char *a, const char *b, const char *last)
{
    char safe[4][CELL];
    const char *const cell[] = {name, a, b, last};
    const int cols[] = {NAME_COLS, SIDE_COLS, SIDE_COLS};
    int n = 4;
    for (int i = 0; i < 4; i++)
        printable_text(cell[i], strnlen(cell[i], CELL / 4), safe[i], sizeof safe[i]);
    for (int i = 0; i < 4 && terminal_wants_ascii(); i++)
        text_ascii(safe[i]);
    while (n > 1 && safe[n - 1][0] == '\0')
        n--;
    for (int i = 0; i + 1 < n; i++)
        put_cell(safe[i], cols[i]);
    printf("%s\n", safe[n - 1]);
}

__attribute__((format(printf, 2, 3))) static const char *
print_to(char *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out, CELL / 4, format, args);
    va_end(args);
    return out;
}

/* ---- settings ---- */

/* Prints equal values once. */
static void
put_setting(const char *name, const char *a, const char *b)
{
    put_row(name, a, strcmp(a, b) == 0 ? "the same" : b, "");
}

static const char *
knob_text(const struct record *r, const char *name, char *out)
{
    const int i = policy_knob_index(r->policy, name);
    if (i < 0)
        return print_to(out, "–");
    knob_format(&r->policy->knobs[i], r->settings->knobs[i], out, CELL / 4);
    return out;
}

static void
put_knobs(const struct diff *d)
{
    const struct record *const r[] = {&d->a.record, &d->b.record};
    char a[CELL], b[CELL], name[CELL];
    for (int side = 0; side < 2; side++)
        for (uint32_t k = 0; k < r[side]->policy->n_knobs; k++) {
            const struct knob *knob = &r[side]->policy->knobs[k];
            if (side == 1 && policy_knob_index(r[0]->policy, knob->name) >= 0)
                continue;
            const bool symbol = knob->symbol[0] != '\0' && strcmp(knob->symbol, knob->name) != 0;
            put_setting(print_to(name, "%s%s%s", knob->name, symbol ? " " : "", symbol ? knob->symbol : ""),
                        knob_text(r[0], knob->name, a), knob_text(r[1], knob->name, b));
        }
}

static const char *
changes_text(const struct record *r, char *out)
{
    return r->n_changes == 0 ? "none" : print_to(out, "%zu, the first: %s", r->n_changes, r->changes[0].text);
}

static const char *
sampling_text(const struct run_info *info, char *out)
{
    const struct sampling *s = &info->sampling;
    if (!(s->temperature > 0))
        return print_to(out, "greedy");
    return print_to(out, "T %.3g, k %d, p %.3g, seed %llu", (double)s->temperature, (int)s->top_k, (double)s->top_p,
                    (unsigned long long)info->seed);
}

/* Names the sides by their folders if the names differ. */
static void
put_traces(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    x = x != NULL && x[1] != '\0' ? x + 1 : a;
    y = y != NULL && y[1] != '\0' ? y + 1 : b;
    const bool apart = strcmp(x, y) != 0;
    put_row("trace", apart ? x : a, apart ? y : b, "");
}

/* Writes "cpu, avx2 x2"; a trace may lack it. */
static const char *
machine_text(const struct run_info *info, char out[CELL])
{
    return print_to(out, "%s%s%.20s", info->backend, info->isa[0] != '\0' ? ", " : "", info->isa);
}

static void
put_settings(const struct diff *d)
{
    const struct record *a = &d->a.record, *b = &d->b.record;
    char x[CELL], y[CELL];
    put_row("", "A", "B", "");
    put_traces(a->path, b->path);
    if (a->rounds[0].seq != b->rounds[0].seq)
        put_row("sequence", print_to(x, "%u", (unsigned)a->rounds[0].seq + 1),
                print_to(y, "%u", (unsigned)b->rounds[0].seq + 1), "");
    put_setting("policy", a->policy->name, b->policy->name);
    put_knobs(d);
    put_setting("changed", changes_text(a, x), changes_text(b, y));
    put_setting("head", a->settings->trained ? "trained" : "lens", b->settings->trained ? "trained" : "lens");
    put_setting("sampling", sampling_text(a->info, x), sampling_text(b->info, y));
    put_setting("model", a->info->model_name, b->info->model_name);
    put_setting("weights",
                print_to(x, "%u layer%s, %.12s", (unsigned)a->info->layers, plural(a->info->layers), a->info->types),
                print_to(y, "%u layer%s, %.12s", (unsigned)b->info->layers, plural(b->info->layers), b->info->types));
    put_setting("computed by", machine_text(a->info, x), machine_text(b->info, y));
    put_setting("machine", a->info->host, b->info->host);
    put_setting("started", a->info->started, b->info->started);
    put_row("tokens", print_to(x, "%zu", a->n_tokens), print_to(y, "%zu", b->n_tokens), "");
    put_row("rounds", print_to(x, "%zu", a->n_rounds), print_to(y, "%zu", b->n_rounds), "");
    if (a->info->cut || b->info->cut)
        put_row("cut by --trace-max", a->info->cut ? "yes" : "no", b->info->cut ? "yes" : "no", "");
}

/* ---- measures ---- */

static int
decimals(double value)
{
    const double size = fabs(value);
    return size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 3 : 4;
}

static const char *
estimate_text(struct estimate e, char *out)
{
    if (isnan(e.value))
        return print_to(out, "–");
    const int n = decimals(e.value);
    return isnan(e.se) ? print_to(out, "%.*f", n, e.value) : print_to(out, "%.*f ±%.*f", n, e.value, n, e.se);
}

/* B's counts against A's. */
static const char *
difference_text(struct estimate a, struct estimate b, char *out)
{
    const struct estimate q = estimate_quotient(b, a);
    const struct difference diff = estimate_difference(b, a);
    const double percent = (q.value - 1) * 100;
    const int n = fabs(percent) < 10 ? 1 : 0;
    const char *const way = diff.value > 0 ? "more" : "less";
    if (diff.value == 0)
        return print_to(out, "the same");
    if (diff.verdict == DIFFERENCE_NOISE)
        return print_to(out, "no clear difference");
    if (isnan(q.value))
        return print_to(out, "%s", isnan(diff.value) ? "" : way);
    if (diff.verdict == DIFFERENCE_UNKNOWN)
        return print_to(out, "B %.*f%% %s, error unknown", n, fabs(percent), way);
    if (q.value >= 10)
        return print_to(out, "B ×%.0f ±%.*f", q.value, q.se < 1 ? 1 : 0, q.se);
    return print_to(out, "B %.*f%% ±%.*f %s", n, fabs(percent), n, q.se * 100, way);
}

/* Writes B's speed over A's, if both ran in turns. */
static const char *
speed_text(const struct diff *d, struct comparison c, char *out)
{
    char text[64];
    if (!d->together)
        return print_to(out, "not compared");
    if (c.verdict == DIFFERENCE_UNKNOWN)
        return print_to(out, "too few rounds");
    comparison_text(c, text, sizeof text);
    return c.verdict == DIFFERENCE_NOISE ? print_to(out, "%s", text)
                                         : print_to(out, "%s %s", c.value > 1 ? "B" : "A", text);
}

static void
put_measures(const struct diff *d)
{
    char a[CELL], b[CELL], how[CELL];
    put_row("", "A", "B", "B against A");
    for (const struct named_measure *m = named_measures; m->name != NULL; m++) {
        const struct estimate x = measure_estimate(m, &d->a.measured, d->a.baseline),
                              y = measure_estimate(m, &d->b.measured, d->b.baseline);
        if (isnan(x.value) && isnan(y.value))
            continue;
        put_row(m->label, estimate_text(x, a), estimate_text(y, b),
                m->timed ? speed_text(d, d->speed, how) : difference_text(x, y, how));
    }
    if (!d->together)
        printf("speeds are not compared: the sequences did not run in turns on one machine (--versus)\n");
}

/* ---- texts ---- */

/* Prints the model's two best tokens where the texts part: a small margin is within what rounding can change. */
static void
put_margin(const char *name, const struct diff_side *s)
{
    const char(*texts)[48] = (const char(*)[48])s->record.texts;
    const struct layer_event *p = &s->there;
    if (!s->predicted || p->top[1] == TOKEN_NONE)
        return;
    printf("  the target's two best tokens there, in %s: \"%s\" %.3f, \"%s\" %.3f; %.3f logits apart\n", name,
           texts != NULL ? texts[p->top[0]] : "?", (double)p->top_p[0], texts != NULL ? texts[p->top[1]] : "?",
           (double)p->top_p[1], event_margin(p->top_p));
}

static void
put_texts(const struct diff *d)
{
    static const char *const names[] = {"in A", "in B"};
    const struct record *a = &d->a.record, *b = &d->b.record;
    char words[400];
    if (d->common == TEXTS_APART) {
        printf("texts: the prompts or models differ\n");
        return;
    }
    if (!texts_part(a, b, d->common)) {
        printf("texts: the same for %zu token%s, as far as both go\n", d->common, plural(d->common));
        return;
    }
    const size_t from = d->common > AROUND ? d->common - AROUND : 0;
    printf("texts: they part at token %zu, position %u, after \"%s\"\n", d->common + 1,
           (unsigned)a->tokens[d->common].pos, diff_words(a, from, d->common - from, words, sizeof words));
    printf("  A continues: %s\n", diff_words(a, d->common, AROUND, words, sizeof words));
    printf("  B continues: %s\n", diff_words(b, d->common, AROUND, words, sizeof words));
    put_margin("A", &d->a);
    put_margin("B", &d->b);
    if (d->engines.exact != NULL)
        printf("  the model's own arithmetics there: %s\n",
               parting_text(&d->parting, &d->engines, names, words, sizeof words));
}

static bool
diff_table(const struct diff *d, struct err *err)
{
    put_settings(d);
    printf("\n");
    put_measures(d);
    printf("\n");
    put_texts(d);
    return fflush(stdout) == 0 || err_set(err, ERR_WORK, "stdout: %s", strerror(errno));
}

/* ---- JSON ---- */

static const char *const verdicts[] = {"unknown", "no clear difference", "more", "less"};

static cJSON *
side_json(const struct diff_side *s)
{
    const struct record *r = &s->record;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "trace", r->path);
    json_number(j, "run", r->run);
    json_number(j, "sequence", r->rounds[0].seq);
    cJSON_AddStringToObject(j, "policy", r->policy->name);
    cJSON *knobs = cJSON_AddObjectToObject(j, "knobs");
    for (uint32_t k = 0; k < r->policy->n_knobs; k++) {
        char text[32];
        knob_format(&r->policy->knobs[k], r->settings->knobs[k], text, sizeof text);
        cJSON_AddStringToObject(knobs, r->policy->knobs[k].name, text);
    }
    json_number(j, "turns", (double)r->n_changes);
    cJSON_AddStringToObject(j, "head", r->settings->trained ? "trained" : "lens");
    json_number(j, "temperature", (double)r->info->sampling.temperature);
    json_number(j, "top_k", r->info->sampling.top_k);
    json_number(j, "top_p", (double)r->info->sampling.top_p);
    json_seed(j, r->info->seed);
    cJSON_AddStringToObject(j, "model", r->info->model_name);
    cJSON_AddStringToObject(j, "backend", r->info->backend);
    cJSON_AddStringToObject(j, "isa", r->info->isa);
    cJSON_AddStringToObject(j, "machine", r->info->host);
    cJSON_AddStringToObject(j, "started", r->info->started);
    json_number(j, "tokens", (double)r->n_tokens);
    json_number(j, "rounds", (double)r->n_rounds);
    cJSON_AddBoolToObject(j, "cut", r->info->cut);
    return j;
}

static void
add_pair(cJSON *to, struct estimate a, struct estimate b, const char *verdict)
{
    json_estimate(to, "a", a);
    json_estimate(to, "b", b);
    json_estimate(to, "b_over_a", estimate_quotient(b, a));
    cJSON_AddStringToObject(to, "b_against_a", verdict);
}

/* Adds speeds, with a verdict only if both ran in turns. */
static void
add_speeds(cJSON *to, const struct diff *d, struct estimate a, struct estimate b, struct comparison c)
{
    add_pair(to, a, b, d->together ? verdicts[c.verdict] : "not compared");
    if (!d->together)
        return;
    json_number(to, "speed_ratio", c.value);
    json_number(to, "low", c.low);
    json_number(to, "high", c.high);
}

/* Adds the two best tokens of the model where the texts part: ids, probabilities, and the difference of their
 * logits. */
static void
add_margin(cJSON *to, const char *name, const struct diff_side *s)
{
    if (!s->predicted || s->there.top[1] == TOKEN_NONE) {
        cJSON_AddNullToObject(to, name);
        return;
    }
    cJSON *j = cJSON_AddObjectToObject(to, name), *ids = cJSON_AddArrayToObject(j, "token_ids"),
          *p = cJSON_AddArrayToObject(j, "probabilities");
    for (int i = 0; i < 2; i++) {
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(s->there.top[i]));
        cJSON_AddItemToArray(p, cJSON_CreateNumber((double)s->there.top_p[i]));
    }
    json_number(j, "logits", event_margin(s->there.top_p));
}

static cJSON *
texts_json(const struct diff *d)
{
    const struct record *r[] = {&d->a.record, &d->b.record};
    cJSON *j = cJSON_CreateObject();
    char words[2000];
    const bool apart = d->common == TEXTS_APART, part = texts_part(r[0], r[1], d->common);
    cJSON_AddBoolToObject(j, "comparable", !apart);
    json_number(j, "same_tokens", apart ? 0 : (double)d->common);
    if (!part) {
        cJSON_AddNullToObject(j, "part_at");
        return j;
    }
    json_number(j, "part_at", r[0]->tokens[d->common].pos);
    add_margin(j, "a_margin", &d->a);
    add_margin(j, "b_margin", &d->b);
    if (d->engines.exact != NULL)
        parting_json(cJSON_AddObjectToObject(j, "parting"), &d->parting);
    cJSON_AddStringToObject(j, "a", diff_words(r[0], d->common, SIZE_MAX, words, sizeof words));
    cJSON_AddStringToObject(j, "b", diff_words(r[1], d->common, SIZE_MAX, words, sizeof words));
    return j;
}

static bool
diff_json(const struct diff *d, const char *path, struct err *err)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddItemToObject(j, "a", side_json(&d->a));
    cJSON_AddItemToObject(j, "b", side_json(&d->b));
    cJSON *list = cJSON_AddArrayToObject(j, "measures");
    for (const struct named_measure *m = named_measures; m->name != NULL; m++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddStringToObject(at, "name", m->name);
        const struct estimate a = measure_estimate(m, &d->a.measured, d->a.baseline),
                              b = measure_estimate(m, &d->b.measured, d->b.baseline);
        if (m->timed)
            add_speeds(at, d, a, b, d->speed);
        else
            add_pair(at, a, b, verdicts[estimate_difference(b, a).verdict]);
        cJSON_AddItemToArray(list, at);
    }
    cJSON_AddItemToObject(j, "texts", texts_json(d));
    return json_write(j, path, err);
}

/* ---- one side ---- */

static bool
read_side(struct diff_side *s, const struct saved_choice *which, struct err *err)
{
    const struct record_wanted want = {.run = which->run, .seq = which->seq, .to = UINT32_MAX};
    struct round_sums sums = {0};
    if (!record_open(&s->record, which->folder, &want, err))
        return false;
    const struct record *r = &s->record;
    for (size_t i = 0; i < r->n_rounds; i++) {
        const struct tally t = record_tally(&r->rounds[i]);
        round_sums_add(&sums, &t, r->info->rho);
    }
    s->measured = round_sums_estimates(&sums, r->info->layers, r->info->rho);
    s->baseline = metrics_baseline(&r->metrics);
    return true;
}

/* Adds the rounds of both sides in the order in which they ran. */
static void
compare_speeds(struct diff *d)
{
    const struct record *r[] = {&d->a.record, &d->b.record};
    size_t at[2] = {0, 0};
    struct paired p = {0};
    while (d->together && (at[0] < r[0]->n_rounds || at[1] < r[1]->n_rounds)) {
        const uint32_t side = at[0] == r[0]->n_rounds ||
                              (at[1] < r[1]->n_rounds && r[1]->rounds[at[1]].number < r[0]->rounds[at[0]].number);
        paired_add(&p, side, &r[side]->rounds[at[side]++].end);
    }
    d->speed = paired_comparison(&p);
}

/* ---- the command ---- */

/* Chooses the two sequences: of two traces, or of one. */
static bool
choose(const struct options *o, struct saved_choice two[2], struct err *err)
{
    const char *const *folder = o->operands.at;
    const bool one = o->operands.n == 1, given = o->plot.seq != UINT64_MAX;
    if (o->operands.n == 0)
        return err_set(err, ERR_USAGE, "which traces? %s diff TRACE TRACE", program_name());
    if (o->operands.n > 2)
        return err_set(err, ERR_USAGE, "'%.60s': two traces are compared; see --help", folder[2]);
    if (one && given)
        return err_set(err, ERR_USAGE, "--seq %llu against what? give a second trace", (unsigned long long)o->plot.seq);
    const uint32_t seq = given ? (uint32_t)o->plot.seq - 1 : 0;
    two[0] = (struct saved_choice){folder[0], o->plot.run, seq};
    two[1] = (struct saved_choice){folder[one ? 0 : 1], o->plot.run, one ? 1 : seq};
    return true;
}

/* With one trace the second side is its second sequence, which may be missing. */
static bool
explain(const struct saved_choice two[2], const struct err *why, struct err *err)
{
    return two[0].folder == two[1].folder && why->kind == ERR_USAGE
               ? err_set(err, ERR_USAGE, "%s has one sequence in it; against which other trace?", two[0].folder)
               : err_set(err, why->kind, "%s", why->text);
}

static void
find_margin(struct diff_side *s, size_t at)
{
    const struct record_token *t = &s->record.tokens[at];
    s->predicted = record_prediction(&s->record, t->seq, t->pos, &s->there);
}

/* Reads the prompt and the common tokens of a side; NULL: not possible. */
static token_t *
common_tokens(const struct record *r, size_t common, size_t *n, struct err *err)
{
    struct trace_reader *reader;
    struct event e;
    token_t *tokens = NULL;
    size_t room = 0;
    bool ok = trace_reader_open(&reader, r->path, false, err);
    *n = 0;
    if (!ok)
        return NULL;
    while (ok && trace_reader_next(reader, &e, err) && e.run <= r->run)
        if (e.type == EVENT_TOKEN && e.token.source == SOURCE_PROMPT && e.run == r->run && e.seq == r->rounds[0].seq &&
            (ok = array_grow(&tokens, &room, *n + common + 1, sizeof *tokens)))
            tokens[(*n)++] = e.token.token;
    trace_reader_close(reader);
    for (size_t i = 0; ok && *n > 0 && i < common; i++)
        tokens[(*n)++] = r->tokens[i].token;
    if (ok && err->kind == ERR_NONE)
        return tokens;
    free(tokens);
    if (!ok)
        err_set(err, ERR_WORK, "out of memory");
    return NULL;
}

/* Measures why the texts of an engine and of a server part (engine/session/divergence.h), if the engine's model can be
 * opened as it was. */
static void
measure_parting(struct diff *d)
{
    const struct record *r[] = {&d->a.record, &d->b.record};
    const struct record *own = r[r[0]->info->model_hash == 0];
    struct options o;
    struct err err = {0};
    size_t n;
    if ((r[0]->info->model_hash == 0) == (r[1]->info->model_hash == 0) || own->info->asked.lora[0] != '\0' ||
        access(own->info->model_path, R_OK) != 0)
        return;
    options_init(&o, COMMAND_SCOPE);
    o.model = own->info->model_path;
    o.quantize = own->info->asked.quantize;
    token_t *tokens = common_tokens(own, d->common, &n, &err);
    bool ok = tokens != NULL && parting_engines_open(&d->engines, &o, &err);
    d->parting = (struct divergence){.here = r[0]->tokens[d->common].token, .there = r[1]->tokens[d->common].token};
    if (ok && !divergence_measure(&d->parting, d->engines.exact, d->engines.rounded, tokens, (uint32_t)n, NULL, &err))
        parting_engines_close(&d->engines);
    if (err.kind != ERR_NONE)
        fprintf(stderr, "specscope: why the texts part was not measured: %s\n", err.text);
    options_free(&o);
    free(tokens);
}

static bool
compare(struct diff *d, const struct saved_choice two[2], struct err *err)
{
    struct err why = {0};
    if (!read_side(&d->a, &two[0], err))
        return false;
    if (!read_side(&d->b, &two[1], &why))
        return explain(two, &why, err);
    d->common = texts_common(&d->a.record, &d->b.record);
    if (texts_part(&d->a.record, &d->b.record, d->common) && !(d->a.record.info->sampling.temperature > 0) &&
        !(d->b.record.info->sampling.temperature > 0)) {
        find_margin(&d->a, d->common);
        find_margin(&d->b, d->common);
        measure_parting(d);
    }
    d->together = two[0].folder == two[1].folder && d->a.record.versus && d->a.record.run == d->b.record.run;
    compare_speeds(d);
    return true;
}

static bool
print_table(const struct saved_choice two[2], const char *json, struct err *err)
{
    struct diff *d = calloc(1, sizeof *d);
    if (d == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    const bool ok = compare(d, two, err) && (json == NULL ? diff_table(d, err) : diff_json(d, json, err));
    parting_engines_close(&d->engines);
    record_close(&d->a.record);
    record_close(&d->b.record);
    free(d);
    return ok;
}

static bool
show(const struct options *o, const struct saved_choice two[2], int *status, struct err *err)
{
    struct replay *replay;
    struct err why = {0};
    if (o->json != NULL)
        return err_set(err, ERR_USAGE, "--scope shows the runs, --json writes what the table has; one at a time");
    if (!replay_has_terminal(err))
        return false;
    if (!replay_open_pair(&replay, two, &why))
        return explain(two, &why, err);
    const struct source source = {.replay = replay, .trace = two[0].folder, .saved = true};
    *status = replay_show(o, &source, err);
    replay_close(replay);
    return true;
}

bool
diff_main(struct options *o, int *status, struct err *err)
{
    struct saved_choice two[2];
    bool ok = choose(o, two, err);
    if (ok && !o->scope && o->script != NULL)
        ok = err_set(err, ERR_USAGE, "--script %.60s is for the screen, with --scope", o->script);
    ok = ok && (o->scope ? show(o, two, status, err) : print_table(two, o->json, err));
    return ok;
}
