/* Unpacks integers of 2 to 8 bits with a scale and a zero for each group of inputs, several to a word of 32 bits:
 *
 *   weight[row][col] = scale[g][row] (code[row][col] - zero[g][row]),  g = col / group, or g_idx[col]
 *
 *   GPTQ         codes (cols / n, rows), zeros (groups, rows / n), n = 32 / bits to a word, lowest bits first (with
 *                3 bits 32 codes in three words); the zeros are stored less 1, except in version 2
 *   AWQ          codes (cols, rows / 8), zeros (groups, rows / 8): eight rows to a word, in the order 0 2 4 6 1 3 5 7
 *   AWQ gemv     codes (rows, cols / 8), zeros (rows, words), scales (rows, 8 words), in order; rows may be padded
 *   compressed   codes (rows, cols / n), scales (rows, groups), zeros (rows / n, groups); 8 or 128 if there are none
 *   bytes        codes (rows, cols), signed, scales (rows, groups), no zeros */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/arch/packed.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

#define TILE  32u /* rows that are unpacked together, as their codes are in the same words */
#define BLOCK 32u

static uint32_t
word_at(const struct safetensor *t, size_t index)
{
    uint32_t word;
    memcpy(&word, t->data + index * sizeof word, sizeof word);
    return word;
}

static uint32_t
field(uint32_t word, uint32_t bits, uint32_t place)
{
    return word >> (bits * place) & ((1u << bits) - 1);
}

/* Returns the position of AWQ's n-th code in a word of eight. */
static uint32_t
awq_place(uint32_t n)
{
    return n / 2 + (n % 2) * 4;
}

/* Returns the n-th code of a bit stream in words that are `stride` words apart. A code may cross two words. */
static uint32_t
end_to_end(const struct safetensor *t, size_t first, size_t stride, uint32_t bits, uint32_t n)
{
    const size_t bit = (size_t)bits * n, at = first + bit / 32 * stride;
    const uint32_t shift = bit % 32;
    uint32_t code = word_at(t, at) >> shift;
    if (shift + bits > 32)
        code |= word_at(t, at + stride) << (32 - shift);
    return code & ((1u << bits) - 1);
}

/* Returns true if the scales of a row are contiguous. */
static bool
across(const struct packed_job *j)
{
    return j->setting->kind == PACKING_COMPRESSED || j->setting->kind == PACKING_BYTES ||
           j->setting->kind == PACKING_AWQ_ROWS;
}

static uint32_t
group_size(const struct packed_job *j)
{
    return j->setting->group > 0 && j->setting->group < j->cols ? j->setting->group : j->cols;
}

static uint32_t
n_groups(const struct packed_job *j)
{
    return (j->cols - 1) / group_size(j) + 1;
}

static uint32_t
group_of(const struct packed_job *j, uint32_t col)
{
    return j->order != NULL ? word_at(j->order, col) : col / group_size(j);
}

static float
scale_of(const struct packed_job *j, uint32_t group, uint32_t row)
{
    float scale;
    const size_t at = across(j) ? row * j->scales->cols + group : (size_t)group * j->rows + row;
    packed_reals(j->scales, at, 1, &scale);
    return scale;
}

/* GPTQ's first version stores zeros less 1. Its tools subtract from whole words, so a zero of 0 borrows from the next
 * one. This adds to whole words too, unless codes cross words. */
static uint32_t
gptq_zero(const struct packed_job *j, uint32_t group, uint32_t row)
{
    const uint32_t bits = j->setting->bits, most = (1u << bits) - 1;
    const size_t first = (size_t)group * (j->rows * bits / 32);
    if (j->setting->zeros_as_they_are)
        return end_to_end(j->zeros, first, 1, bits, row);
    if (32 % bits != 0)
        return (end_to_end(j->zeros, first, 1, bits, row) + 1) & most;
    const uint32_t n = 32 / bits, ones = UINT32_MAX / most;
    return field(word_at(j->zeros, first + row / n) + ones, bits, row % n);
}

static uint32_t
zero_of(const struct packed_job *j, uint32_t group, uint32_t row)
{
    const uint32_t bits = j->setting->bits, n = 32 / bits;
    if (j->zeros == NULL || j->setting->zeros_in_the_middle)
        return 1u << (bits - 1);
    if (j->setting->kind == PACKING_COMPRESSED)
        return field(word_at(j->zeros, (size_t)(row / n) * n_groups(j) + group), bits, row % n);
    if (j->setting->kind == PACKING_AWQ_ROWS)
        return field(word_at(j->zeros, row * j->zeros->cols + group / n), bits, group % n);
    if (j->setting->kind == PACKING_AWQ)
        return field(word_at(j->zeros, (size_t)group * (j->rows / n) + row / n), bits, awq_place(row % n));
    return gptq_zero(j, group, row);
}

