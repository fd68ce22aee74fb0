#include "policies/sv_latency.h"

#include <math.h>

#include "policies/goodput.h"

enum { PASSES = 3 }; /* over all numbers of rows; of each number the least time counts */

/* What the rows hold makes no difference. */
static bool
verify(struct round *r, uint32_t n, double *ms)
{
    slot_t rows[SV_DRAFTS + 1];
    struct context_probe probes[SV_DRAFTS + 1];
    struct guess guesses[SV_DRAFTS + 1];
    const uint32_t length = context_length(r->ctx, r->seq), before = length < n ? 0 : length - n;
    const seq_t fork = context_fork(r->ctx, r->seq, before);
    bool ok = fork != SEQ_NONE;
    for (uint32_t i = 0; i < n && ok; i++) {
        rows[i] = context_append(r->ctx, fork, i == 0 ? SLOT_NONE : rows[i - 1], r->tokens[r->n_tokens - 1]);
        ok = rows[i] != SLOT_NONE;
        probes[i] = (struct context_probe){.slot = rows[i], .layer = r->layers, .temperature = 1};
    }
    const double since = round_aside_ms(r);
    round_aside_begin(r);
    ok = ok && context_advance(r->ctx, rows, n, r->layers, NULL) && round_look(r, probes, n, guesses);
    round_aside_end(r);
    *ms = round_aside_ms(r) - since;
    if (fork != SEQ_NONE)
        context_drop(r->ctx, fork);
    return ok;
}

bool
sv_latency_measure(struct sv_latency *l, struct round *r, uint32_t rows)
{
    l->rows = 0;
    for (uint32_t i = 0; i < rows; i++)
        l->verify_ms[i] = INFINITY;
    for (int pass = 0; pass < PASSES; pass++)
        for (uint32_t i = 0; i < rows; i++) {
            double ms;
            if (!verify(r, i + 1, &ms))
                return false;
            l->verify_ms[i] = fmin(l->verify_ms[i], ms);
        }
    goodput_monotone(l->verify_ms, rows);
    l->rows = rows;
    return true;
}

void
sv_latency_drafted(struct sv_latency *l, uint32_t window, double ms)
{
    if (l->window != window) {
        l->window = window;
        l->rounds = 0;
    }
    l->draft_ms = l->rounds++ == 0 ? ms : fmin(l->draft_ms, ms);
}

bool
sv_latency_known(const struct sv_latency *l, uint32_t window, uint32_t n)
{
    return l->rows > n && l->window == window && l->rounds > 0;
}
