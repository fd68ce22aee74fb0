/* Verification by the CUDA backend on the emulator (tests/emulator), compared with kernels/cpu/sampling.h, which has
 * tests of its own. SPECSCOPE_SEED=N chooses the cases. */
#include <math.h>

#include "kernels/cpu/sampling.h"
#include "kernels/cuda/device/launch.h"
#include "tests/rigs/sampling_bench.h"
#include "tests/rigs/test.h"

struct tree {
    struct verify_node nodes[VERIFY_NODES];
    uint32_t n;
    const float *logits[VERIFY_NODES], *q[VERIFY_NODES]; /* NULL: no row, none */
    int32_t row[VERIFY_NODES];
    struct prediction predictions[VERIFY_NODES];
};

/* Verifies n trees in one launch. Logits (VERIFY_NODES rows for each tree) and distributions are already on the
 * device. */
static void
verify_all(struct bench *b, const struct tree *t, const struct verify_req *r, uint32_t n, struct verdict *out)
{
    struct verify_node *const nodes = b->arena;
    int32_t *const rows = (int32_t *)(nodes + BENCH_ROUNDS * VERIFY_NODES);
    struct prediction *const predictions = (struct prediction *)(rows + BENCH_ROUNDS * VERIFY_NODES);
    struct dev_round *const rounds = (struct dev_round *)(predictions + BENCH_ROUNDS * VERIFY_NODES);
    struct verdict *const verdicts = (struct verdict *)((char *)b->arena + ARENA / 2);
    struct verify_args a = {
        .model = b->dev_model, .kv_cache = b->kv_cache, .rounds = rounds, .n = n, .predictions = predictions};
    for (uint32_t i = 0, at = 0; i < n; at += t[i++].n) {
        int32_t row[VERIFY_NODES];
        for (uint32_t j = 0; j < t[i].n; j++)
            row[j] = t[i].row[j] < 0 ? -1 : t[i].row[j] + (int32_t)(i * VERIFY_NODES);
        const struct dev_round round = {.nodes = nodes + at,
                                        .logits_row = rows + at,
                                        .dists = b->kv_cache.row_dists + at,
                                        .n = t[i].n,
                                        .sampling = r[i].sampling,
                                        .seed = r[i].seed,
                                        .verdict = verdicts + i};
        send(&rounds[i], &round, sizeof round);
        send(nodes + at, t[i].nodes, t[i].n * sizeof *nodes);
        send(rows + at, row, t[i].n * sizeof *rows);
        send(predictions + i * VERIFY_NODES, t[i].predictions, VERIFY_NODES * sizeof *predictions);
        a.longest = t[i].n > a.longest ? t[i].n : a.longest;
        a.sampled = a.sampled || r[i].sampling.temperature > 0;
    }
    assert_int_equal(launch_verify(a, 0), cudaSuccess);
    fetch(out, verdicts, n * sizeof *out);
}

static void
verify(struct bench *b, const struct tree *t, const struct verify_req *r, struct verdict *out)
{
    verify_all(b, t, r, 1, out);
}

/* Makes a random tree with rows of z (VERIFY_NODES, vocab) and distributions of q. The tokens of siblings differ. */
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
        t->predictions[i] = (struct prediction){.token = TOKEN_NONE};
        if (row) {
            struct prediction *g = &t->predictions[t->row[i]];
            *g = (struct prediction){
                .token = sampling_argmax(t->logits[i], vocab), .confidence = 0.5f, .rank_final = (int)i};
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
        if (!greedy && random_below(5) > 0) { /* siblings have the same q */
            const struct rng_key key = {.seed = seed, .pos = drawn++, .purpose = RNG_DRAFT};
            node->q = parent;
            t->q[i] = q + (size_t)parent * vocab;
            if (random_below(4) > 0)
                node->token = sampling_draw(t->q[i], vocab, &key, NULL, 0);
        }
    }
}

