/* Unpacks FP8, MXFP4 and bitsandbytes' 4 bits.
 *
 * FP8: a byte for each weight, times the scale of its block: the whole matrix, a row, or rows by columns (128 by 128).
 *
 *   E4M3: sign, 4 bits of exponent (bias 7), 3 of mantissa; the largest is 448, and 0x7f is NaN
 *   E5M2: the upper half of an F16 */
#include <math.h>
#include <string.h>

#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/model/arch/arch_hf.h"
#include "engine/model/arch/packed.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

#define NAME_SIZE 256

bool
packed_refuse(const struct packed_job *j, const char *why)
{
    char shown[96];
    return err_set(j->err, ERR_WORK, "%s: '%s' %s; fetch the folder again", j->folder->path,
                   printable_line(shown, sizeof shown, j->stem, (size_t)j->stem_len), why);
}

const struct safetensor *
packed_piece(const struct packed_job *j, const char *ending)
{
    char name[NAME_SIZE];
    const int n = snprintf(name, sizeof name, "%.*s%s%s", j->stem_len, j->stem, ending[0] == '_' ? "" : ".", ending);
    const struct safetensor *const *at = n < 0 || n >= (int)sizeof name ? NULL : hf_folder_find(j->folder, name);
    return at == NULL ? NULL : *at;
}

void
packed_reals(const struct safetensor *t, size_t first, size_t n, float *out)
{
    tensor_blocks(t->type, t->data + first * tensor_block_bytes(t->type), n, out);
}

#define CODES 256

static bool
five_bits(const struct packed_job *j)
{
    return strcmp(j->codes->dtype, "F8_E5M2") == 0;
}

/* Fills the table of the values of all FP8 codes. */
static void
code_values(const struct packed_job *j, float out[CODES])
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

/* Numbers of scales down and across, and of rows and columns in a block. */
struct scale_blocks {
    uint32_t down, across, rows, cols;
};

static bool
blocks_of(const struct packed_job *j, struct scale_blocks *b)
{
    const struct safetensor *s = j->scales;
    const uint64_t n = s->rows * s->cols;
    const bool of_rows = n == j->rows && (s->n_dims == 1 || s->cols == 1) && n != 1;
    *b = (struct scale_blocks){1, 1, j->rows, j->cols};
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
    struct scale_blocks b;
    j->scales = packed_piece(j, "weight_scale_inv");
    if (j->scales == NULL)
        j->scales = packed_piece(j, "weight_scale");
    if (j->scales == NULL)
        return packed_refuse(j, "is in FP8 without a scale");
    if (j->codes->rows == 0 || j->codes->cols == 0 || j->codes->rows > INT32_MAX || j->codes->cols > INT32_MAX ||
        j->scales->type >= WEIGHT_TYPES)
        return packed_refuse(j, "is in FP8, but it is not a matrix, or its scales have a type that is not supported");
    j->rows = (uint32_t)j->codes->rows;
    j->cols = (uint32_t)j->codes->cols;
    if (!blocks_of(j, &b))
        return packed_refuse(j, "has scales that don't fit it");
    float scale, largest = 0;
    for (size_t i = 0; i < (size_t)b.down * b.across; i++) {
        packed_reals(j->scales, i, 1, &scale);
        if (!isfinite(scale))
            return packed_refuse(j, "has a scale that is not a finite number");
        largest = fmaxf(largest, fabsf(scale));
    }
    j->type = j->exact || largest * (five_bits(j) ? 57344.0f : 448.0f) > 65504.0f ? WEIGHT_F32 : WEIGHT_F16;
    return true;
}

bool
packed_fp8_unpack(const struct packed_job *j, unsigned char *out)
{
    float values[CODES];
    struct scale_blocks b;
    bool ok = blocks_of(j, &b);
    const size_t size = tensor_block_bytes(j->type);
    code_values(j, values);
    PARALLEL(omp parallel for schedule(static))
    for (uint32_t r = 0; r < j->rows; r++) {
        const unsigned char *codes = j->codes->data + (size_t)r * j->cols;
        unsigned char *to = out + (size_t)r * j->cols * size;
        float scale = 0;
        for (uint32_t c = 0; c < j->cols; c++) {
            if (c % b.cols == 0)
                packed_reals(j->scales, (size_t)(r / b.rows) * b.across + c / b.cols, 1, &scale);
            const float x = values[codes[c]] * scale;
            const uint16_t half = f32_to_f16(x);
            if (!isfinite(x))
                __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
            memcpy(to + c * size, size == sizeof half ? (const void *)&half : (const void *)&x, size);
        }
    }
    return ok || packed_refuse(j, "contains weights that are not finite numbers");
}

