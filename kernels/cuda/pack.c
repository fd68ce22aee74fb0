/* Packs weights into strips and units (layout.h). It reads ggml's formats (kernels/tensor.c). Q8_0, Q4_0, Q4_K and Q6_K
 * keep every number; integers under one scale for 32 columns become Q8_0; all other types become F16. */
#include "kernels/cuda/pack.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/codebooks.h"
#include "kernels/cuda/device/layout.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"

/* ---- integers of eight bits under a scale for 32 columns, as in Q8_0 ---- */

#define BLOCK      32u
#define MOST_BLOCK 256u

/* Sets of types: bit t is type t. IQ2_S, IQ2_XS and IQ1_M have one scale for sixteen columns. */
#define AS_THEY_ARE                                                                                                    \
    (1u << WEIGHT_F16 | 1u << WEIGHT_BF16 | 1u << WEIGHT_Q8_0 | 1u << WEIGHT_Q4_0 | 1u << WEIGHT_Q4_K |                \
     1u << WEIGHT_Q6_K)
#define AS_BYTES                                                                                                       \
    (1u << WEIGHT_MXFP4 | 1u << WEIGHT_IQ4_NL | 1u << WEIGHT_IQ4_XS | 1u << WEIGHT_IQ3_S | 1u << WEIGHT_IQ3_XXS |      \
     1u << WEIGHT_IQ2_XXS | 1u << WEIGHT_IQ1_S | 1u << WEIGHT_TQ1_0 | 1u << WEIGHT_TQ2_0)

/* Computes the scales of the integers in a block, one per thirty-two columns. */
static void
scales_of(enum weight_type type, const unsigned char *block, float scales[MOST_BLOCK / BLOCK])
{
    struct grid_block g;
    if (grid_of(type) != NULL)
        grid_block(type, block, &g);
    for (unsigned j = 0; j < tensor_block_values(type) / BLOCK; j++)
        switch (type) {
        case WEIGHT_MXFP4: scales[j] = e8m0_half(block[0]); break;
        case WEIGHT_IQ4_NL: scales[j] = f16_at(block); break;
        case WEIGHT_IQ4_XS: scales[j] = f16_at(block) * (float)iq4_xs_scale(block, j); break;
        case WEIGHT_TQ1_0: scales[j] = f16_at(block + 52); break;
        case WEIGHT_TQ2_0: scales[j] = f16_at(block + 64); break;
        default: scales[j] = f16_to_f32(g.d) * grid_unit(type) * (float)g.scales[2 * j];
        }
}

/* Converts a row of such a type from its file format to cols / 32 blocks of Q8_0. Integers are unchanged; scales are
 * converted to F16, which is exact for MXFP4 (unless tiny or huge), IQ4_NL, TQ1_0 and TQ2_0. */
static void
row_as_bytes(enum weight_type type, const unsigned char *row, uint32_t cols, unsigned char *out)
{
    const uint32_t values = (uint32_t)tensor_block_values(type);
    float x[MOST_BLOCK], scales[MOST_BLOCK / BLOCK];
    for (uint32_t k = 0; k < cols; k += values, row += tensor_block_bytes(type)) {
        tensor_blocks(type, row, values, x);
        scales_of(type, row, scales);
        for (uint32_t i = 0; i < values; i++) {
            const float scale = scales[i / BLOCK];
            if (i % BLOCK == 0) {
                const uint16_t half = f32_to_f16(scale);
                memcpy(out, &half, sizeof half);
                out += sizeof half;
            }
            *out++ =
                (unsigned char)(scale != 0 ? lrintf(x[i] / scale) : 0); /* exact: x is the scale times this integer */
        }
    }
}

/* ---- Q4_0, Q4_K and Q6_K to pairs of units ---- */

#define PAIRS_OF_SUPER (SUPER / PAIR)

/* ---- Q4_0: two blocks, each F16 d and 16 bytes of values k and k + 16 ---- */

static void
pair_q4_0(const uint32_t *places, const unsigned char *first, const unsigned char *second, unsigned char *quants,
          unsigned char *scales)
{
    static const unsigned char none[18] = {0}; /* d = 0: second half of the pair of an odd last block */
    const unsigned char *a = first + 2, *b = (second != NULL ? second : none) + 2;
    memcpy(scales, a - 2, 2);
    memcpy(scales + 4, b - 2, 2);
    for (uint32_t k = 0; k < UNIT / 2; k++) {
        quants[places[k]] = (unsigned char)((a[k] & 15) | b[k] << 4);
        quants[places[k + UNIT / 2]] = (unsigned char)(a[k] >> 4 | (b[k] & 0xf0));
    }
}

