/* What registers hold: bits, as wide as the type that an instruction gives them. Each instruction is a template op_NAME<type,
 * modifiers> from bits to bits, as the PTX ISA manual defines it. */
#ifndef PTX_NUMBERS_H
#define PTX_NUMBERS_H

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx
{

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using b8 = uint8_t;
using b16 = uint16_t;
using b32 = uint32_t;
using b64 = uint64_t;
using f32 = float;
using f64 = double;
using pred = bool;
/* Numbers of 16 bits, and two of them, the first one low. */
struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};
struct f16x2 {
    uint32_t bits;
};
struct bf16x2 {
    uint32_t bits;
};

template <class T> struct bits_of {
    using type = std::conditional_t<
        std::is_same<T, bool>::value, bool,
        std::conditional_t<
            sizeof(T) == 1, uint8_t,
            std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>>;
};
template <class T> using bits = typename bits_of<T>::type;

template <class T>
static inline T
value(bits<T> b)
{
    T v;
    memcpy(&v, &b, sizeof v);
    return v;
}
template <class T>
static inline bits<T>
raw(T v)
{
    bits<T> b;
    memcpy(&b, &v, sizeof b);
    return b;
}

/* Modifiers. Of roundings one, the nearest (ties to even) being none; those to integers, too. */
enum : unsigned {
    RN = 0,
    RZ = 1,
    RM = 2,
    RP = 3,
    ROUNDING = 3,
    FTZ = 4,
    SAT = 8,
    APPROX = 16,
    FULL = 32,
    NANS = 64, /* .NaN of min and max */
    RNI = RN | 128,
    RZI = RZ | 128,
    RMI = RM | 128,
    RPI = RP | 128,
    TO_INTEGER = 128,
    RELU = 256,
    NOFTZ = 0,
};

constexpr uint32_t NAN_F32 = 0x7fffffffu; /* of arithmetic's results */
constexpr uint64_t NAN_F64 = 0x7fffffffffffffffull;

static inline uint32_t
canonical(float x)
{
    return x != x ? NAN_F32 : raw(x);
}
static inline uint64_t
canonical(double x)
{
    return x != x ? raw(x) | 0x0008000000000000ull : raw(x); /* payloads of doubles pass */
}

template <unsigned F, class T>
static inline T
flushed(T x)
{
    if (sizeof(T) != sizeof(float) || !(F & FTZ))
        return x;
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign((T)0, x) : x;
}
template <unsigned F>
static inline float
source(uint32_t b)
{
    return flushed<F>(value<float>(b));
}

/* Into [0, 1]; NaN is 0. */
template <unsigned F, class T>
static inline T
saturated(T x)
{
    if (!(F & SAT))
        return x;
    return !(x > 0) ? (T)0 : x > 1 ? (T)1 : x;
}

template <unsigned F>
static inline uint32_t
result(float x)
{
    return canonical(saturated<F>(flushed<F>(x)));
}

/* ---- rounding ---- */

static inline int
host_rounding(unsigned how)
{
    static const int ways[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    return ways[how & ROUNDING];
}

/* what(a, b, c), rounded so: the operands are read and the result is there in that mode. */
template <unsigned F, class T, class What>
static inline T
rounded(T a, T b, T c, What what)
{
    if ((F & ROUNDING) == RN)
        return what(a, b, c);
    volatile T x = a, y = b, z = c, r;
    fesetround(host_rounding(F));
    r = what((T)x, (T)y, (T)z);
    fesetround(FE_TONEAREST);
    return r;
}

template <unsigned F, class T>
static inline T
to_integral(T x)
{
    switch (F & ROUNDING) {
    case RZ: return std::trunc(x);
    case RM: return std::floor(x);
    case RP: return std::ceil(x);
    default: return std::rint(x);
    }
}

/* x as a number with `digits` binary digits whose smallest normal exponent is `least` (2^least), up to 2^most. */
template <unsigned F>
static inline double
shortened(double x, int digits, int least, int most)
{
    if (x != x || std::isinf(x) || x == 0)
        return x;
    int e;
    std::frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
    const int unit = (e - 1 < least ? least : e - 1) - (digits - 1);
    const double r = std::ldexp(to_integral<F>(std::ldexp(x, -unit)), unit);
    if (std::fabs(r) < std::ldexp(1, most))
        return std::copysign(r, x);
    const bool down = (F & ROUNDING) == RZ || (F & ROUNDING) == (x > 0 ? RM : RP);
    const double largest = std::ldexp(2 - std::ldexp(1, 1 - digits), most - 1);
    return std::copysign(down ? largest : (double)INFINITY, x);
}

static inline double
from_f16(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double x =
        e == 31 ? (m != 0 ? (double)NAN : (double)INFINITY) : std::ldexp(e == 0 ? m : 1024 + m, e == 0 ? -24 : e - 25);
    return h & 0x8000 ? -x : x;
}
/* Of a number that is one. */
static inline uint16_t
to_f16(double x)
{
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    if (x != x)
        return 0x7fff;
    if (std::isinf(x))
        return sign | 0x7c00;
    int e;
    const double m = std::frexp(std::fabs(x), &e);
    if (x == 0 || e < -13)
        return (uint16_t)(sign | (int)std::ldexp(std::fabs(x), 24));
    return (uint16_t)(sign | (e + 14) << 10 | ((int)std::ldexp(m, 11) & 1023));
}
static inline double
from_bf16(uint16_t h)
{
    return (double)value<float>((uint32_t)h << 16);
}
static inline uint16_t
to_bf16(double x)
{
    return x != x ? 0x7fff : (uint16_t)(raw((float)x) >> 16);
}

template <unsigned F>
static inline uint16_t
f16_of(double x)
{
    return to_f16(shortened<F>(x, 11, -14, 16));
}
template <unsigned F>
static inline uint16_t
bf16_of(double x)
{
    return to_bf16(shortened<F>(x, 8, -126, 128));
}

} // namespace ptx

#endif
