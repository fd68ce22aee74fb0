/* The interleaved layout of weights in blocks: a vector contains one step, four inputs, of sixteen outputs. Each lane
 * then computes its own output's sum, nothing is added across lanes, and sixteen scales are loaded at once. The layout
 * needs no more bytes per weight.
 *
 * A group is sixteen outputs. Its quants are stored by blocks of 32 inputs. The eight steps of a block are
 *   8 bits       eight planes of 64 bytes: byte 4 * o + i of plane j is input 4 * j + i of output o
 *   4 or 2 bits  four or two planes, two or four steps in a plane, the earlier in the lower bits of each byte
 *   and then, for quants of 5, 3 or 6 bits, the upper one or two of them in one or two planes of their own, likewise
 *   with a grid (codebooks.h) one or two planes: byte 4 * o + i of the first is the i'th row's number, its lower eight bits;
 *                one of signs: bit i of byte 4 * o + l is input 8 * l + i (not IQ1);
 *                then for each o a byte of the upper bits, those of the first row lowest (IQ1: two bytes, and a row's
 *                fourth bit is set if its values are the lower ones)
 * Its scales are stored by blocks of the file, of 32 or 256 inputs, with o the fastest index:
 *   Q8_0 Q4_0 Q5_0 IQ4_NL TQ1_0 TQ2_0
 *                    d[o] in F16
 *   Q4_1 Q5_1        d[o], m[o] in F16
 *   MXFP4            the exponent e[o], a byte
 *   Q4_K Q5_K        d[o], dmin[o] in F16; then for each 32 inputs scale[o], min[o], a byte each
 *   Q6_K Q3_K        d[o] in F16; then for each 16 inputs scale[o], signed
 *   IQ4_XS IQ3_S IQ3_XXS IQ2_XXS
 *                    d[o] in F16; then for each 32 inputs scale[o], signed
 *   IQ2_S IQ2_XS IQ1_M IQ1_S
 *                    d[o] in F16; then for each 32 inputs a byte: of the first sixteen (scale[o] - 1) / 2 in its lower
 *                    half, of the others in its upper
 *   Q2_K             d[o], dmin[o] in F16; then for each 16 inputs a byte: scale[o] in its lower half, min[o] in its upper
 * A weight is scale * (quant - zero) without minima, else scale * quant plus or minus the minimum. Four bits of MXFP4
 * and IQ4 are a place in a table of quants. */
#pragma once

#include "kernels/codebooks.h"
#include "kernels/cpu/isa.h"

#define PLANE 64 /* bytes */
#define STEPS 8  /* of four inputs, in a block of 32 */

/* ---- layout by type: constants if the type is a constant ---- */

SIMD_INLINE bool
interleaves(enum weight_type type)
{
    return type >= WEIGHT_Q8_0 && type < WEIGHT_TYPES;
}

/* Bits of a quant in its first planes, and in the planes after them. */
SIMD_INLINE unsigned
low_bits(enum weight_type type)
{
    switch (type) {
    case WEIGHT_Q8_0: return 8;
    case WEIGHT_Q2_K:
    case WEIGHT_Q3_K:
    case WEIGHT_TQ1_0:
    case WEIGHT_TQ2_0: return 2;
    default: return 4;
    }
}

SIMD_INLINE unsigned
high_bits(enum weight_type type)
{
    switch (type) {
    case WEIGHT_Q5_0:
    case WEIGHT_Q5_1:
    case WEIGHT_Q5_K:
    case WEIGHT_Q3_K: return 1;
    case WEIGHT_Q6_K: return 2;
    default: return 0;
    }
}

/* Returns whether the type stores row indices of a grid instead of quants. */
SIMD_INLINE bool
has_grid(enum weight_type type)
{
    return type >= WEIGHT_IQ3_S && type <= WEIGHT_IQ1_S;
}

SIMD_INLINE bool
has_grid_signs(enum weight_type type)
{
    return type >= WEIGHT_IQ3_S && type <= WEIGHT_IQ2_XXS;
}

/* Number of planes with row indices, and bits of an index that are not in them. */
SIMD_INLINE unsigned
row_planes(enum weight_type type)
{
    return 2 / grid_words(type);
}

SIMD_INLINE unsigned
row_top_bits(enum weight_type type)
{
    switch (type) {
    case WEIGHT_IQ3_S: return 1;
    case WEIGHT_IQ2_S:
    case WEIGHT_IQ2_XS: return 2;
    case WEIGHT_IQ1_M:
    case WEIGHT_IQ1_S: return 4;
    default: return 0;
    }
}

/* Returns whether quants are signed bytes, to which q8_flip applies. */
SIMD_INLINE bool
whole_bytes(enum weight_type type)
{
    return type == WEIGHT_Q8_0 || type == WEIGHT_IQ4_NL || type == WEIGHT_IQ4_XS || has_grid_signs(type);
}

