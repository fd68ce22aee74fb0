/* Checks the matrix instructions of kernels/cuda/device/ptx.cuh: where operands have their elements
 * (kernels/cuda/device/layout.h), that columns are independent, how subnormal numbers are treated, and how terms are
 * summed. */
#include "tests/cuda/smoke/run.h"

#include "kernels/cuda/device/ptx.cuh"
#include "kernels/half.h"

struct mma_case { /* d (16, 8) = c + a (16, 16) b (16, 8) */
    uint16_t a[16][16], b[16][8];
    float c[16][8], d[16][8];
};

struct mma_args {
    struct mma_case *cases;
    uint32_t n;
    bool bf16;
};

/* Runs each case in a warp of its own. Operands are fragments as in the PTX manual. */
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) multiply_cases(struct mma_args p)
{
    const uint32_t i = blockIdx.x * BLOCK_WARPS + thread_here() / WARP, lane = thread_here() % WARP;
    if (i >= p.n)
        return;
    struct mma_case &m = p.cases[i];
    const uint32_t g = lane / 4, c = lane % 4;
    uint32_t a[4], b[2];
    float d[4];
    for (uint32_t r = 0; r < 4; r++)
        a[r] = m.a[g + r % 2 * 8][2 * c + r / 2 * 8] | (uint32_t)m.a[g + r % 2 * 8][2 * c + r / 2 * 8 + 1] << 16;
    for (uint32_t r = 0; r < 2; r++)
        b[r] = m.b[2 * c + r * 8][g] | (uint32_t)m.b[2 * c + r * 8 + 1][g] << 16;
    for (uint32_t r = 0; r < 4; r++)
        d[r] = m.c[g + r / 2 * 8][2 * c + r % 2];
    if (p.bf16)
        mma_bf16(d, a, b[0], b[1]);
    else
        mma_f16(d, a, b[0], b[1]);
    for (uint32_t r = 0; r < 4; r++)
        m.d[g + r / 2 * 8][2 * c + r % 2] = d[r];
}

static void
multiply_all(std::vector<struct mma_case> &cases, bool bf16)
{
    struct mma_case *there = on_device(cases);
    const struct mma_args a = {there, (uint32_t)cases.size(), bf16};
    SUCCEEDS(launch(multiply_cases, (a.n + BLOCK_WARPS - 1) / BLOCK_WARPS, BLOCK_THREADS, a, (cudaStream_t) nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    cases = fetched(there, cases.size());
    SUCCEEDS(cudaFree(there));
}

static uint16_t
narrow(float x, bool bf16)
{
    return bf16 ? (uint16_t)(bits_of_float(x) >> 16) : f32_to_f16(x);
}

static double
widen(uint16_t h, bool bf16)
{
    return (double)(bf16 ? bf16_to_f32(h) : f16_to_f32(h));
}

/* Fills the operands by value(). */
template <class Value>
static struct mma_case
make_case(bool bf16, Value value)
{
    struct mma_case m = {};
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < 16; k++) {
            m.a[r][k] = narrow(value(), bf16);
            m.b[r][k % 8] = narrow(value(), bf16);
            m.c[r][k % 8] = value();
        }
    return m;
}

static double
defined(const struct mma_case &m, int r, int n, bool bf16)
{
    double d = (double)m.c[r][n];
    for (int k = 0; k < 16; k++)
        d += widen(m.a[r][k], bf16) * widen(m.b[k][n], bf16);
    return d;
}

/* Small integers have exact sums in every order. Sums of arbitrary numbers are compared within a bound. */
bool
smoke_matrices(struct smoke *s)
{
    begin(s);
    double worst = 0;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        std::vector<struct mma_case> whole, any;
        for (int i = 0; i < 100; i++) {
            whole.push_back(make_case(bf16, [] { return (float)below(9) - 4; }));
            any.push_back(make_case(bf16, uniform));
        }
        multiply_all(whole, bf16);
        multiply_all(any, bf16);
        for (size_t i = 0; i < whole.size(); i++)
            for (int r = 0; r < 16; r++)
                for (int n = 0; n < 8; n++) {
                    if ((double)whole[i].d[r][n] != defined(whole[i], r, n, bf16))
                        return smoke_says(s, false, "%s: element (%d, %d) is %g, not %g", bf16 ? "bf16" : "f16", r, n,
                                          (double)whole[i].d[r][n], defined(whole[i], r, n, bf16));
                    const double off = fabs((double)any[i].d[r][n] - defined(any[i], r, n, bf16));
                    worst = off > worst ? off : worst;
                }
    }
    return smoke_says(s, worst < 0x1p-10, "whole numbers exactly; numbers below 1 to within %.2g", worst);
}

