/* Block formats of ggml: one or two scales, then packed quants. */
#include "kernels/tensor.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/codebooks.h"
#include "kernels/half.h"
#include "kernels/synthetic.h"

#define SUPER 256 /* values in a block of a K-quant */

static const struct {
    const char *name;
    size_t values, bytes; /* values and bytes of a block */
    size_t more;          /* additional bytes of a block in a backend's memory: see tensor_held_bytes() */
} types[WEIGHT_TYPES] = {
    [WEIGHT_F32] = {"F32", 1, 4, 0},
    [WEIGHT_F16] = {"F16", 1, 2, 0},
    [WEIGHT_BF16] = {"BF16", 1, 2, 0},
    [WEIGHT_Q8_0] = {"Q8_0", 32, 34, 0},
    [WEIGHT_Q4_0] = {"Q4_0", 32, 18, 0},
    [WEIGHT_Q4_1] = {"Q4_1", 32, 20, 0},
    [WEIGHT_Q5_0] = {"Q5_0", 32, 22, 0},
    [WEIGHT_Q5_1] = {"Q5_1", 32, 24, 0},
    [WEIGHT_Q2_K] = {"Q2_K", SUPER, 84, 0},
    [WEIGHT_Q3_K] = {"Q3_K", SUPER, 110, 4},
    [WEIGHT_Q4_K] = {"Q4_K", SUPER, 144, 4},
    [WEIGHT_Q5_K] = {"Q5_K", SUPER, 176, 4},
    [WEIGHT_Q6_K] = {"Q6_K", SUPER, 210, 0},
    [WEIGHT_MXFP4] = {"MXFP4", 32, 17, 0},
    [WEIGHT_IQ4_NL] = {"IQ4_NL", 32, 18, 0},
    [WEIGHT_IQ4_XS] = {"IQ4_XS", SUPER, 136, 2},
    [WEIGHT_IQ3_S] = {"IQ3_S", SUPER, 110, 4},
    [WEIGHT_IQ3_XXS] = {"IQ3_XXS", SUPER, 98, 8},
    [WEIGHT_IQ2_S] = {"IQ2_S", SUPER, 82, 0},
    [WEIGHT_IQ2_XS] = {"IQ2_XS", SUPER, 74, 8},
    [WEIGHT_IQ2_XXS] = {"IQ2_XXS", SUPER, 66, 8},
    [WEIGHT_IQ1_M] = {"IQ1_M", SUPER, 56, 2},
    [WEIGHT_IQ1_S] = {"IQ1_S", SUPER, 50, 8},
    [WEIGHT_TQ1_0] = {"TQ1_0", SUPER, 54, 12},
    [WEIGHT_TQ2_0] = {"TQ2_0", SUPER, 66, 0},
};

const char *
tensor_type_name(enum weight_type type)
{
    return (unsigned)type < WEIGHT_TYPES ? types[type].name : "of no known type";
}

size_t
tensor_block_values(enum weight_type type)
{
    return (unsigned)type < WEIGHT_TYPES ? types[type].values : 0;
}

size_t
tensor_block_bytes(enum weight_type type)
{
    return (unsigned)type < WEIGHT_TYPES ? types[type].bytes : 0;
}

size_t
tensor_row_bytes(enum weight_type type, size_t cols)
{
    return cols / types[type].values * types[type].bytes;
}

uint64_t
tensor_held_bytes(enum weight_type type, uint64_t n)
{
    return n / types[type].values * (types[type].bytes + types[type].more);
}

bool
tensor_possible(const struct tensor *t)
{
    const size_t block = tensor_block_values(t->type);
    return block > 0 && t->cols % block == 0 && (t->data != NULL || synthetic_row_bytes(t->type, t->cols) > 0);
}

/* ---- blocks of 32 ---- */

static void
q8_0(const unsigned char *b, float *y)
{
    const float d = f16_at(b);
    for (int k = 0; k < 32; k++)
        y[k] = d * (float)(int8_t)b[2 + k];
}

/* Four bits per value: value k is in the low half of byte k, value k + 16 in its high half. `high` contains a fifth
 * bit, bit k. */
static void
nibbles(const unsigned char *q, uint32_t high, float d, float offset, float *y)
{
    for (int k = 0; k < 16; k++) {
        y[k] = d * (float)((q[k] & 15u) | (high >> k & 1u) << 4) + offset;
        y[k + 16] = d * (float)((uint32_t)q[k] >> 4 | (high >> (k + 16) & 1u) << 4) + offset;
    }
}

