#include "engine/training/eagle_head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/tensor.h"

void
eagle_part_shape(const struct eagle_head *h, enum eagle_part part, uint32_t *rows, uint32_t *cols)
{
    const uint32_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim, w = h->width;
    const uint32_t shapes[EAGLE_PARTS][2] = {[EAGLE_FC] = {w, h->features},
                                             [EAGLE_TOKEN_NORM] = {1, w},
                                             [EAGLE_FEATURE_NORM] = {1, w},
                                             [EAGLE_Q] = {q, 2 * w},
                                             [EAGLE_K] = {kv, 2 * w},
                                             [EAGLE_V] = {kv, 2 * w},
                                             [EAGLE_O] = {w, q},
                                             [EAGLE_FFN_NORM] = {1, w},
                                             [EAGLE_GATE] = {h->ffn, w},
                                             [EAGLE_UP] = {h->ffn, w},
                                             [EAGLE_DOWN] = {w, h->ffn},
                                             [EAGLE_FINAL_NORM] = {1, w},
                                             [EAGLE_HEAD] = {h->vocab, w}};
    *rows = shapes[part][0];
    *cols = shapes[part][1];
}

/* ---- initial weights ---- */

/* Normal by Box and Muller, with this deviation. */
static void
draw(float *values, size_t n, double deviation, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        const double u = ((double)(splitmix64(random) >> 11) + 0.5) * 0x1p-53,
                     v = (double)(splitmix64(random) >> 11) * 0x1p-53;
        values[i] = (float)(deviation * sqrt(-2 * log(u)) * cos(2 * acos(-1) * v));
    }
}

/* Where the weights of a target's layer begin in a part of the head: Q, K and V read the token's norm, too. */
static const struct {
    enum layer_tensor tensor;
    enum eagle_part part;
    bool paired;
} copied[] = {{LAYER_ATTN_NORM, EAGLE_FEATURE_NORM, false},
              {LAYER_WQ, EAGLE_Q, true},
              {LAYER_WK, EAGLE_K, true},
              {LAYER_WV, EAGLE_V, true},
              {LAYER_WO, EAGLE_O, false},
              {LAYER_FFN_NORM, EAGLE_FFN_NORM, false},
              {LAYER_GATE, EAGLE_GATE, false},
              {LAYER_UP, EAGLE_UP, false},
              {LAYER_DOWN, EAGLE_DOWN, false}};
#define COPIED (sizeof copied / sizeof copied[0])

/* Returns whether the layer computes what the head's layer does: it has these tensors in these shapes and no others. */
static bool
resembles(const struct eagle_head *h, const struct layer_desc *layer)
{
    size_t present = 0;
    for (size_t i = 0; i < LAYER_TENSORS; i++)
        present += tensor_present(&layer->all[i]);
    for (size_t i = 0; i < COPIED; i++) {
        const struct tensor *t = &layer->all[copied[i].tensor];
        uint32_t rows, cols;
        eagle_part_shape(h, copied[i].part, &rows, &cols);
        if (!tensor_present(t) || t->rows != rows || t->cols != (copied[i].paired ? cols / 2 : cols))
            return false;
    }
    return present == COPIED && layer->experts == NULL;
}

/* The row of Q or K that is stored as `row`, where the two elements of a RoPE pair are adjacent rows. */
uint32_t
eagle_stored_row(const struct eagle_head *h, enum eagle_part part, uint32_t row)
{
    const uint32_t half = h->head_dim / 2, in = row % h->head_dim;
    return part == EAGLE_Q || part == EAGLE_K ? row - in + in / 2 + in % 2 * half : row;
}

/* Copies the layer. Weights of the token's norm stay random, but smaller. */
static void
copy_layer(struct eagle_head *h, const struct model_desc *d, const struct layer_desc *layer)
{
    for (size_t i = 0; i < COPIED; i++) {
        const enum eagle_part part = copied[i].part;
        uint32_t rows, cols;
        eagle_part_shape(h, part, &rows, &cols);
        for (uint32_t r = 0; r < rows; r++) {
            float *to =
                eagle_part(h, part) + (size_t)(d->rope == ROPE_ADJACENT ? eagle_stored_row(h, part, r) : r) * cols;
            for (uint32_t k = 0; k < h->width && copied[i].paired; k++)
                to[k] *= 0.3f;
            tensor_row(&layer->all[copied[i].tensor], r, to + (copied[i].paired ? h->width : 0));
        }
    }
}

