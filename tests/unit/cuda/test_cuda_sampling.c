/* Distributions, draws and verification of the CUDA backend, run by the emulation (tests/cuda/emulation): against
 * kernels/cpu/sampling.h, whose own tests hold it to the definitions. SPECSCOPE_SEED=N chooses the cases. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/sampling.h"
#include "kernels/cuda/launch.h"
#include "tests/rigs/draws.h"

enum { MAX_VOCAB = 20000, ROWS = VERIFY_NODES, DISTS = VERIFY_NODES };

/* ---- a store of just what sampling needs ---- */

struct bench {
    struct dev_model model, *dev_model;
    struct dev_store store;
    void *arena; /* requests and results of one call */
};

enum { ARENA = 1 << 20 };

static void *
take(size_t bytes)
{
    void *p;
    assert_int_equal(cudaMalloc(&p, bytes), cudaSuccess);
    return p;
}

static void
send(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
}

static void
fetch(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
}

static int
open_bench(void **state)
{
    static struct bench b;
    seed = seed_or(1);
    b.dev_model = take(sizeof *b.dev_model);
    b.store.head_rows = ROWS;
    b.store.dists = DISTS;
    b.store.head_logits = take(sizeof(float) * ROWS * MAX_VOCAB);
    b.store.dists_p = take(sizeof(float) * DISTS * MAX_VOCAB);
    b.store.verify_p = take(sizeof(float) * 2 * MAX_VOCAB);
    b.store.row_laws = take(sizeof(struct row_law) * ROWS);
    b.arena = take(ARENA);
    *state = &b;
    return 0;
}

static int
close_bench(void **state)
{
    struct bench *b = *state;
    void *all[] = {b->dev_model,      b->store.head_logits, b->store.dists_p,
                   b->store.verify_p, b->store.row_laws,    b->arena};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(cudaFree(all[i]), cudaSuccess);
    return 0;
}

static void
set_vocab(struct bench *b, uint32_t vocab)
{
    b->model.vocab = vocab;
    send(b->dev_model, &b->model, sizeof b->model);
}

/* ---- distributions ---- */

/* n distributions of the same settings from logits (n, vocab) to p (n, vocab). */
static void
make_dists(struct bench *b, const float *logits, uint32_t n, const struct sampling *s, float *p)
{
    struct dist_req requests[DISTS];
    const size_t bytes = (size_t)n * b->model.vocab * sizeof(float);
    for (uint32_t i = 0; i < n; i++)
        requests[i] = (struct dist_req){.sampling = s[i], .out = n - 1 - i};
    send(b->store.head_logits, logits, bytes);
    send(b->arena, requests, n * sizeof *requests);
    const struct dist_args a = {.model = b->dev_model, .store = b->store, .requests = b->arena, .n = n};
    assert_int_equal(launch_dist(a, &b->model, 0), cudaSuccess);
    for (uint32_t i = 0; i < n; i++)
        fetch(p + (size_t)i * b->model.vocab, b->store.dists_p + (size_t)(n - 1 - i) * b->model.vocab,
              b->model.vocab * sizeof *p);
}

enum shape { SMOOTH, STEPS, FLAT, RAMP, PEAKED, ODD, SHAPES };

static void
random_logits(float *z, uint32_t n, enum shape shape)
{
    const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 0, 3e38f, -3e38f, 1e-40f, -1e-40f};
    const float spread = (float)pow(10, 2 * uniform() - 1);
    for (uint32_t v = 0; v < n; v++)
        switch (shape) {
        case SMOOTH: z[v] = spread * gaussian(); break;
        case STEPS: z[v] = (float)random_below(64) / 8.0f - 4.0f; break;
        case FLAT: z[v] = 1.5f; break;
        case RAMP: z[v] = (float)v * 1e-4f; break;
        case PEAKED: z[v] = gaussian() + (random_below(50) == 0 ? 20.0f : 0.0f); break;
        default: z[v] = random_below(3) == 0 ? odd[random_below(9)] : gaussian(); break;
        }
}

static struct sampling
random_sampling(uint32_t n)
{
    struct sampling s = {.temperature = (float)pow(10, 2 * uniform() - 1), .top_p = 1};
    uint32_t kind = random_below(8);
    if (kind == 0)
        s.temperature = random_below(2) ? 0 : random_below(2) ? 1e-30f : 1e38f;
    if (kind == 0)
        kind = random_below(8);
    if (kind % 2 == 1)
        s.top_k = 1 + random_below(random_below(2) ? n + 2 : 50);
    if (kind >= 4)
        s.top_p = random_below(8) == 0 ? 0 : (float)uniform();
    return s;
}