/* ---- Q4_K: F16 d and dmin, 12 bytes of scales and minima, 32 bytes for each pair of sub-blocks ---- */

static void
super_q4_k(const uint32_t *places, const unsigned char *from, unsigned char *quants, unsigned char *scales,
           unsigned char *supers)
{
    memcpy(supers, from, 4);
    for (uint32_t pair = 0; pair < PAIRS_OF_SUPER; pair++, quants += PAIR_NIBBLES, scales += PAIR_SCALES) {
        for (uint32_t unit = 0; unit < 2; unit++) {
            scales[unit] = tensor_six_bits(from + 4, 2 * pair + unit, 0);
            scales[2 + unit] = tensor_six_bits(from + 4, 2 * pair + unit, 4);
        }
        for (uint32_t k = 0; k < UNIT; k++) /* lower halves contain one sub-block, upper halves the next one */
            quants[places[k]] = from[16 + pair * UNIT + k];
    }
}

/* ---- Q6_K: 128 bytes of low bits, 64 of high bits, 16 int8 scales, F16 d ---- */

/* A half of a block is four units: low bits of units 0 and 1 are in the lower halves of 64 bytes, those of 2 and 3 in
 * the upper halves; high bits of all four are in 32 bytes. */
static void
super_q6_k(uint32_t r, const uint32_t *places, const unsigned char *from, unsigned char *quants, unsigned char *scales,
           unsigned char *supers)
{
    memcpy(supers, from + 208, 2);
    for (uint32_t pair = 0; pair < PAIRS_OF_SUPER; pair++) {
        const unsigned char *low = from + pair / 2 * 64, *high = from + 128 + pair / 2 * 32, *steps = from + 192;
        const uint32_t upper = pair % 2 * 4;
        unsigned char *highs = quants + PAIR_NIBBLES;
        memcpy(scales, steps + pair * 4, 4);
        for (uint32_t k = 0; k < UNIT; k++) {
            const uint32_t two = (uint32_t)high[k] >> upper;
            quants[places[k]] =
                (unsigned char)((low[k] >> upper & 15u) | ((uint32_t)low[UNIT + k] >> upper & 15u) << 4);
            highs[high_place(r, k)] |= (unsigned char)(((two & 3u) | (two >> 2 & 3u) << 4) << (r / 8 * 2));
        }
        quants += PAIR_NIBBLES + PAIR_HIGHS;
        scales += PAIR_SCALES;
    }
}

/* Packs row r (0..15) of a strip from its file format into the strip's quants and scales, which must be zero before the
 * first row. cols is a multiple of the type's block. */
static void
pack_pairs(enum weight_type type, uint32_t r, uint32_t cols, const unsigned char *from, unsigned char *quants,
           unsigned char *scales)
{
    const size_t block = tensor_block_bytes(type), super_bytes = STRIP * 2 * super_scales(type);
    unsigned char *supers = scales + units_of(cols) / 2 * PAIR_SCALES + (r % 8 * 2 + r / 8) * super_bytes / STRIP;
    uint32_t places[UNIT];
    for (uint32_t k = 0; k < UNIT; k++)
        places[k] = nibble_place(r, k);
    scales += r % 8 * 8 + r / 8 * (type == WEIGHT_Q4_0 ? 2 : 4);
    if (type == WEIGHT_Q4_0) {
        for (uint32_t k = 0; k < cols; k += PAIR, from += 2 * block, quants += PAIR_NIBBLES, scales += PAIR_SCALES)
            pair_q4_0(places, from, k + UNIT < cols ? from + block : NULL, quants, scales);
        return;
    }
    for (uint32_t k = 0; k < cols; k += SUPER) {
        if (type == WEIGHT_Q4_K)
            super_q4_k(places, from, quants, scales, supers);
        else
            super_q6_k(r, places, from, quants, scales, supers);
        from += block;
        quants += strip_quants(type, SUPER / UNIT);
        scales += PAIRS_OF_SUPER * PAIR_SCALES;
        supers += super_bytes;
    }
}

