/* What a companion model says of chains of drafts. */
#include "engine/base/clock.h"
#include "engine/session/rounds.h"
#include "engine/session/session_internal.h"

static const struct sampling whole = {.temperature = 1, .top_p = 1};

/* Rows of nodes 0..n-1 of several chains, behind one another. */
struct chains {
    slot_t row[VERIFY_NODES];
    uint32_t n;
};

/* Those that a model has not run yet it reads in one pass. */
static bool
read_chains(struct round *const *r, uint32_t n, struct chains *c)
{
    slot_t unread[VERIFY_NODES];
    size_t count = 0;
    c->n = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t node = 0; node < round_drafted(r[i]); node++) {
            const slot_t row = round_slot(r[i], (int32_t)node);
            if (row == SLOT_NONE)
                return false;
            c->row[c->n++] = row;
            if (context_depth(r[i]->ctx, row) < r[i]->exit_layer)
                unread[count++] = row;
        }
    return count == 0 || context_advance(r[0]->ctx, unread, count, r[0]->exit_layer, NULL);
}

static bool
distributions(struct round *r, const struct chains *c, const struct sampling *sampling, dist_t *out)
{
    struct session *s = r->state->lane->session;
    const uint64_t start = clock_ns();
    const bool ok = context_dists(r->ctx, c->row, c->n, r->exit_layer, r->state->lane->head, sampling, out);
    spent_heads(&s->spent, clock_ns() - start);
    return ok;
}

/* Chains that have no more than VERIFY_NODES drafts in all, and one at least. */
static bool
compare(struct round *const *draft, struct round *const *companion, uint32_t n, struct overlap *const *out)
{
    const bool greedy = !(draft[0]->sampling.temperature > 0);
    struct chains chains;
    dist_t d[VERIFY_NODES], c[VERIFY_NODES];
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < round_drafted(draft[i]); k++)
            d[at++] = draft[i]->state->node[k + 1].q;
    if (greedy && (!read_chains(draft, n, &chains) || !distributions(draft[0], &chains, &whole, d)))
        return false;
    if (!read_chains(companion, n, &chains) ||
        !distributions(companion[0], &chains, greedy ? &whole : &draft[0]->sampling, c))
        return false;
    at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < round_drafted(draft[i]); k++, at++)
            if (!context_overlap(companion[0]->ctx, d[at], c[at], draft[i]->state->node[k + 1].token, &out[i][k]))
                return false;
    return true;
}

bool
rounds_overlap(struct round *const *draft, struct round *const *companion, uint32_t n, struct overlap *const *out)
{
    for (uint32_t first = 0, last; first < n; first = last) {
        uint32_t drafts = 0;
        for (last = first; last < n && drafts + round_drafted(draft[last]) <= VERIFY_NODES; last++)
            drafts += round_drafted(draft[last]);
        if (drafts > 0 && !compare(draft + first, companion + first, last - first, out + first))
            return false;
    }
    return true;
}
