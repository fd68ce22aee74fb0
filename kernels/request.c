#include "kernels/request.h"

#include <inttypes.h>

struct store_desc
store_for_sequences(uint32_t ctx, uint32_t n)
{
    const uint32_t rows = STORE_SPARE + (n - 1) * VERIFY_NODES;
    return (struct store_desc){.slots = n * ctx + rows,
                               .ring = rows,
                               .seqs = n + 3, /* for forks */
                               .trunk = ctx,
                               .max_rows = 64,
                               .max_probes = STORE_PROBES};
}

struct store_desc
store_defaults(uint32_t ctx)
{
    return store_for_sequences(ctx, 1);
}

uint32_t
request_depth(const struct model_desc *m, const struct store_desc *s)
{
    return s->depth > 0 ? s->depth : m->n_layers;
}

bool
request_pool(struct pool_size pool, struct err *err)
{
    return (pool.vocab != 0 && pool.n != 0) ||
           err_set(err, ERR_USAGE, "a pool of distributions needs at least one, over at least one token");
}

bool
request_store(struct request_limits m, struct err *err)
{
    const struct store_desc *d = m.store;
    if (m.dists.n != 0 && m.dists.vocab < m.model->vocab)
        return err_set(err, ERR_USAGE,
                       "distributions over %" PRIu32 " tokens are no place for a vocabulary of %" PRIu32, m.dists.vocab,
                       m.model->vocab);
    if (d->depth > m.model->n_layers)
        return err_set(err, ERR_USAGE, "rows can't go to layer %" PRIu32 ": the model has %" PRIu32, d->depth,
                       m.model->n_layers);
    return (d->slots != 0 && d->ring != 0 && d->seqs != 0 && d->trunk != 0 && d->max_rows != 0) ||
           err_set(err, ERR_USAGE, "a context needs at least one slot, row, sequence and position");
}

bool
request_trunk(struct request_limits m, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    if (seq >= m.store->seqs || first > m.store->trunk || n > m.store->trunk - first)
        return false;
    for (size_t i = 0; i < n; i++)
        if (slots[i] >= m.store->slots)
            return false;
    return true;
}

static bool
is_token(token_t token, uint32_t vocab)
{
    return token >= 0 && (uint32_t)token < vocab;
}

bool
request_embed(struct request_limits m, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_token(rows[i].token, m.model->vocab) || rows[i].ring >= m.store->ring || rows[i].slot >= m.store->slots)
            return false;
    return true;
}

/* Returns whether a pass has at most as many rows as its class allows. */
static bool
is_chunk(struct request_limits m, const struct sweep *w)
{
    for (size_t i = 0; i < w->n && w->prompt; i++)
        if (w->rows[i].from > 0)
            return false;
    return !w->prompt ? w->n <= m.store->max_rows
                      : w->n <= m.store->prompt_rows && w->skip_attention == NULL && w->skip_mlp == NULL;
}

bool
request_sweep(struct request_limits m, const struct sweep *w)
{
    if (!is_chunk(m, w) || w->to > request_depth(m.model, m.store))
        return false;
    for (size_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i];
        if (r->slot >= m.store->slots || r->ring >= m.store->ring || r->seq >= m.store->seqs ||
            r->n_trunk > m.store->trunk || r->tail > w->n_tails || r->n_tail > w->n_tails - r->tail || r->n_tail == 0 ||
            w->tails[r->tail + r->n_tail - 1] != r->slot)
            return false;
    }
    for (size_t i = 0; i < w->n_tails; i++)
        if (w->tails[i] >= m.store->slots)
            return false;
    return true;
}

static bool
is_head(enum head_choice head)
{
    return head == USE_LENS || head == USE_TRAINED;
}

bool
request_until(struct request_limits m, const struct sweep *w, const struct exit_rule *rule)
{
    if (!request_sweep(m, w) || w->n == 0 || w->prompt || !is_head(rule->head))
        return false;
    for (uint32_t l = 1; l <= w->to; l++)
        if (rule->threshold[l] <= 1 && !(rule->temperature[l] > 0))
            return false;
    return true;
}

bool
request_read(struct request_limits m, uint32_t ring, uint32_t layer)
{
    return ring < m.store->ring && layer <= request_depth(m.model, m.store);
}

bool
request_read_dist(struct request_limits m, dist_t dist)
{
    return dist < m.dists.n;
}

bool
request_guess(struct request_limits m, const struct probe *probes, size_t n)
{
    if (n > m.store->max_probes || n > INT32_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!request_read(m, probes[i].ring, probes[i].layer) || !is_head(probes[i].head) ||
            !(probes[i].temperature > 0) ||
            (probes[i].versus_final && !request_read(m, probes[i].ring, m.model->n_layers)))
            return false;
    return true;
}

bool
request_dist(struct request_limits m, const struct dist_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!request_read(m, requests[i].ring, requests[i].layer) || !is_head(requests[i].head) ||
            !request_read_dist(m, requests[i].out))
            return false;
    return true;
}

bool
request_draw(struct request_limits m, const struct draw_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!request_read_dist(m, requests[i].from))
            return false;
    return true;
}

bool
request_overlap(struct request_limits m, const struct overlap_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!request_read_dist(m, requests[i].d) || !request_read_dist(m, requests[i].c) ||
            !is_token(requests[i].token, m.dists.vocab))
            return false;
    return true;
}

static bool
is_round(struct request_limits m, const struct verify_req *r)
{
    if (r->n == 0 || r->n > VERIFY_NODES || r->nodes[0].ring == RING_NONE ||
        request_depth(m.model, m.store) < m.model->n_layers)
        return false;
    const uint32_t beyond = m.dists.n != 0 ? m.dists.vocab : m.model->vocab;
    for (size_t i = 0; i < r->n; i++) {
        const struct verify_node *node = &r->nodes[i];
        if ((node->ring != RING_NONE && node->ring >= m.store->ring) ||
            (node->q != DIST_NONE && !request_read_dist(m, node->q)) ||
            (i > 0 && (!is_token(node->token, node->ring == RING_NONE ? beyond : m.model->vocab) || node->parent < 0 ||
                       (size_t)node->parent >= i)))
            return false;
    }
    return true;
}

bool
request_verify(struct request_limits m, const struct verify_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_round(m, &requests[i]))
            return false;
    return true;
}

uint32_t
request_first_layer(const struct sweep *w)
{
    uint32_t first = w->to + 1;
    for (size_t i = 0; i < w->n; i++)
        if (w->rows[i].from < first)
            first = w->rows[i].from + 1;
    return first;
}

bool
request_not_numbers(uint32_t layer, struct err *err)
{
    return err_set(err, ERR_WORK,
                   "the model's values after layer %" PRIu32
                   " are not numbers: the file is damaged, or made for other kernels",
                   layer);
}
