/* FP8: a byte a weight, times a scale that a block of rows and columns shares: the whole matrix, each row, or 128 by 128.
 *
 *   E4M3: sign, 4 bits of exponent (bias 7), 3 of mantissa; the largest is 448, and 0x7f is no number
 *   E5M2: the upper half of an F16 */
#include <math.h>
#include <string.h>

#include "engine/arch/packed_internal.h"
#include "kernels/half.h"
#include "kernels/tensor.h"

#define CODES 256

static bool
five_bits(const struct packed_job *j)
{
    return strcmp(j->codes->dtype, "F8_E5M2") == 0;
}

static void
meanings(const struct packed_job *j, float out[CODES])
{
    for (unsigned i = 0; i < CODES; i++) {
        const int exponent = (int)(i >> 3 & 15u);
        const double mantissa = exponent > 0 ? 8 + (i & 7u) : (i & 7u);
        out[i] = five_bits(j) ? f16_to_f32((uint16_t)(i << 8))
                 : (i & 127u) == 0x7fu
                     ? NAN
                     : (float)((i & 128u ? -1 : 1) * ldexp(mantissa, (exponent > 0 ? exponent : 1) - 10));
    }
}

/* How many scales there are down and across, and what a block has of rows and columns. */
struct blocks {
    uint32_t down, across, rows, cols;
};

static bool
blocks_of(const struct packed_job *j, struct blocks *b)
{
    const struct safetensor *s = j->scales;
    const uint64_t n = s->rows * s->cols;
    const bool of_rows = n == j->rows && (s->n_dims == 1 || s->cols == 1) && n != 1;
    *b = (struct blocks){1, 1, j->rows, j->cols};
    if (n == 1)
        return true;
    b->down = of_rows ? j->rows : (uint32_t)s->rows;
    b->across = of_rows ? 1 : (uint32_t)s->cols;
    b->rows = b->down == 1 ? j->rows : of_rows ? 1 : j->setting->block_rows;
    b->cols = b->across == 1 ? j->cols : j->setting->block_cols;
    return n > 0 && n <= UINT32_MAX && b->rows > 0 && b->cols > 0 && b->down == (j->rows - 1) / b->rows + 1 &&
           b->across == (j->cols - 1) / b->cols + 1;
}

bool
packed_fp8_plan(struct packed_job *j)
{
    struct blocks b;
    j->scales = packed_piece(j, "weight_scale_inv");
    if (j->scales == NULL)
        j->scales = packed_piece(j, "weight_scale");
    if (j->scales == NULL)
        return packed_refuse(j, "is in FP8 without a scale");
    if (j->codes->rows == 0 || j->codes->cols == 0 || j->codes->rows > INT32_MAX || j->codes->cols > INT32_MAX ||
        j->scales->type >= WEIGHT_TYPES)
        return packed_refuse(j, "is in FP8, but no matrix, or its scales are no plain numbers");
    j->rows = (uint32_t)j->codes->rows;
    j->cols = (uint32_t)j->codes->cols;
    if (!blocks_of(j, &b))
        return packed_refuse(j, "has scales that don't fit it");
    float scale, largest = 0;
    for (size_t i = 0; i < (size_t)b.down * b.across; i++) {
        packed_reals(j->scales, i, 1, &scale);
        if (!isfinite(scale))
            return packed_refuse(j, "has a scale that is no finite number");
        largest = fmaxf(largest, fabsf(scale));
    }
    j->type = j->exact || largest * (five_bits(j) ? 57344.0f : 448.0f) > 65504.0f ? WEIGHT_F32 : WEIGHT_F16;
    return true;
}

bool
packed_fp8_unpack(const struct packed_job *j, unsigned char *out)
{
    float meaning[CODES];
    struct blocks b;
    bool ok = blocks_of(j, &b);
    const size_t size = tensor_block_bytes(j->type);
    meanings(j, meaning);
    PACKED_PARALLEL
    for (uint32_t r = 0; r < j->rows; r++) {
        const unsigned char *codes = j->codes->data + (size_t)r * j->cols;
        unsigned char *to = out + (size_t)r * j->cols * size;
        float scale = 0;
        for (uint32_t c = 0; c < j->cols; c++) {
            if (c % b.cols == 0)
                packed_reals(j->scales, (size_t)(r / b.rows) * b.across + c / b.cols, 1, &scale);
            const float x = meaning[codes[c]] * scale;
            const uint16_t half = f32_to_f16(x);
            if (!isfinite(x))
                __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
            memcpy(to + c * size, size == sizeof half ? (const void *)&half : (const void *)&x, size);
        }
    }
    return ok || packed_refuse(j, "holds weights that are no finite numbers");
}
