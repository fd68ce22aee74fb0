#include "engine/model/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/experts.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

void
model_replace(struct model *m, struct tensor *t, const void *data, enum weight_type type)
{
    const uint64_t values = (uint64_t)t->rows * t->cols;
    m->parameters_of[t->type] -= values;
    m->tensors_of[t->type]--;
    m->parameters_of[type] += values;
    m->tensors_of[type]++;
    t->data = data;
    t->type = type;
    t->mapped = false;
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

uint64_t
model_kv_bytes(const struct model *m, uint32_t ctx, bool exact)
{
    const struct model_desc *d = &m->desc;
    uint64_t numbers = 0; /* of a position */
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (d->layers[l].form.kind == LAYER_ATTENTION && d->layers[l].form.kv_layer == 0)
            numbers += 2 * layer_sizes(d, &d->layers[l].form).kv;
    return numbers * ctx * (exact ? sizeof(float) : sizeof(uint16_t));
}

uint32_t
model_recurrent_layers(const struct model *m)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        n += m->desc.layers[l].form.kind != LAYER_ATTENTION;
    return n;
}

uint64_t
model_state_bytes(const struct model *m, uint32_t states, uint32_t rows)
{
    const struct recurrent_form *f = &m->desc.form.recurrent;
    const uint64_t channels = recurrent_channels(f), values = recurrent_values(f), state = values * f->key_dim;
    const uint64_t update = (uint64_t)f->key_heads * f->key_dim + values + 2 * (uint64_t)f->value_heads;
    return model_recurrent_layers(m) * sizeof(float) *
           (states * (state + (f->taps - 1) * channels) + rows * (channels + (state > 0 ? update : 0)));
}

static double
tensor_bytes(const struct tensor *t, bool exact)
{
    if (!tensor_present(t))
        return 0;
    return (double)t->rows * (double)(exact ? t->cols * sizeof(float) : tensor_row_bytes(t->type, t->cols));
}

/* Returns the bytes of the experts that one row uses. */
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

double
model_feed_bytes(const struct model *m, bool features, bool exact)
{
    const struct drafter_desc *f = m->desc.drafter;
    if (f == NULL)
        return 0;
    double bytes = tensor_bytes(&f->join, exact) + (features ? tensor_bytes(&f->projection, exact) : 0);
    for (uint32_t l = 0; l < m->desc.n_layers && f->block > 0 && features; l++)
        bytes += tensor_bytes(&m->desc.layers[l].wk, exact) + tensor_bytes(&m->desc.layers[l].wv, exact);
    return bytes;
}

double
model_markov_bytes(const struct model *m, bool exact)
{
    return m->desc.drafter != NULL ? tensor_bytes(&m->desc.drafter->markov_w2, exact) : 0;
}

double
model_confidence(const struct drafter_desc *d, uint32_t width, float *x, token_t before)
{
    const float *weight = d->confidence.data;
    double sum = (double)d->confidence_bias;
    if (d->confidence.cols > width)
        tensor_row(&d->markov_w1, (uint32_t)before, x + width);
    for (uint32_t i = 0; i < d->confidence.cols; i++)
        sum += (double)weight[i] * (double)x[i];
    return 1 / (1 + exp(-sum));
}

#define FEATURES_BYTES ((size_t)64 << 20)
#define FEATURES_ROWS  512 /* at least, even if they take more */

static size_t
feature_bytes(const struct model *drafter, const struct model *target)
{
    return (size_t)drafter->n_features * target->desc.width * sizeof(float);
}

uint32_t
model_features_window(const struct model *drafter, const struct model *target)
{
    const size_t each = feature_bytes(drafter, target), rows = each > 0 ? FEATURES_BYTES / each : 0;
    return rows > FEATURES_ROWS ? (uint32_t)rows : FEATURES_ROWS;
}

uint64_t
model_features_bytes(const struct model *drafter, const struct model *target, uint32_t ctx)
{
    /* each of many sequences keeps a few rows, though their share of the window is less */
    const uint32_t window = model_features_window(drafter, target), batches = 8 * FEATURES_ROWS,
                   most = window > batches ? window : batches;
    return (ctx < most ? ctx : most) * (uint64_t)feature_bytes(drafter, target);
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

/* Embeddings in a mapped file: after reading a row its page is released. */
static uint64_t
left_in_file(const struct tensor *t, bool exact)
{
    const uint64_t values = (uint64_t)t->rows * t->cols;
    if (!t->mapped)
        return 0;
    return exact ? values * sizeof(float) : tensor_held_bytes(t->type, values);
}

/* Returns the bytes of unpacked weights that a backend copies: blocks, and all types but F32 if exact. */
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
    const struct tensor *inputs = &m->desc.input_embedding;
    for (enum weight_type t = 0; t < WEIGHT_TYPES; t++) {
        const uint64_t stays = inputs->mapped && inputs->type == t ? (uint64_t)inputs->rows * inputs->cols : 0;
        const uint64_t n = m->parameters_of[t] - stays;
        const uint64_t own = tensor_held_bytes(t, n);
        const uint64_t small = tensor_held_bytes(WEIGHT_Q8_0, n);
        const bool changes = quantize && tensor_block_values(t) == 1;
        bytes += exact ? n * sizeof(float) : changes ? small : own;
        bytes += changes ? small : 0; /* the model's, beside the backend's */
        bytes += beside(m, t, exact);
    }
    return quantize || m->tied ? bytes : bytes - left_in_file(&m->desc.embedding, exact);
}

