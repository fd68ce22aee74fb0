/* Distributions and draws of the CUDA backend on the emulator (tests/emulator), compared with kernels/cpu/sampling.h,
 * which has tests of its own. SPECSCOPE_SEED=N chooses the cases. */
#include <math.h>

#include "kernels/cpu/sampling.h"
#include "kernels/cuda/device/launch.h"
#include "tests/rigs/sampling_bench.h"
#include "tests/rigs/test.h"

/* ---- distributions ---- */

/* Computes n distributions with the same settings from logits (n, vocab) into p (n, vocab). */
static void
make_dists(struct bench *b, const float *logits, uint32_t n, const struct sampling *s, float *p)
{
    struct dist_req requests[DISTS];
    const size_t bytes = (size_t)n * b->model.vocab * sizeof(float);
    for (uint32_t i = 0; i < n; i++)
        requests[i] = (struct dist_req){.sampling = s[i], .out = n - 1 - i};
    send(b->kv_cache.head_logits, logits, bytes);
    send(b->arena, requests, n * sizeof *requests);
    const struct dist_args a = {.model = b->dev_model, .kv_cache = b->kv_cache, .requests = b->arena, .n = n};
    assert_int_equal(launch_dist(a, 0), cudaSuccess);
    for (uint32_t i = 0; i < n; i++)
        fetch(p + (size_t)i * b->model.vocab, b->kv_cache.dists_p + (size_t)(n - 1 - i) * b->model.vocab,
              b->model.vocab * sizeof *p);
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
    assert_near(sum, 1, 1e-5);
}

TEST(distributions_have_the_support_and_probabilities_of_the_reference)
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
    for (uint32_t r = 0; r < 6; r++) { /* more rows than the lists in shared memory can contain */
        const uint32_t n = MAX_VOCAB - r * 1601;
        struct sampling s = random_sampling(n);
        s.temperature += 0.5f;
        set_vocab(b, n);
        random_logits(big_z, n, (enum shape)(r % SHAPES));
        make_dists(b, big_z, 1, &s, big_p);
        expect_dist(big_z, n, &s, big_p);
    }
}

TEST(every_top_k_keeps_that_many_of_many_equals)
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

TEST(top_p_stops_at_the_token_that_reaches_it_exactly)
{
    struct bench *b = *state;
    static float z[2048], p[2048];
    for (uint32_t n = 8; n <= 2048; n *= 4) { /* equal probabilities are exact */
        set_vocab(b, n);
        for (uint32_t v = 0; v < n; v++)
            z[v] = -3;
        for (uint32_t eighths = 1; eighths < 8; eighths++) {
            const struct sampling s = {.temperature = 0.7f, .top_p = (float)eighths / 8};
            make_dists(b, z, 1, &s, p);
            expect_dist(z, n, &s, p);
            assert_greater(p[n / 8 * eighths - 1], 0);
            assert_at_most(p[n / 8 * eighths], 0);
        }
    }
}

/* ---- draws ---- */

/* Draws n tokens with these seeds and positions from p (vocab) in place 0, all without the same tokens. */
static void
make_draws(struct bench *b, const float *p, const struct rng_key *keys, uint32_t n, const token_t *without,
           size_t n_without, bool likeliest, token_t *out)
{
    struct draw_req *const draws = calloc(n, sizeof *draws);
    assert_non_null(draws);
    assert_less(n * sizeof *draws + n * sizeof *out + n_without * sizeof *without, ARENA);
    token_t *const dev_out = (token_t *)((struct draw_req *)b->arena + n), *const dev_without = dev_out + n;
    for (uint32_t i = 0; i < n; i++)
        draws[i] = (struct draw_req){
            .likeliest = likeliest, .key = keys[i], .without = dev_without, .n_without = n_without, .out = dev_out + i};
    send(b->kv_cache.dists_p, p, b->model.vocab * sizeof *p);
    send(b->arena, draws, n * sizeof *draws);
    if (n_without > 0)
        send(dev_without, without, n_without * sizeof *without);
    const struct draw_args a = {.kv_cache = b->kv_cache, .requests = b->arena, .n = n};
    assert_int_equal(launch_draw(a, 0), cudaSuccess);
    fetch(out, dev_out, n * sizeof *out);
    free(draws);
}

/* Makes a distribution with zeros and probabilities of very different sizes. */
static void
random_dist(float *p, uint32_t n)
{
    double sum = 0;
    for (uint32_t v = 0; v < n; v++)
        sum += (double)(p[v] = v > 0 && random_below(3) == 0 ? 0 : (float)pow(uniform(), 8));
    for (uint32_t v = 0; v < n; v++)
        p[v] = (float)((double)p[v] / sum);
}

TEST(draws_are_those_of_the_reference)
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
    assert_at_most(different, 1);
}

TEST(the_remaining_token_is_drawn_however_unlikely)
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
    assert_greater(ones, 250);
    assert_less(ones, 350); /* expected 300, deviation 8.7 */
    make_draws(b, p, keys, 1, without, 3, false, out);
    assert_int_equal(out[0], 3);
    const token_t every[4] = {3, 2, 1, 0};
    make_draws(b, p, keys, 1, every, 4, false, out);
    assert_int_equal(out[0], TOKEN_NONE);
    make_draws(b, p, keys, 1, every, 4, true, out);
    assert_int_equal(out[0], TOKEN_NONE);
}

TEST(draws_follow_the_distribution_and_a_bias_would_show)
{
    struct bench *b = *state;
    enum { N = 12, DRAWS = 2400, BATCH = 400 };
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
    const double limit = 36.5; /* chi-square with 11 degrees of freedom: exceeded in 1 of 7,000 cases */
    assert_less(chi_square(counts, exact, N, DRAWS), limit);
    assert_greater(chi_square(counts, biased, N, DRAWS), limit);
}

FIXTURE(open_bench, close_bench);
