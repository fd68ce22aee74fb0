/* specscope diff: two traces beside each other. */
#include "cli/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/replay.h"

#define EQUAL_SPANS 3

/* ---- one side ---- */

static bool
read_side(struct diff_side *s, const struct saved_choice *which, struct err *err)
{
    const struct record_wanted want = {.run = which->run, .seq = which->seq, .to = UINT32_MAX};
    struct round_sums sums = {0};
    if (!record_open(&s->record, which->folder, &want, err) || !course_open(&s->course, &s->record, err))
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

static double
emitted(const struct diff_side *s)
{
    return s->course.tokens[s->course.n - 1];
}

/* ---- spans ---- */

static struct estimate
speed_within(const struct diff_side *s, const struct diff_span *span)
{
    struct ratio_sums sums = {0};
    const struct course *c = &s->course;
    for (size_t i = 1; i < c->n; i++)
        if (c->tokens[i - 1] + 1 >= (double)span->from && c->tokens[i - 1] + 1 <= (double)span->to)
            ratio_add(&sums, c->tokens[i] - c->tokens[i - 1], c->seconds[i] - c->seconds[i - 1]);
    return ratio_estimate(&sums);
}

/* Behind which tokens one of its knobs was turned. */
static void
note_turns(const struct diff_side *s, double both, double *ends, size_t *n)
{
    const struct record *r = &s->record;
    for (size_t i = 0; i < r->n_turns && *n < DIFF_SPANS - 1; i++) {
        size_t k = 0;
        while (k < r->n_rounds && r->rounds[k].number < r->turns[i].round)
            k++;
        const double at = s->course.tokens[k];
        bool there = at <= 0 || at >= both;
        for (size_t e = 0; e < *n; e++)
            there = there || ends[e] == at;
        if (!there)
            ends[(*n)++] = at;
    }
}

static int
ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void
cut_spans(struct diff *d)
{
    const double both = fmin(emitted(&d->a), emitted(&d->b));
    double ends[DIFF_SPANS];
    size_t n = 0;
    note_turns(&d->a, both, ends, &n);
    note_turns(&d->b, both, ends, &n);
    d->turned = n > 0;
    for (int i = 1; !d->turned && i < EQUAL_SPANS && both >= EQUAL_SPANS; i++)
        ends[n++] = floor(both * i / EQUAL_SPANS);
    ends[n++] = both;
    qsort(ends, n, sizeof *ends, ascending);
    for (size_t i = 0; i < n; i++) {
        struct diff_span *s = &d->span[d->n_spans++];
        *s = (struct diff_span){.from = i > 0 ? (uint64_t)ends[i - 1] + 1 : 1, .to = (uint64_t)ends[i]};
        s->a = speed_within(&d->a, s);
        s->b = speed_within(&d->b, s);
    }
}

/* The rounds of both in the order in which they ran. */
static void
compare_speeds(struct diff *d)
{
    const struct record *r[] = {&d->a.record, &d->b.record};
    size_t at[2] = {0, 0}, span = 0;
    struct ratio_sums sums[DIFF_SPANS] = {0};
    struct paired p = {0};
    while (d->together && (at[0] < r[0]->n_rounds || at[1] < r[1]->n_rounds)) {
        const uint32_t side = at[0] == r[0]->n_rounds ||
                              (at[1] < r[1]->n_rounds && r[1]->rounds[at[1]].number < r[0]->rounds[at[0]].number);
        if (!paired_add(&p, side, &r[side]->rounds[at[side]++].end))
            continue;
        while (span + 1 < d->n_spans && p.from + 1 > (double)d->span[span].to)
            span++;
        ratio_add(&sums[span], p.y, p.x);
    }
    d->speed = paired_comparison(&p);
    for (size_t i = 0; i < d->n_spans; i++)
        d->span[i].of = estimate_compare(ratio_estimate(&sums[i]));
}

/* ---- texts ---- */

char *
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

/* ---- both ---- */

/* Which two runs: of two traces, or the two of one. */
static bool
choose(const struct options *o, struct saved_choice two[2], struct err *err)
{
    const char *const *folder = o->operands.at;
    const bool one = o->operands.n == 1, given = o->plot.seq != UINT64_MAX;
    if (o->operands.n == 0)
        return err_set(err, ERR_USAGE, "which traces? specscope diff TRACE TRACE");
    if (o->operands.n > 2)
        return err_set(err, ERR_USAGE, "'%.60s': two traces are compared; see --help", folder[2]);
    if (one && given)
        return err_set(err, ERR_USAGE, "--seq %llu against what? give a second trace", (unsigned long long)o->plot.seq);
    const uint32_t seq = given ? (uint32_t)o->plot.seq - 1 : 0;
    two[0] = (struct saved_choice){folder[0], o->plot.run, seq};
    two[1] = (struct saved_choice){folder[one ? 0 : 1], o->plot.run, one ? 1 : seq};
    return true;
}

/* Of one trace the second is its second sequence, which it may not have. */
static bool
explain(const struct saved_choice two[2], const struct err *why, struct err *err)
{
    return two[0].folder == two[1].folder && why->kind == ERR_USAGE
               ? err_set(err, ERR_USAGE, "%s has one sequence in it; against which other trace?", two[0].folder)
               : err_set(err, why->kind, "%s", why->text);
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
    d->together = two[0].folder == two[1].folder && d->a.record.versus && d->a.record.run == d->b.record.run;
    cut_spans(d);
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
    course_close(&d->a.course);
    course_close(&d->b.course);
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
    const struct source source = {.replay = replay, .trace = two[0].folder, .both = two, .saved = true};
    *status = replay_show(o, &source, err);
    replay_close(replay);
    return true;
}

int
diff_main(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    struct saved_choice two[2];
    int status = 0;
    if (!options_begin(&o, COMMAND_DIFF, argc, argv, &status))
        return status;
    bool ok = choose(&o, two, &err);
    if (ok && !o.scope && o.script != NULL)
        ok = err_set(&err, ERR_USAGE, "--script %.60s is for the screen, with --scope", o.script);
    ok = ok && (o.scope ? show(&o, two, &status, &err) : print_table(two, o.json, &err));
    options_free(&o);
    return ok ? status : command_failed(&err);
}
