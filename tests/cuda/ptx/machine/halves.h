/* F16 and BF16, alone and in pairs: calculated in F64, where a product or a sum of two is exact, and rounded once. */
#ifndef PTX_HALVES_H
#define PTX_HALVES_H

#include "floats.h"

namespace ptx
{

template <class T> struct half_traits {
    static constexpr bool is_half = false;
};
template <> struct half_traits<f16> {
    static constexpr bool is_half = true, pair = false;
    static constexpr double (*from)(uint16_t) = from_f16;
    static uint16_t
    to(double x)
    {
        return f16_of<RN>(x);
    }
    static constexpr double least = 0x1p-14;
};
template <> struct half_traits<bf16> {
    static constexpr bool is_half = true, pair = false;
    static constexpr double (*from)(uint16_t) = from_bf16;
    static uint16_t
    to(double x)
    {
        return bf16_of<RN>(x);
    }
    static constexpr double least = 0x1p-126;
};
template <> struct half_traits<f16x2> : half_traits<f16> {
    static constexpr bool pair = true;
};
template <> struct half_traits<bf16x2> : half_traits<bf16> {
    static constexpr bool pair = true;
};
template <class T> using enable_half = std::enable_if_t<half_traits<T>::is_half, int>;

template <class T, unsigned F>
static inline double
half_source(uint16_t h)
{
    const double x = half_traits<T>::from(h);
    return F & FTZ && std::fabs(x) < half_traits<T>::least ? std::copysign(0.0, x) : x;
}

template <class T, unsigned F, class What>
static inline uint16_t
one_half(uint16_t a, uint16_t b, uint16_t c, What what)
{
    double x = what(half_source<T, F>(a), half_source<T, F>(b), half_source<T, F>(c));
    x = saturated<F>(x);
    if (F & RELU)
        x = x != x ? x : x > 0 ? x : 0;
    return half_traits<T>::to(F & FTZ && std::fabs(x) < half_traits<T>::least ? std::copysign(0.0, x) : x);
}

template <class T, unsigned F, class What>
static inline bits<T>
halves(bits<T> a, bits<T> b, bits<T> c, What what)
{
    const uint16_t low = one_half<T, F>((uint16_t)a, (uint16_t)b, (uint16_t)c, what);
    if constexpr (!half_traits<T>::pair)
        return low;
    else
        return low | (uint32_t)one_half<T, F>((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16), what)
                         << 16;
}

template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_add(bits<T> a, bits<T> b)
{
    return halves<T, F>(a, b, 0, [](double x, double y, double) { return x + y; });
}
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_sub(bits<T> a, bits<T> b)
{
    return halves<T, F>(a, b, 0, [](double x, double y, double) { return x - y; });
}
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_mul(bits<T> a, bits<T> b)
{
    return halves<T, F>(a, b, 0, [](double x, double y, double) { return x * y; });
}
/* A sum in F64 that is halfway between two results and was not so before it was rounded would go astray: it is rounded to
 * odd, which keeps it off. */
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_fma(bits<T> a, bits<T> b, bits<T> c)
{
    return halves<T, F>(a, b, c, [](double x, double y, double z) {
        const double product = x * y, sum = product + z, back = sum - product,
                     rest = (product - (sum - back)) + (z - back);
        if (rest == 0 || rest != rest || std::isinf(sum) || raw(sum) & 1)
            return sum;
        return std::nextafter(sum, rest > 0 ? (double)INFINITY : -(double)INFINITY);
    });
}
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_neg(bits<T> a)
{
    return halves<T, F>(a, 0, 0, [](double x, double, double) { return -x; });
}
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_abs(bits<T> a)
{
    return halves<T, F>(a, 0, 0, [](double x, double, double) { return std::fabs(x); });
}
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_min(bits<T> a, bits<T> b)
{
    return halves<T, F>(a, b, 0, [](double x, double y, double) {
        return value<double>(extreme<double, F & NANS, false>(raw(x), raw(y)));
    });
}
template <class T, unsigned F = 0, enable_half<T> = 0>
static inline bits<T>
op_max(bits<T> a, bits<T> b)
{
    return halves<T, F>(a, b, 0, [](double x, double y, double) {
        return value<double>(extreme<double, F & NANS, true>(raw(x), raw(y)));
    });
}

} // namespace ptx

#endif
