/* Two settings beside each other: who was faster where. */
#include "tui/scope/scope_internal.h"

/* Rounds that are held and whole, and how many tokens had been emitted before the oldest one. */
static uint32_t
rounds_held(const struct scope *s, uint32_t seq, uint32_t *before)
{
    const struct scope_round *r;
    uint32_t n = 0;
    *before = s->versus.emitted[seq];
    for (uint32_t back = 0; (r = scope_versus_round(s, seq, back)) != NULL; back++)
        if (r->whole && r->end.emitted <= *before) {
            *before -= r->end.emitted;
            n++;
        }
    return n;
}

/* The rounds of both in the order in which they ran, from the oldest ones that are held. */
struct walk {
    const struct scope *scope;
    uint32_t back[2], at[2]; /* rounds to come; tokens emitted */
};

static const struct scope_round *
next_round(struct walk *w, uint32_t seq)
{
    while (w->back[seq] > 0) {
        const struct scope_round *r = scope_versus_round(w->scope, seq, --w->back[seq]);
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
        while (scope_versus_round(w->scope, seq, w->back[seq]) != NULL)
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
        span[i].of = estimate_compare(ratio_estimate(&speed[i]));
}

uint32_t
scope_versus_spans(const struct scope *s, struct scope_span *out, uint32_t n)
{
    uint32_t before[2], rounds[2];
    if (!s->is_versus || s->versus.apart)
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
