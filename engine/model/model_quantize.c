/* Quantising a model while it is opened. */
#include <inttypes.h>
#include <string.h>

#include "engine/model/model.h"
#include "kernels/experts.h"
#include "kernels/half.h"
#include "kernels/openmp.h"

#define BLOCK       32u
#define BLOCK_BYTES (sizeof(uint16_t) + BLOCK)

/* A block's values as F32. Written without branches, so that a compiler can use vectors: an F16's exponent and mantissa,
 * moved into place, are 2^-112 of its value, subnormal or not; infinities and what is no number are set apart. */
static void
widen(const struct tensor *t, size_t block, float x[BLOCK])
{
    const unsigned char *from = t->data;
    if (t->type == WEIGHT_F32) {
        memcpy(x, from + block * BLOCK * sizeof *x, BLOCK * sizeof *x);
        return;
    }
    uint16_t half[BLOCK];
    memcpy(half, from + block * sizeof half, sizeof half);
    if (t->type == WEIGHT_BF16) {
        for (size_t i = 0; i < BLOCK; i++)
            x[i] = bf16_to_f32(half[i]);
        return;
    }
    for (size_t i = 0; i < BLOCK; i++) {
        const uint32_t h = half[i], odd = (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
        const float magnitude = float_of_bits((h & 0x7fffu) << 13) * 0x1p112f;
        x[i] = float_of_bits(bits_of_float(magnitude) | (h & 0x8000u) << 16 | odd);
    }
}

/* False: a weight is infinite or no number. */
static bool
quantize_block(const float x[BLOCK], unsigned char *out)
{
    int32_t largest = 0; /* magnitudes order as their bits do */
    for (size_t i = 0; i < BLOCK; i++) {
        const int32_t magnitude = (int32_t)(bits_of_float(x[i]) & 0x7fffffffu);
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= 0x7f800000)
        return false;
    const float d = float_of_bits((uint32_t)largest) / 127;
    const float inverse = d >= 0x1p-126f ? 1 / d : 0; /* below, 1 / d would be infinite, and d is 0 in F16 anyway */
    const uint16_t scale = f32_to_f16(d);
    memcpy(out, &scale, sizeof scale);
    for (size_t i = 0; i < BLOCK; i++) { /* roundf(), exactly, where |scaled| is at most 127 and a little */
        const float scaled = x[i] * inverse;
        const int32_t whole = (int32_t)scaled;
        const float rest = scaled - (float)whole;
        out[sizeof scale + i] = (unsigned char)(whole + (rest >= 0.5f) - (rest <= -0.5f));
    }
    return true;
}

static bool
quantize(struct model *m, struct tensor *t, const char *what, uint32_t layer, struct err *err)
{
    if (t->data == NULL || t->cols % BLOCK != 0 ||
        (t->type != WEIGHT_F32 && t->type != WEIGHT_F16 && t->type != WEIGHT_BF16))
        return true;
    const uint64_t values = (uint64_t)t->rows * t->cols;
    const size_t blocks_a_row = t->cols / BLOCK;
    unsigned char *q = model_take(m, (size_t)(values / BLOCK) * BLOCK_BYTES);
    if (q == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory quantising %" PRIu64 " weights to Q8_0", m->path, values);
    uint32_t bad_rows = 0;
    PARALLEL(omp parallel for schedule(static))
    for (uint32_t row = 0; row < t->rows; row++) {
        float x[BLOCK];
        for (size_t b = row * blocks_a_row; b < (row + (size_t)1) * blocks_a_row; b++) {
            widen(t, b, x);
            if (!quantize_block(x, q + b * BLOCK_BYTES))
                __atomic_store_n(&bad_rows, row + 1, __ATOMIC_RELAXED);
        }
    }
    if (bad_rows != 0)
        return err_set(err, ERR_WORK,
                       "%s: row %" PRIu32 " of %s in layer %" PRIu32 " holds weights that are no finite numbers and "
                       "cannot be quantised",
                       m->path, bad_rows - 1, what, layer);
    m->parameters_of[t->type] -= values;
    m->tensors_of[t->type]--;
    m->parameters_of[WEIGHT_Q8_0] += values;
    m->tensors_of[WEIGHT_Q8_0]++;
    m->quantized = true;
    t->data = q;
    t->mapped = false;
    t->type = WEIGHT_Q8_0;
    return true;
}

/* But for the router, which stays exact. */
static bool
quantize_layer(struct model *m, struct layer_desc *layer, uint32_t l, struct err *err)
{
    struct expert_desc *experts = (struct expert_desc *)layer->experts; /* the model's own */
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        if (layer_tensors[i].kind == LAYER_MATRIX && i != LAYER_ROUTER &&
            !quantize(m, &layer->all[i], layer_tensors[i].names[LAYER_NAMED_GGUF], l, err))
            return false;
    for (uint32_t e = 0; experts != NULL && e < experts_listed(&m->desc); e++)
        for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++)
            if (!quantize(m, &experts[e].all[i], expert_tensor_names[i], l, err))
                return false;
    return true;
}

bool
model_quantize(struct model *m, struct err *err)
{
    struct model_desc *d = &m->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* the model's own */
    if (!quantize(m, &d->embedding, "the embedding", 0, err))
        return false;
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (!quantize_layer(m, &layers[l], l, err))
            return false;
    if (m->tied)
        d->head = d->embedding;
    else if (!quantize(m, &d->head, "the head", d->n_layers, err))
        return false;
    return true;
}