static void
expect_dist(const float *z, uint32_t n, const struct sampling *s, const float *p)
{
    static float expected[MAX_VOCAB];
    static uint32_t order[MAX_VOCAB];
    double sum = 0;
    sampling_dist(z, n, s, expected, order);
    for (uint32_t v = 0; v < n; v++) {
        if ((p[v] > 0) != (expected[v] > 0) || fabs((double)p[v] - (double)expected[v]) > 1e-5)
            fail_msg("vocab %u, T %g, top-k %u, top-p %.9g: p(%u) is %g, expected %g", (unsigned)n,
                     (double)s->temperature, (unsigned)s->top_k, (double)s->top_p, (unsigned)v, (double)p[v],
                     (double)expected[v]);
        sum += (double)p[v];
    }
    assert_true(fabs(sum - 1) < 1e-5);
}

static void
test_distributions_have_the_support_and_probabilities_of_the_reference(void **state)
{
    struct bench *b = *state;
    static float z[DISTS * 1100], p[DISTS * 1100], *const big_z = z, *const big_p = p;
    const uint32_t vocabs[] = {1, 2, 3, 31, 255, 256, 257, 1023, 1025, 1100};
    for (uint32_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        const uint32_t n = vocabs[i], rows = 12;
        struct sampling s[DISTS];
        set_vocab(b, n);
        for (uint32_t r = 0; r < rows; r++) {
            random_logits(z + (size_t)r * n, n, (enum shape)(r % SHAPES));
            s[r] = random_sampling(n);
        }
        make_dists(b, z, rows, s, p);
        for (uint32_t r = 0; r < rows; r++)
            expect_dist(z + (size_t)r * n, n, &s[r], p + (size_t)r * n);
    }
    for (uint32_t r = 0; r < 6; r++) { /* more than fit the lists in shared memory */
        const uint32_t n = MAX_VOCAB - r * 1601;
        struct sampling s = random_sampling(n);
        s.temperature += 0.5f;
        set_vocab(b, n);
        random_logits(big_z, n, (enum shape)(r % SHAPES));
        make_dists(b, big_z, 1, &s, big_p);
        expect_dist(big_z, n, &s, big_p);
    }
}

static void
test_every_top_k_keeps_that_many_of_many_equals(void **state)
{
    struct bench *b = *state;
    static float z[5000], p[5000];
    const uint32_t n = 5000, ks[] = {1, 2, 255, 256, 257, 1024, 4095, 4097, 4999};
    set_vocab(b, n);
    for (uint32_t v = 0; v < n; v++)
        z[v] = v % 7 == 0 ? 2 : 1;
    for (uint32_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        const struct sampling s = {.temperature = 1, .top_k = ks[i], .top_p = 1};
        make_dists(b, z, 1, &s, p);
        expect_dist(z, n, &s, p);
        uint32_t kept = 0;
        for (uint32_t v = 0; v < n; v++)
            kept += p[v] > 0;
        assert_int_equal(kept, ks[i]);
    }
}

static void
test_top_p_stops_at_the_token_that_reaches_it_exactly(void **state)
{
    struct bench *b = *state;
    static float z[2048], p[2048];
    for (uint32_t n = 8; n <= 2048; n *= 4) { /* equals: their shares are exact */
        set_vocab(b, n);
        for (uint32_t v = 0; v < n; v++)
            z[v] = -3;
        for (uint32_t eighths = 1; eighths < 8; eighths++) {
            const struct sampling s = {.temperature = 0.7f, .top_p = (float)eighths / 8};
            make_dists(b, z, 1, &s, p);
            expect_dist(z, n, &s, p);
            assert_true(p[n / 8 * eighths - 1] > 0 && !(p[n / 8 * eighths] > 0));
        }
    }
}

/* ---- draws ---- */

