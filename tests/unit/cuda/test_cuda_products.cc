/* Products by strips on the emulator (tests/emulator) with weights of every type. They are compared with their
 * definition in double, and a row's bits must not depend on other rows of the call. SPECSCOPE_SEED=N chooses shapes and
 * numbers. */
#include "tests/rigs/cuda_steps.h"

#include "tests/rigs/cuda_product.h"

static double bound = 1e-5; /* relative error of products */

/* Exact products do not use tensor cores. All of a few results may happen to be small compared with the terms of their
 * sums. */
static double
bound_of(bool exact, size_t numbers)
{
    return (exact ? 1e-6 : bound) * (numbers < 16 ? 30 : 1);
}

/* Checks a product of up to three matrices, and that the bits are the same for its first row alone, for rows in shared
 * memory, and in tiles. */
template <enum weight_type T>
static void
check_product(uint32_t n, uint32_t cols, uint32_t n_matrices)
{
    const bool exact = T == WEIGHT_F32;
    const test_matrix one(T, 1 + below(40), cols, !exact && below(2)), two(T, 1 + below(70), cols, !exact && below(2)),
        three(T, 1 + below(20), cols, false);
    const test_matrix *all[3] = {&one, &two, &three};
    const test_rows x(n, cols, exact);
    struct product_args a = {};
    a.product = {{&one.m, &two.m, &three.m}, n_matrices, x.packed, n, false};
    a.model.head_dim = 2;
    for (uint32_t i = 0; i < n_matrices; i++)
        a.out[i] = on_device(std::vector<float>((size_t)n * all[i]->m.rows, NAN));
    run_product<T>(a);
    for (uint32_t i = 0; i < n_matrices; i++) {
        const double apart = difference(define_product(*all[i], x, n), a.out[i]);
        if (!(apart < bound_of(exact, (size_t)n * all[i]->m.rows)))
            fail_msg("type %d, %u x %u, %u rows, matrix %u: %g apart", (int)T, all[i]->m.rows, cols, n, i, apart);
    }
    struct product_args b = a;
    for (uint32_t i = 0; i < n_matrices; i++)
        b.out[i] = on_device(std::vector<float>((size_t)n * all[i]->m.rows, NAN));
    const bool again = run_smem_product<T>(b) || run_tiled_product<T>(b);
    for (uint32_t i = 0; i < n_matrices; i++) {
        if (again)
            assert_memory_equal(a.out[i], b.out[i], (size_t)n * all[i]->m.rows * sizeof(float));
        cudaFree(b.out[i]);
    }
    b.product.n = 1;
    for (uint32_t i = 0; i < n_matrices; i++)
        b.out[i] = on_device(std::vector<float>(all[i]->m.rows, NAN));
    run_product<T>(b);
    for (uint32_t i = 0; i < n_matrices; i++) {
        assert_memory_equal(a.out[i], b.out[i], all[i]->m.rows * sizeof(float));
        cudaFree(a.out[i]);
        cudaFree(b.out[i]);
    }
}

template <enum weight_type T>
static void
check_products()
{
    static const uint32_t rows[] = {1, 8, 9, 17, 32, 33, 70};
    const uint32_t block = T == WEIGHT_Q4_K || T == WEIGHT_Q6_K   ? SUPER
                           : T == WEIGHT_Q8_0 || T == WEIGHT_Q4_0 ? UNIT
                                                                  : 1;
    for (uint32_t n : rows)
        check_product<T>(n, block == 1 ? 1 + below(1200) : block * (1 + below(1280 / block)), 1 + below(3));
    check_product<T>(3, block == 1 ? 4801 : 4864 / SUPER * SUPER, 1); /* more units than one ring */
}

TEST(products_by_strips_are_right_for_each_type)
{
    check_products<WEIGHT_F16>();
    check_products<WEIGHT_BF16>();
    check_products<WEIGHT_Q8_0>();
    check_products<WEIGHT_Q4_0>();
    check_products<WEIGHT_Q4_K>();
    check_products<WEIGHT_Q6_K>();
    check_products<WEIGHT_F32>();
}

/* Checks Llama-2-7B's widths, which are longer than a ring of loads, with every number of tiles of rows. */
template <enum weight_type T>
static void
check_wide()
{
    check_product<T>(1, 4096, 2);
    check_product<T>(19, 4096, 1);
    check_product<T>(2, 11008, 1);
}

TEST(products_are_right_at_the_widths_of_real_models)
{
    check_wide<WEIGHT_F16>();
    check_wide<WEIGHT_BF16>();
    check_wide<WEIGHT_Q8_0>();
    check_wide<WEIGHT_Q4_0>();
    check_wide<WEIGHT_Q4_K>();
    check_wide<WEIGHT_Q6_K>();
    check_wide<WEIGHT_F32>();
}

/* Checks all ways in which tensor cores may sum. Weights of four and six bits are subnormal halves: a core that aligns
 * products by their exponents may keep only 14 of 24 bits (docs/cuda.md, "Four and six bits"). */
TEST(products_are_right_however_tensor_cores_add_up)
{
    for (const char *way : {"exact", "truncated", "aligned24", "aligned14"}) {
        const bool few_bits = strcmp(way, "aligned14") == 0;
        assert_true(emulation::add_up_like(way));
        bound = few_bits ? 5e-5 : 1e-5;
        check_product<WEIGHT_Q4_0>(9, 1024, 2);
        check_product<WEIGHT_Q4_K>(1, 4096, 1);
        check_product<WEIGHT_Q6_K>(3, 2048, 1);
        check_product<WEIGHT_F16>(3, 1000, 1);
        check_product<WEIGHT_BF16>(2, 1500, 1);
        check_product<WEIGHT_Q8_0>(9, 1024, 1);
    }
    assert_true(emulation::add_up_like("in-order"));
    bound = 1e-5;
}
