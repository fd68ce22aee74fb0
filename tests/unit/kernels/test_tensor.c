/* Rows of tensors of every type: against what the gguf package makes of the same blocks (make_blocks_golden.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tensor.h"

static const struct {
    const char *file;
    enum weight_type type;
} kinds[] = {
    {"f16", WEIGHT_F16},   {"bf16", WEIGHT_BF16}, {"q8_0", WEIGHT_Q8_0},   {"q4_0", WEIGHT_Q4_0}, {"q4_1", WEIGHT_Q4_1},
    {"q5_0", WEIGHT_Q5_0}, {"q5_1", WEIGHT_Q5_1}, {"q2_k", WEIGHT_Q2_K},   {"q3_k", WEIGHT_Q3_K}, {"q4_k", WEIGHT_Q4_K},
    {"q5_k", WEIGHT_Q5_K}, {"q6_k", WEIGHT_Q6_K}, {"mxfp4", WEIGHT_MXFP4},
};

static void
check_kind(const char *file, enum weight_type type)
{
    char path[96], name[16];
    unsigned rows, cols;
    snprintf(path, sizeof path, "tests/golden/blocks_%s.txt", file);
    FILE *text = fopen(path, "r");
    assert_non_null(text);
    assert_int_equal(fscanf(text, "%15s %u %u", name, &rows, &cols), 3);
    assert_true(rows > 0 && cols > 0 && cols <= 4096);
    const size_t bytes = tensor_row_bytes(type, cols);
    unsigned char *blocks = malloc(rows * bytes);
    float *y = malloc(cols * sizeof *y);
    assert_true(blocks != NULL && y != NULL);
    snprintf(path, sizeof path, "tests/golden/blocks_%s.bin", file);
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
            if (!same) /* later types are products, not sums: no rounding */
                fail_msg("%s, row %u, column %u: %.9g, expected %.9g", file, r, k, (double)y[k], want);
        }
    }
    fclose(text);
    fclose(binary);
    free(blocks);
    free(y);
}

static void
test_rows_of_every_type_are_what_the_gguf_package_reads(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_kind(kinds[i].file, kinds[i].type);
}

static void
test_every_type_has_blocks(void **unused)
{
    (void)unused;
    for (int t = 0; t < WEIGHT_TYPES; t++) {
        assert_true(tensor_block_values((enum weight_type)t) > 0);
        assert_true(tensor_block_bytes((enum weight_type)t) > 0);
    }
    assert_int_equal(tensor_block_values(WEIGHT_TYPES), 0);
    assert_int_equal(tensor_row_bytes(WEIGHT_Q4_K, 512), 288);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_every_type_are_what_the_gguf_package_reads),
        cmocka_unit_test(test_every_type_has_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
