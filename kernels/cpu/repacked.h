/* Products with interleaved weights (repack.h), written once for any vector of 32-bit lanes and for every block type.
 * Included by simd.h, after the instruction set has defined the names that quants.h requires, and
 *   v_dot2(dot, w0, w1, x)            dot + two steps: w0's lane i times x[0..3], w1's times x[4..7]; weights 0..63
 *   v_dot2_q8(dot, w0, w1, x)         the same for whole bytes as stored
 *   GROUP_TILE                        number of sums that fit into the registers
 * A sum runs over the blocks in order. Integers of a block are added exactly and then scaled in the same way
 * everywhere, so all instruction sets yield the same bits. */
#pragma once

#include "kernels/cpu/quants.h"

/* Computes y of `groups` groups and `rows` rows, groups * rows <= GROUP_TILE; y points at the first group's first
 * output. Every loaded weight is used for all rows. With few rows several groups are computed together, so that sums do
 * not wait for each other. */
SIMD_INLINE void
group_tile(const enum weight_type type, const struct matrix *w, size_t group, const size_t groups, const struct acts *x,
           size_t row, const size_t rows, float *y, size_t ld)
{
    const size_t per = blocks_per_scale(type), halves = scaled_inputs(type) == 16 ? 2 : 1;
    const size_t blocks = w->cols / (Q8_BLOCK * per);
    const int32_t zero = whole_bytes(type) && Q8_FLIP == 0 ? 0 : (int32_t)quant_zero(type);
    const uint32_t *grid = has_grid(type) ? grid_of(w->type) : NULL;
    for (size_t part = 0; part < Q8_GROUP / LANES; part++) {
        vec sum[GROUP_TILE];
        UNROLL for (size_t i = 0; i < groups * rows; i++) sum[i] = v_zero();
        for (size_t b = 0; b < blocks * per; b++) {
            const struct act_block *xb = x->q + row * x->stride + b;
            UNROLL for (size_t g = 0; g < groups; g++)
            {
                const unsigned char *q = w->q + ((group + g) * blocks * per + b) * quant_bytes(type);
                const unsigned char *s = w->scale + ((group + g) * blocks + b / per) * scale_bytes(type);
                if (part == 0)
                    fetch_ahead(type, q, rows);
                UNROLL for (size_t h = 0; h < halves; h++)
                {
                    ints dot[GROUP_TILE];
                    UNROLL for (size_t r = 0; r < rows; r++)
                    {
                        const struct act_block *xr = xb + r * x->stride;
                        const int32_t less = halves == 2 ? xr->less_half[h] : xr->less;
                        dot[r] = (ints){0};
                        if (zero > 0)
                            dot[r] = (dot[r] + less) * zero;
                    }
                    UNROLL for (unsigned j = 0; j < STEPS / halves; j += 2)
                    {
                        const unsigned at = (unsigned)(h * STEPS / halves) + j;
                        const codes w0 = quants_at(type, grid, q, part, at),
                                    w1 = quants_at(type, grid, q, part, at + 1);
                        UNROLL for (size_t r = 0; r < rows; r++)
                        {
                            const int8_t *xq = xb[r * x->stride].q + 4 * at;
                            dot[r] = whole_bytes(type) ? v_dot2_q8(dot[r], w0, w1, xq) : v_dot2(dot[r], w0, w1, xq);
                        }
                    }
                    const struct scaling scaling = scaling_at(type, s, part, b % per, h);
                    UNROLL for (size_t r = 0; r < rows; r++)
                    {
                        const struct act_block *xr = xb + r * x->stride;
                        vec *to = &sum[g * rows + r];
                        *to = v_fma(v_real(dot[r]), v_mul(scaling.each, v_set1(xr->scale)), *to);
                        if (has_minima(type))
                            *to = v_fma(scaling.least, v_set1(halves == 2 ? xr->sum_half[h] : xr->sum), *to);
                    }
                }
            }
        }
        UNROLL for (size_t g = 0; g < groups; g++) UNROLL for (size_t r = 0; r < rows; r++)
            v_store(y + r * ld + g * Q8_GROUP + part * LANES, sum[g * rows + r]);
    }
}

SIMD_INLINE void
group_stripe(const enum weight_type type, const struct matrix *w, size_t group, const struct acts *x, size_t n,
             float *y, size_t ld)
{
    size_t r = 0;
    for (; r + GROUP_TILE <= n; r += GROUP_TILE)
        group_tile(type, w, group, 1, x, r, GROUP_TILE, y + r * ld, ld);
    for (; GROUP_TILE > 4 && r + 4 <= n; r += 4)
        group_tile(type, w, group, 1, x, r, 4, y + r * ld, ld);
    for (; GROUP_TILE > 2 && r + 2 <= n; r += 2)
        group_tile(type, w, group, 1, x, r, 2, y + r * ld, ld);
    for (; r < n; r++)
        group_tile(type, w, group, 1, x, r, 1, y + r * ld, ld);
}

SIMD_INLINE void
matmul_groups(const enum weight_type type, const struct matrix *w, const struct acts *x, size_t n, size_t first,
              size_t last, float *y, size_t ld)
{
    for (size_t o = first; o < last;) {
        size_t group = o / Q8_GROUP, begin = group * Q8_GROUP, end = begin + Q8_GROUP;
        if (o > begin || end > last) { /* part of a group: uses a buffer */
            if (end > last)
                end = last;
            for (size_t r = 0; r < n; r++) {
                float part[Q8_GROUP];
                group_tile(type, w, group, 1, x, r, 1, part, Q8_GROUP);
                memcpy(y + r * ld + o, part + (o - begin), (end - o) * sizeof *y);
            }
        } else if (n == 1 && o + GROUP_TILE * Q8_GROUP <= last) {
            group_tile(type, w, group, GROUP_TILE, x, 0, 1, y + o, ld);
            end = o + GROUP_TILE * Q8_GROUP;
        } else {
            group_stripe(type, w, group, x, n, y + o, ld);
        }
        o = end;
    }
}

#define DEFINE_MATMUL_GROUPS(name, type)                                                                               \
    static void matmul_##name(const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last,       \
                              float *y, size_t ld)                                                                     \
    {                                                                                                                  \
        matmul_groups(type, w, x, n, first, last, y, ld);                                                              \
    }
INTERLEAVED_TYPES(DEFINE_MATMUL_GROUPS)

#define MATMUL_ENTRY(name, type) [type] = matmul_##name,
#define INTERLEAVED_KERNELS      INTERLEAVED_TYPES(MATMUL_ENTRY) SAME_TYPES(MATMUL_ENTRY)
