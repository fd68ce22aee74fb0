#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/check_internal.h"

#define NOTHING UINT32_MAX

struct ledger {
    struct request_limits limits;
    uint32_t stride;    /* L + 1 */
    bool *stored;       /* (slots, L + 1): whether a layer's keys and values are stored */
    uint32_t *position; /* (slots): the position they are rotated for */
    uint32_t *depth;    /* (ring): deepest hidden state, or NOTHING */
    slot_t *owner;      /* (ring): slot of the row that owns the entry */
    bool *kept;         /* (ring): the last logits of the row are kept */
    slot_t *trunk;      /* (seqs, trunk): SLOT_NONE where not given */
    struct pool *pool;  /* or NULL */
    uint32_t *joined;   /* (slots): index + 1 of the row in the forward pass at hand */
};

struct ledger *
ledger_open(struct request_limits limits, struct pool *pool)
{
    const struct kv_cache_desc *d = limits.kv_cache;
    struct ledger *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->limits = limits;
    g->pool = pool;
    g->stride = limits.model->n_layers + 1;
    g->stored = calloc((size_t)d->slots * g->stride, sizeof *g->stored);
    g->position = calloc(d->slots, sizeof *g->position);
    g->joined = calloc(d->slots, sizeof *g->joined);
    g->depth = malloc(d->ring * sizeof *g->depth);
    g->owner = malloc(d->ring * sizeof *g->owner);
    g->kept = calloc(d->ring, sizeof *g->kept);
    g->trunk = malloc((size_t)d->seqs * d->trunk * sizeof *g->trunk);
    if (g->stored == NULL || g->position == NULL || g->joined == NULL || g->depth == NULL || g->owner == NULL ||
        g->kept == NULL || g->trunk == NULL) {
        ledger_close(g);
        return NULL;
    }
    memset(g->depth, 0xff, d->ring * sizeof *g->depth);
    memset(g->owner, 0xff, d->ring * sizeof *g->owner);
    memset(g->trunk, 0xff, (size_t)d->seqs * d->trunk * sizeof *g->trunk);
    return g;
}

void
ledger_close(struct ledger *g)
{
    if (g == NULL)
        return;
    free(g->stored);
    free(g->position);
    free(g->joined);
    free(g->depth);
    free(g->owner);
    free(g->kept);
    free(g->trunk);
    free(g);
}

/* ---- forward passes ---- */

static bool
takes_part(const struct forward_pass *w, const struct row *r, uint32_t l)
{
    return r->from < l && l <= w->to && (w->skip_attention == NULL || !w->skip_attention[l]);
}

/* Checks that the row in `slot`, at `position` of row i's path, has keys in all layers in which row i reads them: an
 * ancestor, or a later row of its block. */
static bool
check_seen(const struct ledger *g, const struct forward_pass *w, size_t i, slot_t slot, uint32_t position,
           struct err *err)
{
    const struct row *r = &w->rows[i], *ancestor = NULL;
    if (slot == SLOT_NONE)
        return err_set(err, ERR_WORK,
                       "the row in slot %" PRIu32 " attends to position %" PRIu32 " of sequence %" PRIu32
                       ", which its trunk table does not name",
                       r->slot, position, r->seq);
    if (g->joined[slot] != 0) {
        ancestor = &w->rows[g->joined[slot] - 1];
        if (g->joined[slot] - 1 >= i && position < r->n_trunk + r->n_tail)
            return err_set(err, ERR_WORK, "the row in slot %" PRIu32 " comes before its ancestor in slot %" PRIu32,
                           r->slot, slot);
        if (ancestor->n_trunk + ancestor->n_tail - 1 != position)
            return err_set(err, ERR_WORK, "slot %" PRIu32 " is two positions in one forward pass", slot);
    }
    for (uint32_t l = r->from + 1; l <= w->to; l++) {
        if (!takes_part(w, r, l) || (ancestor != NULL && takes_part(w, ancestor, l)))
            continue;
        if (!g->stored[(size_t)slot * g->stride + l])
            return err_set(err, ERR_WORK,
                           "the row in slot %" PRIu32 " attends at layer %" PRIu32 " to slot %" PRIu32
                           " (position %" PRIu32 "), whose keys were never computed there",
                           r->slot, l, slot, position);
        if (g->position[slot] != position)
            return err_set(err, ERR_WORK,
                           "the row in slot %" PRIu32 " sees slot %" PRIu32 " at position %" PRIu32
                           ", but its keys are for position %" PRIu32,
                           r->slot, slot, position, g->position[slot]);
    }
    return true;
}

