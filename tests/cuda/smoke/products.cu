/* Products by strips at the widths of Llama-2-7B with weights of every type. They are compared with their definition in
 * double, and their bits between calls of different numbers of rows. */
#include "tests/cuda/smoke/run.h"

#include "tests/rigs/cuda_product.h"

/* Bounds of a product's error, as norms over the whole: F32 sums whose last bit may be truncated; and subnormal halves,
 * whose products may lose up to 10 bits in the sum (docs/cuda.md). */
static double
bound_of(enum weight_type type)
{
    return type == WEIGHT_F32 ? 2e-6 : has_pairs(type) ? 2e-4 : 2e-5;
}

template <enum weight_type T>
static std::vector<float>
multiply(const test_matrix &w, const test_rows &x, uint32_t n)
{
    const size_t outputs = (size_t)n * w.m.rows;
    struct product_args a = {};
    a.product = {{&w.m, NULL, NULL}, 1, x.packed, n, false};
    a.model.head_dim = 2;
    a.out[0] = on_device(std::vector<float>(outputs, NAN));
    struct dev_matrix *there = on_device(std::vector<struct dev_matrix>(1, w.m)); /* too large for the stack */
    a.product.matrices[0] = there;
    run_product<T>(a);
    const std::vector<float> y = fetched(a.out[0], outputs);
    SUCCEEDS(cudaFree(a.out[0]));
    SUCCEEDS(cudaFree(there));
    return y;
}

template <enum weight_type T>
static bool
check_width(struct smoke *s, uint32_t cols, double *worst)
{
    static const uint32_t all_counts[] = {1, 2, 8, 9, 16, 17, 32, 33, 64}, some[] = {1, 9, 17};
    const bool whole = s->size == SMOKE_WHOLE, exact = T == WEIGHT_F32;
    const uint32_t most = whole ? 70 : 33, rows = (2 * blocks_of(multiply_rows<T, 1>, PRODUCT_SHARED) + 1) * STRIP - 3;
    const test_matrix w(T, rows, cols, false);
    const test_rows x(most, cols, exact);
    const std::vector<float> y = multiply<T>(w, x, most);
    const double off = difference(define_product(w, x, most), y.data());
    *worst = off > *worst ? off : *worst;
    if (!(off < bound_of(T)))
        return smoke_says(s, false, "%s, width %u, %u rows: %.2g from the definition, bound %.2g", type_name(T), cols,
                          most, off, bound_of(T));
    for (uint32_t c = 0; c < (whole ? sizeof all_counts / sizeof *all_counts : sizeof some / sizeof *some); c++) {
        std::vector<uint32_t> which(whole ? all_counts[c] : some[c]);
        for (uint32_t &r : which)
            r = below(most);
        const test_rows fewer(x, which, cols, exact);
        const std::vector<float> again = multiply<T>(w, fewer, (uint32_t)which.size());
        for (size_t i = 0; i < which.size(); i++)
            if (memcmp(&again[i * rows], &y[(size_t)which[i] * rows], rows * sizeof(float)) != 0)
                return smoke_says(s, false, "%s, width %u: row %u of %u has other bits in a call of %zu", type_name(T),
                                  cols, which[i], most, which.size());
    }
    return true;
}

template <enum weight_type T>
static bool
check_type(struct smoke *s, double *worst)
{
    if (s->size == SMOKE_TINY)
        return check_width<T>(s, 512, worst);
    return check_width<T>(s, 4096, worst) && check_width<T>(s, 11008, worst);
}

bool
smoke_products(struct smoke *s)
{
    double plain = 0, quantised = 0, exact = 0;
    begin(s);
    return check_type<WEIGHT_F16>(s, &plain) && check_type<WEIGHT_BF16>(s, &plain) &&
           check_type<WEIGHT_Q8_0>(s, &plain) && check_type<WEIGHT_Q4_0>(s, &quantised) &&
           check_type<WEIGHT_Q4_K>(s, &quantised) && check_type<WEIGHT_Q6_K>(s, &quantised) &&
           check_type<WEIGHT_F32>(s, &exact) &&
           smoke_says(s, true, "off by %.1g (F16, BF16, Q8_0), %.1g (Q4_0, Q4_K, Q6_K), %.1g (F32), the same bits",
                      plain, quantised, exact);
}