#define PLACES      256u /* opening a large file must not read all of it */
#define PLACE_BYTES 64u

uint64_t
hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

uint64_t
hash_map(uint64_t hash, const unsigned char *map, uint64_t bytes, uint64_t data_start)
{
    const uint64_t data = bytes - data_start;
    hash = hash_bytes(hash, map, (size_t)data_start);
    if (data <= PLACES * PLACE_BYTES)
        return hash_bytes(hash, map + data_start, (size_t)data);
    for (uint64_t i = 0; i < PLACES; i++) { /* the last one ends where the file does */
        uint64_t at = data_start + (data - PLACE_BYTES) / (PLACES - 1) * i;
        if (i == PLACES - 1)
            at = bytes - PLACE_BYTES;
        hash = hash_bytes(hash, map + at, PLACE_BYTES);
    }
    unsigned char size[8];
    memcpy(size, &bytes, sizeof size);
    return hash_bytes(hash, size, sizeof size);
}

bool
final_norm_open(struct final_norm *n, const struct model_desc *d, struct err *err)
{
    *n = (struct final_norm){.width = d->width,
                             .eps = d->rms_eps,
                             .layer_norm = d->form.layer_norm,
                             .weight = calloc(d->width, 2 * sizeof *n->weight)};
    if (n->weight == NULL)
        return err_set(err, ERR_WORK, "out of memory for a norm");
    tensor_row(&d->final_norm, 0, n->weight);
    if (tensor_present(&d->final_norm_bias))
        tensor_row(&d->final_norm_bias, 0, n->weight + d->width);
    return true;
}

void
final_norm_free(struct final_norm *n)
{
    free(n->weight);
    *n = (struct final_norm){.width = 0};
}

float
final_norm_apply(const struct final_norm *n, const float *h, float *out)
{
    const float *bias = n->weight + n->width;
    double squares = 0, sum = 0;
    for (uint32_t i = 0; n->layer_norm && i < n->width; i++)
        sum += (double)h[i];
    const float mean = (float)(sum / n->width);
    for (uint32_t i = 0; i < n->width; i++)
        squares += (double)(h[i] - mean) * (double)(h[i] - mean);
    const float inverse = (float)(1 / sqrt(squares / (double)n->width + (double)n->eps));
    for (uint32_t i = 0; i < n->width; i++)
        out[i] = (h[i] - mean) * inverse * n->weight[i] + bias[i];
    return inverse;
}

/* Quantising a model while it is opened. */

#define BLOCK       MODEL_Q8_BLOCK
#define BLOCK_BYTES (sizeof(uint16_t) + BLOCK)

/* A block's values as F32. Written without branches, so that a compiler can use vectors: an F16's exponent and
 * mantissa, moved into place, are 2^-112 of its value, subnormal or not; infinities and NaN are handled separately. */
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

bool
model_quantize_block(const float x[BLOCK], unsigned char *out)
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
    unsigned char *q = blocks_take(&m->blocks, 1, (size_t)(values / BLOCK) * BLOCK_BYTES);
    if (q == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory quantising %" PRIu64 " weights to Q8_0", m->path, values);
    uint32_t bad_rows = 0;
    PARALLEL(omp parallel for schedule(static))
    for (uint32_t row = 0; row < t->rows; row++) {
        float x[BLOCK];
        for (size_t b = row * blocks_a_row; b < (row + (size_t)1) * blocks_a_row; b++) {
            widen(t, b, x);
            if (!model_quantize_block(x, q + b * BLOCK_BYTES))
                __atomic_store_n(&bad_rows, row + 1, __ATOMIC_RELAXED);
        }
    }
    if (bad_rows != 0)
        return err_set(err, ERR_WORK,
                       "%s: row %" PRIu32 " of %s in layer %" PRIu32
                       " contains weights that are not finite numbers and cannot be quantised",
                       m->path, bad_rows - 1, what, layer);
    model_replace(m, t, q, WEIGHT_Q8_0);
    m->quantized = true;
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
    struct drafter_desc *drafter = (struct drafter_desc *)d->drafter; /* the model's own */
    if (drafter != NULL &&
        (!quantize(m, &drafter->projection, "fc", 1, err) || !quantize(m, &drafter->join, "eh_proj", 1, err) ||
         !quantize(m, &drafter->markov_w1, "markov_w1", 1, err) ||
         !quantize(m, &drafter->markov_w2, "markov_w2", 1, err)))
        return false;
    if (m->tied)
        d->head = d->embedding;
    else if (!quantize(m, &d->head, "the head", d->n_layers, err))
        return false;
    return true;
}
