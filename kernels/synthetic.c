#include "kernels/synthetic.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/tensor.h"

#define SCALE_BITS 4
#define LEAST_UNIT 0x1p-24 /* smallest subnormal F16 */
#define MOST_SCALE 0x1p8   /* 127 times it is still a finite F16 */

float
synthetic_scale(double wanted)
{
    int exponent;
    if (!(wanted > LEAST_UNIT))
        return (float)LEAST_UNIT;
    if (wanted > MOST_SCALE)
        return (float)MOST_SCALE;
    (void)frexp(wanted, &exponent); /* wanted is in [2^(exponent - 1), 2^exponent) */
    const double unit = fmax(ldexp(1, exponent - SCALE_BITS), LEAST_UNIT);
    return (float)(nearbyint(wanted / unit) * unit);
}

size_t
synthetic_row_bytes(enum weight_type type, uint32_t cols)
{
    const bool made = type == WEIGHT_F32 || type == WEIGHT_F16 || type == WEIGHT_BF16 || type == WEIGHT_Q8_0;
    return made && cols % tensor_block_values(type) == 0 ? tensor_row_bytes(type, cols) : 0;
}

/* Writes the n's of columns [first, first + n); first is a multiple of SYNTHETIC_WORD. */
static void
integers(const struct synthetic *p, uint32_t row, uint32_t first, uint32_t n, int8_t *out)
{
    for (uint32_t i = 0; i < n; i += SYNTHETIC_WORD) {
        const uint64_t word = synthetic_word(p, row, (first + i) / SYNTHETIC_WORD);
        for (uint32_t k = 0; k < SYNTHETIC_WORD && i + k < n; k++)
            out[i + k] = (int8_t)(word >> 8 * k & 0xffu);
    }
}

static void
row_q8_0(const struct tensor *t, uint32_t row, unsigned char *out)
{
    const uint16_t scale = f32_to_f16(t->synthetic->scale);
    for (uint32_t k = 0; k < t->cols; k += SYNTHETIC_Q8_BLOCK, out += sizeof scale + SYNTHETIC_Q8_BLOCK) {
        int8_t n[SYNTHETIC_Q8_BLOCK];
        integers(t->synthetic, row, k, SYNTHETIC_Q8_BLOCK, n);
        memcpy(out, &scale, sizeof scale);
        memcpy(out + sizeof scale, n, sizeof n);
    }
}

void
synthetic_row(const struct tensor *t, uint32_t row, void *out)
{
    unsigned char *to = out;
    if (t->type == WEIGHT_Q8_0) {
        row_q8_0(t, row, to);
        return;
    }
    for (uint32_t k = 0; k < t->cols; k += SYNTHETIC_Q8_BLOCK) {
        const uint32_t n = t->cols - k < SYNTHETIC_Q8_BLOCK ? t->cols - k : SYNTHETIC_Q8_BLOCK;
        int8_t quants[SYNTHETIC_Q8_BLOCK];
        float x[SYNTHETIC_Q8_BLOCK];
        uint16_t half[SYNTHETIC_Q8_BLOCK];
        integers(t->synthetic, row, k, n, quants);
        for (uint32_t i = 0; i < n; i++)
            x[i] = (float)quants[i] * t->synthetic->scale;
        if (t->type == WEIGHT_F32) {
            memcpy(to + k * sizeof *x, x, n * sizeof *x);
            continue;
        }
        for (uint32_t i = 0; i < n; i++)
            half[i] = t->type == WEIGHT_F16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
        memcpy(to + k * sizeof *half, half, n * sizeof *half);
    }
}

void
synthetic_row_f32(const struct tensor *t, uint32_t row, float *y)
{
    int8_t n[SYNTHETIC_Q8_BLOCK];
    for (uint32_t k = 0; k < t->cols; k += SYNTHETIC_Q8_BLOCK) {
        const uint32_t left = t->cols - k < SYNTHETIC_Q8_BLOCK ? t->cols - k : SYNTHETIC_Q8_BLOCK;
        integers(t->synthetic, row, k, left, n);
        for (uint32_t i = 0; i < left; i++) {
            const float x = (float)n[i] * t->synthetic->scale;
            y[k + i] = t->type == WEIGHT_BF16 ? bf16_to_f32(f32_to_bf16(x)) : x;
        }
    }
}
