/* The layouts are those that kernels/tensor.c reads; tests/unit/kernels/test_tensor.c compares that with the gguf
 * package. */
#include "tests/rigs/requantise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/codebooks.h"
#include "kernels/half.h"
#include "kernels/tensor.h"

#define SUPER    256
#define MOST_SUB 16 /* sub-blocks of a block */

/* The values of a type's quants q in 0..top: scale * (q - zero), or scale * q - least for types with minima. K-quants
 * share one F16 scale in a block of 256 and store codes, multiples of it, for sub-blocks. */
static const struct grid {
    size_t sub; /* values that share a scale */
    int top, zero;
    bool minima;
    int most_code; /* of a sub-block's scale; 0: scales are F16 themselves */
} grids[WEIGHT_TYPES] = {
    [WEIGHT_Q8_0] = {32, 254, 127, false, 0}, [WEIGHT_Q4_0] = {32, 15, 8, false, 0},
    [WEIGHT_Q5_0] = {32, 31, 16, false, 0},   [WEIGHT_Q4_1] = {32, 15, 0, true, 0},
    [WEIGHT_Q5_1] = {32, 31, 0, true, 0},     [WEIGHT_Q2_K] = {16, 3, 0, true, 15},
    [WEIGHT_Q3_K] = {16, 7, 4, false, 31},    [WEIGHT_Q4_K] = {32, 15, 0, true, 63},
    [WEIGHT_Q5_K] = {32, 31, 0, true, 63},    [WEIGHT_Q6_K] = {16, 63, 32, false, 127},
};

struct quants {
    uint16_t d, dmin;                               /* F16 */
    int scale_code[MOST_SUB], least_code[MOST_SUB]; /* for types with codes */
    uint8_t q[SUPER];
};

