#include "tests/rigs/batch_program.h"

#include <math.h>

#include "engine/context/context.h"
#include "tests/rigs/context_inside.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/symbolic_backend.h"
#include "tests/rigs/test.h"

enum { MAX_LAYERS = 4, MAX_WIDTH = 64, MAX_TOKENS = 64, DISTS = BATCH_MOST * BATCH_NODES };

struct member { /* a sequence, in both contexts */
    seq_t seq;
    struct context *alone; /* its sequence is 0 */
    token_t tokens[BATCH_CTX];
    uint32_t len;
    token_t pending;
    struct verify_row rows[BATCH_NODES], alone_rows[BATCH_NODES]; /* the round's rows by node */
    uint32_t n;
    struct sampling sampling;
    uint64_t seed;
    struct verdict verdict;
};

struct group {
    const struct batch_world *w;
    struct dist_pool *pool;
    struct context *c;
    struct member members[BATCH_MOST];
    uint32_t kinds[3], accepted, parts, extended, begun, cut, slots;
};

static bool
one_in(uint32_t n)
{
    return random_below(n) == 0;
}

static token_t
random_token(const struct group *g)
{
    return (token_t)random_below(g->w->desc->vocab);
}

/* ---- sequences ---- */

/* Replaces the sequence's tokens by a new prompt. */
static void
begin(struct group *g, struct member *m, uint32_t n)
{
    m->seq = context_sequence(g->c);
    assert_int_not_equal(m->seq, SEQ_NONE);
    for (m->len = 0; m->len < n; m->len++)
        m->tokens[m->len] = random_token(g);
    m->pending = random_token(g);
    context_truncate(m->alone, 0, 0);
    assert_true(context_prefill(g->c, m->seq, m->tokens, n, NULL, NULL));
    assert_true(context_prefill(m->alone, 0, m->tokens, n, NULL, NULL));
    g->begun++;
}

static void
cut(struct group *g, struct member *m, uint32_t len)
{
    context_truncate(g->c, m->seq, len);
    context_truncate(m->alone, 0, len);
    m->len = len;
    m->pending = random_token(g);
    g->cut++;
}

/* Appends a row for node i in both contexts and advances it to depth L in its own context. */
static void
append(struct group *g, struct member *m, uint32_t i, int32_t parent, token_t token)
{
    const slot_t up = parent < 0 ? SLOT_NONE : m->rows[parent].slot;
    const slot_t alone_up = parent < 0 ? SLOT_NONE : m->alone_rows[parent].slot;
    m->rows[i].slot = context_append(g->c, m->seq, up, token);
    m->alone_rows[i].slot = context_append(m->alone, 0, alone_up, token);
    assert_int_not_equal(m->rows[i].slot, SLOT_NONE);
    assert_int_not_equal(m->alone_rows[i].slot, SLOT_NONE);
    assert_true(context_advance(m->alone, &m->alone_rows[i].slot, 1, g->w->desc->n_layers, NULL));
}

/* Appends the pending token's row and a random tree of candidates, which are chosen or drawn. The last candidate may
 * lack a row. */
static void
draft(struct group *g, struct member *m)
{
    static const float temperatures[3] = {0, 0.8f, 1.5f};
    const bool chain = one_in(2);
    m->sampling = (struct sampling){
        .temperature = temperatures[random_below(3)], .top_k = one_in(2) ? 7 : 0, .top_p = one_in(2) ? 0.9f : 1};
    m->seed = random_below(1000);
    m->n = 1 + random_below(BATCH_NODES);
    for (uint32_t i = 0; i < m->n; i++) {
        const int32_t parent = i == 0 ? -1 : chain ? (int32_t)i - 1 : (int32_t)random_below(i);
        token_t token = i == 0 ? m->pending : random_token(g);
        dist_t q = DIST_NONE;
        if (i > 0 && one_in(2)) {
            struct prediction prediction;
            const slot_t up = m->alone_rows[parent].slot;
            const struct context_probe probe = {.slot = up, .layer = g->w->desc->n_layers, .temperature = 1};
            assert_true(context_predict(m->alone, &probe, 1, &prediction));
            token = prediction.token;
        } else if (i > 0 && m->sampling.temperature > 0 && one_in(2)) {
            const struct rng_key key = {.seed = m->seed, .pos = i, .purpose = RNG_DRAFT};
            q = context_dist(m->alone, m->alone_rows[parent].slot, random_below(g->w->desc->n_layers + 1), USE_LENS,
                             &m->sampling);
            token = context_draw(m->alone, q, &key, NULL, 0);
            assert_int_not_equal(token, TOKEN_NONE);
        }
        m->rows[i] = m->alone_rows[i] =
            (struct verify_row){.parent = parent, .token = token, .slot = SLOT_NONE, .q = q};
        if (i == 0 || i + 1 < m->n || one_in(2))
            append(g, m, i, parent, token);
    }
}

