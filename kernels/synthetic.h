/* Weights computed by a formula: each element of a matrix depends only on the key, its row and its column. The host,
 * devices and files contain the same bits.
 *
 * An element is n * scale. n is an odd number from -127 to 127, all 128 of them equally likely: mean 0, standard
 * deviation SYNTHETIC_DEVIATION. In rows from `faint_row` on, and in columns from `faint_col` on, n is 1 or -1. `scale`
 * has at most four significant bits and is a multiple of 2^-24: an element has at most eleven bits and is exact in F32
 * and F16, and n and scale are the int8 and the scale of Q8_0. The three types contain the same numbers. BF16 has eight
 * bits and contains them rounded to nearest, ties to even. n does not depend on the type.
 *
 * Q4_0 and Q4_K contain three bits of n: 16 (2 (n >> 5) + 1), and Q6_K five: 4 (2 (n >> 3) + 1); 1 and -1 become 0. So
 * their deviations are nearly the same. Where all n of a scale are 1 or -1 (in 32 columns, of Q6_K 16), they are
 * kept. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "kernels/backend.h"

#define SYNTHETIC_DEVIATION 73.8986 /* sqrt((128^2 - 1) / 3) */
#define SYNTHETIC_WORD      8u      /* columns per hash */
#define SYNTHETIC_Q8_BLOCK  32u
#define SYNTHETIC_ONES      0x0101010101010101u

struct synthetic {
    uint64_t key; /* of the model and tensor: synthetic_key() */
    float scale;  /* from synthetic_scale() */
    uint32_t faint_row, faint_col;
};

static inline HOST_DEVICE uint64_t
synthetic_key(uint64_t seed, uint32_t tensor)
{
    return splitmix64_mix(splitmix64_mix(seed + SPLITMIX64_STEP) + tensor);
}

/* Returns eight n's of a row, for the columns from 8 * word on: byte i (from the lowest) is column 8 * word + i, as an
 * int8. */
static inline HOST_DEVICE uint64_t
synthetic_word(const struct synthetic *p, uint32_t row, uint32_t word)
{
    const uint64_t counter = (uint64_t)row << 32 | word;
    const uint64_t n = splitmix64_mix(p->key + (counter + 1) * SPLITMIX64_STEP);
    const uint64_t signs = (n >> 7 & SYNTHETIC_ONES) * 0xffu; /* 0 or -1 in each byte */
    const uint32_t first = word * SYNTHETIC_WORD, bright = row >= p->faint_row ? 0 : p->faint_col;
    const uint64_t below = first >= bright                    ? 0
                           : bright - first >= SYNTHETIC_WORD ? ~(uint64_t)0
                                                              : ~(~(uint64_t)0 << 8 * (bright - first));
    return (n & below) | (signs & ~below) | SYNTHETIC_ONES;
}

static inline HOST_DEVICE int
synthetic_integer(const struct synthetic *p, uint32_t row, uint32_t col)
{
    return (int8_t)(synthetic_word(p, row, col / SYNTHETIC_WORD) >> col % SYNTHETIC_WORD * 8 & 0xffu);
}

static inline HOST_DEVICE float
synthetic_element(const struct synthetic *p, uint32_t row, uint32_t col)
{
    return (float)synthetic_integer(p, row, col) * p->scale;
}

#ifndef __CUDACC__
/* Returns the number closest to `wanted` (above 0) that has four significant bits, clamped to the range from 2^-24 to
 * 2^8. */
float synthetic_scale(double wanted);

/* Returns the bytes of a row of n columns in a file; 0: a type (or, for Q8_0, a width) that cannot be synthetic. */
size_t synthetic_row_bytes(enum weight_type, uint32_t cols);
/* Writes row `row` of a synthetic tensor in its file format to `out`: synthetic_row_bytes(), no alignment needed. */
void synthetic_row(const struct tensor *, uint32_t row, void *out);
/* Writes the row in F32 to y (cols), like tensor_row(). */
void synthetic_row_f32(const struct tensor *, uint32_t row, float *y);
#endif
