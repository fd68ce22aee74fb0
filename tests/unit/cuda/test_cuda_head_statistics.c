/* Statistics of logits that the CUDA backend computes on the emulator (tests/emulator), compared with definitions in
 * double. SPECSCOPE_SEED=N chooses the cases. */
#include <math.h>

#include "kernels/cuda/device/launch.h"
#include "tests/rigs/device_memory.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/prediction_checks.h"
#include "tests/rigs/test.h"

enum { MAX_VOCAB = 14000, MAX_ROWS = 12, MAX_PIECES = MAX_VOCAB / HEAD_PIECE + 1, LAYERS = MAX_ROWS };

struct bench {
    float *logits;
    struct head_piece *pieces;
    struct head_row *rows;
    struct prediction *predictions; /* (LAYERS + 1) */
    struct until_state *until;
    float *temperature; /* (LAYERS + 1) */
};

static int
open_bench(void **state)
{
    static struct bench b;
    seed = seed_or(1);
    b.logits = take(sizeof(float) * MAX_ROWS * MAX_VOCAB);
    b.pieces = take(sizeof(struct head_piece) * MAX_ROWS * MAX_PIECES);
    b.rows = take(sizeof(struct head_row) * MAX_ROWS);
    b.predictions = take(sizeof(struct prediction) * (LAYERS + 1));
    b.until = take(sizeof(struct until_state));
    b.temperature = take(sizeof(float) * (LAYERS + 1));
    *state = &b;
    return 0;
}

static int
close_bench(void **state)
{
    struct bench *b = *state;
    void *all[] = {b->logits, b->pieces, b->rows, b->predictions, b->until, b->temperature};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(cudaFree(all[i]), cudaSuccess);
    return 0;
}

static void
run(struct bench *b, const float *z, uint32_t vocab, const struct head_row *rows, uint32_t n, struct prediction *out)
{
    send(b->logits, z, sizeof *z * n * vocab);
    send(b->rows, rows, n * sizeof *rows);
    const struct prediction_args a = {.logits = b->logits,
                                      .vocab = vocab,
                                      .n = n,
                                      .pieces = b->pieces,
                                      .rows = b->rows,
                                      .predictions = b->predictions};
    assert_int_equal(launch_predictions(a, 0), cudaSuccess);
    fetch(out, b->predictions, n * sizeof *out);
}

static struct head_row
random_row(uint32_t n)
{
    return (struct head_row){.temperature = random_below(2) ? 1.0f : 0.5f + (float)uniform(),
                             .final = random_below(3) > 0 ? (int32_t)random_below(n) : -1};
}

static float z[MAX_ROWS * MAX_VOCAB];

static void
check_rows(struct bench *b, uint32_t vocab, const struct head_row *rows, uint32_t n)
{
    struct prediction got[MAX_ROWS];
    run(b, z, vocab, rows, n, got);
    for (uint32_t i = 0; i < n; i++) {
        const struct prediction expected =
            prediction_by_definition(z + (size_t)i * vocab, vocab, (double)rows[i].temperature,
                                     rows[i].final >= 0 ? z + (size_t)rows[i].final * vocab : NULL);
        assert_prediction(&got[i], &expected);
    }
}

/* ---- tests ---- */

TEST(predictions_follow_the_definitions_on_vocabularies_of_every_size)
{
    struct bench *b = *state;
    const uint32_t vocabs[] = {1, 2, 4, 5, 6, 33, 255, 257, 1000, 4095, 4096, 4097, 9001, MAX_VOCAB};
    for (uint32_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        const uint32_t n = 1 + random_below(vocabs[i] < 4000 ? MAX_ROWS : 5);
        struct head_row rows[MAX_ROWS];
        for (uint32_t r = 0; r < n; r++) {
            const float spread = (float)pow(10, 2 * uniform() - 1);
            rows[r] = random_row(n);
            for (uint32_t v = 0; v < vocabs[i]; v++)
                z[(size_t)r * vocabs[i] + v] = spread * gaussian();
        }
        check_rows(b, vocabs[i], rows, n);
    }
}

TEST(equal_logits_are_ordered_by_id)
{
    struct bench *b = *state;
    const uint32_t vocab = 5000, n = 6;
    struct head_row rows[6];
    for (uint32_t r = 0; r < n; r++) {
        rows[r] = random_row(n);
        for (uint32_t v = 0; v < vocab; v++)
            z[r * vocab + v] = r == 0 ? 0.25f : (float)random_below(3 * r) * 0.5f;
    }
    for (uint32_t v = 0; v < vocab; v++) /* -0 equals 0 */
        z[vocab + v] = v < 4500 ? -0.0f : 0;
    check_rows(b, vocab, rows, n);
}

TEST(minus_infinity_is_never_listed_and_huge_logits_are_fine)
{
    struct bench *b = *state;
    const uint32_t vocab = 4200, n = 5;
    const struct head_row rows[5] = {{.temperature = 1, .final = -1},
                                     {.temperature = 1.3f, .final = 0},
                                     {.temperature = 0.9f, .final = -1},
                                     {.temperature = 1.1f, .final = -1},
                                     {.temperature = 2, .final = -1}};
    for (uint32_t v = 0; v < vocab; v++) {
        z[v] = v == 17 || v == 4150 ? 1.0f : -INFINITY; /* all other logits are -infinity */
        z[vocab + v] = gaussian();
        z[2 * vocab + v] = v % 2 ? 3e38f : -3e38f;
        z[3 * vocab + v] = v < 4096 ? -3e38f : -2e38f; /* all logits of one piece are far smaller */
        z[4 * vocab + v] = -1e30f;
    }
    check_rows(b, vocab, rows, n);
}

