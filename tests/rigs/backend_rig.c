#include "tests/rigs/backend_rig.h"

#include "tests/rigs/test.h"

#include <math.h>

static void
open_kv_cache(struct rig *r)
{
    struct err err = {.kind = ERR_NONE};
    const struct kv_cache_desc d = {.slots = RIG_NODES,
                                    .ring = RIG_NODES,
                                    .seqs = 3,
                                    .trunk = RIG_NODES,
                                    .max_rows = RIG_NODES,
                                    .max_probes = 300,
                                    .states = RIG_NODES,
                                    .dists = r->dists,
                                    .sets = r->ops->draft_set != NULL && r->desc->vocab <= RIG_VOCAB ? RIG_SETS : 0,
                                    .rank = r->rank,
                                    .cancel = &r->cancel};
    assert_ok(r->ops->kv_cache(r->weights, &d, &r->kv_cache, &err), err);
    r->n = 0;
}

static void
take_model(struct rig *r, const struct backend_ops *ops, const struct naive_shape *shape, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->ops = ops;
    r->random = seed;
    atomic_init(&r->cancel, false);
    r->model = naive_model_random(shape, seed);
    assert_non_null(r->model);
    r->desc = naive_model_desc(r->model);
    assert_at_most(r->desc->n_layers, RIG_DEPTH);
    uint64_t random = seed;
    for (uint32_t i = 0; i < r->desc->vocab && i < RIG_VOCAB; i++) {
        const uint32_t other = (uint32_t)(splitmix64(&random) % (i + 1));
        r->rank[i] = r->rank[other];
        r->rank[other] = (token_t)i;
    }
}

void
rig_open(struct rig *r, const struct backend_ops *ops, const struct naive_shape *shape, uint64_t seed,
         const struct backend_options *options)
{
    struct err err = {.kind = ERR_NONE};
    take_model(r, ops, shape, seed);
    if (!ops->open(&r->backend, options, &err) || !ops->load(r->backend, r->desc, NULL, NULL, &r->weights, &err) ||
        !ops->dists(r->backend, r->desc->vocab, RIG_DISTS, &r->dists, &err))
        fail_msg("%s", err.text);
    open_kv_cache(r);
}

void
rig_open_beside(struct rig *r, const struct rig *first, const struct naive_shape *shape, uint64_t seed)
{
    struct err err = {.kind = ERR_NONE};
    take_model(r, first->ops, shape, seed);
    r->beside = first;
    r->backend = first->backend;
    r->dists = first->dists;
    assert_ok(r->ops->load(r->backend, r->desc, NULL, NULL, &r->weights, &err), err);
    open_kv_cache(r);
}

void
rig_close(struct rig *r)
{
    r->ops->drop(r->kv_cache);
    r->ops->unload(r->weights);
    if (r->beside == NULL) {
        r->ops->drop_dists(r->dists);
        r->ops->close(r->backend);
    }
    naive_model_free(r->model);
}

void
rig_restart(struct rig *r)
{
    r->ops->drop(r->kv_cache);
    open_kv_cache(r);
}

uint32_t
rig_random(struct rig *r, uint32_t below)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->random >> 33) % below;
}

int
rig_add(struct rig *r, int parent, token_t token)
{
    assert_less(r->n, RIG_NODES);
    struct rig_node *node = &r->nodes[r->n];
    *node = (struct rig_node){.token = token,
                              .parent = parent,
                              .position = parent < 0 ? 0 : r->nodes[parent].position + 1,
                              .slot = (slot_t)r->n,
                              .ring = (uint32_t)r->n};
    const struct row row = {.token = token, .slot = node->slot, .ring = node->ring, .n_trunk = node->position + 1};
    assert_true(r->ops->embed(r->kv_cache, &row, 1));
    return r->n++;
}

void
rig_chain(struct rig *r, int n)
{
    for (int i = 0; i < n; i++)
        rig_add(r, i - 1, (token_t)rig_random(r, r->desc->vocab));
}

void
rig_tree(struct rig *r, int n)
{
    for (int i = 0; i < n; i++) /* mostly chains, because short trees would never leave a block */
        rig_add(r,
                i == 0                 ? -1
                : rig_random(r, 4) > 0 ? i - 1
                                       : (int)rig_random(r, (uint32_t)i),
                (token_t)rig_random(r, r->desc->vocab));
}

int
rig_path(const struct rig *r, int node, int *to)
{
    int n = (int)r->nodes[node].position + 1;
    for (int i = n; i-- > 0; node = r->nodes[node].parent)
        to[i] = node;
    return n;
}

void
rig_trunk(struct rig *r, seq_t seq, int node)
{
    int path[RIG_NODES], n = rig_path(r, node, path);
    slot_t slots[RIG_NODES];
    for (int i = 0; i < n; i++)
        slots[i] = r->nodes[path[i]].slot;
    assert_true(r->ops->trunk(r->kv_cache, seq, 0, slots, (size_t)n));
}