/* MXFP4 (OCP Microscaling Formats 1.0) in gpt-oss's folders: sixteen bytes for each 32 inputs of a row, with the first
 * input's code in the lower half of the first byte. The exponents of the scales are in a second tensor. In a block of
 * WEIGHT_MXFP4 the lower halves are the codes of the first sixteen inputs. */

#define INPUTS 32
#define BYTES  (INPUTS / 2)

bool
packed_mxfp4_plan(struct packed_job *j)
{
    const struct safetensor *c = j->codes, *s = packed_piece(j, "_scales");
    if (s == NULL || strcmp(c->dtype, "U8") != 0 || strcmp(s->dtype, "U8") != 0 || c->n_dims != 4 || s->n_dims != 3 ||
        c->dims[3] != BYTES || memcmp(c->dims, s->dims, 3 * sizeof *c->dims) != 0 || s->bytes == 0)
        return packed_refuse(j, "is in MXFP4, but its blocks and scales don't fit each other");
    if (c->dims[1] % 2 != 0 || c->dims[0] > INT32_MAX / c->dims[1] || c->dims[2] > INT32_MAX / INPUTS)
        return packed_refuse(j, "is in MXFP4, but it is not a stack of experts");
    if (memchr(s->data, UINT8_MAX, s->bytes) != NULL)
        return packed_refuse(j, "has a scale that is not a number");
    j->scales = s;
    j->planes = (uint32_t)c->dims[0];
    j->rows = (uint32_t)(c->dims[0] * c->dims[1]);
    j->cols = (uint32_t)c->dims[2] * INPUTS;
    j->type = WEIGHT_MXFP4;
    return true;
}

static unsigned
code(const unsigned char *bytes, unsigned i)
{
    return bytes[i / 2] >> 4 * (i % 2) & 15u;
}

bool
packed_mxfp4_unpack(const struct packed_job *j, unsigned char *out)
{
    static const char both[] = "gate_up_proj";
    const uint32_t rows = j->rows / j->planes, blocks = j->cols / INPUTS, len = sizeof both - 1;
    const size_t row_bytes = tensor_row_bytes(j->type, j->cols);
    const bool turns = (uint32_t)j->stem_len >= len && memcmp(j->stem + j->stem_len - len, both, len) == 0;
    PARALLEL(omp parallel for schedule(static))
    for (uint32_t r = 0; r < j->rows; r++) {
        const uint32_t k = r % rows, at = turns ? k / 2 + k % 2 * (rows / 2) : k;
        const unsigned char *from = j->codes->data + (size_t)r * blocks * BYTES;
        const unsigned char *scales = j->scales->data + (size_t)r * blocks;
        unsigned char *to = out + (size_t)(r - k + at) * row_bytes;
        for (uint32_t b = 0; b < blocks; b++, from += BYTES, to += 1 + BYTES) {
            to[0] = scales[b];
            for (unsigned i = 0; i < BYTES; i++)
                to[1 + i] = (unsigned char)(code(from, i) | code(from, i + BYTES) << 4);
        }
    }
    return true;
}

/* bitsandbytes' 4 bits: a code is an index into a table of sixteen numbers (NF4, FP4: Dettmers et al. 2023). The number
 * is multiplied by the largest absolute value of its block. Blocks divide the whole matrix, row after row.
 *
 *   weight             two codes to a byte, the first one in the upper half
 *   weight.quant_map   the table
 *   weight.absmax      F32, a number for each block; or bytes, indices into weight.nested_quant_map (256), times
 *                      weight.nested_absmax of a block of blocks, plus an offset
 *   weight.quant_state.bitsandbytes__nf4   JSON: shape, blocksize, nested_blocksize, nested_offset */

#define TABLE  16u
#define NESTED 256u

struct state {
    uint32_t rows, cols, block, nested_block;
    const struct safetensor *largest, *nested; /* nested is NULL if `largest` is F32 */
    float table[TABLE], nested_table[NESTED], offset;
};

static bool
whole(const cJSON *v, uint32_t *out)
{
    double x = 0;
    *out = 0;
    if (arch_hf_kind(v, &x) != VALUE_WHOLE || x < 1 || x > INT32_MAX)
        return false;
    *out = (uint32_t)x;
    return true;
}

static bool
read_numbers(const struct safetensor *t, uint64_t n, float *out)
{
    if (t == NULL || strcmp(t->dtype, "F32") != 0 || t->bytes != n * sizeof *out)
        return false;
    packed_reals(t, 0, n, out);
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(out[i]))
            return false;
    return true;
}

