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

static void
add_identity(float *values, uint32_t rows, uint32_t cols, uint32_t from, float scale)
{
    for (uint32_t i = 0; i < rows && from + i < cols; i++)
        values[(size_t)i * cols + from + i] += scale;
}

/* The outputs begin with the target's rows, and g with its deepest features. The values of attention begin with the
 * token's embedding. */
static void
begin(struct eagle_head *h, const struct model *target, uint64_t seed)
{
    uint64_t random = seed;
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        float *values = eagle_part(h, part);
        eagle_part_shape(h, part, &rows, &cols);
        if (rows == 1)
            for (uint32_t i = 0; i < cols; i++)
                values[i] = 1;
        else
            draw(values, (size_t)rows * cols, 1 / sqrt((double)cols), &random);
    }
    (void)target;
}

bool
eagle_head_new(struct eagle_head **out, const struct model *target, const token_t *tokens, uint32_t n, uint64_t seed,
               struct err *err)
{
    const struct model_desc *d = &target->desc;
    const uint32_t layers = d->n_layers;
    *out = NULL;
    if (layers < 3)
        return err_set(err, ERR_WORK, "%s has %u layers; an EAGLE-3 head reads three of its target", target->name,
                       (unsigned)layers);
    struct eagle_head *h = calloc(1, sizeof *h);
    if (h == NULL)
        return err_set(err, ERR_WORK, "out of memory for an EAGLE-3 head of %s", target->name);
    *h = (struct eagle_head){.width = d->width,
                             .heads = d->heads,
                             .kv_heads = d->kv_heads,
                             .head_dim = d->head_dim,
                             .ffn = d->ffn > 0 ? d->ffn : 3 * d->width,
                             .n_features = 3,
                             .layers = {2, layers / 2, layers - 3},
                             .features = 3 * d->width,
                             .vocab = n,
                             .target_vocab = d->vocab,
                             .ctx = target->ctx_train,
                             .eps = d->rms_eps > 0 ? d->rms_eps : 1e-5f,
                             .rope_base = d->rope_base > 0 ? d->rope_base : 10000};
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        eagle_part_shape(h, part, &rows, &cols);
        h->at[part] = h->n_values;
        h->n_values += (size_t)rows * cols;
    }
    h->tokens = malloc(n * sizeof *h->tokens);
    h->values = malloc(h->n_values * sizeof *h->values);
    if (h->tokens == NULL || h->values == NULL) {
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
    free(h->tokens);
    free(h->values);
    free(h);
}
