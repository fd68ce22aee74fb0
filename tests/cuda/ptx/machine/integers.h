/* Integers and bits. */
#ifndef PTX_INTEGERS_H
#define PTX_INTEGERS_H

#include "numbers.h"

namespace ptx
{

template <class T> using enable_integer = std::enable_if_t<std::is_integral<T>::value, int>;

template <class T> struct twice {
    using type = std::conditional_t<
        sizeof(T) == 2, std::conditional_t<std::is_signed<T>::value, s32, u32>,
        std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed<T>::value, s64, u64>,
                           std::conditional_t<std::is_signed<T>::value, __int128, unsigned __int128>>>;
};
template <class T> using wide = typename twice<T>::type;
template <class T> using wide_unsigned = std::make_unsigned_t<wide<T>>;

template <class T>
static inline bits<T>
clamped(wide<T> x)
{
    const wide<T> least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    return (bits<T>)(x < least ? least : x > most ? most : x);
}

/* ---- arithmetic ---- */

template <class T, unsigned F = 0, enable_integer<T> = 0>
static inline bits<T>
op_add(bits<T> a, bits<T> b)
{
    return F & SAT ? clamped<T>((wide<T>)(T)a + (wide<T>)(T)b) : (bits<T>)(a + b);
}
template <class T, unsigned F = 0, enable_integer<T> = 0>
static inline bits<T>
op_sub(bits<T> a, bits<T> b)
{
    return F & SAT ? clamped<T>((wide<T>)(T)a - (wide<T>)(T)b) : (bits<T>)(a - b);
}
template <class T>
static inline wide<T>
product(bits<T> a, bits<T> b)
{
    return (wide<T>)(T)a * (wide<T>)(T)b;
}
template <class T>
static inline bits<T>
op_mul_lo(bits<T> a, bits<T> b)
{
    return (bits<T>)product<T>(a, b);
}
template <class T>
static inline bits<T>
op_mul_hi(bits<T> a, bits<T> b)
{
    return (bits<T>)(product<T>(a, b) >> (8 * sizeof(T)));
}
template <class T>
static inline bits<wide<T>>
op_mul_wide(bits<T> a, bits<T> b)
{
    return (bits<wide<T>>)product<T>(a, b);
}
template <class T>
static inline bits<T>
op_mad_lo(bits<T> a, bits<T> b, bits<T> c)
{
    return (bits<T>)(op_mul_lo<T>(a, b) + c);
}
template <class T, unsigned F = 0>
static inline bits<T>
op_mad_hi(bits<T> a, bits<T> b, bits<T> c)
{
    return op_add<T, F>(op_mul_hi<T>(a, b), c);
}
template <class T>
static inline bits<wide<T>>
op_mad_wide(bits<T> a, bits<T> b, bits<wide<T>> c)
{
    return op_mul_wide<T>(a, b) + c;
}
/* Of 24 bits: what lies above is not looked at. */
template <class T>
static inline wide<T>
product24(bits<T> a, bits<T> b)
{
    const unsigned unused = 8;
    return (wide<T>)((T)(a << unused) >> unused) * (wide<T>)((T)(b << unused) >> unused);
}
template <class T>
static inline bits<T>
op_mul24_lo(bits<T> a, bits<T> b)
{
    return (bits<T>)product24<T>(a, b);
}
template <class T>
static inline bits<T>
op_mul24_hi(bits<T> a, bits<T> b)
{
    return (bits<T>)(product24<T>(a, b) >> 16);
}
template <class T>
static inline bits<T>
op_mad24_lo(bits<T> a, bits<T> b, bits<T> c)
{
    return op_mul24_lo<T>(a, b) + c;
}
template <class T>
static inline bits<T>
op_sad(bits<T> a, bits<T> b, bits<T> c)
{
    return (bits<T>)(c + ((T)a < (T)b ? b - a : a - b));
}
/* By 0: not defined; all ones, as GPUs have it. */
template <class T, enable_integer<T> = 0>
static inline bits<T>
op_div(bits<T> a, bits<T> b)
{
    if (b == 0)
        return (bits<T>)~(bits<T>)0;
    if (std::is_signed<T>::value && b == (bits<T>)~(bits<T>)0)
        return (bits<T>)(0 - a);
    return (bits<T>)((T)a / (T)b);
}
template <class T>
static inline bits<T>
op_rem(bits<T> a, bits<T> b)
{
    if (b == 0)
        return a;
    if (std::is_signed<T>::value && b == (bits<T>)~(bits<T>)0)
        return 0;
    return (bits<T>)((T)a % (T)b);
}
template <class T, enable_integer<T> = 0>
static inline bits<T>
op_abs(bits<T> a)
{
    return (T)a < 0 ? (bits<T>)(0 - a) : a;
}
template <class T, enable_integer<T> = 0>
static inline bits<T>
op_neg(bits<T> a)
{
    return (bits<T>)(0 - a);
}
template <class T, unsigned F = 0, enable_integer<T> = 0>
static inline bits<T>
op_min(bits<T> a, bits<T> b)
{
    const bits<T> r = (T)b < (T)a ? b : a;
    return F & RELU && (T)r < 0 ? 0 : r;
}
template <class T, unsigned F = 0, enable_integer<T> = 0>
static inline bits<T>
op_max(bits<T> a, bits<T> b)
{
    const bits<T> r = (T)a < (T)b ? b : a;
    return F & RELU && (T)r < 0 ? 0 : r;
}

/* ---- bits ---- */

template <class T>
static inline bits<T>
op_and(bits<T> a, bits<T> b)
{
    return a & b;
}
template <class T>
static inline bits<T>
op_or(bits<T> a, bits<T> b)
{
    return a | b;
}
template <class T>
static inline bits<T>
op_xor(bits<T> a, bits<T> b)
{
    return a ^ b;
}
template <class T>
static inline bits<T>
op_not(bits<T> a)
{
    return std::is_same<T, bool>::value ? (bits<T>)!a : (bits<T>)~(u64)a;
}
template <class T>
static inline bits<T>
op_cnot(bits<T> a)
{
    return a == 0;
}
template <class T>
static inline bits<T>
op_shl(bits<T> a, u32 by)
{
    return by >= 8 * sizeof(T) ? (bits<T>)0 : (bits<T>)((u64)a << by);
}
template <class T>
static inline bits<T>
op_shr(bits<T> a, u32 by)
{
    const u32 width = 8 * sizeof(T);
    if (std::is_signed<T>::value)
        return (bits<T>)((T)a >> (by >= width ? width - 1 : by));
    return by >= width ? (bits<T>)0 : (bits<T>)(a >> by);
}
/* Of b (high) and a (low) together; .wrap takes the distance modulo 32, .clamp 32 at most. */
template <bool CLAMP>
static inline u32
op_shf_l(u32 a, u32 b, u32 by)
{
    const u64 both = (u64)b << 32 | a;
    const u32 n = CLAMP ? (by < 32 ? by : 32) : by & 31;
    return (u32)(both << n >> 32);
}
template <bool CLAMP>
static inline u32
op_shf_r(u32 a, u32 b, u32 by)
{
    const u64 both = (u64)b << 32 | a;
    const u32 n = CLAMP ? (by < 32 ? by : 32) : by & 31;
    return (u32)(both >> n);
}
template <class T>
static inline u32
op_popc(bits<T> a)
{
    return (u32)__builtin_popcountll(a);
}
template <class T>
static inline u32
op_clz(bits<T> a)
{
    return a == 0 ? 8 * sizeof(T) : (u32)__builtin_clzll(a) - (64 - 8 * (u32)sizeof(T));
}
/* Where the first bit is that is not the sign's; SHIFT: how far to the left it would go. */
template <class T, bool SHIFT>
static inline u32
op_bfind(bits<T> a)
{
    const bits<T> found = (T)a < 0 ? (bits<T>)~a : a;
    if (found == 0)
        return 0xffffffffu;
    const u32 zeros = op_clz<T>(found);
    return SHIFT ? zeros : 8 * sizeof(T) - 1 - zeros;
}
template <class T>
static inline bits<T>
op_brev(bits<T> a)
{
    bits<T> r = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); i++)
        r = (bits<T>)(r << 1 | (a >> i & 1));
    return r;
}
template <class T>
static inline bits<T>
op_bfe(bits<T> a, u32 from, u32 n)
{
    const u32 most = 8 * sizeof(T) - 1, pos = from & 0xff, len = n & 0xff;
    if (len == 0)
        return 0;
    const u32 last = pos + len - 1 < most ? pos + len - 1 : most;
    const bool sign = (T)-1 < 0 && (a >> last & 1);
    bits<T> r = sign ? (bits<T>)~(bits<T>)0 : 0;
    for (u32 i = 0; i <= most && i < len; i++) {
        const bool bit = pos + i <= most ? (a >> (pos + i) & 1) : sign;
        r = (bits<T>)((r & ~((bits<T>)1 << i)) | (bits<T>)bit << i);
    }
    return r;
}
template <class T>
static inline bits<T>
op_bfi(bits<T> a, bits<T> b, u32 to, u32 n)
{
    const u32 width = 8 * sizeof(T), pos = to & 0xff, len = n & 0xff;
    for (u32 i = 0; i < len && pos + i < width && i < width; i++)
        b = (bits<T>)((b & ~((bits<T>)1 << (pos + i))) | (a >> i & 1) << (pos + i));
    return b;
}
template <bool CLAMP>
static inline u32
op_bmsk(u32 a, u32 b)
{
    const u32 pos = CLAMP ? a : a & 31, len = CLAMP ? b : b & 31;
    return op_shl<u32>(op_shl<u32>(1, len) - 1, pos);
}