/* n draws, seeds and positions as given, from p (vocab) in place 0, all without the same tokens. */
static void
make_draws(struct bench *b, const float *p, const struct rng_key *keys, uint32_t n, const token_t *without,
           size_t n_without, bool likeliest, token_t *out)
{
    struct dev_draw *const draws = calloc(n, sizeof *draws);
    assert_non_null(draws);
    assert_true(n * sizeof *draws + n * sizeof *out + n_without * sizeof *without < ARENA);
    token_t *const dev_out = (token_t *)((struct dev_draw *)b->arena + n), *const dev_without = dev_out + n;
    for (uint32_t i = 0; i < n; i++)
        draws[i].request = (struct draw_req){
            .likeliest = likeliest, .key = keys[i], .without = dev_without, .n_without = n_without, .out = dev_out + i};
    send(b->store.dists_p, p, b->model.vocab * sizeof *p);
    send(b->arena, draws, n * sizeof *draws);
    if (n_without > 0)
        send(dev_without, without, n_without * sizeof *without);
    const struct draw_args a = {.store = b->store, .vocab = b->model.vocab, .draws = b->arena, .n = n};
    assert_int_equal(launch_draw(a, 0), cudaSuccess);
    fetch(out, dev_out, n * sizeof *out);
    free(draws);
}

/* A distribution with zeros and very unequal numbers. */
static void
random_dist(float *p, uint32_t n)
{
    double sum = 0;
    for (uint32_t v = 0; v < n; v++)
        sum += (double)(p[v] = v > 0 && random_below(3) == 0 ? 0 : (float)pow(uniform(), 8));
    for (uint32_t v = 0; v < n; v++)
        p[v] = (float)((double)p[v] / sum);
}

static void
test_draws_are_those_of_the_reference(void **state)
{
    struct bench *b = *state;
    static float p[3000];
    const uint32_t vocabs[] = {1, 2, 33, 1000, 1025, 3000};
    uint32_t different = 0, all = 0;
    for (uint32_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        const uint32_t n = vocabs[i];
        set_vocab(b, n);
        random_dist(p, n);
        for (uint32_t n_without = 0; n_without < 10; n_without += 3) {
            struct rng_key keys[40];
            token_t without[10], out[40];
            for (uint32_t k = 0; k < 40; k++)
                keys[k] = (struct rng_key){.seed = seed, .pos = drawn++, .purpose = RNG_DRAFT, .index = k};
            for (uint32_t k = 0; k < n_without; k++)
                without[k] = (token_t)random_below(n);
            make_draws(b, p, keys, 40, without, n_without, false, out);
            for (uint32_t k = 0; k < 40; k++, all++)
                different += out[k] != sampling_draw(p, n, &keys[k], without, n_without);
            make_draws(b, p, keys, 1, without, n_without, true, out);
            assert_int_equal(out[0], sampling_likeliest(p, n, without, n_without));
        }
    }
    print_message("%u of %u draws fell on the other side of a rounding\n", (unsigned)different, (unsigned)all);
    assert_true(different <= 1);
}

static void
test_what_is_left_is_drawn_however_small(void **state)
{
    struct bench *b = *state;
    const float p[5] = {0.5f, 3e-30f, 0.5f, 1e-30f, 0};
    const token_t without[3] = {0, 2, 1};
    struct rng_key keys[400];
    token_t out[400];
    uint32_t ones = 0;
    set_vocab(b, 5);
    for (uint32_t k = 0; k < 400; k++)
        keys[k] = (struct rng_key){.seed = seed, .pos = k, .purpose = RNG_DRAFT};
    make_draws(b, p, keys, 400, without, 2, false, out);
    for (uint32_t k = 0; k < 400; k++) {
        assert_true(out[k] == 1 || out[k] == 3);
        ones += out[k] == 1;
    }
    assert_true(ones > 250 && ones < 350); /* 3/4: 300, deviation 8.7 */
    make_draws(b, p, keys, 1, without, 3, false, out);
    assert_int_equal(out[0], 3);
    const token_t every[4] = {3, 2, 1, 0};
    make_draws(b, p, keys, 1, every, 4, false, out);
    assert_int_equal(out[0], TOKEN_NONE);
    make_draws(b, p, keys, 1, every, 4, true, out);
    assert_int_equal(out[0], TOKEN_NONE);
}

static double
chi_square(const uint32_t *counts, const double *p, uint32_t n, uint32_t total)
{
    double x = 0;
    for (uint32_t v = 0; v < n; v++) {
        const double expected = p[v] * total, d = counts[v] - expected;
        x += d * d / expected;
    }
    return x;
}