/* Unpacks n_rows rows from row `first` on to codes[r][cols], a byte for each code. */
static void
unpack_codes(const struct packed_job *j, uint32_t first, uint32_t n_rows, unsigned char *codes)
{
    const uint32_t bits = j->setting->bits, n = 32 / bits;
    if (j->setting->kind == PACKING_AWQ) {
        for (uint32_t c = 0; c < j->cols; c++)
            for (uint32_t r = 0; r < n_rows; r++)
                codes[(size_t)r * j->cols + c] = (unsigned char)field(
                    word_at(j->codes, (size_t)c * (j->rows / n) + (first + r) / n), bits, awq_place((first + r) % n));
        return;
    }
    for (size_t i = 0; j->setting->kind == PACKING_BYTES && i < (size_t)n_rows * j->cols; i++)
        codes[i] = (unsigned char)(j->codes->data[(size_t)first * j->cols + i] ^
                                   0x80u); /* from signed to unsigned with the zero at 128 */
    if (j->setting->kind == PACKING_BYTES)
        return;
    const bool down = j->setting->kind == PACKING_GPTQ;
    for (size_t i = 0; 32 % bits != 0 && i < (size_t)n_rows * j->cols; i++)
        codes[i] = (unsigned char)end_to_end(j->codes, first + i / j->cols, j->rows, bits, (uint32_t)(i % j->cols));
    if (32 % bits != 0) /* only GPTQ has such bits */
        return;
    for (uint32_t k = 0; k < j->cols / n; k++)
        for (uint32_t r = 0; r < n_rows; r++) {
            const size_t at = down ? (size_t)k * j->rows + first + r : (size_t)(first + r) * (j->cols / n) + k;
            const uint32_t word = word_at(j->codes, at);
            for (uint32_t i = 0; i < n; i++)
                codes[(size_t)r * j->cols + k * n + i] = (unsigned char)field(word, bits, i);
        }
}

/* ---- the type of the unpacked weight ---- */

static bool
is_words(const struct safetensor *t, uint64_t rows, uint64_t cols)
{
    return t->rows == rows && t->cols == cols && (strcmp(t->dtype, "I32") == 0 || strcmp(t->dtype, "U32") == 0);
}

/* Computes the weight's rows and columns from the shape of the codes. */
static bool
read_size(struct packed_job *j)
{
    const uint64_t n = 32 / j->setting->bits, a = j->codes->rows, b = j->codes->cols;
    uint64_t rows = a, cols = b;
    switch (j->setting->kind) {
    case PACKING_GPTQ:
        rows = b, cols = a <= INT32_MAX && a * 32 % j->setting->bits == 0 ? a * 32 / j->setting->bits : 0;
        break;
    case PACKING_AWQ: rows = b * n, cols = a; break;
    case PACKING_AWQ_ROWS:
    case PACKING_COMPRESSED: cols = b * n; break;
    case PACKING_NONE:
    case PACKING_FP8:
    case PACKING_MXFP4:
    case PACKING_BNB4:
    case PACKING_BYTES: break;
    }
    j->rows = (uint32_t)rows;
    j->cols = (uint32_t)cols;
    return rows > 0 && cols > 0 && rows <= INT32_MAX && cols <= INT32_MAX &&
           (j->setting->kind == PACKING_BYTES || is_words(j->codes, a, b));
}

static bool
zeros_fit(const struct packed_job *j, uint64_t groups)
{
    const uint32_t bits = j->setting->bits, n = 32 / bits;
    if (j->zeros == NULL)
        return across(j) && j->setting->kind != PACKING_AWQ_ROWS;
    if (j->setting->kind == PACKING_COMPRESSED)
        return is_words(j->zeros, (j->rows - 1) / n + 1, groups);
    if (j->setting->kind == PACKING_AWQ_ROWS)
        return is_words(j->zeros, j->rows, j->zeros->cols) && j->zeros->cols * n >= groups;
    const uint64_t row_bits = (uint64_t)j->rows * bits;
    return !across(j) && row_bits % 32 == 0 && is_words(j->zeros, groups, row_bits / 32);
}

static bool
scales_fit(const struct packed_job *j, uint64_t groups)
{
    const struct safetensor *s = j->scales;
    if (s == NULL || s->type >= WEIGHT_TYPES || s->rows != (across(j) ? j->rows : groups))
        return false;
    return j->setting->kind == PACKING_AWQ_ROWS ? s->cols >= groups : s->cols == (across(j) ? groups : j->rows);
}

static bool
pieces_fit(struct packed_job *j)
{
    if (!read_size(j))
        return false;
    const uint64_t groups = n_groups(j);
    bool fit = scales_fit(j, groups) && zeros_fit(j, groups) && (j->order == NULL || is_words(j->order, 1, j->cols));
    for (uint32_t c = 0; fit && j->order != NULL && c < j->cols; c++)
        fit = word_at(j->order, c) < groups;
    return fit;
}

/* Returns true if each block of 32 inputs of a row is in one group, and so has one scale. */
static bool
groups_hold_blocks(const struct packed_job *j)
{
    if (j->cols % BLOCK != 0 || group_size(j) % BLOCK != 0)
        return false;
    for (uint32_t c = 0; j->order != NULL && c < j->cols; c++)
        if (group_of(j, c) != group_of(j, c / BLOCK * BLOCK))
            return false;
    return true;
}