/* Makes many siblings, drawn without replacement from one q. */
static void
random_siblings(struct tree *t, uint32_t vocab, const float *z, const float *q)
{
    token_t tokens[VERIFY_NODES];
    t->nodes[0] = (struct verify_node){.parent = -1, .pos = 100, .q = DIST_NONE};
    t->row[0] = 0;
    t->logits[0] = z;
    t->q[0] = NULL;
    t->predictions[0] = (struct prediction){.token = sampling_argmax(z, vocab)};
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
            assert_memory_equal(&v->judged[i], &t->predictions[t->row[i]], sizeof v->judged[i]);
    }
}

TEST(greedy_walks_are_those_of_the_reference)
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
        assert_true(sampling_verify(&r, vocab, t.logits, t.q, vocab, NULL, NULL, &expected));
        verify(b, &t, &r, &got);
        assert_true(same_walk(&expected, &got));
        expect_judged(&t, &got);
        kinds[got.kind]++;
        accepted += got.n_path;
    }
    print_message("%u corrections, %u bonuses, %u candidates, %u accepted\n", kinds[0], kinds[1], kinds[2], accepted);
    assert_greater(kinds[NEXT_CORRECTION], 100);
    assert_greater(kinds[NEXT_BONUS], 100);
    assert_greater(kinds[NEXT_CANDIDATE], 30);
}

/* The same random numbers lead to the same verdict, except if one is within a rounding error of its threshold. */
TEST(sampled_walks_are_those_of_the_reference)
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
        struct verify_req r = {.nodes = t.nodes, .n = t.n, .sampling = random_sampling(VOCAB), .seed = seed + round};
        r.sampling.temperature += 0.1f;
        assert_true(sampling_verify(&r, VOCAB, t.logits, t.q, VOCAB, p, order, &expected));
        send(b->kv_cache.head_logits, z, sizeof z);
        send(b->kv_cache.dists_p, q, sizeof q);
        verify(b, &t, &r, &got);
        different += !same_walk(&expected, &got);
        expect_judged(&t, &got);
        kinds[got.kind]++;
        accepted += got.n_path;
    }
    print_message("%u corrections, %u bonuses, %u candidates, %u accepted; %u walks differ\n", kinds[0], kinds[1],
                  kinds[2], accepted, different);
    assert_at_most(different, 1);
    assert_greater(kinds[NEXT_CORRECTION], 15);
    assert_greater(kinds[NEXT_BONUS], 3);
    assert_greater(kinds[NEXT_CANDIDATE], 0);
}

/* Greedy and sampled rounds in one launch, more than run in parallel. */
TEST(rounds_together_are_walked_as_alone)
{
    struct bench *b = *state;
    enum { VOCAB = 19 };
    static float z[BENCH_ROUNDS][VERIFY_NODES * VOCAB], q[VERIFY_NODES * VOCAB];
    static struct tree t[BENCH_ROUNDS];
    static struct verdict alone[BENCH_ROUNDS], together[BENCH_ROUNDS];
    struct verify_req r[BENCH_ROUNDS];
    uint32_t order[VOCAB], kinds[3] = {0}, accepted = 0;
    assert_greater(BENCH_ROUNDS, VERIFY_WALKS);
    set_vocab(b, VOCAB);
    for (uint32_t call = 0; call < 4; call++) {
        for (uint32_t i = 0; i < VERIFY_NODES; i++) {
            float logits[VOCAB];
            random_logits(logits, VOCAB, SMOOTH);
            sampling_dist(logits, VOCAB, &(struct sampling){.temperature = 1, .top_p = 1}, q + i * VOCAB, order);
        }
        send(b->kv_cache.dists_p, q, sizeof q);
        for (uint32_t i = 0; i < BENCH_ROUNDS; i++) {
            const bool greedy = call == 1 || (call > 1 && random_below(3) == 0);
            for (uint32_t j = 0; j < VERIFY_NODES; j++)
                random_logits(z[i] + j * VOCAB, VOCAB, SMOOTH);
            random_tree(&t[i], VOCAB, z[i], q, greedy);
            r[i] = (struct verify_req){.nodes = t[i].nodes,
                                       .n = t[i].n,
                                       .sampling = greedy ? (struct sampling){.top_p = 1} : random_sampling(VOCAB),
                                       .seed = seed + call * BENCH_ROUNDS + i};
            if (!greedy)
                r[i].sampling.temperature += 0.1f;
            send(b->kv_cache.head_logits, z[i], sizeof z[i]);
            verify(b, &t[i], &r[i], &alone[i]);
        }
        send(b->kv_cache.head_logits, z, sizeof z);
        verify_all(b, t, r, BENCH_ROUNDS, together);
        for (uint32_t i = 0; i < BENCH_ROUNDS; i++) {
            assert_true(same_walk(&alone[i], &together[i]));
            expect_judged(&t[i], &together[i]);
            kinds[together[i].kind]++;
            accepted += together[i].n_path;
        }
    }
    print_message("%u corrections, %u bonuses, %u candidates, %u accepted\n", kinds[0], kinds[1], kinds[2], accepted);
    assert_greater(kinds[NEXT_CORRECTION], 10);
    assert_greater(kinds[NEXT_BONUS], 3);
    assert_greater(kinds[NEXT_CANDIDATE], 1);
    assert_greater(accepted, 10);
}

