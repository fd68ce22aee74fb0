#include "kernels/request.h"

#include <inttypes.h>
#include <string.h>

struct kv_cache_desc
kv_cache_for_sequences(uint32_t ctx, uint32_t n)
{
    const uint32_t rows = KV_CACHE_SPARE + (n - 1) * VERIFY_NODES;
    return (struct kv_cache_desc){.slots = n * ctx + rows,
                                  .ring = rows,
                                  .seqs = n + 3, /* for forks */
                                  .trunk = ctx,
                                  .max_rows = 64,
                                  .states = n + 3,
                                  .max_probes = KV_CACHE_PROBES};
}

struct kv_cache_desc
kv_cache_defaults(uint32_t ctx)
{
    return kv_cache_for_sequences(ctx, 1);
}

uint32_t
request_depth(const struct model_desc *m, const struct kv_cache_desc *s)
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
request_kv_cache(struct request_limits m, struct err *err)
{
    const struct kv_cache_desc *d = m.kv_cache;
    if (m.dists.n != 0 && m.dists.vocab < m.model->vocab)
        return err_set(err, ERR_USAGE,
                       "distributions over %" PRIu32 " tokens are no place for a vocabulary of %" PRIu32, m.dists.vocab,
                       m.model->vocab);
    if (d->depth > m.model->n_layers)
        return err_set(err, ERR_USAGE, "rows can't go to layer %" PRIu32 ": the model has %" PRIu32, d->depth,
                       m.model->n_layers);
    if (d->states == 0 && m.model->form.recurrent.value_heads > 0)
        return err_set(err, ERR_USAGE, "a context of a model with recurrent layers needs at least one state");
    if (d->sets > 0 && (d->rank == NULL || (m.model->drafter != NULL && m.model->drafter->tokens != NULL)))
        return err_set(err, ERR_USAGE, "sets of tokens need an order of the vocabulary, and a head over all of it");
    return (d->slots != 0 && d->ring != 0 && d->seqs != 0 && d->trunk != 0 && d->max_rows != 0) ||
           err_set(err, ERR_USAGE, "a context needs at least one slot, row, sequence and position");
}

bool
request_trunk(struct request_limits m, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    if (seq >= m.kv_cache->seqs || first > m.kv_cache->trunk || n > m.kv_cache->trunk - first)
        return false;
    for (size_t i = 0; i < n; i++)
        if (slots[i] >= m.kv_cache->slots)
            return false;
    return true;
}

bool
request_advance(struct request_limits m, uint32_t to, uint32_t from, const slot_t *slots, size_t n)
{
    if (to >= m.kv_cache->states || (from != STATE_NONE && from >= m.kv_cache->states) || n > m.kv_cache->ring)
        return false;
    for (size_t i = 0; i < n; i++)
        if (slots[i] >= m.kv_cache->slots)
            return false;
    return true;
}

static bool
is_token(token_t token, uint32_t vocab)
{
    return token >= 0 && (uint32_t)token < vocab;
}

static bool
are_rows(struct request_limits m, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_token(rows[i].token, m.model->vocab) || rows[i].ring >= m.kv_cache->ring ||
            rows[i].slot >= m.kv_cache->slots)
            return false;
    return true;
}

bool
request_embed(struct request_limits m, const struct row *rows, size_t n)
{
    return (m.model->drafter == NULL || m.model->drafter->block > 0) && are_rows(m, rows, n);
}

bool
request_feed(struct request_limits m, const struct row *rows, size_t n, const float *features, const uint32_t *before)
{
    if (m.model->drafter == NULL || n > m.kv_cache->max_rows ||
        (features == NULL && (before == NULL || m.model->drafter->block > 0)))
        return false;
    for (size_t i = 0; features == NULL && i < n; i++)
        if (before[i] >= m.kv_cache->ring)
            return false;
    return are_rows(m, rows, n);
}

bool
request_draft_set(struct request_limits m, uint32_t set, uint32_t base, const token_t *recent, size_t n)
{
    if (set == 0 || set > m.kv_cache->sets || n > DRAFT_RECENT || base + n == 0 || base > m.model->vocab ||
        n > m.model->vocab - base)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_token(recent[i], m.model->vocab))
            return false;
    return true;
}

