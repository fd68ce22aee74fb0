/* The formula behind synthetic weights, and the theory behind their acceptance. SPECSCOPE_SEED=N chooses keys and
 * simulations. */
#include <math.h>

#include "engine/model/synthetic/synthetic.h"
#include "kernels/half.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define COLS 100 /* a multiple of no block size */
#define ROWS 37

static uint64_t seed;

static struct synthetic
formula(uint64_t *random)
{
    return (struct synthetic){.key = splitmix64(random), .scale = 0.25f, .faint_row = ROWS, .faint_col = COLS};
}

/* ---- elements ---- */

TEST(a_seed_gives_the_same_numbers_on_all_machines)
{
    /* computed separately, from the definition of SplitMix64 */
    const struct synthetic p = {.key = synthetic_key(1, 7), .scale = 1, .faint_row = 1u << 20, .faint_col = 1u << 20};
    assert_int_equal(p.key, UINT64_C(0x1f19b669ed0688ec));
    static const int first[] = {-23, -117, 11, 97, 7, 63, -85, -115, 63, -5, 61, -91, -119, 95, 119, 27};
    for (uint32_t k = 0; k < 16; k++)
        assert_int_equal(synthetic_integer(&p, 5, k), first[k]);
}

TEST(an_element_depends_on_its_row_and_column_alone)
{
    uint64_t random = seed;
    const struct synthetic p = formula(&random);
    const struct tensor t = {.type = WEIGHT_F32, .rows = ROWS, .cols = COLS, .synthetic = &p};
    struct tensor wider = t;
    wider.cols = COLS + 9;
    float y[COLS], z[COLS + 9];
    for (uint32_t row = ROWS; row-- > 0;) {
        synthetic_row_f32(&t, row, y);
        synthetic_row_f32(&wider, row, z);
        assert_memory_equal(y, z, sizeof y);
        for (uint32_t k = 0; k < COLS; k++)
            assert_number_equal(synthetic_element(&p, row, k), y[k]);
        tensor_row(&t, row, z);
        assert_memory_equal(y, z, sizeof y);
    }
}

TEST(tensors_and_seeds_have_numbers_of_their_own)
{
    uint64_t keys[64];
    size_t n = 0;
    for (uint64_t s = 0; s < 8; s++)
        for (uint32_t tensor = 0; tensor < 8; tensor++)
            keys[n++] = synthetic_key(s, tensor);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(keys[i], keys[j]);
}

TEST(integers_are_odd_uniform_and_without_correlation)
{
    enum { N = 400000 };
    uint64_t random = seed;
    const struct synthetic p = {.key = splitmix64(&random), .scale = 1, .faint_row = N, .faint_col = 1000};
    uint32_t counts[256] = {0};
    double sum = 0, beside = 0, below = 0, squares = 0;
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t row = i / 1000, col = i % 1000;
        const int n = synthetic_integer(&p, row, col);
        counts[n + 128]++;
        sum += n;
        squares += (double)n * n;
        beside += (double)n * synthetic_integer(&p, row, (col + 1) % 1000);
        below += (double)n * synthetic_integer(&p, row + 1, col);
    }
    double chi = 0;
    for (int n = -128; n < 128; n++)
        if (n % 2 != 0)
            chi += pow(counts[n + 128] - N / 128.0, 2) / (N / 128.0);
        else
            assert_int_equal(counts[n + 128], 0);
    const double variance = SYNTHETIC_DEVIATION * SYNTHETIC_DEVIATION, five = 5 / sqrt(N); /* standard errors */
    assert_near(chi, 127, 5 * sqrt(2 * 127));
    assert_less(fabs(sum / N), five * SYNTHETIC_DEVIATION);
    assert_near(squares / N / variance, 1, five);
    assert_less(fabs(beside / N / variance), five);
    assert_less(fabs(below / N / variance), five);
}

TEST(faint_rows_and_columns_keep_the_signs_alone)
{
    uint64_t random = seed;
    const struct synthetic bright = formula(&random);
    for (uint32_t col = 0; col <= COLS; col += 1 + col % 5)
        for (uint32_t row = 0; row <= ROWS; row += 9) {
            struct synthetic p = bright;
            p.faint_row = row;
            p.faint_col = col;
            for (uint32_t r = 0; r < ROWS; r++)
                for (uint32_t k = 0; k < COLS; k++) {
                    const int n = synthetic_integer(&bright, r, k);
                    const int expected = r < row && k < col ? n : n < 0 ? -1 : 1;
                    assert_int_equal(synthetic_integer(&p, r, k), expected);
                }
        }
}