static bool
check_rows(const struct ledger *g, const struct forward_pass *w, struct err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i];
        if (r->from >= w->to)
            continue;
        if (g->depth[r->ring] == NOTHING || g->owner[r->ring] != r->slot || g->depth[r->ring] < r->from)
            return err_set(err, ERR_WORK,
                           "the row in slot %" PRIu32 " joins at layer %" PRIu32 ", but ring entry %" PRIu32
                           " does not hold its hidden state of layer %" PRIu32,
                           r->slot, r->from + 1, r->ring, r->from);
        const slot_t *trunk = g->trunk + (size_t)r->seq * g->limits.kv_cache->trunk;
        for (uint32_t p = 0; p < r->n_trunk; p++)
            if (!check_seen(g, w, i, trunk[p], p, err))
                return false;
        for (uint32_t t = 0; t < r->n_tail + r->n_after; t++)
            if (t + 1 != r->n_tail && !check_seen(g, w, i, w->tails[r->tail + t], r->n_trunk + t, err))
                return false;
    }
    return true;
}

bool
ledger_forward(struct ledger *g, const struct forward_pass *w, struct err *err)
{
    bool ok = true;
    size_t n = 0;
    for (; n < w->n && ok; n++) {
        if (g->joined[w->rows[n].slot] != 0)
            ok = err_set(err, ERR_WORK, "slot %" PRIu32 " is in one forward pass twice", w->rows[n].slot);
        g->joined[w->rows[n].slot] = (uint32_t)n + 1;
    }
    ok = ok && check_rows(g, w, err);
    for (size_t i = 0; i < n; i++)
        g->joined[w->rows[i].slot] = 0;
    return ok;
}

void
ledger_ran(struct ledger *g, const struct forward_pass *w, uint32_t to)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i];
        if (r->from >= to)
            continue;
        g->depth[r->ring] = to;
        g->kept[r->ring] = false;
        g->position[r->slot] = r->n_trunk + r->n_tail - 1;
        for (uint32_t l = r->from + 1; l <= to; l++)
            if (takes_part(w, r, l))
                g->stored[(size_t)r->slot * g->stride + l] = true;
    }
}

/* ---- other requests ---- */

void
ledger_trunk(struct ledger *g, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    memcpy(g->trunk + (size_t)seq * g->limits.kv_cache->trunk + first, slots, n * sizeof *slots);
}

void
ledger_embedded(struct ledger *g, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        g->depth[rows[i].ring] = 0;
        g->kept[rows[i].ring] = false;
        g->owner[rows[i].ring] = rows[i].slot;
        memset(g->stored + (size_t)rows[i].slot * g->stride, 0, g->stride * sizeof *g->stored);
    }
}

void
ledger_fed(struct ledger *g, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        g->depth[r->ring] = NOTHING;
        g->position[r->slot] = r->n_trunk + r->n_tail - 1;
        for (uint32_t l = 1; l < g->stride; l++)
            g->stored[(size_t)r->slot * g->stride + l] = true;
    }
}

void
ledger_predicted(struct ledger *g, const struct probe *probes, size_t n)
{
    if (n > 0 && probes[0].kept)
        return;
    memset(g->kept, 0, g->limits.kv_cache->ring * sizeof *g->kept);
    for (size_t i = 0; i < n; i++)
        if (probes[i].layer == g->stride - 1 && probes[i].set == 0)
            g->kept[probes[i].ring] = true;
}

