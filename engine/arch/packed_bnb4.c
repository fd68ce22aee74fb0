/* bitsandbytes' 4 bits: numbers of a table of sixteen (NF4, FP4: Dettmers et al. 2023), which comes along, times the largest of a
 * block of inputs. Blocks go through the whole matrix, row after row.
 *
 *   weight             two codes to a byte, the first one in its upper half
 *   weight.quant_map   the table
 *   weight.absmax      F32, a number for each block; or bytes, which are numbers of weight.nested_quant_map (256), times
 *                      weight.nested_absmax of a block of blocks, and an offset is added
 *   weight.quant_state.bitsandbytes__nf4   JSON: shape, blocksize, nested_blocksize, nested_offset */
#include <math.h>
#include <string.h>

#include "engine/arch/arch_hf.h"
#include "engine/arch/packed_internal.h"
#include "engine/base/json_read.h"
#include "kernels/half.h"

#define TABLE  16u
#define NESTED 256u

struct state {
    uint32_t rows, cols, block, nested_block;
    const struct safetensor *largest, *nested; /* nested NULL: `largest` are plain numbers */
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

/* Do the codes and what stands beside them fit what the JSON says? */
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

/* Everything beside the codes. */
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
            return packed_refuse(j, "has a scale that is no finite number");
        most = fmaxf(most, fabsf(x));
    }
    for (uint32_t i = 0; i < TABLE; i++)
        in_table = fmaxf(in_table, fabsf(s.table[i]));
    if (!isfinite(most * in_table))
        return packed_refuse(j, "holds weights that are no finite numbers");
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
    PACKED_PARALLEL
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