#define UNIT_VALUES (STRIP * UNIT)
#define Q8_BYTES    34 /* in a file: an F16 scale, 32 int8 */

enum weight_type
pack_type(enum weight_type type, bool exact)
{
    if (exact)
        return WEIGHT_F32;
    if (AS_THEY_ARE >> type & 1u)
        return type;
    return AS_BYTES >> type & 1u ? WEIGHT_Q8_0 : WEIGHT_F16;
}

/* ---- plans ---- */

struct packing
pack_plain(const struct tensor *t, bool exact)
{
    return (struct packing){.parts = {t},
                            .n_parts = 1,
                            .n = 1,
                            .type = pack_type(t->type, exact),
                            .rows = t->rows,
                            .cols = t->cols,
                            .strips = t->rows / STRIP + (t->rows % STRIP != 0),
                            .units = units_of(t->cols)};
}

static bool
take_source(struct packing *p, uint32_t strips)
{
    p->strips = strips;
    p->source = malloc((size_t)strips * STRIP * sizeof *p->source);
    if (p->source != NULL)
        memset(p->source, 0xff, (size_t)strips * STRIP * sizeof *p->source); /* padding */
    else
        p->n_parts = 0;
    return p->source != NULL;
}

struct packing
pack_heads(const struct tensor *t, uint32_t head_dim, uint32_t rope_dims, enum rope_layout rope, bool exact)
{
    struct packing p = pack_plain(t, exact);
    const uint32_t heads = t->rows / head_dim, pairs = head_dim / 2, rotated = rope_dims / 2;
    const uint32_t per_head = (pairs + STRIP / 2 - 1) / (STRIP / 2);
    if ((rope_dims == 0 && head_dim % STRIP == 0) || !take_source(&p, heads * per_head))
        return p;
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < pairs; i++) {
            uint32_t *strip = p.source + ((size_t)h * per_head + i / (STRIP / 2)) * STRIP;
            const bool apart = i < rotated && rope == ROPE_HALVES;
            const uint32_t a = apart ? i : 2 * i, b = apart ? i + rotated : a + 1;
            strip[i % (STRIP / 2)] = h * head_dim + a;
            strip[i % (STRIP / 2) + STRIP / 2] = h * head_dim + b;
        }
    return p;
}

struct packing
pack_gate_up(const struct tensor *gate, const struct tensor *up, bool exact)
{
    const uint32_t ffn = up->rows;
    struct packing p = pack_plain(up, exact);
    if (!tensor_present(gate))
        return p;
    p.parts[0] = gate;
    p.parts[p.n_parts++] = up;
    p.rows = 2 * ffn;
    if (!take_source(&p, (ffn + STRIP / 2 - 1) / (STRIP / 2)))
        return p;
    for (uint32_t i = 0; i < ffn; i++) {
        uint32_t *strip = p.source + (size_t)(i / (STRIP / 2)) * STRIP;
        strip[i % (STRIP / 2)] = i;
        strip[i % (STRIP / 2) + STRIP / 2] = ffn + i;
    }
    return pack_stack(p, 1, 0, exact);
}

struct packing
pack_stack(struct packing p, uint32_t n, size_t stride, bool exact)
{
    p.n = n;
    p.stride = stride;
    for (uint32_t i = 0; i < n * p.n_parts; i++)
        if (pack_type(pack_part(&p, i % p.n_parts, i / p.n_parts)->type, exact) != p.type)
            p.type = WEIGHT_F16; /* all have one type */
    return p;
}

/* ---- sizes ---- */

size_t
pack_quant_bytes(const struct packing *p)
{
    return p->type == WEIGHT_F32 ? (size_t)p->cols * STRIP * sizeof(float) : strip_quants(p->type, p->units);
}

size_t
pack_scale_bytes(const struct packing *p)
{
    return strip_scales(p->type, p->units);
}

/* ---- one row at a time ---- */

/* Returns the tensor and row of a packed row; false: padding. */
static bool
find_row(const struct packing *p, uint32_t packed, const struct tensor **t, uint32_t *row)
{
    const uint32_t e = packed / (p->strips * STRIP), own = packed % (p->strips * STRIP);
    const uint32_t output = p->source != NULL ? p->source[own] : own, part = output >= p->parts[0]->rows ? 1 : 0;
    if (output >= p->rows)
        return false;
    *t = pack_part(p, part, e);
    *row = output - part * p->parts[0]->rows;
    return true;
}

