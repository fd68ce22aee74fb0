#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/scope/scope_internal.h"

/* ---- events ---- */

void
scope_begin_versus(struct scope *s, const char *text)
{
    struct scope_setting *first = &s->setting[0], *second = &s->setting[1];
    const bool apart = run_info_apart(s->info);
    if (apart) {
        settings_begin(&second->now, run_info_of(s->info, 1));
    } else { /* its head is recorded after this event */
        second->now = first->now;
        second->heads = first->heads;
        second->sampled = first->sampled;
    }
    settings_read_versus(&second->now, s->info, text);
    s->versus = (struct scope_versus){.apart = apart};
    first->metrics = second->metrics = s->now.metrics;
    s->now.versus = &s->versus;
}

void
scope_take_probe(struct scope *s)
{
    const struct settings *now = &scope_setting_of(s, s->focus->seq)->now;
    probe_print(now->probe, now->probe_percent, s->now.probe);
}

void
scope_take_metrics(struct scope *s)
{
    scope_take_probe(s);
    if (s->now.versus != NULL)
        s->now.metrics = scope_setting_of(s, s->focus->seq)->metrics;
    segments_focus(s->segments, s->focus->seq);
}

static bool
is_change(const struct control_event *c)
{
    return c->kind == RECORDED_KNOB || c->kind == RECORDED_POLICY || c->kind == RECORDED_HEAD ||
           c->kind == RECORDED_PACE;
}

static void
begin_again(struct scope_versus *v)
{
    memset(v->sums, 0, sizeof v->sums);
    paired_restart(&v->paired);
    memcpy(v->since, v->emitted, sizeof v->since);
}

/* Takes the last layer's prediction at the position where the texts part, which the round's events contain. */
static void
take_margin(struct scope *s)
{
    struct scope_versus *v = &s->versus;
    v->best[0] = v->best[1] = TOKEN_NONE;
    v->margin = NAN;
    for (uint32_t seq = 0; seq < 2 && v->best[1] == TOKEN_NONE; seq++) {
        const struct scope_sequence *q = scope_held(s, seq);
        if (scope_setting_of(s, 0)->sampled || scope_setting_of(s, 1)->sampled || !sequence_holds_cells(q, v->same))
            continue;
        const struct scope_cell *last = &sequence_cells(q, 0, v->same)[s->info->layers];
        if (!last->known || last->top[0] == TOKEN_NONE || last->top[1] == TOKEN_NONE)
            continue;
        memcpy(v->best, last->top, sizeof v->best);
        memcpy(v->best_p, last->top_p, sizeof v->best_p);
        v->margin = event_margin(last->top_p);
    }
}

/* Counts the tokens that both texts begin with. */
static void
compare(struct scope *s)
{
    struct scope_versus *v = &s->versus;
    const struct scope_sequence *a = scope_held(s, 0), *b = scope_held(s, 1);
    const bool before = v->parted;
    while (a != NULL && b != NULL && !v->parted && v->same < a->committed && v->same < b->committed) {
        const struct scope_column *x = sequence_column(a, v->same), *y = sequence_column(b, v->same);
        v->parted = x != NULL && y != NULL && x->token != y->token;
        v->same += !v->parted;
    }
    if (v->parted && !before)
        take_margin(s);
}

void
scope_versus_event(struct scope *s, const struct event *e)
{
    if (s->now.versus == NULL)
        return;
    if (e->type == EVENT_CONTROL) {
        for (uint32_t i = 0; i < 2; i++)
            if (run_info_concerns(s->info, i, e))
                metrics_event(&s->setting[i].metrics, e);
        if (is_change(&e->control))
            begin_again(&s->versus);
    } else if (e->seq < 2) {
        const struct tally t = tally_of(&e->round_end);
        struct event own = *e; /* each setting's measures have one sequence, number 0 */
        own.seq = 0;
        metrics_event(&s->setting[e->seq].metrics, &own);
        round_sums_add(&s->versus.sums[e->seq], &t, s->info->rho);
        paired_add(&s->versus.paired, e->seq, &e->round_end);
        s->versus.emitted[e->seq] += e->round_end.emitted;
        compare(s);
    }
    scope_take_metrics(s);
}

/* ---- reading ---- */

const struct run_info *
scope_versus_info(const struct scope *s, uint32_t seq)
{
    return run_info_of(s->info, seq);
}

const struct policy_info *
scope_versus_policy(const struct scope *s, uint32_t seq)
{
    const struct policy_info *p = scope_policy_of(s, seq);
    return p != NULL ? p : scope_policy(s);
}

double
scope_versus_knob(const struct scope *s, uint32_t seq, uint32_t index)
{
    const struct scope_setting *at = scope_setting_of(s, seq);
    return at->now.policy < s->info->n_policies && index < POLICY_KNOBS ? at->now.value[at->now.policy][index]
                                                                        : (double)NAN;
}

struct estimates
scope_versus_estimates(const struct scope *s, uint32_t seq)
{
    if (s->now.window != WINDOW_SEGMENT) {
        const struct metrics *m = &s->setting[seq == 1].metrics;
        return s->now.window == WINDOW_RUN ? metrics_run_estimates(m) : metrics_estimates(m);
    }
    return round_sums_estimates(&s->versus.sums[seq == 1], s->info->layers, s->info->rho);
}