/* Computes the best scale and least value (which is subtracted) of one sub-block alone. */
static void
wish(const struct grid *g, const float *x, float *scale, float *least)
{
    float low = g->most_code > 0 || !g->minima ? fminf(x[0], 0) : x[0], high = x[0]; /* K-quants' minima are below 0 */
    for (size_t i = 1; i < g->sub; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    if (g->minima) {
        *scale = (high - low) / (float)g->top;
        *least = -low;
    } else { /* the extreme value becomes the quant farthest from zero */
        *scale = high > -low ? -high / (float)g->zero : -low / (float)g->zero;
        *least = 0;
    }
}

static uint16_t
share(const float *wishes, size_t n, int most_code, int *codes)
{
    float most = 0;
    for (size_t j = 0; j < n; j++)
        most = fmaxf(most, fabsf(wishes[j]));
    const uint16_t d = f32_to_f16(most / (float)most_code);
    for (size_t j = 0; j < n; j++)
        codes[j] = f16_to_f32(d) > 0 ? (int)lrintf(wishes[j] / f16_to_f32(d)) : 0;
    for (size_t j = 0; j < n; j++)
        codes[j] = codes[j] > most_code ? most_code : codes[j] < -most_code ? -most_code : codes[j];
    return d;
}

static void
quantise(const struct grid *g, const float *x, size_t n, struct quants *out)
{
    float scale[MOST_SUB] = {0}, least[MOST_SUB] = {0};
    const size_t n_sub = n / g->sub;
    for (size_t j = 0; j < n_sub; j++)
        wish(g, x + j * g->sub, &scale[j], &least[j]);
    if (g->most_code == 0) {
        out->d = f32_to_f16(scale[0]);
        out->dmin = f32_to_f16(-least[0]); /* these types add it */
        scale[0] = f16_to_f32(out->d);
        least[0] = -f16_to_f32(out->dmin);
    } else {
        out->d = share(scale, n_sub, g->most_code, out->scale_code);
        out->dmin = share(least, n_sub, g->most_code, out->least_code);
        for (size_t j = 0; j < n_sub; j++) {
            scale[j] = f16_to_f32(out->d) * (float)out->scale_code[j];
            least[j] = f16_to_f32(out->dmin) * (float)out->least_code[j];
        }
    }
    for (size_t i = 0; i < n; i++) {
        const size_t j = i / g->sub;
        const float q = scale[j] != 0 ? roundf((x[i] + least[j]) / scale[j]) + (float)g->zero : (float)g->zero;
        out->q[i] = (uint8_t)fmaxf(0, fminf(q, (float)g->top));
    }
}

/* ---- layouts ---- */

static unsigned char *
put(unsigned char *out, const void *bytes, size_t n)
{
    memcpy(out, bytes, n);
    return out + n;
}

/* Q4_0, Q4_1, Q5_0, Q5_1: the scale, the added value, the fifth bits, then the low halves with the high halves. */
static void
pack_32(enum weight_type type, const struct quants *a, unsigned char *out)
{
    uint32_t fifth = 0;
    unsigned char low[16];
    for (int k = 0; k < 32; k++)
        fifth |= (uint32_t)(a->q[k] >> 4 & 1) << k;
    for (int k = 0; k < 16; k++)
        low[k] = (unsigned char)((a->q[k] & 15) | (a->q[k + 16] & 15) << 4);
    out = put(out, &a->d, sizeof a->d);
    if (grids[type].minima)
        out = put(out, &a->dmin, sizeof a->dmin);
    if (grids[type].top == 31)
        out = put(out, &fifth, sizeof fifth);
    put(out, low, sizeof low);
}

static void
pack_q8_0(const struct quants *a, unsigned char *out)
{
    out = put(out, &a->d, sizeof a->d);
    for (int k = 0; k < 32; k++)
        out[k] = (unsigned char)(a->q[k] - 127);
}

static void
pack_q2_k(const struct quants *a, unsigned char *out)
{
    for (int j = 0; j < 16; j++) {
        out[j] = (unsigned char)(a->scale_code[j] | a->least_code[j] << 4);
        for (int k = 0; k < 16; k++)
            out[16 + j / 8 * 32 + j % 2 * 16 + k] |= (unsigned char)(a->q[j * 16 + k] << (j % 8 / 2 * 2));
    }
    put(out + 80, &a->d, sizeof a->d);
    put(out + 82, &a->dmin, sizeof a->dmin);
}

static void
pack_q3_k(const struct quants *a, unsigned char *out)
{
    for (int j = 0; j < 16; j++) {
        const int code = a->scale_code[j] + 32, at = j % 2 * 16;
        out[96 + j % 8] |= (unsigned char)((code & 15) << (j < 8 ? 0 : 4));
        out[96 + 8 + j % 4] |= (unsigned char)(code >> 4 << (j / 4 * 2));
        for (int k = 0; k < 16; k++) {
            const int q = a->q[j * 16 + k];
            out[32 + j / 8 * 32 + at + k] |= (unsigned char)((q & 3) << (j % 8 / 2 * 2));
            out[at + k] |= (unsigned char)(q >> 2 << (j / 2));
        }
    }
    put(out + 108, &a->d, sizeof a->d);
}

static void
pack_q45_k(enum weight_type type, const struct quants *a, unsigned char *out)
{
    unsigned char *s = out + 4, *high = out + 16, *low = type == WEIGHT_Q5_K ? out + 48 : out + 16;
    put(out, &a->d, sizeof a->d);
    put(out + 2, &a->dmin, sizeof a->dmin);
    for (int j = 0; j < 8; j++) {
        const int scale = a->scale_code[j], least = a->least_code[j];
        if (j < 4) {
            s[j] |= (unsigned char)scale;
            s[j + 4] |= (unsigned char)least;
        } else {
            s[j + 4] |= (unsigned char)((scale & 15) | (least & 15) << 4);
            s[j - 4] |= (unsigned char)(scale >> 4 << 6);
            s[j] |= (unsigned char)(least >> 4 << 6);
        }
        for (int k = 0; k < 32; k++) {
            const int q = a->q[j * 32 + k];
            low[j / 2 * 32 + k] |= (unsigned char)((q & 15) << (j % 2 * 4));
            if (type == WEIGHT_Q5_K)
                high[k] |= (unsigned char)(q >> 4 << j);
        }
    }
}

static void
pack_q6_k(const struct quants *a, unsigned char *out)
{
    for (int j = 0; j < 16; j++) {
        const int half = j / 8, quarter = j % 8 / 2;
        out[192 + j] = (unsigned char)a->scale_code[j];
        for (int k = 0; k < 16; k++) {
            const int i = j % 2 * 16 + k, q = a->q[j * 16 + k];
            out[half * 64 + quarter % 2 * 32 + i] |= (unsigned char)((q & 15) << (quarter / 2 * 4));
            out[128 + half * 32 + i] |= (unsigned char)(q >> 4 << (quarter * 2));
        }
    }
    put(out + 208, &a->d, sizeof a->d);
}

/* Packs the nearest values of a table under a scale. */
static void
pack_table(const float *x, float scale, const int8_t table[16], unsigned char *out)
{
    for (int k = 0; k < 32; k++) {
        unsigned best = 0;
        for (unsigned c = 1; c < 16; c++)
            if (fabsf(x[k] - scale * (float)table[c]) < fabsf(x[k] - scale * (float)table[best]))
                best = c;
        out[k % 16] |= (unsigned char)(best << k / 16 * 4);
    }
}

static float
most_of_32(const float *x)
{
    float most = 0;
    for (int k = 0; k < 32; k++)
        most = fmaxf(most, fabsf(x[k]));
    return most;
}

/* Packs a block whose largest value becomes one of 4 to 6, that is 8 to 12 in doubled values. */
static void
pack_mxfp4(const float *x, unsigned char *out)
{
    int exponent;
    (void)frexpf(most_of_32(x), &exponent);
    out[0] = (unsigned char)(exponent - 1 - 2 + 127);
    pack_table(x, e8m0_half(out[0]), mxfp4_values, out + 1);
}

static void
pack_iq4_nl(const float *x, unsigned char *out)
{
    const uint16_t d = f32_to_f16(most_of_32(x) / 113);
    pack_table(x, f16_to_f32(d), iq4_values, put(out, &d, sizeof d));
}

static void
one_block(enum weight_type type, const float *x, unsigned char *out)
{
    struct quants a;
    const uint32_t bits = bits_of_float(*x);
    const uint16_t f16 = f32_to_f16(*x), bf16 = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if (grids[type].sub > 0)
        quantise(&grids[type], x, tensor_block_values(type), &a);
    switch (type) {
    case WEIGHT_F32: put(out, x, sizeof *x); break;
    case WEIGHT_F16: put(out, &f16, sizeof f16); break;
    case WEIGHT_BF16: put(out, &bf16, sizeof bf16); break;
    case WEIGHT_Q8_0: pack_q8_0(&a, out); break;
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_1:
    case WEIGHT_Q5_0:
    case WEIGHT_Q5_1: pack_32(type, &a, out); break;
    case WEIGHT_Q2_K: pack_q2_k(&a, out); break;
    case WEIGHT_Q3_K: pack_q3_k(&a, out); break;
    case WEIGHT_Q4_K:
    case WEIGHT_Q5_K: pack_q45_k(type, &a, out); break;
    case WEIGHT_Q6_K: pack_q6_k(&a, out); break;
    case WEIGHT_MXFP4: pack_mxfp4(x, out); break;
    case WEIGHT_IQ4_NL: pack_iq4_nl(x, out); break;
    default: abort(); /* other types need a search in grids; tests/golden/make_models_golden.py makes random ones */
    }
}

void
requantise_row(enum weight_type type, const float *x, size_t n, unsigned char *out)
{
    const size_t values = tensor_block_values(type), bytes = tensor_block_bytes(type);
    memset(out, 0, tensor_row_bytes(type, n));
    for (size_t i = 0; i + values <= n; i += values, out += bytes)
        one_block(type, x + i, out);
}