bool
request_forward(struct request_limits m, const struct forward_pass *w)
{
    const bool blocks = m.model->drafter != NULL && m.model->drafter->block > 0;
    if (w->n > m.kv_cache->max_rows || w->to > request_depth(m.model, m.kv_cache))
        return false;
    for (size_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i];
        if (r->slot >= m.kv_cache->slots || r->ring >= m.kv_cache->ring || r->seq >= m.kv_cache->seqs ||
            r->n_trunk > m.kv_cache->trunk || r->tail > w->n_tails ||
            (uint64_t)r->n_tail + r->n_after > w->n_tails - r->tail || r->n_tail == 0 ||
            (uint64_t)r->n_trunk + r->n_tail + r->n_after > m.kv_cache->slots ||
            w->tails[r->tail + r->n_tail - 1] != r->slot ||
            (m.model->form.per_layer > 0 && !is_token(r->token, m.model->vocab)) || (r->n_after > 0 && !blocks))
            return false;
    }
    for (size_t i = 0; i < w->n_tails; i++)
        if (w->tails[i] >= m.kv_cache->slots)
            return false;
    return true;
}

static bool
is_head(enum head_choice head)
{
    return head == USE_LENS || head == USE_TRAINED;
}

bool
request_until(struct request_limits m, const struct forward_pass *w, const struct exit_rule *rule)
{
    if (!request_forward(m, w) || w->n == 0 || !is_head(rule->head) || rule->set > m.kv_cache->sets)
        return false;
    for (uint32_t l = 1; l <= w->to; l++)
        if (rule->threshold[l] <= 1 && !(rule->temperature[l] > 0))
            return false;
    return true;
}

bool
request_read(struct request_limits m, uint32_t ring, uint32_t layer)
{
    return ring < m.kv_cache->ring && layer <= request_depth(m.model, m.kv_cache);
}

bool
request_read_dist(struct request_limits m, dist_t dist)
{
    return dist < m.dists.n;
}

/* Returns whether a request for kept logits is well-formed, or asks for none. */
static bool
is_kept(struct request_limits m, bool kept, uint32_t layer, uint32_t set, token_t before)
{
    const struct drafter_desc *d = m.model->drafter;
    return !kept || (d != NULL && d->block > 0 && layer == m.model->n_layers && set == 0 &&
                     (before == TOKEN_NONE || (is_token(before, m.model->vocab) && tensor_present(&d->markov_w1))));
}

bool
request_predict(struct request_limits m, const struct probe *probes, size_t n)
{
    if (n > m.kv_cache->max_probes || n > INT32_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!request_read(m, probes[i].ring, probes[i].layer) || !is_head(probes[i].head) ||
            !(probes[i].temperature > 0) || probes[i].set > m.kv_cache->sets ||
            (probes[i].versus_final && (probes[i].set > 0 || probes[i].kept)) || probes[i].kept != probes[0].kept ||
            !is_kept(m, probes[i].kept, probes[i].layer, probes[i].set, probes[i].before) ||
            (probes[i].versus_final && !request_read(m, probes[i].ring, m.model->n_layers)))
            return false;
    return true;
}

bool
request_dist(struct request_limits m, const struct dist_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!request_read(m, requests[i].ring, requests[i].layer) || !is_head(requests[i].head) ||
            !request_read_dist(m, requests[i].out) || requests[i].set > m.kv_cache->sets ||
            requests[i].kept != requests[0].kept ||
            !is_kept(m, requests[i].kept, requests[i].layer, requests[i].set, requests[i].before))
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
    if (m.model->drafter != NULL || r->n == 0 || r->n > VERIFY_NODES || r->nodes[0].ring == RING_NONE ||
        request_depth(m.model, m.kv_cache) < m.model->n_layers)
        return false;
    const uint32_t beyond = m.dists.n != 0 ? m.dists.vocab : m.model->vocab;
    for (size_t i = 0; i < r->n; i++) {
        const struct verify_node *node = &r->nodes[i];
        if ((node->ring != RING_NONE && node->ring >= m.kv_cache->ring) ||
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
request_first_layer(const struct forward_pass *w)
{
    uint32_t first = w->to + 1;
    for (size_t i = 0; i < w->n; i++)
        if (w->rows[i].from < first)
            first = w->rows[i].from + 1;
    return first;
}

static const char not_numbers[] = " are not numbers: the file is damaged, or made for other kernels";

bool
request_not_numbers(uint32_t layer, struct err *err)
{
    return err_set(err, ERR_WORK, "the model's values after layer %" PRIu32 "%s", layer, not_numbers);
}

bool
request_is_not_numbers(const struct err *err)
{
    return err->kind == ERR_WORK && strstr(err->text, not_numbers) != NULL;
}
