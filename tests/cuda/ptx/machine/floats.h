/* F32 and F64. Results that are no numbers are the one NaN that GPUs have in F32. */
#ifndef PTX_FLOATS_H
#define PTX_FLOATS_H

#include <cstdlib>

#include "numbers.h"

namespace ptx
{

template <class T> using enable_float = std::enable_if_t<std::is_floating_point<T>::value, int>;

template <unsigned F, class T, class What>
static inline bits<T>
calculated(bits<T> a, bits<T> b, bits<T> c, What what)
{
    const T x = flushed<F>(value<T>(a)), y = flushed<F>(value<T>(b)), z = flushed<F>(value<T>(c));
    return canonical(saturated<F>(flushed<F>(rounded<F>(x, y, z, what))));
}

template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_add(bits<T> a, bits<T> b)
{
    return calculated<F, T>(a, b, 0, [](T x, T y, T) { return x + y; });
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_sub(bits<T> a, bits<T> b)
{
    return calculated<F, T>(a, b, 0, [](T x, T y, T) { return x - y; });
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_mul(bits<T> a, bits<T> b)
{
    return calculated<F, T>(a, b, 0, [](T x, T y, T) { return x * y; });
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_fma(bits<T> a, bits<T> b, bits<T> c)
{
    return calculated<F, T>(a, b, c, [](T x, T y, T z) { return std::fma(x, y, z); });
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_mad(bits<T> a, bits<T> b, bits<T> c)
{
    return op_fma<T, F>(a, b, c);
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_abs(bits<T> a)
{
    return raw(std::fabs(flushed<F>(value<T>(a))));
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_neg(bits<T> a)
{
    return raw(-flushed<F>(value<T>(a)));
}
/* The sign of a, the rest of b. */
template <class T>
static inline bits<T>
op_copysign(bits<T> a, bits<T> b)
{
    return raw(std::copysign(value<T>(b), value<T>(a)));
}
/* -0 is less than 0; of a number and none it is the number, but with .NaN. */
template <class T, unsigned F, bool MAX>
static inline bits<T>
extreme(bits<T> a, bits<T> b)
{
    const T x = flushed<F>(value<T>(a)), y = flushed<F>(value<T>(b));
    if (x != x || y != y)
        return F & NANS ? canonical((T)NAN) : x != x ? canonical(y) : raw(x);
    if (x == y)
        return std::signbit(x) == MAX ? raw(y) : raw(x);
    return (x < y) == MAX ? raw(y) : raw(x);
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_min(bits<T> a, bits<T> b)
{
    return extreme<T, F, false>(a, b);
}
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_max(bits<T> a, bits<T> b)
{
    return extreme<T, F, true>(a, b);
}

/* ---- what the manual gives bounds for ---- */

/* EMULATED_PTX_APPROX: "exact", the nearest number; "low", "high", as far off as may be; "mixed", by its bits. */
static inline int
skew_of(uint32_t bits)
{
    static const char *const way = getenv("EMULATED_PTX_APPROX");
    static const char first = way != nullptr ? way[0] : 'e';
    return first == 'l' ? -1 : first == 'h' ? 1 : first == 'm' ? (int)(bits * 2654435761u >> 30) % 3 - 1 : 0;
}

/* The number nearest to x, moved by as many units of its last place; what is 0, infinite or no number stays. */
template <unsigned F>
static inline uint32_t
approximate(double x, int units)
{
    float r = (float)x;
    if (r != 0 && !std::isinf(r) && r == r)
        for (int i = 0, skew = skew_of(raw(r)); i < units && skew != 0; i++) {
            const float next = std::nextafterf(r, skew < 0 ? -INFINITY : INFINITY);
            r = next == 0 || std::isinf(next) ? r : next;
        }
    return result<F>(r);
}

/* .approx, .full: two units; .rn and others: rounded. */
template <class T, unsigned F = 0, enable_float<T> = 0>
static inline bits<T>
op_div(bits<T> a, bits<T> b)
{
    if constexpr ((F & (APPROX | FULL)) == 0) {
        return calculated<F, T>(a, b, 0, [](T x, T y, T) { return x / y; });
    } else {
        const double x = (double)source<F>(a), y = (double)source<F>(b);
        if ((F & APPROX) && std::fabs(y) > 0x1p126 && !std::isinf(y)) /* the reciprocal is flushed */
            return std::isinf(x) || x != x ? NAN_F32 : result<F>((float)std::copysign(0.0, x * y));
        return approximate<F>(x / y, 2);
    }
}
static inline uint64_t
approximate_reciprocal(uint64_t a)
{
    const double x = value<double>(a & 0xffffffff00000000ull), r = 1 / (std::fpclassify(x) == FP_SUBNORMAL ? x * 0 : x);
    if (r != r || std::isinf(r))
        return canonical(r) & 0xffffffff00000000ull;
    return (std::fpclassify(r) == FP_SUBNORMAL ? raw(r * 0) : raw(r)) & 0xffffffff00000000ull;
}
template <class T, unsigned F = 0>
static inline bits<T>
op_rcp(bits<T> a)
{
    if constexpr ((F & APPROX) == 0)
        return calculated<F, T>(a, 0, 0, [](T x, T, T) { return 1 / x; });
    else if constexpr (sizeof(T) == 8) /* of the upper word the upper word, to 2^-20 */
        return approximate_reciprocal(a);
    else
        return approximate<F>(1 / (double)source<F>(a), 1);
}
template <class T, unsigned F = 0>
static inline bits<T>
op_sqrt(bits<T> a)
{
    if constexpr ((F & APPROX) == 0)
        return calculated<F, T>(a, 0, 0, [](T x, T, T) { return std::sqrt(x); });
    else
        return approximate<F>(std::sqrt((double)source<F>(a)), 1);
}
template <class T, unsigned F>
static inline bits<T>
op_rsqrt(bits<T> a)
{
    return approximate<F>(1 / std::sqrt((double)source<F>(a)), 1);
}
template <class T, unsigned F>
static inline bits<T>
op_ex2(bits<T> a)
{
    return approximate<F>(std::exp2((double)source<F>(a)), 2);
}
template <class T, unsigned F>
static inline bits<T>
op_lg2(bits<T> a)
{
    return approximate<F>(std::log2((double)source<F>(a)), 1);
}
template <class T, unsigned F>
static inline bits<T>
op_sin(bits<T> a)
{
    return approximate<F>(std::sin((double)source<F>(a)), 1);
}
template <class T, unsigned F>
static inline bits<T>
op_cos(bits<T> a)
{
    return approximate<F>(std::cos((double)source<F>(a)), 1);
}
template <class T, unsigned F>
static inline bits<T>
op_tanh(bits<T> a)
{
    return approximate<F>(std::tanh((double)source<F>(a)), 1 << 11);
}

/* ---- of what kind a number is ---- */

enum test { FINITE, INFINITE_, NUMBER, NOTANUMBER, NORMAL, SUBNORMAL };
template <class T, test WHICH>
static inline bool
op_testp(bits<T> a)
{
    const int kind = std::fpclassify(value<T>(a));
    switch (WHICH) {
    case FINITE: return kind != FP_INFINITE && kind != FP_NAN;
    case INFINITE_: return kind == FP_INFINITE;
    case NUMBER: return kind != FP_NAN;
    case NOTANUMBER: return kind == FP_NAN;
    case NORMAL: return kind == FP_NORMAL || kind == FP_ZERO;
    default: return kind == FP_SUBNORMAL;
    }
}

} // namespace ptx

#endif
