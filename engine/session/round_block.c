/* Blocks of a block drafter, for policies that draft with one (docs/design-engine.md: Block drafters). */
#include <math.h>

#include "base/clock.h"
#include "engine/session/session_internal.h"

/* Appends the pending token and the masks after the trunk. */
static bool
append_block(const struct round *r, slot_t *rows)
{
    const struct drafter_desc *d = r->aux->of->drafter;
    rows[0] = seq_aux_next(r->state->sequence, r->aux);
    for (uint32_t i = 1; i < d->block && rows[i - 1] != SLOT_NONE; i++)
        rows[i] = context_append(r->ctx, r->seq, rows[i - 1], d->mask);
    return rows[d->block - 1] != SLOT_NONE;
}

uint32_t
rounds_block(struct round *const *r, uint32_t n, uint32_t k, slot_t *rows, struct prediction *out)
{
    struct session *s = r[0]->state->sequence->session;
    struct context *ctx = r[0]->ctx;
    const struct drafter_desc *d = r[0]->aux->of->drafter;
    const uint32_t limit = context_limits(ctx)->max_rows, most = limit < VERIFY_NODES ? limit : VERIFY_NODES,
                   first = d->from_anchor ? 0 : 1, fit = most / d->block, taken = n < fit ? n : fit;
    slot_t all[VERIFY_NODES] = {0};
    struct context_probe probes[VERIFY_NODES];
    for (uint32_t i = 0; i < taken; i++)
        if (!append_block(r[i], all + i * d->block))
            return 0;
    if (!context_advance(ctx, all, taken * d->block, r[0]->exit_layer, NULL))
        return 0;
    for (uint32_t i = 0; i < taken * k; i++) {
        rows[i] = all[i / k * d->block + first + i % k];
        probes[i] = (struct context_probe){.slot = rows[i], .layer = r[0]->exit_layer, .temperature = 1};
    }
    const uint64_t start = clock_ns();
    const bool ok = context_predict(ctx, probes, taken * k, out);
    spent_heads(&s->spent, clock_ns() - start);
    return ok ? taken : 0;
}

static void
emit(struct round *r, slot_t row, uint32_t head, const struct prediction *g, float acceptance)
{
    const uint32_t pos = context_position(r->ctx, row) + r->aux->of->predicts;
    if (r->state->sequence->current.probe != PROBE_OFF)
        seq_emit_aux_prediction(r->state->sequence, AUX_BLOCK, pos, r->exit_layer, head, g, PROBED_POLICY, TOKEN_NONE,
                                acceptance);
}

bool
rounds_follow(struct round *const *r, const slot_t *rows, const token_t *before, uint32_t n, bool markov,
              struct prediction *g, float *confidence)
{
    struct session *s = r[0]->state->sequence->session;
    struct context_probe probes[VERIFY_NODES];
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        probes[i] = (struct context_probe){.slot = rows[i],
                                           .layer = r[i]->exit_layer,
                                           .temperature = 1,
                                           .kept = true,
                                           .before = aux_token(r[i]->aux->of, before[i])};
        if (markov && (i == 0 || rows[i] != rows[i - 1]))
            emit(r[i], rows[i], 0, &g[i], NAN);
    }
    const uint64_t start = clock_ns();
    for (uint32_t i = 0; i < n && ok; i++)
        ok = session_confidence(s, rows[i], probes[i].before, i > 0 && rows[i] == rows[i - 1], &confidence[i]);
    ok = ok && (!markov || context_predict(r[0]->ctx, probes, n, g));
    spent_heads(&s->spent, clock_ns() - start);
    for (uint32_t i = 0; i < n && ok; i++)
        if (i == 0 || rows[i] != rows[i - 1])
            emit(r[i], rows[i], markov, &g[i], confidence[i]);
    return ok;
}