static bool
read_json(const struct packed_job *j, const cJSON *o, struct state *s)
{
    const cJSON *shape = arch_hf_entry(o, "shape"), *offset = arch_hf_entry(o, "nested_offset");
    if (cJSON_GetArraySize(shape) != 2 || !whole(cJSON_GetArrayItem(shape, 0), &s->rows) ||
        !whole(cJSON_GetArrayItem(shape, 1), &s->cols) || !whole(arch_hf_entry(o, "blocksize"), &s->block))
        return false;
    s->offset = cJSON_IsNumber(offset) ? (float)offset->valuedouble : 0;
    s->nested = packed_piece(j, "weight.nested_absmax");
    return isfinite(s->offset) &&
           (s->nested == NULL ||
            (whole(arch_hf_entry(o, "nested_blocksize"), &s->nested_block) && cJSON_IsNumber(offset)));
}

/* Reads the tables. Returns false if the sizes of the tensors differ from the JSON's. */
static bool
read_pieces(const struct packed_job *j, struct state *s)
{
    s->largest = packed_piece(j, "weight.absmax");
    if (s->largest == NULL || !read_numbers(packed_piece(j, "weight.quant_map"), TABLE, s->table))
        return false;
    const uint64_t n = (uint64_t)s->rows * s->cols, blocks = (n - 1) / s->block + 1;
    if (j->codes->bytes != (n + 1) / 2)
        return false;
    if (s->nested == NULL)
        return strcmp(s->largest->dtype, "F32") == 0 && s->largest->bytes == blocks * sizeof(float);
    return strcmp(s->largest->dtype, "U8") == 0 && s->largest->bytes == blocks &&
           strcmp(s->nested->dtype, "F32") == 0 &&
           s->nested->bytes == ((blocks - 1) / s->nested_block + 1) * sizeof(float) &&
           read_numbers(packed_piece(j, "weight.nested_quant_map"), NESTED, s->nested_table);
}

/* Reads the JSON and the tables of a weight: everything but the codes. */
static bool
read_state(const struct packed_job *j, struct state *s)
{
    const struct safetensor *json = packed_piece(j, "weight.quant_state.bitsandbytes__nf4");
    if (json == NULL)
        json = packed_piece(j, "weight.quant_state.bitsandbytes__fp4");
    cJSON *o = NULL;
    if (json != NULL && !json_read(&o, (const char *)json->data, json->bytes))
        return err_set(j->err, ERR_WORK, "%s: out of memory unpacking weights", j->folder->path);
    const bool ok = o != NULL && read_json(j, o, s) && read_pieces(j, s);
    cJSON_Delete(o);
    return ok || packed_refuse(j, "is packed in pieces that don't fit each other");
}

static float
largest_of(const struct state *s, uint64_t block)
{
    float x;
    if (s->nested == NULL) {
        packed_reals(s->largest, block, 1, &x);
        return x;
    }
    packed_reals(s->nested, block / s->nested_block, 1, &x);
    return s->nested_table[s->largest->data[block]] * x + s->offset;
}

bool
packed_bnb4_plan(struct packed_job *j)
{
    struct state s = {0};
    if (!read_state(j, &s))
        return false;
    float most = 0, in_table = 0;
    for (uint64_t b = 0; b <= ((uint64_t)s.rows * s.cols - 1) / s.block; b++) {
        const float x = largest_of(&s, b);
        if (!isfinite(x))
            return packed_refuse(j, "has a scale that is not a finite number");
        most = fmaxf(most, fabsf(x));
    }
    for (uint32_t i = 0; i < TABLE; i++)
        in_table = fmaxf(in_table, fabsf(s.table[i]));
    if (!isfinite(most * in_table))
        return packed_refuse(j, "contains weights that are not finite numbers");
    j->rows = s.rows;
    j->cols = s.cols;
    j->type = j->exact || most * in_table > 65504.0f ? WEIGHT_F32 : WEIGHT_F16;
    return true;
}

bool
packed_bnb4_unpack(const struct packed_job *j, unsigned char *out)
{
    struct state s = {0};
    if (!read_state(j, &s))
        return false;
    const size_t size = j->type == WEIGHT_F16 ? sizeof(uint16_t) : sizeof(float);
    PARALLEL(omp parallel for schedule(static))
    for (uint32_t r = 0; r < j->rows; r++) {
        uint64_t at = (uint64_t)r * j->cols;
        unsigned char *to = out + at * size;
        float scale = 0;
        for (uint32_t c = 0; c < j->cols; c++, at++, to += size) {
            if (c == 0 || at % s.block == 0)
                scale = largest_of(&s, at / s.block);
            const unsigned char two = j->codes->data[at / 2];
            const float x = s.table[at % 2 == 0 ? two >> 4 : two & 15] * scale;
            const uint16_t half = f32_to_f16(x);
            memcpy(to, size == sizeof half ? (const void *)&half : (const void *)&x, size);
        }
    }
    return true;
}
