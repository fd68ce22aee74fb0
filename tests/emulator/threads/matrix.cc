/* Adds up the products of a matrix instruction. Products are exact; the PTX manual does not define how they are summed.
 * Tensor cores align the terms to the largest exponent, truncate them to about 24 bits, and truncate their sum (Fasi,
 * Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 2021). It is unknown
 * whether the exponent of a subnormal number is that of its first set bit or the stored one. With the stored one, up to
 * ten of the bits are zeros. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fibers.h>

namespace emulation
{

static const struct way {
    const char *name;
    enum { IN_ORDER, EXACT, TRUNCATED, ALIGNED } kind;
    bool as_written; /* aligns by stored exponents */
} ways[] = {
    {"in-order", way::IN_ORDER, false}, {"exact", way::EXACT, false},      {"truncated", way::TRUNCATED, false},
    {"aligned24", way::ALIGNED, false}, {"aligned14", way::ALIGNED, true},
};
static constexpr int BITS = 24;

static const way *
way_called(const char *name)
{
    for (const way &w : ways)
        if (name != nullptr && strcmp(w.name, name) == 0)
            return &w;
    return nullptr;
}

static const way *
way_asked_for()
{
    const char *name = getenv("EMULATED_CUDA_MATRIX");
    const way *w = way_called(name);
    if (w == nullptr && name != nullptr && name[0] != '\0')
        fprintf(stderr,
                "emulated GPU: EMULATED_CUDA_MATRIX=%s is none of in-order, exact, truncated, aligned24, aligned14\n",
                name);
    return w != nullptr ? w : &ways[0];
}

static const way *&
way_now()
{
    static const way *w = way_asked_for();
    return w;
}

bool
add_up_like(const char *name)
{
    const way *w = way_called(name);
    if (w != nullptr)
        way_now() = w;
    return w != nullptr;
}

static float
towards_zero(double x)
{
    const float near = (float)x;
    return fabs((double)near) > fabs(x) ? nextafterf(near, 0) : near;
}

/* Returns the smallest exponent with 2^exponent > |x|; a very small one for 0. */
static int
exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1022;
}

/* The terms of one sum. */
struct terms {
    float c;
    double products[16];
    int exponents[16]; /* of the products other than 0 */
};

static float
aligned_sum(const terms &t)
{
    int most = exponent_of((double)t.c);
    for (unsigned k = 0; k < 16; k++)
        most = t.exponents[k] > most ? t.exponents[k] : most;
    if (most < -1000 || most > 1000) /* all terms are zero, or one is infinite or NaN */
        most = 0;
    const double unit = ldexp(1, most - BITS);
    double units = trunc((double)t.c / unit);
    for (unsigned k = 0; k < 16; k++)
        units += trunc(t.products[k] / unit);
    return towards_zero(units * unit);
}

static float
sum_of(const way &how, const terms &t)
{
    float sum = t.c;
    double exact = (double)t.c;
    if (how.kind == way::ALIGNED)
        return aligned_sum(t);
    for (unsigned k = 0; k < 16; k++) {
        exact += t.products[k];
        sum = towards_zero((double)sum + t.products[k]);
    }
    return how.kind == way::EXACT ? (float)exact : sum;
}

/* Returns a factor's stored exponent, which is at least that of the smallest normal number. */
static int
factor_exponent(const way &how, float x, int least)
{
    const int e = exponent_of((double)x);
    return how.as_written && e < least ? least : e;
}

void
multiply_matrices(const float x[16][16], const float y[16][8], float sum[16][8], int least)
{
    const way &how = *way_now();
    for (unsigned row = 0; row < 16; row++) {
        if (how.kind == way::IN_ORDER) {
            for (unsigned k = 0; k < 16; k++)
                for (unsigned n = 0; n < 8; n++)
                    sum[row][n] += x[row][k] * y[k][n];
            continue;
        }
        for (unsigned n = 0; n < 8; n++) {
            terms t = {sum[row][n], {}, {}};
            for (unsigned k = 0; k < 16; k++) {
                t.products[k] = (double)x[row][k] * (double)y[k][n];
                t.exponents[k] = t.products[k] == 0 ? -2000
                                 : how.as_written
                                     ? factor_exponent(how, x[row][k], least) + factor_exponent(how, y[k][n], least)
                                     : exponent_of(t.products[k]);
            }
            sum[row][n] = sum_of(how, t);
        }
    }
}

} // namespace emulation