/* ---- the shared context ---- */

/* Advances the rows of all sequences, node by node, in forward passes that are as large as possible; sometimes all rows
 * stop at a lower depth first. */
static void
advance(struct group *g)
{
    const uint32_t layers = g->w->desc->n_layers, most = context_limits(g->c)->max_rows;
    const uint32_t stops[2] = {1 + random_below(layers), layers};
    slot_t rows[BATCH_MOST * BATCH_NODES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < BATCH_NODES; i++)
        for (uint32_t j = 0; j < g->w->n; j++)
            if (i < g->members[j].n && g->members[j].rows[i].slot != SLOT_NONE)
                rows[n++] = g->members[j].rows[i].slot;
    for (int stop = one_in(2); stop < 2; stop++)
        for (uint32_t at = 0; at < n; at += most, g->parts++)
            assert_true(context_advance(g->c, rows + at, n - at < most ? n - at : most, stops[stop], NULL));
}

/* Compares predictions and distributions of rows of several sequences in one call of the head. */
static void
compare_heads(struct group *g)
{
    enum { ROWS = 12 };
    const uint32_t layer = one_in(2) ? g->w->desc->n_layers : random_below(g->w->desc->n_layers);
    const struct sampling sampling = {.temperature = 0.9f, .top_p = one_in(2) ? 0.8f : 1};
    struct context_probe probes[ROWS];
    slot_t rows[ROWS], alone_rows[ROWS];
    struct member *of[ROWS];
    struct prediction got[ROWS], alone;
    dist_t dists[ROWS];
    float p[MAX_TOKENS], alone_p[MAX_TOKENS];
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t node;
        do {
            of[i] = &g->members[random_below(g->w->n)];
            node = random_below(of[i]->n);
        } while (of[i]->rows[node].slot == SLOT_NONE);
        rows[i] = of[i]->rows[node].slot;
        alone_rows[i] = of[i]->alone_rows[node].slot;
        probes[i] = (struct context_probe){.slot = rows[i], .layer = layer, .temperature = 1.25f};
    }
    dist_pool_release(g->pool);
    assert_true(context_predict(g->c, probes, ROWS, got));
    assert_true(context_dists(g->c, rows, ROWS, layer, USE_LENS, NULL, &sampling, dists));
    for (uint32_t i = 0; i < ROWS; i++) {
        probes[i].slot = alone_rows[i];
        assert_true(context_predict(of[i]->alone, &probes[i], 1, &alone));
        assert_memory_equal(&got[i], &alone, sizeof alone);
        const dist_t d = context_dist(of[i]->alone, alone_rows[i], layer, USE_LENS, &sampling);
        assert_true(context_read_dist(g->c, dists[i], p) && context_read_dist(of[i]->alone, d, alone_p));
        assert_memory_equal(p, alone_p, g->w->desc->vocab * sizeof *p);
    }
}

static void
assert_same_verdict(const struct verdict *a, const struct verdict *b)
{
    assert_int_equal(a->n_path, b->n_path);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->next, b->next);
    assert_memory_equal(a->path, b->path, a->n_path * sizeof *a->path);
    assert_memory_equal(a->judged, b->judged, sizeof a->judged);
}

