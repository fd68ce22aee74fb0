/* What a companion model says of a chain of drafts. */
#include "engine/base/clock.h"
#include "engine/session/session_internal.h"

static const struct sampling whole = {.temperature = 1, .top_p = 1};

/* Rows of nodes 0..n-1. Those that a model has not run yet it reads in one pass. */
static bool
read_chain(struct round *r, uint32_t n, slot_t *rows)
{
    slot_t unread[VERIFY_NODES];
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = round_slot(r, (int32_t)i);
        if (rows[i] == SLOT_NONE)
            return false;
        if (context_depth(r->ctx, rows[i]) < r->exit_layer)
            unread[count++] = rows[i];
    }
    return count == 0 || context_advance(r->ctx, unread, count, r->exit_layer, NULL);
}

static bool
distributions(struct round *r, const slot_t *rows, uint32_t n, const struct sampling *sampling, dist_t *out)
{
    struct session *s = r->state->session;
    const uint64_t start = clock_ns();
    const bool ok = context_dists(r->ctx, rows, n, r->exit_layer, s->settings.head, sampling, out);
    spent_heads(&r->state->spent, clock_ns() - start);
    return ok;
}

bool
round_overlap(struct round *draft, struct round *companion, uint32_t n, struct overlap *out)
{
    const struct verify_row *node = draft->state->node;
    const bool greedy = !(draft->sampling.temperature > 0);
    slot_t rows[VERIFY_NODES];
    dist_t d[VERIFY_NODES], c[VERIFY_NODES];
    for (uint32_t i = 0; i < n; i++)
        d[i] = node[i + 1].q;
    if (greedy && (!read_chain(draft, n, rows) || !distributions(draft, rows, n, &whole, d)))
        return false;
    if (!read_chain(companion, n, rows) || !distributions(companion, rows, n, greedy ? &whole : &draft->sampling, c))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!context_overlap(companion->ctx, d[i], c[i], node[i + 1].token, &out[i]))
            return false;
    return true;
}
