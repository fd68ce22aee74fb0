/* Products by strips on the emulation (tests/cuda/emulation), of weights of every type, against their definition in
 * double; and that a row's bits do not depend on what else is in a call. SPECSCOPE_SEED=N chooses shapes and numbers. */
#include "tests/rigs/cuda_steps.h"

#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/matmul.cuh"

/* A matrix as the device has it, and its values in plain rows. */
struct test_matrix {
    struct dev_matrix m = {};
    std::vector<float> values; /* (rows, cols), as they are after rounding to the type */

    test_matrix(enum weight_type type, uint32_t rows, uint32_t cols, bool permuted)
    {
        m.type = type;
        m.rows = rows;
        m.cols = cols;
        m.strips = (rows + STRIP - 1) / STRIP + (permuted ? 1 : 0);
        m.units = units_of(cols);
        values.resize((size_t)rows * cols);
        std::vector<uint32_t> source(m.strips * STRIP, UINT32_MAX);
        for (uint32_t r = 0; r < rows; r++)
            source[permuted ? (r * 7 + 3) % source.size() : r] = r;
        for (uint32_t r = 0; permuted && r < rows; r++) /* all of them somewhere, once, whatever was overwritten */
            source[r + STRIP - 1] = rows - 1 - r;
        for (uint32_t s = 0; permuted && s < source.size(); s++)
            if (s < STRIP - 1 || s >= STRIP - 1 + rows)
                source[s] = UINT32_MAX;
        if (permuted)
            m.source = on_device(source);
        fill(source);
    }
    test_matrix(const test_matrix &) = delete;
    ~test_matrix()
    {
        cudaFree((void *)m.quants);
        cudaFree((void *)m.scales);
        cudaFree((void *)m.source);
    }

  private:
    float
    unit_value(uint32_t packed, uint32_t k, uint8_t *quants, uint16_t *scales)
    {
        const uint32_t r = packed % STRIP;
        const size_t unit = (size_t)(packed / STRIP) * m.units + k / UNIT, at = unit * STRIP * UNIT;
        uint16_t *halves = (uint16_t *)(void *)quants, *scale = &scales[unit * STRIP + r % 8 * 2 + r / 8];
        if (m.type == WEIGHT_Q8_0) {
            const int8_t q = (int8_t)(below(255) - 127);
            if (k % UNIT == 0)
                *scale = half_bits(uniform() * 0.01f);
            quants[at + unit_place(r, k % UNIT)] = (uint8_t)q;
            return (float)q * half_value(*scale);
        }
        uint16_t *half = &halves[at + unit_place_16(r, k % UNIT)];
        if (m.type == WEIGHT_BF16) {
            *half = (uint16_t)pack_bf16s(uniform(), 0);
            return unpack_bf16s(*half).x;
        }
        *half = half_bits(uniform());
        return half_value(*half);
    }

    /* Of types that are packed by pairs of units. Columns come in ascending order: a scale is chosen with its first. */
    float
    pair_value(uint32_t packed, uint32_t k, uint8_t *quants, uint8_t *scales)
    {
        const uint32_t r = packed % STRIP, second = r / 8, unit = k % PAIR / UNIT, step = k % PAIR / 16;
        const uint32_t pair_bytes = m.type == WEIGHT_Q6_K ? PAIR_NIBBLES + PAIR_HIGHS : PAIR_NIBBLES;
        uint8_t *of_strip = scales + packed / STRIP * strip_scales(m.type, m.units);
        uint8_t *of_pair = of_strip + k / PAIR * PAIR_SCALES + r % 8 * 8;
        uint16_t *d = (uint16_t *)(void *)(of_strip + m.units / 2 * PAIR_SCALES) +
                      (k / SUPER * STRIP + r % 8 * 2 + second) * super_scales(m.type);
        uint8_t *pair = quants + ((size_t)(packed / STRIP) * (m.units / 2) + k / PAIR) * pair_bytes;
        const uint32_t q = below(m.type == WEIGHT_Q6_K ? 64 : 16);
        pair[nibble_place(r, k % UNIT)] |= (uint8_t)((q & 15) << (4 * unit));
        if (m.type == WEIGHT_Q4_0) {
            uint16_t *scale = (uint16_t *)(void *)of_pair + unit * 2 + second;
            if (k % UNIT == 0)
                *scale = half_bits(uniform() * 0.1f);
            return half_value(*scale) * ((float)q - 8);
        }
        if (k % SUPER == 0)
            for (uint32_t i = 0; i < super_scales(m.type); i++)
                d[i] = half_bits(uniform() * 0.01f);
        if (m.type == WEIGHT_Q4_K) {
            uint8_t *scale = of_pair + second * 4 + unit, *least = scale + 2;
            if (k % UNIT == 0) {
                *scale = (uint8_t)below(64);
                *least = (uint8_t)below(64);
            }
            return half_value(d[0]) * (float)*scale * (float)q - half_value(d[1]) * (float)*least;
        }
        int8_t *scale = (int8_t *)of_pair + second * 4 + step;
        if (k % 16 == 0)
            *scale = (int8_t)(below(256) - 128);
        pair[PAIR_NIBBLES + high_place(r, k % UNIT)] |= (uint8_t)(q >> 4 << (4 * unit + 2 * second));
        return half_value(d[0]) * (float)*scale * ((float)q - 32);
    }

