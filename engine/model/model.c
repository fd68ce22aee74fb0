#include "engine/model/model.h"

#include <stdlib.h>

#include "engine/model/gguf_types.h"

#define BLOCK_ALIGNMENT 64u

struct model_block {
    struct model_block *next;
};

void *
model_take(struct model *m, size_t bytes)
{
    if (bytes > SIZE_MAX - 2 * BLOCK_ALIGNMENT)
        return NULL;
    const size_t room = (bytes + 2 * BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    struct model_block *block = aligned_alloc(BLOCK_ALIGNMENT, room);
    if (block == NULL)
        return NULL;
    block->next = m->blocks;
    m->blocks = block;
    return (unsigned char *)block + BLOCK_ALIGNMENT;
}

void
model_free_blocks(struct model *m)
{
    for (struct model_block *next; m->blocks != NULL; m->blocks = next) {
        next = m->blocks->next;
        free(m->blocks);
    }
}

uint64_t
model_kv_bytes(const struct model *m, uint32_t ctx, bool exact)
{
    const struct model_desc *d = &m->desc;
    return 2 * (uint64_t)d->n_layers * d->kv_heads * d->head_dim * ctx * (exact ? sizeof(float) : sizeof(uint16_t));
}

uint64_t
model_weight_bytes(const struct model *m, bool exact, bool quantize)
{
    const struct gguf_type_size *q8_0 = weight_type_size(WEIGHT_Q8_0);
    uint64_t bytes = 0;
    for (int t = 0; t < WEIGHT_TYPES; t++) {
        const struct gguf_type_size *size = weight_type_size((enum weight_type)t);
        const uint64_t own = m->parameters_of[t] / size->block * size->bytes;
        const uint64_t small = m->parameters_of[t] / q8_0->block * q8_0->bytes;
        const bool changes = quantize && size->block == 1;
        bytes += exact ? m->parameters_of[t] * sizeof(float) : changes ? small : own;
        bytes += changes ? small : 0; /* the model's, beside the backend's */
    }
    return bytes;
}
