/* Observations of plain speculative decoding: against reading every text from its beginning, and of known rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/training/categorical.h"
#include "engine/training/profile_data.h"
#include "engine/training/reader.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/seed.h"

#define PROMPT   4
#define RESPONSE 20
#define DRAFTS   4
#define VOCAB    320

static uint64_t seed;
static struct engine *target, *draft, *companion;

/* The same weights, turned by other angles: models that agree now and then. */
static struct engine *
open_tiny(float rope_base, float sharpness)
{
    char path[64];
    struct err err = {0};
    struct engine *e = NULL;
    const struct tinymodel shape = {.seed = seed, .sharpness = sharpness, .rope_base = rope_base, .vocab = VOCAB};
    assert_true(tinymodel_write_temp(path, sizeof path, &shape, &err));
    const struct engine_options options = {
        .model_path = path, .backend = "cpu", .heads = "none", .backend_options = {.threads = 1, .exact = true}};
    if (!engine_open(&e, &options, NULL, NULL, &err))
        fail_msg("%s", err.text);
    unlink(path);
    return e;
}

/* softmax(z / T) after a text, read from its beginning. */
static struct categorical
after(struct engine *e, const token_t *text, uint32_t n, float temperature, float z[VOCAB])
{
    struct reader r;
    struct err err = {0};
    assert_true(reader_open(&r, e, 64, NULL, &err));
    assert_true(reader_read(&r, text, n, NULL, NULL));
    assert_true(reader_logits(&r, context_at(r.context, r.seq, n - 1), z));
    reader_close(&r);
    return categorical_of(z, VOCAB, temperature);
}

static void
test_greedy_rounds_are_speculative_decodings(void **unused)
{
    (void)unused;
    const struct profile_data_options options = {
        .prompt = PROMPT, .response = RESPONSE, .drafts = DRAFTS, .seed = seed};
    struct profile_data *d;
    struct err err = {0};
    struct profile_rounds rounds = {0};
    assert_true(profile_data_open(&d, target, draft, companion, &options, NULL, &err));
    size_t seen = 0, matched = 0;
    for (token_t first = 300; first < 304; first++) {
        token_t text[PROMPT + RESPONSE + DRAFTS] = {1, 280, first, 285};
        struct sv_observation o[RESPONSE + DRAFTS];
        size_t n_out, at = 0;
        assert_true(profile_data_prompt(d, 0, text, PROMPT, o, &n_out, &rounds, &err));
        for (uint32_t n = PROMPT; at < n_out;) { /* rounds, as the observations say they went */
            bool rejected = false;
            uint32_t i = 0;
            float z[3][VOCAB];
            for (; i < DRAFTS && !rejected && at < n_out; i++, at++) {
                const struct categorical p = after(target, text, n + i, 0, z[0]),
                                         q = after(draft, text, n + i, 1, z[1]),
                                         c = after(companion, text, n + i, 1, z[2]);
                assert_true(fabs((double)o[at].s - categorical_overlap(&q, &c)) < 1e-5);
                assert_true(fabs((double)o[at].a - categorical_acceptance(&c, &q, q.first)) < 1e-5);
                rejected = p.first != q.first;
                assert_true(fabs((double)o[at].accepted - !rejected) < 1e-6);
                text[n + i] = p.first;
                matched += !rejected;
            }
            if (!rejected)
                text[n + i] = after(target, text, n + i, 0, z[0]).first;
            n += i + !rejected;
        }
        seen += n_out;
    }
    assert_true(seen > 20 && matched > 0 && matched < seen);
    assert_int_equal(rounds.accepted, matched);
    assert_true(rounds.emitted >= rounds.accepted + rounds.rounds - 4 && rounds.drafted >= seen);
    profile_data_close(d);
}

/* E[A] = Σ min(p, q), E[a] = Σ min(q, c) = s. */
static void
test_the_means_of_sampled_rounds_are_overlaps(void **unused)
{
    (void)unused;
    enum { N = 4000 };
    const float t = 0.8f; /* of flat distributions, or what counts is too rare to be seen */
    struct engine *flat[3] = {open_tiny(10000, 1), open_tiny(20, 1), open_tiny(300, 1)};
    const struct profile_data_options options = {
        .prompt = PROMPT, .response = 3, .drafts = 1, .temperature = t, .seed = seed};
    const token_t text[PROMPT] = {1, 280, 301, 285};
    struct profile_data *d;
    struct err err = {0};
    struct profile_rounds rounds = {0};
    float z[3][VOCAB];
    const struct categorical p = after(flat[0], text, PROMPT, t, z[0]), q = after(flat[1], text, PROMPT, t, z[1]),
                             c = after(flat[2], text, PROMPT, t, z[2]);
    assert_true(profile_data_open(&d, flat[0], flat[1], flat[2], &options, NULL, &err));
    double sum = 0, squares = 0, sum_a = 0, squares_a = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct sv_observation o[8];
        size_t n_out;
        assert_true(profile_data_prompt(d, i, text, PROMPT, o, &n_out, &rounds, &err));
        assert_true(n_out >= 1);
        sum += (double)o[0].accepted;
        squares += (double)o[0].accepted * (double)o[0].accepted;
        sum_a += (double)o[0].a;
        squares_a += (double)o[0].a * (double)o[0].a;
        assert_true(fabs((double)o[0].s - categorical_overlap(&q, &c)) < 1e-5);
    }
    const double mean = sum / N, mean_a = sum_a / N;
    assert_true(fabs(mean - categorical_overlap(&p, &q)) < 4.5 * sqrt((squares / N - mean * mean) / N));
    assert_true(fabs(mean_a - categorical_overlap(&q, &c)) < 4.5 * sqrt((squares_a / N - mean_a * mean_a) / N));
    profile_data_close(d);
    for (int i = 0; i < 3; i++)
        engine_close(flat[i]);
}

static void
test_what_a_rejection_leaves_makes_up_the_target(void **unused)
{
    (void)unused;
    enum { K = 6, N = 60000 };
    const float zp[K] = {1, 0, 2, -1, 0.5f, 1.5f}, zq[K] = {0, 1, 1.5f, 0, -1, 2};
    const struct categorical p = categorical_of(zp, K, 0.9f), q = categorical_of(zq, K, 0.9f);
    uint64_t random = seed, count[K] = {0};
    for (int i = 0; i < N; i++) {
        token_t x = categorical_draw(&q, &random);
        if ((double)(i * 0.6180339887498949 - floor(i * 0.6180339887498949)) >= categorical_acceptance(&p, &q, x))
            x = categorical_residual(&p, &q, &random);
        count[x]++;
    }
    double chi_square = 0;
    for (int k = 0; k < K; k++) {
        const double expected = N * categorical_probability(&p, (token_t)k);
        chi_square += ((double)count[k] - expected) * ((double)count[k] - expected) / expected;
    }
    assert_true(chi_square < 30); /* 5 degrees of freedom: one in 70,000 */
}

int
main(void)
{
    seed = seed_or(11);
    target = open_tiny(10000, 8);
    draft = open_tiny(20, 8);
    companion = open_tiny(300, 8);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_rounds_are_speculative_decodings),
        cmocka_unit_test(test_the_means_of_sampled_rounds_are_overlaps),
        cmocka_unit_test(test_what_a_rejection_leaves_makes_up_the_target),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    engine_close(companion);
    engine_close(draft);
    engine_close(target);
    return failed;
}
