/* Conversion of 16-bit floats: IEEE binary16 (F16) and bfloat16 (BF16). */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

static inline HOST_DEVICE float
float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline HOST_DEVICE uint32_t
bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float
f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 1023u;
    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24 */
        float x = (float)mantissa * 0x1p-24f;
        return sign != 0 ? -x : x;
    }
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | mantissa << 13);
    return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* Reads an F16 from two bytes; no alignment needed. */
static inline float
f16_at(const unsigned char *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return f16_to_f32(half);
}

/* Rounds to nearest, ties to even, like the processors' instructions. */
static inline uint16_t
f32_to_f16(float x)
{
    uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) { /* below 2^-14: subnormal; the addition rounds at 2^-24 */
        uint32_t units = bits_of_float(float_of_bits(rest) + 0.5f) - bits_of_float(0.5f);
        return (uint16_t)(sign | units);
    }
    rest += 0xfffu + (rest >> 13 & 1u);
    return (uint16_t)(sign | (rest - 0x38000000u) >> 13);
}

static inline HOST_DEVICE float
bf16_to_f32(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

/* Rounds to nearest, ties to even; x must be finite. */
static inline HOST_DEVICE uint16_t
f32_to_bf16(float x)
{
    const uint32_t bits = bits_of_float(x);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Returns x rounded to BF16. */
static inline HOST_DEVICE float
bf16_nearest(float x)
{
    return bf16_to_f32(f32_to_bf16(x));
}