static void
verify(struct group *g)
{
    struct verify_round rounds[BATCH_MOST];
    for (uint32_t i = 0; i < g->w->n; i++) {
        struct member *m = &g->members[i];
        rounds[i] = (struct verify_round){
            .seq = m->seq, .rows = m->rows, .n = m->n, .sampling = m->sampling, .seed = m->seed, .out = &m->verdict};
    }
    const double heads = context_loads(g->c).heads;
    assert_true(context_verify_all(g->c, rounds, g->w->n));
    assert_near(context_loads(g->c).heads - heads, 1, 1e-9);
    for (uint32_t i = 0; i < g->w->n; i++) {
        struct member *m = &g->members[i];
        struct verdict alone;
        assert_true(context_verify(m->alone, 0, m->alone_rows, m->n, &m->sampling, m->seed, &alone));
        assert_same_verdict(&m->verdict, &alone);
        g->kinds[alone.kind]++;
        g->accepted += alone.n_path;
    }
}

static void
keep(struct group *g, struct member *m)
{
    const struct verdict *v = &m->verdict;
    slot_t path[BATCH_NODES] = {m->rows[0].slot}, alone_path[BATCH_NODES] = {m->alone_rows[0].slot};
    uint32_t n = 1;
    m->tokens[m->len] = m->rows[0].token;
    for (uint32_t i = 0; i < v->n_path && m->rows[v->path[i]].slot != SLOT_NONE; i++, n++) {
        path[n] = m->rows[v->path[i]].slot;
        alone_path[n] = m->alone_rows[v->path[i]].slot;
        m->tokens[m->len + n] = m->rows[v->path[i]].token;
    }
    assert_true(context_keep(g->c, m->seq, path, n) && context_keep(m->alone, 0, alone_path, n));
    m->len += n;
    m->pending = v->next;
}

/* Some of the sequences commit their pending rows in one forward pass. */
static void
extend(struct group *g)
{
    seq_t seqs[BATCH_MOST];
    slot_t rows[BATCH_MOST];
    uint32_t n = 0;
    const double layers = context_loads(g->c).layers;
    for (uint32_t i = 0; i < g->w->n; i++) {
        struct member *m = &g->members[i];
        if (i > 0 && one_in(3))
            continue;
        seqs[n] = m->seq;
        rows[n] = context_append(g->c, m->seq, SLOT_NONE, m->pending);
        assert_int_not_equal(rows[n++], SLOT_NONE);
        m->tokens[m->len++] = m->pending;
        assert_true(context_prefill(m->alone, 0, &m->pending, 1, NULL, NULL));
        m->pending = random_token(g);
    }
    assert_true(context_advance(g->c, rows, n, g->w->desc->n_layers, NULL));
    for (uint32_t i = 0; i < n; i++)
        assert_true(context_keep(g->c, seqs[i], &rows[i], 1));
    assert_near(context_loads(g->c).layers - layers, n > 0 ? g->w->desc->n_layers : 0, 1e-9);
    g->extended += n;
}

/* ---- comparison of the contexts ---- */

static void
compare_with_naive(struct group *g, const struct member *m, const float *last)
{
    static struct naive_token path[BATCH_CTX];
    static double expected[(MAX_LAYERS + 1) * MAX_WIDTH];
    const uint32_t layers = g->w->desc->n_layers, width = g->w->desc->width;
    for (uint32_t i = 0; i < m->len; i++)
        path[i] = (struct naive_token){.token = m->tokens[i]};
    if (g->w->model != NULL)
        assert_true(naive_hidden(g->w->model, path, m->len, layers, expected));
    else
        symbolic_hidden(path, m->len, layers, expected);
    double difference = 0, norm = 0;
    for (uint32_t i = 0; i < width; i++) {
        const double e = expected[layers * width + i];
        difference += ((double)last[i] - e) * ((double)last[i] - e);
        norm += e * e;
    }
    assert_at_most(sqrt(difference), g->w->tolerance * sqrt(norm));
}