    void
    fill(const std::vector<uint32_t> &source)
    {
        std::vector<uint8_t> quants((size_t)m.strips * m.units * STRIP * UNIT * 2);
        std::vector<uint16_t> scales(m.strips * strip_scales(m.type, m.units) / sizeof(uint16_t));
        for (uint32_t packed = 0; packed < source.size(); packed++)
            for (uint32_t k = 0; source[packed] < m.rows && k < m.cols; k++) {
                float *value = &values[(size_t)source[packed] * m.cols + k];
                *value = has_pairs(m.type) ? pair_value(packed, k, quants.data(), (uint8_t *)scales.data())
                                           : unit_value(packed, k, quants.data(), scales.data());
            }
        if (m.type == WEIGHT_F32) {
            m.quants = on_device(values);
            return;
        }
        m.quants = on_device(quants);
        m.scales = on_device(scales);
    }
};

/* Activations of n rows, as they are after rounding, and packed in whole tiles; beyond n there is what nobody wrote, which
 * must not even be read. */
struct test_rows {
    std::vector<float> values; /* (n, cols) */
    void *packed;

    test_rows(uint32_t n, uint32_t cols, bool exact) : values((size_t)n * cols)
    {
        const uint32_t units = units_of(cols), tiles = (n + SWEEP_TILE - 1) / SWEEP_TILE * SWEEP_TILE;
        std::vector<uint16_t> halves((size_t)tiles * units * UNIT);
        memset(halves.data(), emulation::POISON, halves.size() * sizeof halves[0]);
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = 0; k < units * UNIT; k++)
                halves[packed_place(units, r, k)] = k >= cols ? 0 : half_bits(uniform());
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = 0; k < cols; k++)
                values[(size_t)r * cols + k] = exact ? uniform() : half_value(halves[packed_place(units, r, k)]);
        packed = exact ? (void *)on_device(values) : (void *)on_device(halves);
    }
    test_rows(const test_rows &) = delete;
    ~test_rows()
    {
        cudaFree(packed);
    }
};

struct product_args {
    struct product product;
    struct dev_model model;
    enum pairing pairing;
    float *out[3]; /* (n, rows) of each matrix */
};

struct put_output {
    const struct product_args &a;
    __device__ void
    operator()(uint32_t which, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const size_t rows = a.product.matrices[which]->rows;
        if (o0 != UINT32_MAX)
            a.out[which][row * rows + o0] = y0;
        if (o1 != UINT32_MAX)
            a.out[which][row * rows + o1] = y1;
    }
};

template <enum weight_type T, int NT>
static __global__ void
multiply_rows(struct product_args a)
{
    SHARED_MEMORY(float, shared);
    uint32_t turn = 0;
    struct put_output put = {a};
    if (T == WEIGHT_F32)
        exact_product(a.product, a.pairing, a.model, shared, &turn, put);
    else
        packed_strips<T == WEIGHT_F32 ? WEIGHT_F16 : T, NT>(a.product, 0, shared, &turn, put);
}

template <enum weight_type T>
static void
run_product(const struct product_args &a)
{
    const uint32_t n = a.product.n;
    run(n <= TILE       ? multiply_rows<T, 1>
        : n <= 2 * TILE ? multiply_rows<T, 2>
                        : multiply_rows<T, PRODUCT_TILES>,
        a, PRODUCT_SHARED);
}

static std::vector<double>
define_product(const test_matrix &w, const test_rows &x, uint32_t n)
{
    std::vector<double> y((size_t)n * w.m.rows);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t o = 0; o < w.m.rows; o++)
            for (uint32_t k = 0; k < w.m.cols; k++)
                y[(size_t)r * w.m.rows + o] +=
                    (double)w.values[(size_t)o * w.m.cols + k] * (double)x.values[(size_t)r * w.m.cols + k];
    return y;
}

/* A product of up to three matrices; then of its last row alone, whose bits must be the same. */
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
    a.product = {{&one.m, &two.m, &three.m}, n_matrices, x.packed, n};
    a.model.head_dim = 2;
    for (uint32_t i = 0; i < n_matrices; i++)
        a.out[i] = on_device(std::vector<float>((size_t)n * all[i]->m.rows, NAN));
    run_product<T>(a);
    for (uint32_t i = 0; i < n_matrices; i++) {
        const double apart = difference(define_product(*all[i], x, n), a.out[i]);
        if (!(apart < (exact ? 1e-6 : 1e-5)))
            fail_msg("type %d, %u x %u, %u rows, matrix %u: %g apart", (int)T, all[i]->m.rows, cols, n, i, apart);
    }
    std::vector<float> alone(cols), row0(x.values.begin(), x.values.begin() + cols);
    struct product_args b = a;
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
    check_product<T>(3, block == 1 ? 4801 : 4864 / SUPER * SUPER, 1); /* more than one ring of units */
}

static void
test_products_by_strips_are_products_whatever_the_type(void **)
{
    check_products<WEIGHT_F16>();
    check_products<WEIGHT_BF16>();
    check_products<WEIGHT_Q8_0>();
    check_products<WEIGHT_Q4_0>();
    check_products<WEIGHT_Q4_K>();
    check_products<WEIGHT_Q6_K>();
    check_products<WEIGHT_F32>();
}

/* Llama-2-7B's widths, of which a ring of loads is a part, and rows of every count of tiles. */
template <enum weight_type T>
static void
check_wide()
{
    check_product<T>(1, 4096, 2);
    check_product<T>(19, 4096, 1);
    check_product<T>(2, 11008, 1);
}

static void
test_products_of_the_widths_of_real_models(void **)
{
    check_wide<WEIGHT_F16>();
    check_wide<WEIGHT_BF16>();
    check_wide<WEIGHT_Q8_0>();
    check_wide<WEIGHT_Q4_0>();
    check_wide<WEIGHT_Q4_K>();
    check_wide<WEIGHT_Q6_K>();
    check_wide<WEIGHT_F32>();
}

int
main(void)
{
    state_of_random = seed_or((uint64_t)time(nullptr));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_by_strips_are_products_whatever_the_type),
        cmocka_unit_test(test_products_of_the_widths_of_real_models),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
