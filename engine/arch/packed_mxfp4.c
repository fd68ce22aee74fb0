/* MXFP4 (OCP Microscaling Formats 1.0) as gpt-oss's folders have their experts: of each 32 inputs of a row sixteen bytes, the first
 * input's code in the lower half of the first, and in a tensor beside it the exponent of their scale. In a block of the type that
 * there is the lower halves are the first sixteen inputs' codes. */
#include <string.h>

#include "engine/arch/packed_internal.h"
#include "kernels/tensor.h"

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
        return packed_refuse(j, "is in MXFP4, but no stack of experts");
    if (memchr(s->data, UINT8_MAX, s->bytes) != NULL)
        return packed_refuse(j, "has a scale that is no number");
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
    PACKED_PARALLEL
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