/* ---- types ---- */

TEST(scales_have_four_bits_and_are_near_the_wanted_value)
{
    for (double wanted = 1e-9; wanted < 300; wanted *= 1.013) {
        const float scale = synthetic_scale(wanted);
        int exponent;
        const double bits = frexp((double)scale, &exponent) * 16;
        assert_greater(scale, 0);
        assert_number_equal(bits, floor(bits));
        for (int n = 1; n <= 127; n += 2) { /* each element is exact in F16 */
            const float x = (float)n * scale;
            assert_number_equal(f16_to_f32(f32_to_f16(x)), x);
            assert_number_equal((double)x, n * (double)scale);
        }
        if (wanted > 0x1p-20 && wanted < 250)
            assert_at_most(fabs((double)scale / wanted - 1), 1.0 / 16);
    }
    assert_greater(synthetic_scale(NAN), 0);
}

TEST(all_types_hold_the_same_numbers)
{
    enum { N = 96 };
    static const enum weight_type types[] = {WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_Q8_0};
    uint64_t random = seed;
    for (int turn = 0; turn < 40; turn++) {
        struct synthetic p = {.key = splitmix64(&random),
                              .scale = synthetic_scale(exp(-12 * (double)(splitmix64(&random) % 1000) / 1000)),
                              .faint_row = ROWS / 2,
                              .faint_col = (uint32_t)(splitmix64(&random) % (N + 1))};
        unsigned char bytes[N * sizeof(float)];
        float y[N], formula_says[N];
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            for (uint32_t row = 0; row < ROWS; row += 5) {
                const struct tensor synthetic = {.type = types[i], .rows = ROWS, .cols = N, .synthetic = &p};
                assert_in_range(synthetic_row_bytes(types[i], N), N, sizeof bytes);
                synthetic_row(&synthetic, row, bytes);
                const struct tensor file = {.data = bytes, .type = types[i], .rows = 1, .cols = N};
                tensor_row(&file, 0, y); /* the values that a reader of the file computes */
                synthetic_row_f32(&synthetic, row, formula_says);
                assert_memory_equal(y, formula_says, sizeof y);
                for (uint32_t k = 0; k < N; k++) {
                    const float x = synthetic_element(&p, row, k);
                    if (types[i] == WEIGHT_BF16)
                        assert_at_most(fabsf(y[k] - x), ldexpf(fabsf(x), -8));
                    else
                        assert_number_equal(y[k], x);
                }
            }
    }
    assert_int_equal(synthetic_row_bytes(WEIGHT_Q8_0, 33), 0);
    assert_int_equal(synthetic_row_bytes(WEIGHT_Q4_K, 128), 0);
    assert_int_equal(synthetic_row_bytes(WEIGHT_Q5_K, 256), 0);
}

TEST(four_and_six_bits_hold_the_leading_bits_of_the_same_numbers)
{
    enum { N = 512 };
    static const struct {
        enum weight_type type;
        int bits, share; /* columns that share a scale */
    } types[] = {{WEIGHT_Q4_0, 3, 32}, {WEIGHT_Q4_K, 3, 32}, {WEIGHT_Q6_K, 5, 16}};
    uint64_t random = seed;
    for (int turn = 0; turn < 60; turn++) {
        const int bits = types[turn % 3].bits, share = types[turn % 3].share;
        struct synthetic p = {.key = splitmix64(&random),
                              .scale = synthetic_scale(exp(-12 * (double)(splitmix64(&random) % 1000) / 1000)),
                              .faint_row = ROWS / 2,
                              .faint_col = (uint32_t)(splitmix64(&random) % (N + 1))};
        const struct tensor synthetic = {.type = types[turn % 3].type, .rows = ROWS, .cols = N, .synthetic = &p};
        unsigned char bytes[N];
        float y[N], formula_says[N];
        for (uint32_t row = 0; row < ROWS; row += 5) {
            assert_in_range(synthetic_row_bytes(synthetic.type, N), N / 2, sizeof bytes);
            synthetic_row(&synthetic, row, bytes);
            const struct tensor file = {.data = bytes, .type = synthetic.type, .rows = 1, .cols = N};
            tensor_row(&file, 0, y);
            synthetic_row_f32(&synthetic, row, formula_says);
            assert_memory_equal(y, formula_says, sizeof y);
            for (uint32_t k = 0; k < N; k++) {
                const int n = synthetic_integer(&p, row, k), kept = (2 * (n >> (8 - bits)) + 1) * (1 << (7 - bits));
                const bool faint = row >= p.faint_row || k / (uint32_t)share * (uint32_t)share >= p.faint_col;
                assert_number_equal(y[k], (float)(faint ? n : abs(n) == 1 ? 0 : kept) * p.scale);
            }
        }
    }
}