/* In each round the first sibling cannot be accepted, and the second is the only remaining one. A block therefore ends
 * a round right after it has read the remainder, and its next round writes there at once. */
TEST(a_round_waits_until_the_one_before_it_has_been_read)
{
    struct bench *b = *state;
    enum { VOCAB = 19 };
    static float z[BENCH_ROUNDS][VERIFY_NODES * VOCAB];
    static struct tree t[BENCH_ROUNDS];
    static struct verdict got[BENCH_ROUNDS];
    struct verify_req r[BENCH_ROUNDS];
    set_vocab(b, VOCAB);
    for (uint32_t i = 0; i < BENCH_ROUNDS; i++) {
        for (uint32_t v = 0; v < VOCAB; v++)
            z[i][v] = v == i % VOCAB ? 1 : -INFINITY;
        t[i] =
            (struct tree){.n = 3,
                          .nodes = {{.parent = -1, .pos = 7, .q = DIST_NONE},
                                    {.token = (token_t)((i + 1) % VOCAB), .pos = 8, .ring = RING_NONE, .q = DIST_NONE},
                                    {.token = (token_t)(i % VOCAB), .pos = 8, .ring = RING_NONE, .q = DIST_NONE}},
                          .row = {0, -1, -1}};
        r[i] = (struct verify_req){
            .nodes = t[i].nodes, .n = 3, .sampling = {.temperature = 1, .top_p = 1}, .seed = seed + i};
    }
    send(b->kv_cache.head_logits, z, sizeof z);
    verify_all(b, t, r, BENCH_ROUNDS, got);
    for (uint32_t i = 0; i < BENCH_ROUNDS; i++) {
        assert_int_equal(got[i].kind, NEXT_CANDIDATE);
        assert_int_equal(got[i].n_path, 1);
        assert_int_equal(got[i].path[0], 2);
    }
}

/* Two siblings are drawn from q without replacement and verified: the first token of the round has the distribution
 * p. */
TEST(sampled_verification_keeps_the_distribution_of_the_target)
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
    send(b->kv_cache.head_logits, z, sizeof z);
    send(b->kv_cache.dists_p, q, sizeof q);
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
        counts[got.next]++; /* the accepted candidate or the correction */
    }
    const double limit = 23.5; /* chi-square with 4 degrees of freedom: exceeded in 1 of 10,000 cases */
    assert_less(chi_square(counts, exact, VOCAB, ROUNDS), limit);
    assert_greater(chi_square(counts, draft, VOCAB, ROUNDS), limit);
}

FIXTURE(open_bench, close_bench);
