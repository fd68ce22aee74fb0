/* What a companion model says of chains of drafts. */
#include "engine/base/clock.h"
#include "engine/session/rounds.h"
#include "engine/session/session_internal.h"

static const struct sampling whole = {.temperature = 1, .top_p = 1};

/* ---- reading ---- */

struct reading { /* rows on their way to the model's last layer */
    struct round *of;
    slot_t row[VERIFY_NODES];
    uint32_t n;
};

static bool
read_now(struct reading *r)
{
    const uint32_t n = r->n;
    r->n = 0;
    return n == 0 || context_advance(r->of->ctx, r->row, n, r->of->exit_layer, NULL);
}

static bool
read_row(struct reading *r, slot_t row)
{
    const uint32_t most = context_limits(r->of->ctx)->max_rows;
    if (row == SLOT_NONE)
        return false;
    if (context_depth(r->of->ctx, row) >= r->of->exit_layer)
        return true;
    r->row[r->n++] = row;
    return r->n < (most < VERIFY_NODES ? most : VERIFY_NODES) || read_now(r);
}

/* What the model has not run yet of the tokens before the drafts, and of the drafts but the last ones, in as few sweeps as
 * that fits in. */
static bool
read_chains(struct round *const *r, uint32_t n)
{
    struct reading reading = {.of = r[0]};
    for (uint32_t i = 0; i < n; i++) {
        const struct helper *h = r[i]->helper;
        for (uint32_t k = 0; h != NULL && k + 1 < h->n_fresh; k++) /* the last one is node 0's */
            if (!read_row(&reading, h->fresh[k]))
                return false;
        for (uint32_t node = 0; node < round_drafted(r[i]); node++)
            if (!read_row(&reading, round_slot(r[i], (int32_t)node)))
                return false;
    }
    return read_now(&reading);
}

/* ---- comparing ---- */

/* Of the rows of nodes 0..drafts - 1, which the model has run, of several chains behind one another. */
static bool
distributions(struct round *const *r, uint32_t n, const struct sampling *sampling, dist_t *out)
{
    struct session *s = r[0]->state->lane->session;
    slot_t row[VERIFY_NODES];
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t node = 0; node < round_drafted(r[i]); node++)
            row[at++] = round_slot(r[i], (int32_t)node);
    const uint64_t start = clock_ns();
    const bool ok = context_dists(r[0]->ctx, row, at, r[0]->exit_layer, r[0]->state->lane->head, sampling, out);
    spent_heads(&s->spent, clock_ns() - start);
    return ok;
}

/* Chains that have no more than VERIFY_NODES drafts in all, and one at least. */
static bool
compare(struct round *const *draft, struct round *const *companion, uint32_t n, struct overlap *const *out)
{
    const bool greedy = !(draft[0]->sampling.temperature > 0);
    struct overlap_req requests[VERIFY_NODES];
    dist_t d[VERIFY_NODES], c[VERIFY_NODES];
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < round_drafted(draft[i]); k++, at++) {
            const struct verify_row *node = &draft[i]->state->node[k + 1];
            d[at] = node->q;
            requests[at] = (struct overlap_req){.token = node->token, .out = &out[i][k]};
        }
    if ((greedy && !distributions(draft, n, &whole, d)) ||
        !distributions(companion, n, greedy ? &whole : &draft[0]->sampling, c))
        return false;
    for (uint32_t i = 0; i < at; i++) {
        requests[i].d = d[i];
        requests[i].c = c[i];
    }
    return context_overlaps(companion[0]->ctx, requests, at);
}

bool
rounds_overlap(struct round *const *draft, uint32_t n, enum helper_role role, struct overlap *const *out)
{
    struct round *companion[ROUNDS_MOST];
    if (!session_rounds_append(draft, n, role, companion) || !read_chains(draft, n) || !read_chains(companion, n))
        return false;
    for (uint32_t first = 0, last; first < n; first = last) {
        uint32_t drafts = 0;
        for (last = first; last < n && drafts + round_drafted(draft[last]) <= VERIFY_NODES; last++)
            drafts += round_drafted(draft[last]);
        if (drafts > 0 && !compare(draft + first, companion + first, last - first, out + first))
            return false;
    }
    return true;
}