/* A column's bits do not depend on the other columns, so a row's bits are its own. */
bool
smoke_columns(struct smoke *s)
{
    begin(s);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        std::vector<struct mma_case> cases;
        for (int i = 0; i < 8; i++) { /* all cases share only column i of the first case */
            struct mma_case m = i == 0 ? make_case(bf16, [] { return 100 * uniform(); }) : cases[0];
            for (int n = 0; n < 8 && i > 0; n++)
                for (int k = 0; k < 16 && n != i; k++) {
                    m.b[k][n] = k % 3 == 0 ? (bf16 ? 0x7f80 : 0x7c00) : narrow(1000 * uniform(), bf16);
                    m.c[k][n] = k % 2 == 0 ? NAN : uniform();
                }
            cases.push_back(m);
        }
        multiply_all(cases, bf16);
        for (int i = 1; i < 8; i++)
            for (int r = 0; r < 16; r++)
                if (bits_of_float(cases[(size_t)i].d[r][i]) != bits_of_float(cases[0].d[r][i]))
                    return smoke_says(s, false, "%s: column %d changes with the others", bf16 ? "bf16" : "f16", i);
    }
    return smoke_says(s, true, "with infinities and NaN beside them");
}

/* Weights of 4 and 6 bits are subnormal halves, q times 2^-24, and must keep this value. */
bool
smoke_subnormals(struct smoke *s)
{
    begin(s);
    std::vector<struct mma_case> cases;
    for (int i = 0; i < 100; i++) {
        struct mma_case m = {};
        const uint32_t shift = i % 5; /* quants of the second unit are four bits higher: up to 63 * 16 */
        for (int r = 0; r < 16; r++)
            for (int k = 0; k < 16; k++) {
                m.a[r][k] = (uint16_t)(below(64) << shift);
                m.b[r][k % 8] = f32_to_f16((float)below(3) - 1);
            }
        cases.push_back(m);
    }
    multiply_all(cases, false);
    for (const struct mma_case &m : cases)
        for (int r = 0; r < 16; r++)
            for (int n = 0; n < 8; n++)
                if ((double)m.d[r][n] != defined(m, r, n, false))
                    return smoke_says(s, false, "element (%d, %d) is %a, not %a", r, n, (double)m.d[r][n],
                                      defined(m, r, n, false));
    return smoke_says(s, true, "values up to 1008 times 2^-24, exactly");
}

/* ---- ways of summing ---- */

/* Returns 1 + x + y as a sum of three products. */
static float
sum_of(float x, float y)
{
    std::vector<struct mma_case> one(1);
    one[0].a[0][0] = f32_to_f16(1);
    one[0].b[0][0] = f32_to_f16(1);
    one[0].a[0][3] = one[0].a[0][9] = f32_to_f16(0x1p-12f);
    one[0].b[3][0] = f32_to_f16(x * 0x1p12f);
    one[0].b[9][0] = f32_to_f16(y * 0x1p12f);
    multiply_all(one, false);
    return one[0].d[0][0];
}

void
smoke_matrix_sums(char *text, size_t room)
{
    int bits = 1;
    while (bits < 24 && sum_of(ldexpf(1, -bits), 0) > 1)
        bits++;
    const bool kept = sum_of(0x1p-24f, 0x1p-24f) > 1; /* two halves of the last bit */
    const bool nearest = sum_of(0x1.8p-23f, 0) > 1 + 0x1p-23f;
    snprintf(text, room, "%d bits of the largest product are kept, %s", bits,
             nearest ? "the rest rounds to nearest"
             : kept  ? "the rest is cut off at the end"
                     : "the rest of each product is cut off");
}