static void
test_draws_follow_the_distribution_and_a_bias_would_show(void **state)
{
    struct bench *b = *state;
    enum { N = 12, DRAWS = 1200, BATCH = 400 };
    float p[N];
    double exact[N], biased[N];
    uint32_t counts[N] = {0};
    set_vocab(b, N);
    for (uint32_t v = 0; v < N; v++) {
        p[v] = (float)(v + 1) / (N * (N + 1) / 2.0f);
        exact[v] = biased[v] = (double)p[v];
    }
    biased[N - 1] += 0.05;
    biased[N - 2] -= 0.05;
    for (uint32_t i = 0; i < DRAWS; i += BATCH) {
        struct rng_key keys[BATCH];
        token_t out[BATCH];
        for (uint32_t k = 0; k < BATCH; k++)
            keys[k] = (struct rng_key){.seed = seed, .seq = 5, .pos = i + k, .purpose = RNG_BONUS};
        make_draws(b, p, keys, BATCH, NULL, 0, false, out);
        for (uint32_t k = 0; k < BATCH; k++)
            counts[out[k]]++;
    }
    const double limit = 36.5; /* chi-square of 11 degrees of freedom: beyond in 1 of 7,000 cases */
    assert_true(chi_square(counts, exact, N, DRAWS) < limit);
    assert_true(chi_square(counts, biased, N, DRAWS) > limit);
}

/* ---- verification ---- */

struct tree {
    struct verify_node nodes[VERIFY_NODES];
    uint32_t n;
    const float *logits[VERIFY_NODES], *q[VERIFY_NODES]; /* NULL: no row, none */
    int32_t row[VERIFY_NODES];
    struct guess guesses[VERIFY_NODES];
};

/* Verifies the tree, whose rows' logits and dists are on the device already. */
static void
verify(struct bench *b, const struct tree *t, const struct verify_req *r, struct verdict *out)
{
    char *const arena = b->arena;
    struct verify_node *const nodes = b->arena;
    int32_t *const rows = (int32_t *)(nodes + VERIFY_NODES);
    struct guess *const guesses = (struct guess *)(rows + VERIFY_NODES);
    struct verdict *const verdict = (struct verdict *)(arena + ARENA / 2);
    send(nodes, t->nodes, t->n * sizeof *nodes);
    send(rows, t->row, t->n * sizeof *rows);
    send(guesses, t->guesses, VERIFY_NODES * sizeof *guesses);
    const struct verify_args a = {.model = b->dev_model,
                                  .store = b->store,
                                  .nodes = nodes,
                                  .logits_row = rows,
                                  .n = t->n,
                                  .sampling = r->sampling,
                                  .seed = r->seed,
                                  .seq = r->seq,
                                  .guesses = guesses,
                                  .verdict = verdict};
    assert_int_equal(launch_verify(a, &b->model, 0), cudaSuccess);
    fetch(out, verdict, sizeof *out);
}

/* A random tree: rows of z (VERIFY_NODES, vocab), dists of q likewise. Children's tokens differ among siblings. */
static void
random_tree(struct tree *t, uint32_t vocab, const float *z, const float *q, bool greedy)
{
    uint32_t rows = 0;
    const uint32_t shape = random_below(4);
    t->n = 1 + random_below(random_below(4) == 0 ? VERIFY_NODES : 12);
    for (uint32_t i = 0; i < t->n; i++) {
        struct verify_node *node = &t->nodes[i];
        const bool row = i == 0 || random_below(8) > 0;
        *node = (struct verify_node){.parent = -1, .pos = 100, .ring = row ? i : RING_NONE, .q = DIST_NONE};
        t->row[i] = row ? (int32_t)rows : -1;
        t->logits[i] = row ? z + (size_t)rows++ * vocab : NULL;
        t->q[i] = NULL;
        t->guesses[i] = (struct guess){.token = TOKEN_NONE};
        if (row) {
            struct guess *g = &t->guesses[t->row[i]];
            *g =
                (struct guess){.token = sampling_argmax(t->logits[i], vocab), .confidence = 0.5f, .rank_final = (int)i};
        }
        if (i == 0)
            continue;
        const uint32_t near = i - 1 - random_below(i < 3 ? i : 3);
        const uint32_t parent = shape == 0 ? i - 1 : shape == 1 ? random_below(i) : shape == 2 ? near : (i - 1) / 4 * 4;
        node->parent = (int32_t)parent;
        node->pos = t->nodes[parent].pos + 1;
        node->token = (token_t)random_below(vocab);
        if (t->logits[parent] != NULL && random_below(greedy ? 2 : 6) == 0)
            node->token = sampling_argmax(t->logits[parent], vocab);
        if (!greedy && random_below(5) > 0) { /* siblings share their q */
            const struct rng_key key = {.seed = seed, .pos = drawn++, .purpose = RNG_DRAFT};
            node->q = parent;
            t->q[i] = q + (size_t)parent * vocab;
            if (random_below(4) > 0)
                node->token = sampling_draw(t->q[i], vocab, &key, NULL, 0);
        }
    }
}