TEST(logits_that_are_not_numbers_have_no_confidence)
{
    struct bench *b = *state;
    const uint32_t vocab = 9000, n = 5;
    struct head_row rows[5];
    struct prediction got[5];
    for (uint32_t r = 0; r < n; r++) {
        rows[r] = (struct head_row){.temperature = 1.2f, .final = 4};
        for (uint32_t v = 0; v < vocab; v++)
            z[r * vocab + v] = r == 2 ? -INFINITY : gaussian();
    }
    z[8999] = NAN;
    z[vocab + 5] = INFINITY;
    z[3 * vocab + 4096] = -NAN;
    run(b, z, vocab, rows, n, got);
    for (uint32_t r = 0; r < 4; r++)
        assert_true(isnan(got[r].confidence));
    assert_int_equal(got[2].token, TOKEN_NONE);
    assert_true(isfinite(got[4].confidence));
    assert_less(fabsf(got[4].kl_final), 1e-6f);
    assert_int_equal(got[4].rank_final, 0);
}

TEST(a_rows_prediction_does_not_depend_on_the_other_rows)
{
    struct bench *b = *state;
    const uint32_t vocab = 8200, n = 7;
    struct head_row rows[7];
    struct prediction alone[7], together[7];
    for (uint32_t r = 0; r < n; r++) {
        rows[r] = (struct head_row){.temperature = 1.1f, .final = -1};
        for (uint32_t v = 0; v < vocab; v++)
            z[r * vocab + v] = gaussian();
        run(b, z + r * vocab, vocab, &rows[r], 1, &alone[r]);
    }
    run(b, z, vocab, rows, n, together);
    assert_memory_equal(alone, together, sizeof alone);
}

TEST(a_row_with_a_set_counts_the_sets_outputs_and_names_its_tokens)
{
    struct bench *b = *state;
    enum { ROWS = 4 };
    const uint32_t vocab = 9000, sizes[ROWS][2] = {{4000, 30}, {0, 20}, {8500, 500}, {4096, 0}}; /* base, recent */
    static token_t ids[MAX_VOCAB];
    struct head_row rows[ROWS];
    struct prediction got[ROWS];
    for (uint32_t i = 0; i < MAX_VOCAB; i++)
        ids[i] = (token_t)(3 * i);
    const token_t *there = on_device(ids, sizeof ids);
    for (uint32_t v = 0; v < ROWS * vocab; v++)
        z[v] = 2 * gaussian();
    for (uint32_t r = 0; r < ROWS; r++) {
        const uint32_t base = sizes[r][0], n = base + sizes[r][1];
        rows[r] = (struct head_row){.temperature = 1.1f,
                                    .final = -1,
                                    .set = {.number = 1, .base = base, .n = n, .rank = there, .recent = there + base}};
        for (uint32_t v = n; v < vocab; v++) /* not outputs of the set */
            z[r * vocab + v] = NAN;
    }
    run(b, z, vocab, rows, ROWS, got);
    for (uint32_t r = 0; r < ROWS; r++) {
        struct prediction expected =
            prediction_by_definition(z + (size_t)r * vocab, rows[r].set.n, (double)rows[r].temperature, NULL);
        for (int i = 0; i < PREDICTION_RANKS; i++)
            expected.top[i] *= 3;
        expected.token *= 3;
        assert_prediction(&got[r], &expected);
    }
    assert_int_equal(cudaFree((void *)(uintptr_t)there), cudaSuccess);
}

TEST(probed_layers_get_their_predictions)
{
    struct bench *b = *state;
    const uint32_t vocab = 4500, layers = 9, probed[3] = {2, 5, 6};
    float temperature[LAYERS + 1];
    for (uint32_t l = 0; l <= LAYERS; l++)
        temperature[l] = 1 + 0.1f * (float)l;
    for (uint32_t v = 0; v < 3 * vocab; v++)
        z[v] = 2 * gaussian();
    send(b->logits, z, sizeof *z * 3 * vocab);
    send(b->temperature, temperature, sizeof temperature);
    for (uint32_t probes = 0; probes <= 3; probes++) {
        static struct until_state until;
        struct prediction none[LAYERS + 1], all[LAYERS + 1];
        memset(none, 0, sizeof none);
        until.probes = probes;
        memcpy(until.probed, probed, sizeof probed);
        send(b->until, &until, sizeof until);
        send(b->predictions, none, sizeof none);
        const struct prediction_args a = {.logits = b->logits,
                                          .vocab = vocab,
                                          .n = layers,
                                          .pieces = b->pieces,
                                          .until = b->until,
                                          .temperature = b->temperature,
                                          .predictions = b->predictions};
        assert_int_equal(launch_predictions(a, 0), cudaSuccess);
        fetch(all, b->predictions, sizeof all);
        for (uint32_t l = 0, next = 0; l <= layers; l++) {
            if (next < probes && probed[next] == l) {
                const struct prediction expected =
                    prediction_by_definition(z + next++ * vocab, vocab, (double)temperature[l], NULL);
                assert_prediction(&all[l], &expected);
            } else {
                assert_memory_equal(&all[l], &none[l], sizeof *all);
            }
        }
    }
}

FIXTURE(open_bench, close_bench);
