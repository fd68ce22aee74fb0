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

/* ---- blocks ---- */

#define MOST_BLOCK 256 /* values of a block, and its bytes */

/* Replaces n's that share a scale by their `bits` bits, odd or 0. Returns the factor of the scale. */
static int
keep_bits(int8_t *n, int count, int bits)
{
    bool faint = true;
    for (int i = 0; i < count; i++)
        faint = faint && (n[i] == 1 || n[i] == -1);
    for (int i = 0; i < count && !faint; i++)
        n[i] = (int8_t)(n[i] == 1 || n[i] == -1 ? 0 : 2 * (n[i] >> (8 - bits)) + 1);
    return faint ? 1 : 1 << (7 - bits);
}

static void
put_half(float x, unsigned char *to)
{
    const uint16_t half = f32_to_f16(x);
    memcpy(to, &half, sizeof half);
}

static void
block_q8_0(float scale, int8_t *n, unsigned char *out)
{
    put_half(scale, out);
    memcpy(out + sizeof(uint16_t), n, SYNTHETIC_Q8_BLOCK);
}

static void
block_q4_0(float scale, int8_t *n, unsigned char *out)
{
    put_half(scale * (float)keep_bits(n, 32, 3), out);
    for (int k = 0; k < 16; k++)
        out[2 + k] = (unsigned char)((n[k] + 8) | (n[k + 16] + 8) << 4);
}

/* d scale q - dmin minimum, with dmin = 8 d and minimum = scale. */
static void
block_q4_k(float scale, int8_t *n, unsigned char *out)
{
    memset(out, 0, 16);
    put_half(scale, out);
    put_half(8 * scale, out + 2);
    for (int j = 0; j < 8; j++) {
        const int factor = keep_bits(n + 32 * j, 32, 3), low = factor & 15, high = factor >> 4 << 6;
        unsigned char *s = out + 4 + j;
        if (j < 4) {
            s[0] = s[4] = (unsigned char)factor;
        } else { /* four bits of both in one byte, two each above those of the first four */
            s[4] = (unsigned char)(low | low << 4);
            s[-4] = (unsigned char)(s[-4] | high);
            s[0] = (unsigned char)(s[0] | high);
        }
    }
    for (int k = 0; k < 128; k++) {
        const int8_t *two = n + k / 32 * 64 + k % 32;
        out[16 + k] = (unsigned char)((two[0] + 8) | (two[32] + 8) << 4);
    }
}

static void
block_q6_k(float scale, int8_t *n, unsigned char *out)
{
    unsigned char *low = out, *high = out + 128, *scales = out + 192;
    for (int j = 0; j < 16; j++)
        scales[j] = (unsigned char)keep_bits(n + 16 * j, 16, 5);
    put_half(scale, out + 208);
    for (int k = 0; k < 64; k++) { /* columns k of each quarter of a half of the block */
        const int8_t *four = n + k / 32 * 128 + k % 32;
        unsigned q[4];
        for (int i = 0; i < 4; i++)
            q[i] = (unsigned)(four[32 * i] + 32);
        low[k / 32 * 64 + k % 32] = (unsigned char)((q[0] & 15) | (q[2] & 15) << 4);
        low[k / 32 * 64 + 32 + k % 32] = (unsigned char)((q[1] & 15) | (q[3] & 15) << 4);
        high[k] = (unsigned char)(q[0] >> 4 | q[1] >> 4 << 2 | q[2] >> 4 << 4 | q[3] >> 4 << 6);
    }
}

/* Returns the function that writes a block from its n's, which it may change; NULL: the type has no blocks. */
static void (*block_writer(enum weight_type type))(float scale, int8_t *n, unsigned char *out)
{
    switch (type) {
    case WEIGHT_Q8_0: return block_q8_0;
    case WEIGHT_Q4_0: return block_q4_0;
    case WEIGHT_Q4_K: return block_q4_k;
    case WEIGHT_Q6_K: return block_q6_k;
    default: return NULL;
    }
}

/* ---- rows ---- */

size_t
synthetic_row_bytes(enum weight_type type, uint32_t cols)
{
    const bool made = type == WEIGHT_F32 || type == WEIGHT_F16 || type == WEIGHT_BF16 || block_writer(type) != NULL;
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

/* Writes the block of columns from `first` on. */
static void
write_block(const struct tensor *t, uint32_t row, uint32_t first, unsigned char *out)
{
    int8_t n[MOST_BLOCK];
    integers(t->synthetic, row, first, (uint32_t)tensor_block_values(t->type), n);
    block_writer(t->type)(t->synthetic->scale, n, out);
}

void
synthetic_row(const struct tensor *t, uint32_t row, void *out)
{
    unsigned char *to = out;
    if (block_writer(t->type) != NULL) {
        const uint32_t values = (uint32_t)tensor_block_values(t->type);
        for (uint32_t k = 0; k < t->cols; k += values, to += tensor_block_bytes(t->type))
            write_block(t, row, k, to);
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
    if (block_writer(t->type) != NULL) {
        const uint32_t values = (uint32_t)tensor_block_values(t->type);
        for (uint32_t k = 0; k < t->cols; k += values) {
            unsigned char block[MOST_BLOCK];
            write_block(t, row, k, block);
            tensor_blocks(t->type, block, values, y + k);
        }
        return;
    }
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