static uint32_t
word_at(const unsigned char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* The four bits are an index into a table. */
static void
looked_up(const unsigned char *q, float d, const int8_t table[16], float *y)
{
    for (int k = 0; k < 16; k++) {
        y[k] = d * (float)table[q[k] & 15];
        y[k + 16] = d * (float)table[q[k] >> 4];
    }
}

/* ---- blocks of 256 ---- */

/* q: 128 bytes, 32 for each pair of sub-blocks of 32, low halves first. high: NULL, or a fifth bit: bit j of byte k. */
static void
q45_k(const unsigned char *b, const unsigned char *high, const unsigned char *q, float *y)
{
    const float d = f16_at(b), dmin = f16_at(b + 2);
    for (unsigned j = 0; j < 8; j++) {
        const float each = d * (float)tensor_six_bits(b + 4, j, 0);
        const float offset = dmin * (float)tensor_six_bits(b + 4, j, 4);
        for (unsigned k = 0; k < 32; k++) {
            const uint32_t byte = q[j / 2 * 32 + k], low = j % 2 == 0 ? byte & 15 : byte >> 4;
            const uint32_t fifth = high != NULL ? (uint32_t)high[k] >> j & 1 : 0;
            y[j * 32 + k] = each * (float)(low | fifth << 4) - offset;
        }
    }
}

static void
q2_k(const unsigned char *b, float *y)
{
    const unsigned char *scales = b, *q = b + 16;
    const float d = f16_at(b + 80), dmin = f16_at(b + 82);
    for (int j = 0; j < 16; j++) { /* sub-blocks of 16 */
        const float each = d * (float)(scales[j] & 15), offset = dmin * (float)(scales[j] >> 4);
        const unsigned char *from = q + j / 8 * 32 + j % 2 * 16;
        for (int k = 0; k < 16; k++)
            y[j * 16 + k] = each * (float)(from[k] >> (j % 8 / 2 * 2) & 3) - offset;
    }
}

static void
q3_k(const unsigned char *b, float *y)
{
    const unsigned char *high = b, *q = b + 32, *s = b + 96;
    const float d = f16_at(b + 108);
    for (int j = 0; j < 16; j++) { /* sub-blocks of 16; scales of six bits: four in byte j % 8, two in byte 8 + j % 4 */
        const uint32_t low = j < 8 ? s[j] & 15u : (uint32_t)(s[j - 8] >> 4),
                       two = (uint32_t)(s[8 + j % 4] >> (j / 4 * 2)) & 3;
        const float each = d * (float)((int)(low | two << 4) - 32);
        const int at = j % 2 * 16;
        for (int k = 0; k < 16; k++) {
            const int bits = q[j / 8 * 32 + at + k] >> (j % 8 / 2 * 2) & 3;
            y[j * 16 + k] = each * (float)(high[at + k] >> (j / 2) & 1 ? bits : bits - 4);
        }
    }
}

static void
iq4_xs(const unsigned char *b, float *y)
{
    for (unsigned j = 0; j < 8; j++)
        looked_up(b + 8 + 16 * j, f16_at(b) * (float)iq4_xs_scale(b, j), iq4_values, y + 32 * j);
}

/* Ternary digits, minus one. A byte b of TQ1_0 contains five: b * 3^n * 3 / 256 is the n'th, where b * 3^n is taken
 * modulo 256. Value k + 32 n is in byte k of the first 32, value 160 + k + 16 n in the next sixteen, value 240 + k + 4
 * n in the last four. */
static void
tq1_0(const unsigned char *b, float *y)
{
    static const unsigned powers[] = {1, 3, 9, 27, 81};
    const float d = f16_at(b + 52);
    for (unsigned i = 0; i < SUPER; i++) {
        const unsigned at = i < 160   ? i % 32
                            : i < 240 ? 32 + i % 16
                                      : 48 + i % 4,
                       n = i < 160   ? i / 32
                           : i < 240 ? (i - 160) / 16
                                     : (i - 240) / 4;
        y[i] = d * (float)((int)((b[at] * powers[n] & 255) * 3 >> 8) - 1);
    }
}

static void
tq2_0(const unsigned char *b, float *y)
{
    const float d = f16_at(b + 64);
    for (int i = 0; i < SUPER; i++)
        y[i] = d * (float)((b[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) - 1);
}

static void
q6_k(const unsigned char *b, float *y)
{
    const unsigned char *low = b, *high = b + 128;
    const float d = f16_at(b + 208);
    for (int j = 0; j < 16; j++) { /* sub-blocks of 16, eight in each half of the block */
        const float each = d * (float)(int8_t)b[192 + j];
        const int half = j / 8, quarter = j % 8 / 2;
        for (int k = 0; k < 16; k++) {
            const int i = j % 2 * 16 + k;
            const uint32_t byte = low[half * 64 + quarter % 2 * 32 + i],
                           two = (uint32_t)high[half * 32 + i] >> (quarter * 2) & 3;
            y[j * 16 + k] = each * (float)((int)((quarter < 2 ? byte & 15 : byte >> 4) | two << 4) - 32);
        }
    }
}

/* ---- all ---- */

static void
one_block(enum weight_type type, const unsigned char *b, float *y)
{
    switch (type) {
    case WEIGHT_F32: memcpy(y, b, sizeof *y); break;
    case WEIGHT_F16: *y = f16_at(b); break;
    case WEIGHT_BF16: *y = bf16_to_f32((uint16_t)(b[0] | b[1] << 8)); break;
    case WEIGHT_Q8_0: q8_0(b, y); break;
    case WEIGHT_Q4_0: nibbles(b + 2, 0, f16_at(b), -8 * f16_at(b), y); break;
    case WEIGHT_Q4_1: nibbles(b + 4, 0, f16_at(b), f16_at(b + 2), y); break;
    case WEIGHT_Q5_0: nibbles(b + 6, word_at(b + 2), f16_at(b), -16 * f16_at(b), y); break;
    case WEIGHT_Q5_1: nibbles(b + 8, word_at(b + 4), f16_at(b), f16_at(b + 2), y); break;
    case WEIGHT_Q2_K: q2_k(b, y); break;
    case WEIGHT_Q3_K: q3_k(b, y); break;
    case WEIGHT_Q4_K: q45_k(b, NULL, b + 16, y); break;
    case WEIGHT_Q5_K: q45_k(b, b + 16, b + 48, y); break;
    case WEIGHT_Q6_K: q6_k(b, y); break;
    case WEIGHT_MXFP4: looked_up(b + 1, e8m0_half(b[0]), mxfp4_values, y); break;
    case WEIGHT_IQ4_NL: looked_up(b + 2, f16_at(b), iq4_values, y); break;
    case WEIGHT_IQ4_XS: iq4_xs(b, y); break;
    case WEIGHT_IQ3_S:
    case WEIGHT_IQ3_XXS:
    case WEIGHT_IQ2_S:
    case WEIGHT_IQ2_XS:
    case WEIGHT_IQ2_XXS:
    case WEIGHT_IQ1_M:
    case WEIGHT_IQ1_S: grid_values(type, b, y); break;
    case WEIGHT_TQ1_0: tq1_0(b, y); break;
    case WEIGHT_TQ2_0: tq2_0(b, y); break;
    case WEIGHT_TYPES: break;
    }
}

void
tensor_blocks(enum weight_type type, const void *blocks, size_t n, float *y)
{
    const unsigned char *b = blocks;
    const size_t values = types[type].values, bytes = types[type].bytes;
    for (size_t i = 0; i + values <= n; i += values, b += bytes)
        one_block(type, b, y + i);
}

void
tensor_row(const struct tensor *t, size_t row, float *y)
{
    if (t->data == NULL)
        synthetic_row_f32(t, (uint32_t)row, y);
    else
        tensor_blocks(t->type, (const char *)t->data + row * tensor_row_bytes(t->type, t->cols), t->cols, y);
}

bool
tensor_fits_head(const struct tensor *t, uint32_t rows, uint32_t cols, struct err *err)
{
    return (t->type == WEIGHT_F32 && t->rows == rows && t->cols == cols) ||
           err_set(err, ERR_WORK,
                   "a trained head is %" PRIu32 " by %" PRIu32 ", not %" PRIu32 " by %" PRIu32
                   " in F32: it belongs to another model",
                   t->rows, t->cols, rows, cols);
}
