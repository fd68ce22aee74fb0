/* What specscope diff prints: three columns; a difference of counts has its size where it is clear. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/diff.h"
#include "engine/base/plural.h"
#include "engine/base/printable.h"
#include "tui/figures/bench_table.h"
#include "tui/terminal/terminal.h"
#include "tui/terminal/text.h"

#define NAME_COLS 28
#define SIDE_COLS 26
#define CELL      200
#define AROUND    8 /* tokens before the place where texts part, and after it */

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
say(char *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out, CELL / 4, format, args);
    va_end(args);
    return out;
}

/* ---- settings ---- */

/* What is the same is said once. */
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
        return say(out, "–");
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
            put_setting(say(name, "%s%s%s", knob->name, symbol ? " " : "", symbol ? knob->symbol : ""),
                        knob_text(r[0], knob->name, a), knob_text(r[1], knob->name, b));
        }
}

static const char *
turns_text(const struct record *r, char *out)
{
    return r->n_turns == 0 ? "none" : say(out, "%zu, the first: %s", r->n_turns, r->turns[0].text);
}

static const char *
sampling_text(const struct run_info *info, char *out)
{
    const struct sampling *s = &info->sampling;
    if (!(s->temperature > 0))
        return say(out, "greedy");
    return say(out, "T %.3g, k %d, p %.3g, seed %llu", (double)s->temperature, (int)s->top_k, (double)s->top_p,
               (unsigned long long)info->seed);
}

/* By the folders' names, where that tells them apart. */
static void
put_traces(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    x = x != NULL && x[1] != '\0' ? x + 1 : a;
    y = y != NULL && y[1] != '\0' ? y + 1 : b;
    const bool apart = strcmp(x, y) != 0;
    put_row("trace", apart ? x : a, apart ? y : b, "");
}

/* "cpu, avx2 x2"; who wrote the trace may not have said. */
static const char *
machine_text(const struct run_info *info, char out[CELL])
{
    return say(out, "%s%s%.20s", info->backend, info->isa[0] != '\0' ? ", " : "", info->isa);
}

static void
put_settings(const struct diff *d)
{
    const struct record *a = &d->a.record, *b = &d->b.record;
    char x[CELL], y[CELL];
    put_row("", "A", "B", "");
    put_traces(a->path, b->path);
    if (a->rounds[0].seq != b->rounds[0].seq)
        put_row("sequence", say(x, "%u", (unsigned)a->rounds[0].seq + 1), say(y, "%u", (unsigned)b->rounds[0].seq + 1),
                "");
    put_setting("policy", a->policy->name, b->policy->name);
    put_knobs(d);
    put_setting("changed", turns_text(a, x), turns_text(b, y));
    put_setting("head", a->settings->trained ? "trained" : "lens", b->settings->trained ? "trained" : "lens");
    put_setting("sampling", sampling_text(a->info, x), sampling_text(b->info, y));
    put_setting("model",
                say(x, "%.20s, %u layer%s %.8s", a->info->model_name, (unsigned)a->info->layers,
                    plural(a->info->layers), a->info->types),
                say(y, "%.20s, %u layer%s %.8s", b->info->model_name, (unsigned)b->info->layers,
                    plural(b->info->layers), b->info->types));
    put_setting("computed by", machine_text(a->info, x), machine_text(b->info, y));
    put_setting("machine", a->info->host, b->info->host);
    put_setting("started", a->info->started, b->info->started);
    put_row("tokens", say(x, "%zu", a->n_tokens), say(y, "%zu", b->n_tokens), "");
    put_row("rounds", say(x, "%zu", a->n_rounds), say(y, "%zu", b->n_rounds), "");
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
        return say(out, "–");
    const int n = decimals(e.value);
    return isnan(e.se) ? say(out, "%.*f", n, e.value) : say(out, "%.*f ±%.*f", n, e.value, n, e.se);
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
        return say(out, "the same");
    if (diff.verdict == DIFFERENCE_NOISE)
        return say(out, "no clear difference");
    if (isnan(q.value))
        return say(out, "%s", isnan(diff.value) ? "" : way);
    if (diff.verdict == DIFFERENCE_UNKNOWN)
        return say(out, "B %.*f%% %s, error unknown", n, fabs(percent), way);
    if (q.value >= 10)
        return say(out, "B ×%.0f ±%.*f", q.value, q.se < 1 ? 1 : 0, q.se);
    return say(out, "B %.*f%% ±%.*f %s", n, fabs(percent), n, q.se * 100, way);
}

/* B's speed against A's, where they ran in turns. */
static const char *
speed_text(const struct diff *d, struct comparison c, char *out)
{
    char text[64];
    if (!d->together)
        return say(out, "not compared");
    if (c.verdict == DIFFERENCE_UNKNOWN)
        return say(out, "too few rounds");
    comparison_text(c, text, sizeof text);
    return c.verdict == DIFFERENCE_NOISE ? say(out, "%s", text) : say(out, "%s %s", c.value > 1 ? "B" : "A", text);
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

/* ---- texts and spans ---- */

static void
put_texts(const struct diff *d)
{
    const struct record *a = &d->a.record, *b = &d->b.record;
    char words[400];
    if (d->common == TEXTS_APART) {
        printf("texts: they went on from different prompts or models\n");
        return;
    }
    if (!texts_part(a, b, d->common)) {
        printf("texts: the same for %zu token%s, as far as both go\n", d->common, plural(d->common));
        return;
    }
    const size_t from = d->common > AROUND ? d->common - AROUND : 0;
    printf("texts: they part at token %zu, position %u, after \"%s\"\n", d->common + 1,
           (unsigned)a->tokens[d->common].pos, diff_words(a, from, d->common - from, words, sizeof words));
    printf("  A goes on: %s\n", diff_words(a, d->common, AROUND, words, sizeof words));
    printf("  B goes on: %s\n", diff_words(b, d->common, AROUND, words, sizeof words));
}

static void
put_spans(const struct diff *d)
{
    char name[CELL], a[CELL], b[CELL], how[CELL];
    put_row(d->turned ? "tokens/s between changes" : "tokens/s on the way", "A", "B", d->together ? "B against A" : "");
    for (size_t i = 0; i < d->n_spans; i++) {
        const struct diff_span *s = &d->span[i];
        put_row(say(name, "tokens %llu to %llu", (unsigned long long)s->from, (unsigned long long)s->to),
                estimate_text(s->a, a), estimate_text(s->b, b), d->together ? speed_text(d, s->of, how) : "");
    }
}

bool
diff_table(const struct diff *d, struct err *err)
{
    put_settings(d);
    printf("\n");
    put_measures(d);
    printf("\n");
    put_texts(d);
    printf("\n");
    put_spans(d);
    return fflush(stdout) == 0 || err_set(err, ERR_WORK, "stdout: %s", strerror(errno));
}
