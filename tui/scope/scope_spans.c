/* Two settings beside each other: who was faster where. */
#include "tui/scope/scope_internal.h"

struct spans {
    struct scope_span *span; /* (n) */
    uint32_t n;
    struct ratio_sums speed[SCOPE_SPANS][2];
};

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

static void
add_rounds(struct spans *spans, const struct scope *s, uint32_t seq)
{
    const struct scope_round *r;
    uint32_t after = s->versus.emitted[seq], i = spans->n;
    for (uint32_t back = 0; (r = scope_versus_round(s, seq, back)) != NULL; back++) {
        if (!r->whole || r->end.emitted > after)
            continue;
        after -= r->end.emitted;
        while (i > 0 && after + 1 < spans->span[i - 1].from)
            i--;
        if (i == 0)
            return;
        if (after + 1 <= spans->span[i - 1].to)
            ratio_add(&spans->speed[i - 1][seq], r->end.emitted,
                      ((double)r->end.draft_us + (double)r->end.verify_us) * 1e-6);
    }
}

uint32_t
scope_versus_spans(const struct scope *s, struct scope_span *out, uint32_t n)
{
    uint32_t before[2], rounds[2];
    struct spans spans = {.span = out};
    if (!s->is_versus)
        return 0;
    for (uint32_t seq = 0; seq < 2; seq++)
        rounds[seq] = rounds_held(s, seq, &before[seq]);
    const uint32_t from = before[0] > before[1] ? before[0] : before[1],
                   to = s->versus.emitted[0] < s->versus.emitted[1] ? s->versus.emitted[0] : s->versus.emitted[1],
                   fewer = rounds[0] < rounds[1] ? rounds[0] : rounds[1];
    spans.n = fewer / SPAN_ROUNDS < SCOPE_SPANS ? fewer / SPAN_ROUNDS : SCOPE_SPANS;
    spans.n = spans.n < n ? spans.n : n;
    if (to <= from || spans.n > to - from)
        return 0;
    for (uint32_t i = 0; i < spans.n; i++)
        out[i] = (struct scope_span){.from = from + (uint32_t)((uint64_t)(to - from) * i / spans.n) + 1,
                                     .to = from + (uint32_t)((uint64_t)(to - from) * (i + 1) / spans.n)};
    add_rounds(&spans, s, 0);
    add_rounds(&spans, s, 1);
    for (uint32_t i = 0; i < spans.n; i++)
        out[i].of = estimate_difference(ratio_estimate(&spans.speed[i][1]), ratio_estimate(&spans.speed[i][0]));
    return spans.n;
}