/* Up to 3 bits less any zero fit into Q4_0's 4 bits, whose zero is 8. 4 bits less any zero fit into Q8_0's 8 bits. */
static enum weight_type
type_of(const struct packed_job *j, float largest, float rounding, bool zeros_are_middle)
{
    const uint32_t bits = j->setting->bits;
    const bool held = largest * (float)(1u << bits) <= 65504.0f;
    if (held && groups_hold_blocks(j) && rounding <= (j->exact ? 0 : 0x1p-11f)) {
        if (bits < 4 || (bits == 4 && zeros_are_middle))
            return WEIGHT_Q4_0;
        if (zeros_are_middle || (bits == 4 && j->exact))
            return WEIGHT_Q8_0;
        if (bits == 4)
            return WEIGHT_Q4_1;
    }
    return held && !j->exact ? WEIGHT_F16 : WEIGHT_F32;
}

bool
packed_integers_plan(struct packed_job *j)
{
    const bool compressed = j->setting->kind == PACKING_COMPRESSED || j->setting->kind == PACKING_BYTES;
    j->scales = packed_piece(j, compressed ? "weight_scale" : "scales");
    j->zeros = packed_piece(j, compressed ? "weight_zero_point" : "qzeros");
    j->order = packed_piece(j, compressed ? "weight_g_idx" : "g_idx");
    if (!pieces_fit(j))
        return packed_refuse(j, "is packed in pieces that don't fit each other");
    float largest = 0, rounding = 0; /* largest scale; largest relative error of a scale in F16 */
    bool middle = true;
    for (uint32_t g = 0; g < n_groups(j); g++)
        for (uint32_t r = 0; r < j->rows; r++) {
            const float scale = scale_of(j, g, r), half = f16_to_f32(f32_to_f16(scale));
            if (!isfinite(scale))
                return packed_refuse(j, "has a scale that is not a finite number");
            if (scale < 0 || scale > 0)
                rounding = fmaxf(rounding, fabsf((half - scale) / scale));
            middle = middle && zero_of(j, g, r) == 1u << (j->setting->bits - 1);
            largest = fmaxf(largest, fabsf(scale));
        }
    j->type = type_of(j, largest, rounding, middle);
    return true;
}

/* ---- unpacking ---- */

static void
put_half(unsigned char *to, float x)
{
    const uint16_t half = f32_to_f16(x);
    memcpy(to, &half, sizeof half);
}

/* Writes a block of codes with its scale and zero in ggml's Q4_0, Q4_1 or Q8_0. */
static void
put_block(enum weight_type type, const unsigned char *codes, float scale, uint32_t zero, unsigned char *to)
{
    put_half(to, scale);
    unsigned char *at = to + 2;
    if (type == WEIGHT_Q4_1) {
        put_half(at, -scale * (float)zero);
        at += 2;
    }
    const int32_t zero_there = type == WEIGHT_Q4_0 ? 8 : 0,
                  shift = type == WEIGHT_Q4_1 ? 0 : zero_there - (int32_t)zero;
    for (uint32_t i = 0; type != WEIGHT_Q8_0 && i < BLOCK / 2; i++)
        at[i] = (unsigned char)((codes[i] + shift) | (codes[i + BLOCK / 2] + shift) << 4);
    for (uint32_t i = 0; type == WEIGHT_Q8_0 && i < BLOCK; i++)
        at[i] = (unsigned char)(codes[i] + shift);
}

static void
put_row(const struct packed_job *j, uint32_t row, const unsigned char *codes, unsigned char *to)
{
    const uint32_t values = (uint32_t)tensor_block_values(j->type);
    const size_t bytes = tensor_block_bytes(j->type);
    uint32_t zero = 0, last = UINT32_MAX;
    float scale = 0;
    for (uint32_t c = 0; c < j->cols; c += values, to += bytes) {
        const uint32_t g = group_of(j, c);
        if (g != last) {
            scale = scale_of(j, g, row);
            zero = zero_of(j, g, row);
            last = g;
        }
        const float x = scale * ((float)codes[c] - (float)zero);
        if (values > 1)
            put_block(j->type, codes + c, scale, zero, to);
        else if (j->type == WEIGHT_F16)
            put_half(to, x);
        else
            memcpy(to, &x, sizeof x);
    }
}

bool
packed_integers_unpack(const struct packed_job *j, unsigned char *out)
{
    const size_t row_bytes = tensor_row_bytes(j->type, j->cols);
    bool ok = true;
    PARALLEL(omp parallel for schedule(static))
    for (uint32_t first = 0; first < j->rows; first += TILE) {
        const uint32_t n = j->rows - first < TILE ? j->rows - first : TILE;
        unsigned char *codes = malloc((size_t)n * j->cols);
        if (codes == NULL) {
            __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
            continue;
        }
        unpack_codes(j, first, n, codes);
        for (uint32_t r = 0; r < n; r++)
            put_row(j, first + r, codes + (size_t)r * j->cols, out + (first + r) * row_bytes);
        free(codes);
    }
    return ok || packed_refuse(j, "can't be unpacked: out of memory");
}
