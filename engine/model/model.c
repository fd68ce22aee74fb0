#include "engine/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/experts.h"
#include "kernels/tensor.h"

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

const char *
model_not(const struct model *m, const char *made_for, char *out, size_t n)
{
    if (strcmp(m->name, made_for) != 0)
        snprintf(out, n, "another model, %.48s (this is %.48s)", made_for, m->name);
    else if (m->quantized)
        snprintf(out, n, "%.48s without --quantize, which changes its weights", made_for);
    else
        snprintf(out, n, "another file of %.48s, with other weights", made_for);
    return out;
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

static double
tensor_bytes(const struct tensor *t, bool exact)
{
    if (!tensor_present(t))
        return 0;
    return (double)t->rows * (double)(exact ? t->cols * sizeof(float) : tensor_row_bytes(t->type, t->cols));
}

/* The experts that one row goes to. */
static double
experts_bytes(const struct model_desc *d, const struct expert_desc *experts, bool exact)
{
    double bytes = 0;
    for (enum expert_tensor i = 0; i < EXPERT_TENSORS && experts != NULL; i++) {
        bytes += d->form.experts.used * tensor_bytes(&experts[0].all[i], exact);
        if (d->form.experts.shared_ffn > 0)
            bytes += tensor_bytes(&experts[d->form.experts.n].all[i], exact);
    }
    return bytes;
}

double
model_layer_bytes(const struct model *m, bool exact)
{
    double bytes = 0;
    for (uint32_t l = 0; l < m->desc.n_layers; l++) {
        for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
            bytes += tensor_bytes(&m->desc.layers[l].all[i], exact);
        bytes += experts_bytes(&m->desc, m->desc.layers[l].experts, exact);
    }
    return bytes / m->desc.n_layers;
}

uint64_t
model_idle_parameters(const struct model *m)
{
    const struct experts_form *f = &m->desc.form.experts;
    uint64_t idle = 0;
    for (uint32_t l = 0; l < m->desc.n_layers && m->desc.layers != NULL; l++)
        for (enum expert_tensor i = 0; i < EXPERT_TENSORS && m->desc.layers[l].experts != NULL; i++) {
            const struct tensor *t = &m->desc.layers[l].experts[0].all[i];
            idle += tensor_present(t) ? (uint64_t)t->rows * t->cols * (f->n - f->used) : 0;
        }
    return idle;
}

double
model_head_bytes(const struct model *m, bool exact)
{
    return tensor_bytes(&m->desc.head, exact);
}

/* Of an embedding of its own in a mapped file: whoever reads a row gives its page back. */
static uint64_t
left_in_file(const struct model *m, bool exact)
{
    const struct tensor *t = &m->desc.embedding;
    const uint64_t values = (uint64_t)t->rows * t->cols;
    if (m->tied || !t->mapped)
        return 0;
    return exact ? values * sizeof(float) : tensor_held_bytes(t->type, values);
}

/* What was unpacked stays where backends make a copy: of blocks, and of all but F32 if exact. */
static uint64_t
beside(const struct model *m, enum weight_type t, bool exact)
{
    const bool copied = exact ? t != WEIGHT_F32 : tensor_block_values(t) > 1;
    return copied ? tensor_held_bytes(t, m->unpacked_of[t]) : 0;
}

uint64_t
model_weight_bytes(const struct model *m, bool exact, bool quantize)
{
    uint64_t bytes = 0;
    for (enum weight_type t = 0; t < WEIGHT_TYPES; t++) {
        const uint64_t own = tensor_held_bytes(t, m->parameters_of[t]);
        const uint64_t small = tensor_held_bytes(WEIGHT_Q8_0, m->parameters_of[t]);
        const bool changes = quantize && tensor_block_values(t) == 1;
        bytes += exact ? m->parameters_of[t] * sizeof(float) : changes ? small : own;
        bytes += changes ? small : 0; /* the model's, beside the backend's */
        bytes += beside(m, t, exact);
    }
    return quantize ? bytes : bytes - left_in_file(m, exact);
}