void
scope_versus_name(const struct scope *s, uint32_t seq, char out[VERSUS_NAME_MOST], bool *identical)
{
    const struct settings *own = &scope_setting_of(s, seq)->now, *other = &scope_setting_of(s, 1 - seq)->now;
    snprintf(out, VERSUS_NAME_MOST, "?");
    *identical = false;
    if (own->policy >= s->info->n_policies)
        return;
    settings_print_versus(other, own, s->info, out);
    *identical = own->policy == other->policy && strchr(out, ' ') == NULL && own->head == other->head;
    const size_t used = strlen(out);
    if (own->head != other->head)
        snprintf(out + used, VERSUS_NAME_MOST - used, " head=%s", head_mode_names[own->head]);
}

struct comparison
scope_versus_comparison(const struct scope *s)
{
    const struct paired none = {0};
    return paired_comparison(s->versus.apart ? &none : &s->versus.paired);
}

uint32_t
scope_versus_text(const struct scope *s, uint32_t seq, token_t *out, uint32_t n)
{
    const struct scope_sequence *q = scope_held(s, seq);
    uint32_t count = 0;
    for (uint32_t pos = s->versus.same; q != NULL && pos < q->committed && count < n; pos++) {
        const struct scope_column *c = sequence_column(q, pos);
        if (c == NULL)
            break;
        out[count++] = c->token;
    }
    return count;
}

/* Counts complete rounds in memory, and the tokens emitted before the oldest one. */
static uint32_t
rounds_held(const struct scope *s, uint32_t seq, uint32_t *before)
{
    const struct scope_round *r;
    uint32_t n = 0;
    *before = s->versus.emitted[seq];
    for (uint32_t back = 0; (r = scope_round_of(s, seq, back)) != NULL; back++)
        if (r->whole && r->end.emitted <= *before) {
            *before -= r->end.emitted;
            n++;
        }
    return n;
}

/* Iterates over the rounds of both in the order in which they ran, from the oldest in memory. */
struct walk {
    const struct scope *scope;
    uint32_t back[2], at[2]; /* rounds left; tokens emitted */
};

static const struct scope_round *
next_round(struct walk *w, uint32_t seq)
{
    while (w->back[seq] > 0) {
        const struct scope_round *r = scope_round_of(w->scope, seq, --w->back[seq]);
        if (r->whole && w->at[seq] + r->end.emitted <= w->scope->versus.emitted[seq]) {
            w->at[seq] += r->end.emitted;
            return r;
        }
    }
    return NULL;
}

static bool
begin_together(struct walk *w, const uint32_t before[2])
{
    for (uint32_t seq = 0; seq < 2; seq++) {
        w->at[seq] = before[seq];
        while (scope_round_of(w->scope, seq, w->back[seq]) != NULL)
            w->back[seq]++;
    }
    while (w->at[0] != w->at[1])
        if (next_round(w, w->at[0] > w->at[1]) == NULL)
            return false;
    return true;
}

static void
compare_spans(const struct scope *s, const uint32_t before[2], struct scope_span *span, uint32_t n)
{
    struct ratio_sums speed[SCOPE_SPANS] = {0};
    struct walk w = {.scope = s};
    struct paired p = {0};
    const struct scope_round *r;
    uint32_t i = 0;
    const bool together = begin_together(&w, before);
    const uint32_t base = w.at[0];
    while (together) {
        const uint32_t seq = w.at[0] > w.at[1];
        if ((r = next_round(&w, seq)) == NULL)
            break;
        if (!paired_add(&p, seq, &r->end))
            continue;
        while (i + 1 < n && base + (uint32_t)p.from + 1 > span[i].to)
            i++;
        ratio_add(&speed[i], p.y, p.x);
    }
    for (i = 0; i < n; i++)
        span[i].of = estimate_compare_of(ratio_estimate(&speed[i]), n);
}

uint32_t
scope_versus_spans(const struct scope *s, struct scope_span *out, uint32_t n)
{
    uint32_t before[2], rounds[2];
    if (s->now.versus == NULL || s->versus.apart)
        return 0;
    for (uint32_t seq = 0; seq < 2; seq++)
        rounds[seq] = rounds_held(s, seq, &before[seq]);
    const uint32_t from = before[0] > before[1] ? before[0] : before[1],
                   to = s->versus.emitted[0] < s->versus.emitted[1] ? s->versus.emitted[0] : s->versus.emitted[1],
                   fewer = rounds[0] < rounds[1] ? rounds[0] : rounds[1];
    if (to <= from)
        return 0;
    const uint32_t limits[] = {n, SCOPE_SPANS, fewer / SPAN_ROUNDS, (to - from) / (SPAN_SEGMENTS * PAIRED_TOKENS)};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        n = limits[i] < n ? limits[i] : n;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct scope_span){.from = from + (uint32_t)((uint64_t)(to - from) * i / n) + 1,
                                     .to = from + (uint32_t)((uint64_t)(to - from) * (i + 1) / n)};
    compare_spans(s, before, out, n);
    return n;
}