/* ---- bytes ---- */

static inline u32
op_prmt(u32 a, u32 b, u32 which)
{
    const u64 all = (u64)b << 32 | a;
    u32 r = 0;
    for (u32 i = 0; i < 4; i++) {
        const u32 digit = which >> (4 * i) & 15, byte = (u32)(all >> (digit & 7) * 8) & 0xff;
        r |= (digit & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * i);
    }
    return r;
}
template <u32 TABLE>
static inline u32
op_lop3(u32 a, u32 b, u32 c)
{
    u32 r = 0;
    for (u32 i = 0; i < 8; i++)
        if (TABLE >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return r;
}
/* A, B: types of 8 bits. */
template <class A, class B>
static inline u32
op_dp4a(u32 a, u32 b, u32 c)
{
    for (u32 i = 0; i < 4; i++)
        c += (u32)((int)(A)(a >> 8 * i) * (int)(B)(b >> 8 * i));
    return c;
}

/* ---- addition and subtraction in pieces ---- */

template <class T>
static inline bits<T>
add_carrying(bits<T> a, bits<T> b, bool in, bool *out)
{
    const unsigned __int128 sum = (unsigned __int128)a + b + in;
    *out = (bool)(sum >> (8 * sizeof(T)) & 1);
    return (bits<T>)sum;
}
template <class T>
static inline bits<T>
sub_borrowing(bits<T> a, bits<T> b, bool in, bool *out)
{
    const unsigned __int128 rest = (unsigned __int128)a - b - in;
    *out = (bool)(rest >> (8 * sizeof(T)) & 1);
    return (bits<T>)rest;
}

} // namespace ptx

#endif