/* Many siblings drawn without replacement from one q. */
static void
random_siblings(struct tree *t, uint32_t vocab, const float *z, const float *q)
{
    token_t tokens[VERIFY_NODES];
    t->nodes[0] = (struct verify_node){.parent = -1, .pos = 100, .q = DIST_NONE};
    t->row[0] = 0;
    t->logits[0] = z;
    t->q[0] = NULL;
    t->guesses[0] = (struct guess){.token = sampling_argmax(z, vocab)};
    for (t->n = 1; t->n < 12; t->n++) {
        const struct rng_key key = {.seed = seed, .pos = drawn++, .purpose = RNG_DRAFT};
        const uint32_t i = t->n;
        tokens[i - 1] = sampling_draw(q, vocab, &key, tokens, i - 1);
        if (tokens[i - 1] == TOKEN_NONE)
            return;
        t->nodes[i] = (struct verify_node){.token = tokens[i - 1], .pos = 101, .ring = RING_NONE};
        t->row[i] = -1;
        t->logits[i] = NULL;
        t->q[i] = q;
    }
}

static bool
same_walk(const struct verdict *a, const struct verdict *b)
{
    return a->n_path == b->n_path && memcmp(a->path, b->path, a->n_path * sizeof *a->path) == 0 && a->next == b->next &&
           a->kind == b->kind;
}

static void
expect_judged(const struct tree *t, const struct verdict *v)
{
    for (uint32_t i = 0; i < VERIFY_NODES; i++) {
        if (i >= t->n || t->row[i] < 0)
            assert_int_equal(v->judged[i].token, TOKEN_NONE);
        else
            assert_memory_equal(&v->judged[i], &t->guesses[t->row[i]], sizeof v->judged[i]);
    }
}

static void
test_greedy_walks_are_those_of_the_reference(void **state)
{
    struct bench *b = *state;
    const uint32_t vocab = 9;
    static float z[VERIFY_NODES * 9];
    set_vocab(b, vocab);
    uint32_t kinds[3] = {0}, accepted = 0;
    for (int round = 0; round < 3000; round++) {
        struct tree t;
        struct verdict expected, got;
        for (uint32_t i = 0; i < VERIFY_NODES * vocab; i++)
            z[i] = (float)random_below(5);
        random_tree(&t, vocab, z, NULL, true);
        const struct verify_req r = {.nodes = t.nodes, .n = t.n, .sampling = {.top_p = 1}};
        assert_true(sampling_verify(&r, vocab, t.logits, t.q, NULL, NULL, &expected));
        verify(b, &t, &r, &got);
        assert_true(same_walk(&expected, &got));
        expect_judged(&t, &got);
        kinds[got.kind]++;
        accepted += got.n_path;
    }
    print_message("%u corrections, %u bonuses, %u candidates, %u accepted\n", kinds[0], kinds[1], kinds[2], accepted);
    assert_true(kinds[NEXT_CORRECTION] > 100 && kinds[NEXT_BONUS] > 100 && kinds[NEXT_CANDIDATE] > 30);
}