static void
compare(struct group *g)
{
    const uint32_t chosen = random_below(g->w->n);
    for (uint32_t i = 0; i < g->w->n; i++) {
        const struct member *m = &g->members[i];
        float row[MAX_WIDTH], alone[MAX_WIDTH];
        assert_int_equal(context_length(g->c, m->seq), m->len);
        const slot_t s = context_at(g->c, m->seq, m->len - 1), t = context_at(m->alone, 0, m->len - 1);
        if (!context_hidden_kept(g->c, s) || !context_hidden_kept(m->alone, t))
            continue;
        for (uint32_t l = 0; l <= g->w->desc->n_layers; l++) {
            assert_true(context_read_hidden(g->c, s, l, row) && context_read_hidden(m->alone, t, l, alone));
            assert_memory_equal(row, alone, g->w->desc->width * sizeof *row);
        }
        if (i == chosen)
            compare_with_naive(g, m, row);
    }
}

static void
round_of_all(struct group *g, unsigned number)
{
    for (uint32_t i = 0; i < g->w->n; i++) {
        struct member *m = &g->members[i];
        if (m->len + BATCH_NODES + 1 > g->w->ctx || one_in(20))
            cut(g, m, 1 + random_below(m->len));
        if (one_in(20)) {
            context_drop(g->c, m->seq);
            begin(g, m, 1 + random_below(g->w->ctx / 2));
        }
        draft(g, m);
    }
    advance(g);
    verify(g);
    if (number % 3 == 0)
        compare_heads(g);
    dist_pool_release(g->pool);
    for (uint32_t i = 0; i < g->w->n; i++)
        keep(g, &g->members[i]);
    if (number % 3 == 0)
        extend(g);
    compare(g);
}

static void
open_all(struct group *g)
{
    struct err e = {.kind = ERR_NONE};
    assert_true(dist_pool_open(&g->pool, g->w->ops, g->w->backend, g->w->desc->vocab, DISTS, &e));
    const struct context_options all = {.ctx = g->w->ctx,
                                        .spare = (g->w->n - 1) * g->w->ctx + g->w->n * BATCH_NODES,
                                        .ring = 64 * BATCH_NODES,
                                        .seqs = g->w->n,
                                        .max_rows = one_in(2) ? 64 : 24,
                                        .max_probes = 8, /* a GPU's head then also takes rounds in parts */
                                        .dists = g->pool};
    const struct context_options one = {.ctx = g->w->ctx, .seqs = 1, .dists = g->pool};
    assert_ok(context_open(&g->c, g->w->ops, g->w->backend, g->w->weights, g->w->desc, &all, &e), e);
    g->slots = context_free_slots(g->c);
    for (uint32_t i = 0; i < g->w->n; i++) {
        struct member *m = &g->members[i];
        assert_true(context_open(&m->alone, g->w->ops, g->w->backend, g->w->weights, g->w->desc, &one, &e));
        assert_int_equal(context_sequence(m->alone), 0);
        begin(g, m, 1 + random_below(g->w->ctx - BATCH_NODES));
    }
}

void
batch_program_run(const struct batch_world *w, uint64_t first, unsigned rounds)
{
    struct group *g = calloc(1, sizeof *g);
    assert_non_null(g);
    assert_at_most(w->n, BATCH_MOST);
    assert_at_most(w->ctx, BATCH_CTX);
    assert_at_most(w->desc->n_layers, MAX_LAYERS);
    assert_at_most(w->desc->width, MAX_WIDTH);
    assert_at_most(w->desc->vocab, MAX_TOKENS);
    g->w = w;
    seed = first;
    open_all(g);
    for (unsigned i = 0; i < rounds; i++)
        round_of_all(g, i);
    print_message(
        "%s: %u corrections, %u bonuses, %u candidates, %u accepted; %u sweeps, %u rows by extension, %u begun, "
        "%u cut\n",
        g->w->ops->describe(g->w->backend), g->kinds[0], g->kinds[1], g->kinds[2], g->accepted, g->parts, g->extended,
        g->begun, g->cut);
    assert_true(g->kinds[NEXT_CORRECTION] && g->kinds[NEXT_BONUS] && g->accepted && g->extended);
    for (uint32_t i = 0; i < g->w->n; i++) {
        context_drop(g->c, g->members[i].seq);
        context_close(g->members[i].alone);
    }
    assert_int_equal(context_free_slots(g->c), g->slots);
    context_close(g->c);
    dist_pool_close(g->pool);
    free(g);
}