/* The outputs begin with the target's, g with its deepest features, and the layer with its last one if that is of the
 * same form: with minutes of training, all three are better than random weights. */
static void
begin(struct eagle_head *h, const struct model *target, uint64_t seed)
{
    const struct model_desc *d = &target->desc;
    const struct layer_desc *last = d->layers != NULL ? &d->layers[d->n_layers - 1] : NULL;
    uint64_t random = seed;
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        float *values = eagle_part(h, part);
        eagle_part_shape(h, part, &rows, &cols);
        for (uint32_t i = 0; i < cols && rows == 1; i++)
            values[i] = 1;
        if (rows > 1)
            draw(values, (size_t)rows * cols, (part == EAGLE_FC ? 0.1 : 1) / sqrt((double)cols), &random);
    }
    for (uint32_t i = 0; i < h->width; i++)
        eagle_part(h, EAGLE_FC)[(size_t)i * h->features + h->features - h->width + i] += 1;
    for (uint32_t i = 0; i < h->vocab; i++)
        tensor_row(&d->head, (size_t)h->tokens[i], eagle_part(h, EAGLE_HEAD) + (size_t)i * h->width);
    if (tensor_present(&d->final_norm))
        tensor_row(&d->final_norm, 0, eagle_part(h, EAGLE_FINAL_NORM));
    if (last != NULL && resembles(h, last))
        copy_layer(h, d, last);
}

bool
eagle_target_layers(const struct model *target, uint32_t layers[EAGLE_FEATURES], struct err *err)
{
    const uint32_t n = target->desc.n_layers;
    if (n < EAGLE_FEATURES)
        return err_set(err, ERR_WORK,
                       "%s has %u layers, but an EAGLE-3 head reads three of its target; use another model",
                       target->name, (unsigned)n);
    layers[0] = 2;
    layers[1] = n / 2;
    layers[2] = n - 3;
    return true;
}

bool
eagle_head_new(struct eagle_head **out, const struct model *target, const token_t *tokens, uint32_t n, uint64_t seed,
               struct err *err)
{
    const struct model_desc *d = &target->desc;
    uint32_t layers[EAGLE_FEATURES];
    *out = NULL;
    if (!eagle_target_layers(target, layers, err))
        return false;
    struct eagle_head *h = calloc(1, sizeof *h);
    if (h == NULL)
        return err_set(err, ERR_WORK, "out of memory for an EAGLE-3 head of %s", target->name);
    *h = (struct eagle_head){.width = d->width,
                             .heads = d->heads,
                             .kv_heads = d->kv_heads,
                             .head_dim = d->head_dim,
                             .ffn = d->ffn > 0 ? d->ffn : 3 * d->width,
                             .n_features = EAGLE_FEATURES,
                             .features = EAGLE_FEATURES * d->width,
                             .vocab = n,
                             .target_vocab = d->vocab,
                             .ctx = target->ctx_train,
                             .eps = d->rms_eps > 0 ? d->rms_eps : 1e-5f,
                             .rope_base = d->rope_base > 0 ? d->rope_base : 10000};
    memcpy(h->layers, layers, sizeof layers);
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        eagle_part_shape(h, part, &rows, &cols);
        h->at[part] = h->n_values;
        h->n_values += (size_t)rows * cols;
    }
    h->tokens = blocks_take(&h->blocks, n, sizeof *h->tokens);
    h->values = blocks_take(&h->blocks, h->n_values, sizeof *h->values);
    if (h->blocks.starved) {
        err_set(err, ERR_WORK, "out of memory: an EAGLE-3 head of %s takes %.1f GB", target->name,
                (double)h->n_values * sizeof *h->values * 1e-9);
        eagle_head_free(h);
        return false;
    }
    memcpy(h->tokens, tokens, n * sizeof *tokens);
    begin(h, target, seed);
    *out = h;
    return true;
}

void
eagle_head_free(struct eagle_head *h)
{
    if (h == NULL)
        return;
    blocks_free(&h->blocks);
    free(h);
}