void
ledger_dists(struct ledger *g, const struct dist_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g->pool->made[requests[i].out] = true;
}

bool
ledger_read(const struct ledger *g, uint32_t ring, uint32_t layer, struct err *err)
{
    if (g->depth[ring] == NOTHING || g->depth[ring] < layer)
        return err_set(err, ERR_WORK, "ring entry %" PRIu32 " has no hidden state of layer %" PRIu32, ring, layer);
    return true;
}

/* Checks that a ring entry has the hidden states of a layer, and its logits if they must have been kept. */
static bool
check_logits(const struct ledger *g, uint32_t ring, uint32_t layer, bool kept, struct err *err)
{
    if (kept && !g->kept[ring])
        return err_set(err, ERR_WORK, "the logits of ring entry %" PRIu32 " are not kept", ring);
    return ledger_read(g, ring, layer, err);
}

bool
ledger_predict(const struct ledger *g, const struct probe *probes, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!check_logits(g, probes[i].ring, probes[i].versus_final ? g->stride - 1 : probes[i].layer, probes[i].kept,
                          err))
            return false;
    return true;
}

bool
ledger_dist(const struct ledger *g, const struct dist_req *requests, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!check_logits(g, requests[i].ring, requests[i].layer, requests[i].kept, err))
            return false;
    return true;
}

bool
ledger_read_dist(const struct ledger *g, dist_t dist, struct err *err)
{
    if (!g->pool->made[dist])
        return err_set(err, ERR_WORK, "distribution %" PRIu32 " is used before it was computed", dist);
    return true;
}

bool
ledger_draw(const struct ledger *g, const struct draw_req *requests, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!ledger_read_dist(g, requests[i].from, err))
            return false;
    return true;
}

bool
ledger_overlap(const struct ledger *g, const struct overlap_req *requests, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!ledger_read_dist(g, requests[i].d, err) || !ledger_read_dist(g, requests[i].c, err))
            return false;
    return true;
}

static bool
check_round(const struct ledger *g, const struct verify_req *r, struct err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct verify_node *node = &r->nodes[i];
        if (node->ring != RING_NONE && !ledger_read(g, node->ring, g->stride - 1, err))
            return false;
        if (i > 0 && node->q != DIST_NONE && r->sampling.temperature > 0 && !ledger_read_dist(g, node->q, err))
            return false;
    }
    return true;
}

bool
ledger_verify(const struct ledger *g, const struct verify_req *requests, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!check_round(g, &requests[i], err))
            return false;
    return true;
}

/* ---- pools ---- */

bool
pool_open(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *err)
{
    *out = NULL;
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    p->size = (struct pool_size){.vocab = vocab, .n = n};
    if (!cpu_backend.dists(b, vocab, n, &p->inner, err)) {
        free(p);
        return false;
    }
    p->made = calloc(n, sizeof *p->made);
    p->queued = calloc(n, sizeof *p->queued);
    *out = (struct dists *)(void *)p;
    if (p->made != NULL && p->queued != NULL)
        return true;
    pool_close(*out);
    *out = NULL;
    return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
}

void
pool_close(struct dists *d)
{
    struct pool *p = pool_of(d);
    cpu_backend.drop_dists(p->inner);
    free(p->made);
    free(p->queued);
    free(p);
}

bool
pool_claim(struct pool *p, dist_t d, const struct kv_cache *who, struct err *err)
{
    if (d == DIST_NONE)
        return true;
    if (p->queued[d] != NULL && p->queued[d] != who)
        return err_set(err, ERR_WORK, "distribution %" PRIu32 " is used by two stores with no wait() in between", d);
    p->queued[d] = who;
    return true;
}

void
pool_results_arrived(struct pool *p, const struct kv_cache *who)
{
    for (uint32_t i = 0; p != NULL && i < p->size.n; i++)
        if (p->queued[i] == who)
            p->queued[i] = NULL;
}