/* The same random numbers lead the same way, but where one falls within a rounding of its threshold. */
static void
test_sampled_walks_are_those_of_the_reference(void **state)
{
    struct bench *b = *state;
    enum { VOCAB = 23, TREES = 90 };
    static float z[VERIFY_NODES * VOCAB], q[VERIFY_NODES * VOCAB], p[VOCAB];
    uint32_t order[VOCAB], kinds[3] = {0}, different = 0, accepted = 0;
    set_vocab(b, VOCAB);
    for (uint32_t round = 0; round < TREES; round++) {
        struct tree t;
        struct verdict expected, got;
        for (uint32_t i = 0; i < VERIFY_NODES; i++) {
            random_logits(z + i * VOCAB, VOCAB, random_below(8) == 0 ? ODD : SMOOTH);
            const struct sampling s = random_sampling(VOCAB);
            float noisy[VOCAB];
            for (uint32_t v = 0; v < VOCAB; v++)
                noisy[v] = z[i * VOCAB + v] + 0.5f * gaussian();
            sampling_dist(random_below(6) == 0 ? z + i * VOCAB : noisy, VOCAB, &s, q + i * VOCAB, order);
        }
        if (round % 2 == 0) {
            random_tree(&t, VOCAB, z, q, false);
        } else {
            for (uint32_t v = 0; v < VOCAB; v++)
                z[v] = gaussian(), q[v] = (float)(1 + random_below(9)) / (9 * VOCAB);
            random_siblings(&t, VOCAB, z, q);
        }
        struct verify_req r = {
            .nodes = t.nodes, .n = t.n, .sampling = random_sampling(VOCAB), .seed = seed + round, .seq = round % 3};
        r.sampling.temperature += 0.1f;
        assert_true(sampling_verify(&r, VOCAB, t.logits, t.q, p, order, &expected));
        send(b->store.head_logits, z, sizeof z);
        send(b->store.dists_p, q, sizeof q);
        verify(b, &t, &r, &got);
        different += !same_walk(&expected, &got);
        expect_judged(&t, &got);
        kinds[got.kind]++;
        accepted += got.n_path;
    }
    print_message("%u corrections, %u bonuses, %u candidates, %u accepted; %u walks differ\n", kinds[0], kinds[1],
                  kinds[2], accepted, different);
    assert_true(different <= 1);
    assert_true(kinds[NEXT_CORRECTION] > 15 && kinds[NEXT_BONUS] > 3 && kinds[NEXT_CANDIDATE] > 0);
}

/* Two siblings drawn from q without replacement, then tested: the first token of the round is distributed as p. */
static void
test_sampled_verification_keeps_the_distribution_of_the_target(void **state)
{
    struct bench *b = *state;
    enum { VOCAB = 5, ROUNDS = 240 };
    const float z[3 * VOCAB] = {0.9f, 0.1f, -0.5f, 0.4f, -1.2f}, q[VOCAB] = {0.1f, 0.35f, 0.3f, 0.05f, 0.2f};
    const struct sampling s = {.temperature = 0.8f, .top_p = 1};
    float p[VOCAB];
    double exact[VOCAB], draft[VOCAB];
    uint32_t counts[VOCAB] = {0};
    set_vocab(b, VOCAB);
    sampling_dist(z, VOCAB, &s, p, NULL);
    for (uint32_t v = 0; v < VOCAB; v++)
        exact[v] = (double)p[v], draft[v] = (double)q[v];
    send(b->store.head_logits, z, sizeof z);
    send(b->store.dists_p, q, sizeof q);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct tree t = {.n = 3,
                         .nodes = {{.parent = -1, .pos = 7, .q = DIST_NONE},
                                   {.parent = 0, .pos = 8, .ring = RING_NONE},
                                   {.parent = 0, .pos = 8, .ring = RING_NONE}},
                         .row = {0, -1, -1}};
        struct rng_key key = {.seed = seed + 1000 + round, .pos = 8, .purpose = RNG_DRAFT};
        t.nodes[1].token = sampling_draw(q, VOCAB, &key, NULL, 0);
        key.index = 1;
        t.nodes[2].token = sampling_draw(q, VOCAB, &key, &t.nodes[1].token, 1);
        const struct verify_req r = {.nodes = t.nodes, .n = t.n, .sampling = s, .seed = seed + 1000 + round};
        struct verdict got;
        verify(b, &t, &r, &got);
        counts[got.next]++; /* the candidate, or the correction */
    }
    const double limit = 23.5; /* 4 degrees of freedom: beyond in 1 of 10,000 cases */
    assert_true(chi_square(counts, exact, VOCAB, ROUNDS) < limit);
    assert_true(chi_square(counts, draft, VOCAB, ROUNDS) > limit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions_have_the_support_and_probabilities_of_the_reference),
        cmocka_unit_test(test_every_top_k_keeps_that_many_of_many_equals),
        cmocka_unit_test(test_top_p_stops_at_the_token_that_reaches_it_exactly),
        cmocka_unit_test(test_draws_are_those_of_the_reference),
        cmocka_unit_test(test_what_is_left_is_drawn_however_small),
        cmocka_unit_test(test_draws_follow_the_distribution_and_a_bias_would_show),
        cmocka_unit_test(test_greedy_walks_are_those_of_the_reference),
        cmocka_unit_test(test_sampled_walks_are_those_of_the_reference),
        cmocka_unit_test(test_sampled_verification_keeps_the_distribution_of_the_target),
    };
    return cmocka_run_group_tests(tests, open_bench, close_bench);
}
