/* Rows of tensors of every type, compared with the gguf package's (make_blocks_golden.py). */
#include <inttypes.h>
#include <math.h>

#include "base/rng.h"
#include "kernels/cpu/repack.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/rigs/test.h"

static const struct {
    const char *file;
    enum weight_type type;
} kinds[] = {
    {"f16", WEIGHT_F16},         {"bf16", WEIGHT_BF16},     {"q8_0", WEIGHT_Q8_0},     {"q4_0", WEIGHT_Q4_0},
    {"q4_1", WEIGHT_Q4_1},       {"q5_0", WEIGHT_Q5_0},     {"q5_1", WEIGHT_Q5_1},     {"q2_k", WEIGHT_Q2_K},
    {"q3_k", WEIGHT_Q3_K},       {"q4_k", WEIGHT_Q4_K},     {"q5_k", WEIGHT_Q5_K},     {"q6_k", WEIGHT_Q6_K},
    {"mxfp4", WEIGHT_MXFP4},     {"iq4_nl", WEIGHT_IQ4_NL}, {"iq4_xs", WEIGHT_IQ4_XS}, {"iq3_s", WEIGHT_IQ3_S},
    {"iq3_xxs", WEIGHT_IQ3_XXS}, {"iq2_s", WEIGHT_IQ2_S},   {"iq2_xs", WEIGHT_IQ2_XS}, {"iq2_xxs", WEIGHT_IQ2_XXS},
    {"iq1_m", WEIGHT_IQ1_M},     {"iq1_s", WEIGHT_IQ1_S},   {"tq1_0", WEIGHT_TQ1_0},   {"tq2_0", WEIGHT_TQ2_0},
};

static void
check_kind(const char *file, enum weight_type type)
{
    char path[96], name[16];
    unsigned rows, cols;
    snprintf(path, sizeof path, "tests/golden/blocks/%s.txt", file);
    FILE *text = fopen(path, "r");
    assert_non_null(text);
    assert_int_equal(fscanf(text, "%15s %u %u", name, &rows, &cols), 3);
    assert_greater(rows, 0);
    assert_greater(cols, 0);
    assert_at_most(cols, 4096);
    const size_t bytes = tensor_row_bytes(type, cols);
    unsigned char *blocks = malloc(rows * bytes);
    float *y = malloc(cols * sizeof *y);
    assert_non_null(blocks);
    assert_non_null(y);
    snprintf(path, sizeof path, "tests/golden/blocks/%s.bin", file);
    FILE *binary = fopen(path, "rb");
    assert_non_null(binary);
    assert_int_equal(fread(blocks, bytes, rows, binary), rows);
    assert_int_equal(fgetc(binary), EOF);
    const struct tensor t = {.data = blocks, .type = type, .rows = rows, .cols = cols};
    for (unsigned r = 0; r < rows; r++) {
        tensor_row(&t, r, y);
        for (unsigned k = 0; k < cols; k++) {
            double want;
            assert_int_equal(fscanf(text, "%lf", &want), 1);
            const bool same =
                type < WEIGHT_MXFP4 ? fabs((double)y[k] - want) <= 2e-6 * (1 + fabs(want)) : y[k] == (float)want;
            if (!same) /* values of later types are products without sums, so they are not rounded */
                fail_msg("%s, row %u, column %u: %.9g, expected %.9g", file, r, k, (double)y[k], want);
        }
    }
    fclose(text);
    fclose(binary);
    free(blocks);
    free(y);
}

TEST(rows_of_every_type_equal_the_gguf_packages)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_kind(kinds[i].file, kinds[i].type);
}

static void
digested_blocks(enum weight_type type, unsigned char *blocks, size_t bytes)
{
    const size_t block = tensor_block_bytes(type);
    for (size_t i = 0; i < bytes; i++)
        blocks[i] = (unsigned char)(splitmix64_mix(i / 8 * SPLITMIX64_STEP) >> i % 8 * 8);
    for (size_t i = 0; i < bytes && type != WEIGHT_MXFP4; i += block) /* makes F16 scales finite */
        blocks[i + 1 + (type == WEIGHT_IQ1_M ? 54 : type == WEIGHT_TQ1_0 ? 52 : type == WEIGHT_TQ2_0 ? 64 : 0)] &= 0xbf;
}

/* Compares every row of the tables that values of some types are looked up in. */
TEST(every_row_of_every_table_equals_the_gguf_packages)
{
    FILE *f = fopen("tests/golden/blocks/digests.txt", "r");
    char name[16];
    unsigned n, lines = 0;
    uint64_t want;
    assert_non_null(f);
    for (; fscanf(f, "%15s %u %" SCNx64, name, &n, &want) == 3; lines++) {
        enum weight_type type = 0;
        while (strcmp(tensor_type_name(type), name) != 0)
            assert_less(++type, WEIGHT_TYPES);
        const size_t values = (size_t)n * 256, bytes = tensor_row_bytes(type, values);
        unsigned char *blocks = malloc(bytes);
        float *y = malloc(values * sizeof *y);
        assert_non_null(blocks);
        assert_non_null(y);
        digested_blocks(type, blocks, bytes);
        tensor_blocks(type, blocks, values, y);
        uint64_t digest = 0;
        for (size_t i = 0; i < values; i++)
            digest += splitmix64_mix(bits_of_float(y[i]) + i * SPLITMIX64_STEP);
        if (digest != want)
            fail_msg("%s: digest %016" PRIx64 ", expected %016" PRIx64, name, digest, want);
        free(blocks);
        free(y);
    }
    assert_int_equal(lines, WEIGHT_TYPES - WEIGHT_MXFP4);
    fclose(f);
}

/* The bytes that `info` prints are those of repacked blocks, which interleave sixteen rows. */
TEST(held_bytes_are_those_of_repacked_blocks)
{
    for (enum weight_type type = WEIGHT_Q8_0; type < WEIGHT_TYPES; type++) {
        const size_t n = tensor_block_values(type), held = n / 32 * quant_bytes(type) + scale_bytes(type);
        assert_int_equal(tensor_held_bytes(type, 16 * n), held);
        assert_at_least(held, 16 * tensor_block_bytes(type));
    }
}

TEST(every_type_has_blocks)
{
    for (int t = 0; t < WEIGHT_TYPES; t++) {
        assert_greater(tensor_block_values((enum weight_type)t), 0);
        assert_greater(tensor_block_bytes((enum weight_type)t), 0);
    }
    assert_int_equal(tensor_block_values(WEIGHT_TYPES), 0);
    assert_int_equal(tensor_row_bytes(WEIGHT_Q4_K, 512), 288);
}