/* ---- acceptance ---- */

static double
normal(uint64_t *random)
{
    const double u = ((double)(splitmix64(random) >> 11) + 0.5) * 0x1p-53,
                 v = (double)(splitmix64(random) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

TEST(agreement_equals_a_simulation)
{
    enum { TURNS = 20000 };
    static const struct {
        uint32_t vocab;
        double tangent;
    } cases[] = {{2, 1}, {50, 0.1}, {50, 0.7}, {200, 0.3}};
    uint64_t random = seed;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int agreed = 0;
        for (int turn = 0; turn < TURNS; turn++) {
            double before = -INFINITY, after = -INFINITY;
            uint32_t at_before = 0, at_after = 0;
            for (uint32_t v = 0; v < cases[i].vocab; v++) {
                const double x = normal(&random), y = x + cases[i].tangent * normal(&random);
                if (x > before) {
                    before = x;
                    at_before = v;
                }
                if (y > after) {
                    after = y;
                    at_after = v;
                }
            }
            agreed += at_before == at_after;
        }
        const double theory = synthetic_agreement(cases[i].vocab, cases[i].tangent), found = (double)agreed / TURNS;
        if (fabs(found - theory) > 5 * sqrt(theory * (1 - theory) / TURNS))
            fail_msg("%u tokens, tangent %g: found %g, not %g", cases[i].vocab, cases[i].tangent, found, theory);
    }
}

TEST(two_tokens_agree_as_their_angle_predicts)
{
    (void)state; /* the sign of one difference: 1 - angle / pi */
    for (double tangent = 0.05; tangent < 4; tangent *= 2)
        assert_near(synthetic_agreement(2, tangent), 1 - atan(tangent) / 3.141592653589793, 1e-3);
}

TEST(a_tangent_gives_the_acceptance_it_was_asked_for)
{
    static const uint32_t vocab[] = {300, 32000, 128256};
    for (size_t i = 0; i < sizeof vocab / sizeof vocab[0]; i++)
        for (double a = SYNTHETIC_LEAST_ACCEPTANCE; a < SYNTHETIC_MOST_ACCEPTANCE; a += 0.13)
            assert_near(synthetic_agreement(vocab[i], synthetic_tangent(vocab[i], a)), a, 2e-3);
}

/* ---- specs ---- */

TEST(specs_are_read_or_refused_by_name)
{
    struct synthetic_spec s;
    struct err err = {0};
    assert_ok(synthetic_read_spec("smollm-135m:F16,8,0.75", &s, &err), err);
    assert_string_equal(s.shape->name, "SmolLM-135M");
    assert_int_equal(s.type, WEIGHT_F16);
    assert_int_equal(s.exit, 8);
    assert_number_equal(s.acceptance, 0.75);
    assert_int_equal(s.seed, SYNTHETIC_SEED);
    assert_ok(synthetic_read_spec("tiny,1,.5", &s, &err), err);
    assert_int_equal(s.type, WEIGHT_Q8_0);
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "SHAPE[:TYPE],k,acceptance"}, {"tiny", "SHAPE[:TYPE],k,acceptance"},
        {"huge,1,0.5", "Llama-2-7B"},      {",1,0.5", "no shape is called ''"},
        {"tiny:q5_k,1,0.5", "q8_0"},       {"tiny:,1,0.5", "q8_0"},
        {"tiny,0,0.5", "from 1 to 7"},     {"tiny,8,0.5", "from 1 to 7"},
        {"tiny,-1,0.5", "from 1 to 7"},    {"tiny,99999999999999999999,0.5", "from 1 to 7"},
        {"tiny,1", "from 1 to 7"},         {"tiny,1,", "acceptance"},
        {"tiny,1,0.2", "0.3 to 0.97"},     {"tiny,1,0.98", "0.3 to 0.97"},
        {"tiny,1,nan", "0.3 to 0.97"},     {"tiny,1,0.5x", "acceptance"},
        {"tiny,1x,0.5", "from 1 to 7"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(synthetic_read_spec(bad[i].text, &s, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        if (strstr(err.text, bad[i].says) == NULL)
            fail_msg("'%s': says \"%s\", not \"%s\"", bad[i].text, err.text, bad[i].says);
    }
}

TEST_SEED(seed, 1);