/* Columns 2i and 2i+1 are adjacent in a unit too, so they are copied together. Values after the last column stay
 * zero. */
static void
spread_halves(const struct packing *p, const uint32_t *places, const void *from, uint16_t *strip)
{
    for (uint32_t k = 0; k < p->cols; k += 2)
        memcpy(strip + (size_t)(k / UNIT) * UNIT_VALUES + places[k % UNIT], (const unsigned char *)from + 2 * k,
               (k + 1 < p->cols ? 2 : 1) * sizeof *strip);
}

static void
spread_bytes(const struct packing *p, uint32_t r, const uint32_t *places, const unsigned char *from,
             unsigned char *strip, uint16_t *scales)
{
    for (uint32_t u = 0; u < p->cols / UNIT; u++, from += Q8_BYTES) {
        memcpy(scales + (size_t)u * STRIP + r % 8 * 2 + r / 8, from, sizeof *scales);
        for (uint32_t k = 0; k < UNIT; k += 2)
            memcpy(strip + (size_t)u * UNIT_VALUES + places[k], from + 2 + k, 2);
    }
}

/* Returns the row's bytes in its own type, generating them if the tensor is synthetic. */
static const unsigned char *
file_row(const struct tensor *t, uint32_t row, unsigned char *scratch)
{
    if (t->data != NULL)
        return (const unsigned char *)t->data + row * tensor_row_bytes(t->type, t->cols);
    synthetic_row(t, row, scratch);
    return scratch;
}

/* scratch: a row in F32, or in its file format or Q8_0. */
static void
pack_row(const struct packing *p, uint32_t packed, void *scratch, unsigned char *quants, unsigned char *scales)
{
    const uint32_t r = packed % STRIP;
    const struct tensor *t;
    uint32_t row, places[UNIT];
    if (!find_row(p, packed, &t, &row))
        return;
    if (has_pairs(p->type)) {
        pack_pairs(p->type, r, p->cols, file_row(t, row, scratch), quants, scales);
        return;
    }
    for (uint32_t k = 0; k < UNIT; k++)
        places[k] = p->type == WEIGHT_Q8_0 ? unit_place(r, k) : unit_place_16(r, k);
    switch (p->type) {
    case WEIGHT_F32: tensor_row(t, row, (float *)(void *)quants + (size_t)r * p->cols); break;
    case WEIGHT_Q8_0: {
        const unsigned char *from = file_row(t, row, scratch);
        if (t->type != WEIGHT_Q8_0) {
            row_as_bytes(t->type, from, p->cols, scratch);
            from = scratch;
        }
        spread_bytes(p, r, places, from, quants, (uint16_t *)(void *)scales);
        break;
    }
    default:
        if (t->type == p->type) {
            spread_halves(p, places, file_row(t, row, scratch), (uint16_t *)(void *)quants);
            break;
        }
        tensor_row(t, row, scratch);
        for (uint32_t k = 0; k < p->cols; k++)
            ((uint16_t *)(void *)quants)[(size_t)(k / UNIT) * UNIT_VALUES + places[k % UNIT]] =
                f32_to_f16(((const float *)scratch)[k]);
    }
}

bool
pack_strips(const struct packing *p, uint32_t first, uint32_t n, uint32_t threads, void *quants, void *scales)
{
    const size_t quant_bytes = pack_quant_bytes(p), scale_bytes = pack_scale_bytes(p);
    atomic_bool ok = true;
    (void)threads;
    PARALLEL(omp parallel num_threads(threads))
    {
        void *scratch = malloc(p->cols * sizeof(float) + Q8_BYTES);
        if (scratch == NULL)
            ok = false;
        PARALLEL(omp for schedule(dynamic))
        for (uint32_t s = 0; s < n; s++) {
            unsigned char *q = (unsigned char *)quants + s * quant_bytes, *x = NULL;
            if (scale_bytes > 0)
                x = memset((unsigned char *)scales + s * scale_bytes, 0, scale_bytes);
            memset(q, 0, quant_bytes);
            for (uint32_t r = 0; r < STRIP && scratch != NULL; r++)
                pack_row(p, (first + s) * STRIP + r, scratch, q, x);
        }
        free(scratch);
    }
    return ok;
}
