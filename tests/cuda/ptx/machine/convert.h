/* cvt: from one type to another. Integers on both sides of it may lie in wider registers. */
#ifndef PTX_CONVERT_H
#define PTX_CONVERT_H

#include "halves.h"
#include "integers.h"

namespace ptx
{

template <class D, class S, unsigned F>
static inline D
integer_to_integer(S x)
{
    if (!(F & SAT))
        return (D)x;
    const __int128 v = (__int128)x, least = (__int128)std::numeric_limits<D>::min(),
                   most = (__int128)std::numeric_limits<D>::max();
    return (D)(v < least ? least : v > most ? most : v);
}

/* Beyond the range: its end. What is no number becomes 0, or with 64 bits on one side the highest bit alone. */
template <class D, unsigned F, class S>
static inline D
float_to_integer(S x)
{
    if (x != x)
        return sizeof(S) == 8 || sizeof(D) == 8 ? (D)((bits<D>)1 << (8 * sizeof(D) - 1)) : (D)0;
    const S r = to_integral<F>(x);
    if (r < (S)std::numeric_limits<D>::min())
        return std::numeric_limits<D>::min();
    if (r >= std::ldexp((S)1, std::numeric_limits<D>::digits))
        return std::numeric_limits<D>::max();
    return (D)r;
}

/* A number of type S as one of F64, which holds all but integers of 64 bits. */
template <class S, unsigned F>
static inline double
double_of(bits<S> a)
{
    if constexpr (half_traits<S>::is_half)
        return half_source<S, 0>(a);
    else if constexpr (std::is_floating_point<S>::value)
        return (double)flushed<F>(value<S>(a));
    else
        return (double)(S)a;
}

template <class D, class S, unsigned F>
static inline bits<D>
to_float(bits<S> a)
{
    if constexpr (std::is_integral<S>::value) {
        volatile S x = (S)a;
        volatile D r;
        fesetround(host_rounding(F));
        r = (D)x;
        fesetround(FE_TONEAREST);
        return raw((D)r);
    } else if constexpr (F & TO_INTEGER) {
        return canonical(saturated<F>((D)to_integral<F>(double_of<S, F>(a))));
    } else {
        volatile double x = double_of<S, F>(a);
        volatile D r;
        fesetround(host_rounding(F));
        r = (D)x;
        fesetround(FE_TONEAREST);
        return canonical(saturated<F>(flushed<F>((D)r)));
    }
}

template <class D, unsigned F>
static inline uint16_t
to_half(double x)
{
    x = saturated<F>(F & TO_INTEGER ? to_integral<F>(x) : x);
    if (F & RELU)
        x = x != x ? x : x > 0 ? x : 0;
    if constexpr (std::is_same<D, f16>::value || std::is_same<D, f16x2>::value)
        return f16_of<F>(x);
    else
        return bf16_of<F>(x);
}

template <class D, class S, unsigned F = 0>
static inline bits<D>
op_cvt(bits<S> a)
{
    if constexpr (half_traits<D>::is_half) {
        static_assert(sizeof(S) < 8, "from 64 bits to 16: rounded twice here");
        return to_half<D, F>(double_of<S, F>(a));
    } else if constexpr (std::is_floating_point<D>::value) {
        return to_float<D, S, F>(a);
    } else if constexpr (half_traits<S>::is_half) {
        return (bits<D>)float_to_integer<D, F>((float)double_of<S, F>(a));
    } else if constexpr (std::is_floating_point<S>::value) {
        return (bits<D>)float_to_integer<D, F>(flushed<F>(value<S>(a)));
    } else {
        return (bits<D>)integer_to_integer<D, S, F>((S)a);
    }
}
/* Two of F32 to a pair: the first is the upper half. */
template <class D, unsigned F = 0>
static inline bits<D>
op_cvt_pair(u32 high, u32 low)
{
    return (uint32_t)to_half<D, F>((double)value<float>(high)) << 16 | to_half<D, F>((double)value<float>(low));
}

} // namespace ptx

#endif