/* Returns the number to subtract from a quant; for whole bytes, the amount that q8_flip 0x80 adds. */
SIMD_INLINE unsigned
quant_zero(enum weight_type type)
{
    if (whole_bytes(type))
        return 128;
    switch (type) {
    case WEIGHT_Q4_0: return 8;
    case WEIGHT_Q5_0:
    case WEIGHT_MXFP4: return 16;
    case WEIGHT_IQ1_M:
    case WEIGHT_IQ1_S: return GRID_IQ1_ZERO;
    case WEIGHT_TQ1_0:
    case WEIGHT_TQ2_0: return 1;
    case WEIGHT_Q6_K: return 32;
    case WEIGHT_Q3_K: return 4;
    default: return 0;
    }
}

SIMD_INLINE bool
has_minima(enum weight_type type)
{
    return type == WEIGHT_Q4_1 || type == WEIGHT_Q5_1 || type == WEIGHT_Q2_K || type == WEIGHT_Q4_K ||
           type == WEIGHT_Q5_K;
}

/* Returns the number of inputs that share a scale. */
SIMD_INLINE size_t
scaled_inputs(enum weight_type type)
{
    switch (type) {
    case WEIGHT_Q2_K:
    case WEIGHT_Q3_K:
    case WEIGHT_Q6_K:
    case WEIGHT_IQ2_S:
    case WEIGHT_IQ2_XS:
    case WEIGHT_IQ1_M:
    case WEIGHT_IQ1_S: return 16;
    default: return 32;
    }
}

/* Returns the number of blocks of 32 in a block of the file. */
SIMD_INLINE size_t
blocks_per_scale(enum weight_type type)
{
    return type >= WEIGHT_Q2_K && type != WEIGHT_MXFP4 && type != WEIGHT_IQ4_NL ? 8 : 1;
}

/* Bytes of a group's quants in a block of 32, and of its scales in a block of the file. */
SIMD_INLINE size_t
quant_bytes(enum weight_type type)
{
    const size_t tops = row_top_bits(type) * 4 * row_planes(type) / 8; /* bytes */
    if (has_grid(type))
        return (row_planes(type) + has_grid_signs(type)) * PLANE + tops * Q8_GROUP;
    return (low_bits(type) + high_bits(type)) * PLANE;
}

SIMD_INLINE size_t
scale_bytes(enum weight_type type)
{
    const size_t halves = has_minima(type) ? 2 : 1, half = halves * sizeof(uint16_t) * Q8_GROUP;
    if (type == WEIGHT_MXFP4)
        return Q8_GROUP;
    if (blocks_per_scale(type) == 1 || type >= WEIGHT_TQ1_0)
        return half;
    return half + (type <= WEIGHT_Q6_K ? 16u : 8u) * Q8_GROUP;
}

/* Calls X(name, type) for all types that interleave, to instantiate code for each of them. Types in SAME_TYPES use the
 * name of another type with the same layout. */
#define SAME_TYPES(X) X(iq2_s, WEIGHT_IQ2_XS) X(iq1_m, WEIGHT_IQ1_S) X(tq2_0, WEIGHT_TQ1_0)
#define INTERLEAVED_TYPES(X)                                                                                           \
    X(q8_0, WEIGHT_Q8_0)                                                                                               \
    X(q4_0, WEIGHT_Q4_0)                                                                                               \
    X(q4_1, WEIGHT_Q4_1)                                                                                               \
    X(q5_0, WEIGHT_Q5_0)                                                                                               \
    X(q5_1, WEIGHT_Q5_1)                                                                                               \
    X(q2_k, WEIGHT_Q2_K)                                                                                               \
    X(q3_k, WEIGHT_Q3_K)                                                                                               \
    X(q4_k, WEIGHT_Q4_K)                                                                                               \
    X(q5_k, WEIGHT_Q5_K)                                                                                               \
    X(q6_k, WEIGHT_Q6_K)                                                                                               \
    X(mxfp4, WEIGHT_MXFP4)                                                                                             \
    X(iq4_nl, WEIGHT_IQ4_NL)                                                                                           \
    X(iq4_xs, WEIGHT_IQ4_XS)                                                                                           \
    X(iq3_s, WEIGHT_IQ3_S)                                                                                             \
    X(iq3_xxs, WEIGHT_IQ3_XXS)                                                                                         \
    X(iq2_s, WEIGHT_IQ2_S)                                                                                             \
    X(iq2_xxs, WEIGHT_IQ2_XXS)                                                                                         \
    X(iq1_m, WEIGHT_IQ1_M)                                                                                             \
    X(tq2_0, WEIGHT_TQ2_0)

/* ---- at load ---- */

/* Interleaves a group: n <= 16 rows of cols inputs, consecutive as in a file; missing rows are zero. q, scale: zeroed
 * buffers of cols/32 * quant_bytes() and cols/(file's block) * scale_bytes() bytes. flip: q8_flip. */
void repack(enum weight_type, const unsigned char *rows, size_t n, size_t cols, uint8_t flip, unsigned char *q,
            unsigned char *scale);
