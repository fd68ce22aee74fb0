/* What instructions are, by definition and slowly: for the rows of *.txt. */
#ifndef PTX_DEFINITIONS_H
#define PTX_DEFINITIONS_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <math.h>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

/* ---- integers ---- */

static inline s64
clamp(s64 x, s64 least, s64 most)
{
    return x < least ? least : x > most ? most : x;
}
static inline s32
extend(s32 x, int digits)
{
    return (s32)((u32)x << (32 - digits)) >> (32 - digits);
}
static inline u64
upper_product(u64 a, u64 b)
{
    const u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
    const u64 middle = ah * bl + (al * bl >> 32), other = al * bh + (u32)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}
static inline u32
count_ones(u64 x)
{
    u32 n = 0;
    for (; x != 0; x >>= 1)
        n += x & 1;
    return n;
}
static inline u32
leading_zeros(u64 x, u32 width)
{
    u32 n = 0;
    while (n < width && !(x >> (width - 1 - n) & 1))
        n++;
    return n;
}
static inline u64
reversed(u64 x, int width)
{
    u64 r = 0;
    for (int i = 0; i < width; i++)
        if (x >> i & 1)
            r |= 1ull << (width - 1 - i);
    return r;
}
static inline s32
signed_field(s32 a, u32 from, u32 n)
{
    if (n == 0)
        return 0;
    const s64 shifted = from > 31 ? (a < 0 ? -1 : 0) : (s64)a >> from;
    return n > 31 ? (s32)shifted : extend((s32)shifted, (int)n);
}
static inline u32
permuted(u32 a, u32 b, u32 which)
{
    u8 all[8], got[4];
    memcpy(all, &a, 4);
    memcpy(all + 4, &b, 4);
    for (int i = 0; i < 4; i++, which >>= 4)
        got[i] = which & 8 ? (u8)((s8)all[which & 7] >> 7) : all[which & 7];
    u32 r;
    memcpy(&r, got, 4);
    return r;
}
static inline u32
dot_bytes(u32 a, u32 b, bool a_signed, bool b_signed)
{
    u32 sum = 0;
    for (int i = 0; i < 32; i += 8) {
        const s32 x = a_signed ? (s8)(a >> i) : (u8)(a >> i), y = b_signed ? (s8)(b >> i) : (u8)(b >> i);
        sum += (u32)(x * y);
    }
    return sum;
}

/* ---- F32 ---- */

static inline u32
float_bits(float x)
{
    u32 b;
    memcpy(&b, &x, 4);
    return b;
}
static inline float
bits_as_float(u32 b)
{
    float x;
    memcpy(&x, &b, 4);
    return x;
}
static inline float
flush(float x)
{
    return x != 0 && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}
static inline float
unit(float x)
{
    return x >= 1 ? 1.0f : x > 0 ? x : 0.0f;
}
/* The F32 that exact + beyond is rounded to: down, up, or (0) towards zero. */
static inline float
directed(double exact, double beyond, int how)
{
    const float r = (float)exact;
    const double rest = exact == (double)r ? beyond : exact - (double)r;
    if (rest != rest || rest == 0 || std::isinf(exact))
        return r;
    if (how > 0 || (how == 0 && (r < 0 || (r == 0 && exact < 0))))
        return rest > 0 ? nextafterf(r, INFINITY) : r;
    return rest < 0 ? nextafterf(r, -INFINITY) : r;
}
static inline float
directed_sum(float a, float b, int how)
{
    const double x = (double)a, y = (double)b, sum = x + y, back = sum - x, rest = (x - (sum - back)) + (y - back);
    if (sum == 0)
        return how < 0 && (std::signbit(a) || std::signbit(b)) ? -0.0f
               : std::signbit(a) && std::signbit(b)            ? -0.0f
                                                               : 0.0f;
    return directed(sum, rest, how);
}

/* ---- 16 bits ---- */

static inline double
half_number(u32 h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double x = e == 31 ? (m ? (double)NAN : (double)INFINITY) : e ? (1024 + m) * pow(2, e - 25) : m * pow(2, -24);
    return h & 0x8000 ? -x : x;
}
/* The last of the halves from 0 on that is not above x. */
static inline u32
half_not_above(__float128 x)
{
    u32 low = 0, high = 0x7c00;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (half_number(middle) <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}
static inline double
nearest_half(__float128 x)
{
    if (x != x)
        return (double)NAN;
    const bool minus = std::signbit((double)x);
    const __float128 size = minus ? -x : x;
    const u32 below = half_not_above(size);
    const __float128 a = half_number(below), b = below == 0x7bff ? (__float128)65536 : half_number(below + 1);
    const bool up = size - a > b - size || (size - a == b - size && below % 2 == 1);
    const double r = std::isinf((double)size) ? (double)INFINITY : half_number(below + up);
    return minus ? -r : r;
}
static inline double
half_below(double x)
{
    if (x != x || std::isinf(x))
        return x;
    return copysign(half_number(half_not_above((__float128)fabs(x))), x);
}
static inline double
nearest_bf16(double x)
{
    const double size = fabs(x);
    if (x != x || std::isinf(x))
        return x;
    u32 near = float_bits((float)size) >> 16, best = 0;
    near = near > 0x7f7f ? 0x7f7f : near;
    double least = (double)INFINITY;
    for (u32 h = near > 1 ? near - 2 : 0; h <= near + 2 && h <= 0x7f80; h++) {
        const double apart = fabs((h == 0x7f80 ? 0x1p128 : (double)bits_as_float(h << 16)) - size);
        if (apart < least || (apart == least && h % 2 == 0))
            least = apart, best = h;
    }
    return copysign((double)bits_as_float(best << 16), x);
}
static inline u16
half_code(double x)
{
    if (x != x)
        return 0x7fff;
    u32 h = half_not_above((__float128)fabs(x));
    h = std::isinf(x) ? 0x7c00 : h;
    return (u16)(h | (std::signbit(x) ? 0x8000 : 0));
}
static inline u16
bf16_code(double x)
{
    return x != x ? 0x7fff : (u16)(float_bits((float)x) >> 16);
}
static inline u32
half_pair(double low, double high)
{
    return half_code(low) | (u32)half_code(high) << 16;
}
static inline u32
bf16_pair(double low, double high)
{
    return bf16_code(low) | (u32)bf16_code(high) << 16;
}
template <class What>
static inline u32
each_half(u32 a, u32 b, What what)
{
    return half_pair(nearest_half(what(half_number(a & 0xffff), half_number(b & 0xffff))),
                     nearest_half(what(half_number(a >> 16), half_number(b >> 16))));
}

#endif
