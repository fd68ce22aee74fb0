/* Distributions, compared with a slow definition in double, draws, and the greedy walk. test_lossless.c tests that
 * verification keeps the target's distribution. */
#include <math.h>

#include "base/rng.h"
#include "kernels/cpu/sampling.h"
#include "tests/rigs/test.h"

enum { MAX_VOCAB = 300 };

static uint32_t
random_below(uint64_t seed, uint32_t i, uint32_t n)
{
    const struct rng_key key = {.seed = seed, .pos = i};
    return (uint32_t)(rng_uniform(&key) * n);
}

/* Computes the definition by sorting: temperature, then top-k, then top-p of the remaining tokens. */
static void
naive_dist(const float *logits, uint32_t n, const struct sampling *s, double *p)
{
    uint32_t order[MAX_VOCAB];
    for (uint32_t i = 0; i < n; i++) { /* insertion sort keeps equal logits in order of id */
        uint32_t at = i;
        for (; at > 0 && logits[order[at - 1]] < logits[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    uint32_t kept = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double weight[MAX_VOCAB], sum = 0;
    for (uint32_t i = 0; i < kept; i++) {
        weight[i] = exp(((double)logits[order[i]] - (double)logits[order[0]]) / (double)s->temperature);
        sum += weight[i];
    }
    if (s->top_p < 1) {
        double mass = 0;
        uint32_t i = 0;
        while (i < kept && mass < (double)s->top_p * sum)
            mass += weight[i++];
        kept = i;
        sum = mass;
    }
    for (uint32_t i = 0; i < n; i++)
        p[i] = 0;
    for (uint32_t i = 0; i < kept; i++)
        p[order[i]] = weight[i] / sum;
}

TEST(distributions_follow_the_definition)
{
    const uint64_t seed = 7;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint32_t r = 0;
    for (int round = 0; round < 2000; round++) {
        const uint32_t n = 1 + random_below(seed, r++, MAX_VOCAB);
        float logits[MAX_VOCAB], p[MAX_VOCAB];
        for (uint32_t v = 0; v < n; v++) /* steps of 1/8 make many ties */
            logits[v] = (float)random_below(seed, r++, 64) / 8.0f - 4.0f;
        const float temperature = 0.3f + (float)random_below(seed, r++, 15) / 10.0f;
        const uint32_t k = random_below(seed, r++, n + 2);
        const float mass = 0.05f + 0.013f * (float)random_below(seed, r++, 70);
        const struct sampling s = {
            .temperature = temperature, .top_k = round % 2 ? k : 0, .top_p = round % 3 ? mass : 1.0f};
        uint32_t order[MAX_VOCAB];
        double expected[MAX_VOCAB], sum = 0;
        sampling_dist(logits, n, &s, p, sampling_filters(&s, n) ? order : NULL);
        naive_dist(logits, n, &s, expected);
        for (uint32_t v = 0; v < n; v++) {
            assert_near((double)p[v], expected[v], 1e-5);
            assert_int_equal(p[v] > 0, expected[v] > 0);
            sum += (double)p[v];
        }
        assert_near(sum, 1, 1e-5);
    }
}

TEST(top_k_takes_the_lowest_ids_among_equals)
{
    const float logits[5] = {1, 2, 2, 2, 0};
    uint32_t order[5];
    float p[5];
    sampling_dist(logits, 5, &(struct sampling){.temperature = 1, .top_k = 2, .top_p = 1}, p, order);
    const float expected[5] = {0, 0.5f, 0.5f, 0, 0};
    assert_memory_equal(p, expected, sizeof p);
}

TEST(top_p_keeps_the_token_that_crosses_it)
{
    const float logits[3] = {logf(0.5f), logf(0.3f), logf(0.2f)};
    uint32_t order[3];
    float p[3];
    sampling_dist(logits, 3, &(struct sampling){.temperature = 1, .top_p = 0.6f}, p, order);
    assert_near(p[0], 0.625f, 1e-6f);
    assert_near(p[1], 0.375f, 1e-6f);
    assert_at_most(p[2], 0);
    sampling_dist(logits, 3, &(struct sampling){.temperature = 1, .top_p = 1e-9f}, p, order);
    assert_at_least(p[0], 1);
    assert_at_most(p[1], 0);
    assert_at_most(p[2], 0); /* at least one token is kept */
}

TEST(temperature_zero_is_one_at_the_lowest_argmax)
{
    const float logits[4] = {0, 3, 3, -1};
    float p[4];
    sampling_dist(logits, 4, &(struct sampling){.temperature = 0, .top_k = 3, .top_p = 0.5f}, p, NULL);
    const float expected[4] = {0, 1, 0, 0};
    assert_memory_equal(p, expected, sizeof p);
    assert_int_equal(sampling_argmax(logits, 4), 1);
}

TEST(logits_that_are_not_numbers_are_never_drawn)
{
    float p[4];
    uint32_t order[4];
    const struct sampling plain = {.temperature = 1, .top_p = 1},
                          filtered = {.temperature = 1, .top_k = 3, .top_p = 0.9f};
    const float some[4] = {NAN, 1, -INFINITY, 1}, none[4] = {NAN, -INFINITY, NAN, NAN},
                huge[4] = {0, INFINITY, INFINITY, NAN}, wide[4] = {-3e38f, 3e38f, 0, NAN};
    const float halves[4] = {0, 0.5f, 0, 0.5f}, zeroth[4] = {1, 0, 0, 0}, middle[4] = {0, 0.5f, 0.5f, 0},
                first[4] = {0, 1, 0, 0};
    for (int i = 0; i < 2; i++) {
        const struct sampling *s = i == 0 ? &plain : &filtered;
        sampling_dist(some, 4, s, p, order);
        assert_memory_equal(p, halves, sizeof p);
        sampling_dist(none, 4, s, p, order);
        assert_memory_equal(p, zeroth, sizeof p);
        sampling_dist(huge, 4, s, p, order);
        assert_memory_equal(p, middle, sizeof p);
        sampling_dist(wide, 4, s, p, order);
        assert_memory_equal(p, first, sizeof p);
    }
    assert_int_equal(sampling_argmax(some, 4), 1);
    assert_int_equal(sampling_argmax(none, 4), 0);
}

/* ---- draws ---- */

TEST(draws_leave_out_excluded_tokens)
{
    const float p[5] = {0.1f, 0.2f, 0, 0.3f, 0.4f};
    const token_t without[2] = {4, 1};
    enum { N = 40000 };
    double count[5] = {0};
    for (uint32_t i = 0; i < N; i++) {
        const struct rng_key key = {.seed = 3, .pos = i};
        const token_t t = sampling_draw(p, 5, &key, without, 2);
        assert_in_range(t, 0, 4);
        assert_int_equal(t, sampling_draw(p, 5, &key, without, 2));
        count[t]++;
    }
    assert_at_most(count[1], 0);
    assert_at_most(count[2], 0);
    assert_at_most(count[4], 0);
    assert_near(count[0] / N, 0.25, 0.01); /* standard deviation 0.0022 */
}

TEST(draw_reports_an_empty_distribution)
{
    const float p[3] = {0, 1, 0};
    const struct rng_key key = {.seed = 3};
    const token_t without[1] = {1};
    assert_int_equal(sampling_draw(p, 3, &key, NULL, 0), 1);
    assert_int_equal(sampling_draw(p, 3, &key, without, 1), TOKEN_NONE);
}

/* ---- the greedy walk ---- */

enum { VOCAB = 4, NODES = 6 };

/* Logits with two equal maxima, at tokens t and t + 1. */
#define PEAK(t)                                                                                                        \
    {                                                                                                                  \
        (t) == 0 || (t) == -1, (t) == 0 || (t) == 1, (t) == 1 || (t) == 2, (t) == 2 || (t) == 3                        \
    }

/*  0 ─┬─ 1 (token 3)
 *     └─ 2 (token 1) ─┬─ 3 (token 0)
 *                     └─ 4 (token 2) ── 5 (token 1, no row) */
static const struct verify_node tree[NODES] = {
    {.parent = -1, .token = 0, .pos = 10}, {.parent = 0, .token = 3, .pos = 11},
    {.parent = 0, .token = 1, .pos = 11},  {.parent = 2, .token = 0, .pos = 12},
    {.parent = 2, .token = 2, .pos = 12},  {.parent = 4, .token = 1, .pos = 13, .ring = RING_NONE, .q = DIST_NONE},
};

static bool
greedy(const float *const *logits, size_t n, struct verdict *out)
{
    static const float *const q[NODES] = {NULL};
    const struct verify_req r = {.nodes = tree, .n = n, .seed = 1, .out = out};
    memset(out, 0x5a, sizeof *out);
    return sampling_verify(&r, VOCAB, logits, q, VOCAB, NULL, NULL, out);
}

TEST(greedy_walk_follows_the_argmax_through_the_tree)
{
    const float p1[VOCAB] = PEAK(1), p2[VOCAB] = PEAK(2), p0[VOCAB] = PEAK(0), p3[VOCAB] = PEAK(3);
    struct verdict v;

    const float *const all[NODES] = {p1, p0, p2, p0, p1, NULL};
    assert_true(greedy(all, NODES, &v));
    assert_int_equal(v.n_path, 3);
    assert_int_equal(v.path[0], 2);
    assert_int_equal(v.path[1], 4);
    assert_int_equal(v.path[2], 5);
    assert_int_equal(v.kind, NEXT_CANDIDATE);
    assert_int_equal(v.next, 1);

    const float *const off[NODES] = {p1, p0, p1, p0, p1, NULL}; /* node 2 has no child for the target's token 1 */
    assert_true(greedy(off, NODES, &v));
    assert_int_equal(v.n_path, 1);
    assert_int_equal(v.kind, NEXT_CORRECTION);
    assert_int_equal(v.next, 1);

    const float *const leaf[NODES] = {p3, p0, p2, p0, p1, NULL}; /* node 1 has no children */
    assert_true(greedy(leaf, NODES, &v));
    assert_int_equal(v.n_path, 1);
    assert_int_equal(v.path[0], 1);
    assert_int_equal(v.kind, NEXT_BONUS);
    assert_int_equal(v.next, 0); /* the tie of 0 and 1 goes to 0 */

    const float *const tie[NODES] = {p2, p0, p2,
                                     p0, p1, NULL}; /* 2 and 3 tie, and 2 is chosen: node 1 (token 3) is not accepted */
    assert_true(greedy(tie, NODES, &v));
    assert_int_equal(v.n_path, 0);
    assert_int_equal(v.kind, NEXT_CORRECTION);
    assert_int_equal(v.next, 2);

    assert_true(greedy(all, 1, &v)); /* without drafts it is an autoregressive step */
    assert_int_equal(v.n_path, 0);
    assert_int_equal(v.kind, NEXT_BONUS);
    assert_int_equal(v.next, 1);
}

TEST(malformed_trees_are_refused_untouched)
{
    const float p[VOCAB] = PEAK(0);
    const float *const logits[2] = {p, p}, *const no_root[2] = {NULL, p}, *const q[2] = {NULL, NULL};
    const struct verify_node bad[][2] = {
        {{.parent = -1}, {.parent = 1, .token = 0}},
        {{.parent = -1}, {.parent = -1, .token = 0}},
        {{.parent = -1}, {.parent = 0, .token = -1}},
        {{.parent = -1}, {.parent = 0, .token = VOCAB}},
    };
    struct verdict v, before;
    memset(&v, 0x5a, sizeof v);
    before = v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(
            sampling_verify(&(struct verify_req){.nodes = bad[i], .n = 2}, VOCAB, logits, q, VOCAB, NULL, NULL, &v));
    assert_false(sampling_verify(&(struct verify_req){.nodes = tree, .n = 0}, VOCAB, logits, q, VOCAB, NULL, NULL, &v));
    assert_false(
        sampling_verify(&(struct verify_req){.nodes = tree, .n = 2}, VOCAB, no_root, q, VOCAB, NULL, NULL, &v));
    assert_false(sampling_verify(&(struct verify_req){.nodes = tree, .n = VERIFY_NODES + 1}, VOCAB, logits, q, VOCAB,
                                 NULL, NULL, &v));
    assert_memory_equal(&v, &before, sizeof v);
}