const struct forward_pass *
rig_forward(struct rig *r, const int *nodes, int n, uint32_t to, uint32_t n_trunk)
{
    static _Thread_local struct row rows[RIG_NODES];
    static _Thread_local slot_t tails[RIG_NODES * RIG_NODES];
    static _Thread_local struct forward_pass forward;
    forward = (struct forward_pass){.rows = rows, .tails = tails, .to = to};
    for (int i = 0; i < n; i++) {
        const struct rig_node *node = &r->nodes[nodes[i]];
        int path[RIG_NODES], length = rig_path(r, nodes[i], path);
        uint32_t trunk = n_trunk < (uint32_t)length ? n_trunk : (uint32_t)length - 1; /* the tail has the row */
        if (trunk > 0 && r->desc->form.recurrent.value_heads > 0) { /* state t is the state after t rows */
            slot_t slots[RIG_NODES];
            for (uint32_t k = 0; k < trunk; k++)
                slots[k] = r->nodes[path[k]].slot;
            assert_true(r->ops->advance(r->kv_cache, trunk, STATE_NONE, slots, trunk));
        }
        rows[forward.n++] = (struct row){.token = node->token,
                                         .slot = node->slot,
                                         .ring = node->ring,
                                         .n_trunk = trunk,
                                         .state = trunk,
                                         .tail = (uint32_t)forward.n_tails,
                                         .n_tail = (uint32_t)length - trunk,
                                         .from = node->depth};
        for (int j = (int)trunk; j < length; j++)
            tails[forward.n_tails++] = r->nodes[path[j]].slot;
    }
    return &forward;
}

void
rig_wait(struct rig *r)
{
    struct err err = {.kind = ERR_NONE};
    assert_ok(r->ops->wait(r->kv_cache, &err), err);
}

void
rig_step(struct rig *r, const int *nodes, int n, uint32_t to, uint32_t n_trunk)
{
    struct forward_pass w = *rig_forward(r, nodes, n, to, n_trunk);
    assert_true(r->ops->step(r->kv_cache, &w));
    rig_wait(r);
    for (int i = 0; i < n; i++)
        if (r->nodes[nodes[i]].depth < to)
            r->nodes[nodes[i]].depth = to;
}

void
rig_step_all(struct rig *r)
{
    int all[RIG_NODES];
    for (int i = 0; i < r->n; i++)
        all[i] = i;
    rig_step(r, all, r->n, r->desc->n_layers, 0);
}

void
rig_logits(struct rig *r, int node, uint32_t layer, float *out)
{
    assert_true(r->ops->read_logits(r->kv_cache, r->nodes[node].ring, layer, out));
    rig_wait(r);
}

void
rig_hidden(struct rig *r, int node, uint32_t layer, float *out)
{
    assert_true(r->ops->read_hidden(r->kv_cache, r->nodes[node].ring, layer, out));
    rig_wait(r);
}

void
rig_naive(struct rig *r, int node, double *hidden, double *logits)
{
    int path[RIG_NODES], n = rig_path(r, node, path);
    struct naive_token tokens[RIG_NODES];
    for (int i = 0; i < n; i++)
        tokens[i] = (struct naive_token){.token = r->nodes[path[i]].token,
                                         .skip_attention = r->nodes[path[i]].skip_attention,
                                         .skip_mlp = r->nodes[path[i]].skip_mlp};
    assert_true(naive_hidden(r->model, tokens, (size_t)n, r->desc->n_layers, hidden));
    naive_logits(r->model, hidden + (size_t)r->desc->n_layers * r->desc->width, logits);
}

void
rig_assert_near_naive(struct rig *r, int node, double embedding, double bound)
{
    static double hidden[(RIG_DEPTH + 1) * RIG_WIDTH], logits[RIG_VOCAB];
    static float got[RIG_VOCAB];
    const struct model_desc *d = r->desc;
    assert_at_most(d->width, RIG_WIDTH);
    assert_at_most(d->vocab, RIG_VOCAB);
    rig_naive(r, node, hidden, logits);
    if (tensor_present(&d->embedding_norm)) /* a normed embedding has a layer's rounding error */
        embedding = bound;
    for (uint32_t l = 0; l <= d->n_layers; l++) {
        rig_hidden(r, node, l, got);
        const double error = rig_distance(got, hidden + l * d->width, d->width);
        if (!(error < (l == 0 ? embedding : bound)))
            fail_msg("%s, width %u: node %d after layer %u: relative error %g", r->ops->describe(r->backend), d->width,
                     node, l, error);
    }
    rig_logits(r, node, d->n_layers, got);
    const double error = rig_distance(got, logits, d->vocab);
    if (!(error < bound))
        fail_msg("%s, width %u: logits of node %d: relative error %g", r->ops->describe(r->backend), d->width, node,
                 error);
}

double
rig_distance(const float *a, const double *b, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return sqrt(diff / norm);
}
