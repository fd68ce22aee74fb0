#include "tests/rigs/naive_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/rng.h"
#include "kernels/tensor.h"

enum { TENSORS_PER_LAYER = 14, MAX_TENSORS = 3 + 16 * TENSORS_PER_LAYER };

struct matrix { /* (rows, cols) as stored, in double */
    double *at;
    uint32_t rows, cols;
};

struct naive_layer {
    struct matrix attn_norm, wq, wk, wv, bq, bk, bv, q_norm, k_norm, wo, ffn_norm, gate, up, down; /* at NULL: absent */
};

struct naive_model {
    struct model_desc desc;
    struct layer_desc *layers;   /* (n_layers) as a backend sees them */
    struct naive_layer *doubles; /* (n_layers) */
    struct matrix embedding, final_norm, head;
    void *memory[2 * MAX_TENSORS];
    size_t n_memory;
    uint64_t seed;
    uint32_t n_tensors;
    bool failed;
};

/* ---- random weights ---- */

static double
gaussian(uint64_t seed, uint32_t tensor, uint32_t i)
{
    const struct rng_key a = {.seed = seed, .seq = tensor, .pos = i},
                         b = {.seed = seed, .seq = tensor, .pos = i, .index = 1};
    return sqrt(-2 * log(1 - rng_uniform(&a))) * cos(2 * 3.14159265358979323846 * rng_uniform(&b));
}

/* The F16 bits nearest to x among those that cut the mantissa; x is small and normal here, or 0. */
static uint16_t
half_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t exponent = (int32_t)((bits >> 23) & 0xff) - 127 + 15;
    if (exponent <= 0)
        return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) | ((uint32_t)exponent << 10) | (bits >> 13 & 0x3ff));
}

static double
half_value(uint16_t h)
{
    const int exponent = h >> 10 & 0x1f;
    const double mantissa = exponent > 0 ? 1024 + (h & 0x3ff) : 0;
    return (h & 0x8000 ? -1 : 1) * ldexp(mantissa, exponent - 25);
}

static void *
keep(struct naive_model *m, void *memory)
{
    if (memory == NULL || m->n_memory == 2 * MAX_TENSORS) {
        m->failed = true;
        free(memory);
        return NULL;
    }
    return m->memory[m->n_memory++] = memory;
}

/* Writes row values x (cols) in the tensor's type to out and replaces them with what was stored. */
static void
store_row(enum weight_type type, double *x, uint32_t cols, unsigned char *out)
{
    for (uint32_t i = 0; i < cols; i++) {
        const float f = (float)x[i];
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        if (type == WEIGHT_F32) {
            memcpy(out + 4 * i, &f, 4);
            x[i] = (double)f;
        } else if (type == WEIGHT_F16) {
            const uint16_t h = half_bits(f);
            memcpy(out + 2 * i, &h, 2);
            x[i] = half_value(h);
        } else if (type == WEIGHT_BF16) {
            const uint16_t b = (uint16_t)(bits >> 16);
            float cut;
            bits &= 0xffff0000u;
            memcpy(&cut, &bits, sizeof cut);
            memcpy(out + 2 * i, &b, 2);
            x[i] = (double)cut;
        }
    }
    if (type != WEIGHT_Q8_0)
        return;
    for (uint32_t block = 0; block < cols / 32; block++) { /* 34 bytes: an F16 scale, 32 signed bytes */
        double max = 0;
        for (uint32_t i = 0; i < 32; i++)
            max = fmax(max, fabs(x[32 * block + i]));
        const uint16_t scale = half_bits((float)(max / 126)); /* cut, so up to 126.1 of them */
        memcpy(out + 34 * block, &scale, 2);
        for (uint32_t i = 0; i < 32; i++) {
            double *at = &x[32 * block + i];
            const int8_t q = (int8_t)(half_value(scale) > 0 ? lrint(*at / half_value(scale)) : 0);
            memcpy(out + 34 * block + 2 + i, &q, 1);
            *at = q * half_value(scale);
        }
    }
}

/* Where a block's scale and its offset lie, and how many scales the offset is when the values' mean is about 0. */
static const struct {
    int scale, offset;
    double scales;
} block_places[WEIGHT_TYPES] = {
    [WEIGHT_Q4_0] = {0, -1, 0},    [WEIGHT_Q4_1] = {0, 2, -7.5},  [WEIGHT_Q5_0] = {0, -1, 0},
    [WEIGHT_Q5_1] = {0, 2, -15.5}, [WEIGHT_Q2_K] = {80, 82, 1.5}, [WEIGHT_Q3_K] = {108, -1, 0},
    [WEIGHT_Q4_K] = {0, 2, 7.5},   [WEIGHT_Q5_K] = {0, 2, 15.5},  [WEIGHT_Q6_K] = {208, -1, 0},
};

static void
set_scales(enum weight_type type, unsigned char *row, size_t bytes, double scale)
{
    const uint16_t d = half_bits((float)scale), offset = half_bits((float)(scale * fabs(block_places[type].scales)));
    const uint16_t signed_offset = block_places[type].scales < 0 ? offset | 0x8000u : offset;
    for (unsigned char *b = row; b < row + bytes; b += tensor_block_bytes(type)) {
        memcpy(b + block_places[type].scale, &d, sizeof d);
        if (block_places[type].offset >= 0)
            memcpy(b + block_places[type].offset, &signed_offset, sizeof signed_offset);
    }
}

/* Random blocks of a type that this file does not encode, scaled so that the values deviate as asked from 0; what they
 * mean is read back (tests/unit/kernels/test_tensor.c holds that to others' reading). */
static void
random_blocks(struct naive_model *m, enum weight_type type, uint32_t tensor, uint32_t r, uint32_t cols,
              double deviation, unsigned char *row, double *x)
{
    const size_t bytes = tensor_row_bytes(type, cols);
    float *values = calloc(cols, sizeof *values);
    if (values == NULL) {
        m->failed = true;
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        const struct rng_key key = {.seed = m->seed, .seq = tensor, .pos = r, .purpose = 7, .index = (uint32_t)i};
        row[i] = (unsigned char)(rng_uniform(&key) * 256);
    }
    set_scales(type, row, bytes, 1.0 / 16);
    tensor_blocks(type, row, cols, values);
    double squares = 0;
    for (uint32_t i = 0; i < cols; i++)
        squares += (double)values[i] * (double)values[i];
    set_scales(type, row, bytes, deviation / 16 / sqrt(squares / cols));
    tensor_blocks(type, row, cols, values);
    for (uint32_t i = 0; i < cols; i++)
        x[i] = (double)values[i];
    free(values);
}

/* A random tensor, mean + deviation * N(0, 1), as stored and in double. */
static struct tensor
random_tensor(struct naive_model *m, enum weight_type type, uint32_t rows, uint32_t cols, double mean, double deviation,
              struct matrix *doubles)
{
    const size_t row_bytes = tensor_row_bytes(type, cols);
    double *x = keep(m, calloc((size_t)rows * cols, sizeof *x));
    unsigned char *data = keep(m, aligned_alloc(64, ((size_t)rows * row_bytes + 63) / 64 * 64));
    const uint32_t tensor = m->n_tensors++;
    *doubles = (struct matrix){x, rows, cols};
    if (m->failed)
        return (struct tensor){.rows = rows, .cols = cols};
    for (uint32_t r = 0; r < rows; r++) {
        if (type > WEIGHT_Q8_0) {
            random_blocks(m, type, tensor, r, cols, deviation, data + r * row_bytes, x + (size_t)r * cols);
            continue;
        }
        for (uint32_t i = 0; i < cols; i++)
            x[(size_t)r * cols + i] = mean + deviation * gaussian(m->seed, tensor, r * cols + i);
        store_row(type, x + (size_t)r * cols, cols, data + r * row_bytes);
    }
    return (struct tensor){.data = data, .type = type, .rows = rows, .cols = cols};
}

struct naive_model *
naive_model_random(const struct naive_shape *s, uint64_t seed)
{
    struct naive_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->seed = seed;
    m->layers = calloc(s->n_layers, sizeof *m->layers);
    m->doubles = calloc(s->n_layers, sizeof *m->doubles);
    if (m->layers == NULL || m->doubles == NULL) {
        naive_model_free(m);
        return NULL;
    }
    const uint32_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const enum weight_type second = s->second != WEIGHT_F32 ? s->second : s->type;
    m->desc = (struct model_desc){.n_layers = s->n_layers,
                                  .width = s->width,
                                  .heads = s->heads,
                                  .kv_heads = s->kv_heads,
                                  .head_dim = s->head_dim,
                                  .ffn = s->ffn,
                                  .vocab = s->vocab,
                                  .rope_dims = s->head_dim,
                                  .rope = s->rope,
                                  .rope_base = 10000,
                                  .rope_scale = 1,
                                  .rms_eps = 1e-5f,
                                  .window = s->window,
                                  .layers = m->layers};
    /* Deviations that keep queries and keys around 1.5, so that attention prefers some positions clearly. */
    const double in = 1.5 / sqrt(s->width), back = 0.7 / sqrt(q), down = 1.0 / sqrt(s->ffn);
    m->desc.embedding = random_tensor(m, s->type, s->vocab, s->width, 0, 1, &m->embedding);
    m->desc.final_norm = random_tensor(m, WEIGHT_F32, 1, s->width, 1, 0.1, &m->final_norm);
    m->desc.head = random_tensor(m, second, s->vocab, s->width, 0, 2 / sqrt(s->width), &m->head);
    for (uint32_t l = 0; l < s->n_layers; l++) {
        struct layer_desc *d = &m->layers[l];
        struct naive_layer *x = &m->doubles[l];
        d->attn_norm = random_tensor(m, WEIGHT_F32, 1, s->width, 1, 0.1, &x->attn_norm);
        d->wq = random_tensor(m, s->type, q, s->width, 0, in, &x->wq);
        d->wk = random_tensor(m, s->type, kv, s->width, 0, in, &x->wk);
        d->wv = random_tensor(m, second, kv, s->width, 0, in, &x->wv);
        if (s->bias) {
            d->bq = random_tensor(m, WEIGHT_F32, 1, q, 0, 0.3, &x->bq);
            d->bk = random_tensor(m, WEIGHT_F32, 1, kv, 0, 0.3, &x->bk);
            d->bv = random_tensor(m, WEIGHT_F32, 1, kv, 0, 0.3, &x->bv);
        }
        if (s->head_norm) {
            d->q_norm = random_tensor(m, WEIGHT_F32, 1, s->head_dim, 1.5, 0.1, &x->q_norm);
            d->k_norm = random_tensor(m, WEIGHT_F32, 1, s->head_dim, 1, 0.1, &x->k_norm);
        }
        d->wo = random_tensor(m, s->type, s->width, q, 0, back, &x->wo);
        d->ffn_norm = random_tensor(m, WEIGHT_F32, 1, s->width, 1, 0.1, &x->ffn_norm);
        d->gate = random_tensor(m, s->type, s->ffn, s->width, 0, in, &x->gate);
        d->up = random_tensor(m, s->type, s->ffn, s->width, 0, in, &x->up);
        d->down = random_tensor(m, second, s->width, s->ffn, 0, down, &x->down);
    }
    if (m->failed) {
        naive_model_free(m);
        return NULL;
    }
    return m;
}

void
naive_model_free(struct naive_model *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_memory; i++)
        free(m->memory[i]);
    free(m->layers);
    free(m->doubles);
    free(m);
}

const struct model_desc *
naive_model_desc(const struct naive_model *m)
{
    return &m->desc;
}

/* ---- the forward pass ---- */

static void
multiply(const struct matrix *w, const double *x, double *out)
{
    for (uint32_t r = 0; r < w->rows; r++) {
        out[r] = 0;
        for (uint32_t i = 0; i < w->cols; i++)
            out[r] += w->at[(size_t)r * w->cols + i] * x[i];
    }
}

static void
rms_norm(const struct matrix *w, double eps, const double *x, double *out)
{
    double square = 0;
    for (uint32_t i = 0; i < w->cols; i++)
        square += x[i] * x[i];
    for (uint32_t i = 0; i < w->cols; i++)
        out[i] = w->at[i] * x[i] / sqrt(square / w->cols + eps);
}

/* Bias, and norm of every head, where the model has them. */
static void
finish_heads(const struct model_desc *d, const struct matrix *bias, const struct matrix *norm, double *x,
             uint32_t heads)
{
    for (uint32_t i = 0; bias->at != NULL && i < bias->cols; i++)
        x[i] += bias->at[i];
    for (uint32_t h = 0; norm != NULL && norm->at != NULL && h < heads; h++)
        rms_norm(norm, (double)d->rms_eps, x + (size_t)h * d->head_dim, x + (size_t)h * d->head_dim);
}

static void
rope(const struct model_desc *d, double *x, uint32_t heads, size_t pos)
{
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < d->rope_dims / 2; i++) {
            double *head = x + h * d->head_dim;
            double *a = d->rope == ROPE_ADJACENT ? &head[2 * i] : &head[i];
            double *b = d->rope == ROPE_ADJACENT ? &head[2 * i + 1] : &head[i + d->head_dim / 2];
            const double angle = (double)pos * pow((double)d->rope_base, -2.0 * i / d->rope_dims);
            const double c = cos(angle), s = sin(angle), was = *a;
            *a = was * c - *b * s;
            *b = was * s + *b * c;
        }
}

/* One query (heads, head_dim) over n keys and values (n, kv_heads, head_dim). */
static void
attend(const struct model_desc *d, const double *query, const double *keys, const double *values, size_t n, double *out)
{
    const size_t stride = (size_t)d->kv_heads * d->head_dim;
    for (uint32_t h = 0; h < d->heads; h++) {
        const size_t kv = (size_t)(h / (d->heads / d->kv_heads)) * d->head_dim, q = (size_t)h * d->head_dim;
        double max = -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t i = 0; pass == 1 && i < d->head_dim; i++)
                out[q + i] = 0;
            for (size_t t = d->window > 0 && n > d->window ? n - d->window : 0; t < n; t++) {
                double score = 0;
                for (uint32_t i = 0; i < d->head_dim; i++)
                    score += query[q + i] * keys[t * stride + kv + i];
                score /= sqrt(d->head_dim);
                if (pass == 0) {
                    max = fmax(max, score);
                    continue;
                }
                sum += exp(score - max);
                for (uint32_t i = 0; i < d->head_dim; i++)
                    out[q + i] += exp(score - max) * values[t * stride + kv + i];
            }
        }
        for (uint32_t i = 0; i < d->head_dim; i++)
            out[q + i] /= sum;
    }
}

bool
naive_hidden(const struct naive_model *m, const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    const struct model_desc *d = &m->desc;
    const size_t width = d->width, qn = (size_t)d->heads * d->head_dim, kvn = (size_t)d->kv_heads * d->head_dim;
    double *memory = calloc(n * (width + 2 * kvn) + 2 * width + 2 * qn + 2 * d->ffn, sizeof *memory);
    if (memory == NULL)
        return false;
    double *hidden = memory, *keys = hidden + n * width, *values = keys + n * kvn, *x = values + n * kvn;
    double *back = x + width, *query = back + width, *attended = query + qn, *gate = attended + qn, *up = gate + d->ffn;

    for (size_t t = 0; t < n; t++)
        memcpy(hidden + t * width, m->embedding.at + (size_t)path[t].token * width, width * sizeof *hidden);
    memcpy(out, hidden + (n - 1) * width, width * sizeof *out);
    for (uint32_t l = 1; l <= depth; l++) {
        const struct naive_layer *w = &m->doubles[l - 1];
        for (size_t t = 0; t < n; t++) {
            rms_norm(&w->attn_norm, (double)d->rms_eps, hidden + t * width, x);
            multiply(&w->wk, x, keys + t * kvn);
            multiply(&w->wv, x, values + t * kvn);
            finish_heads(d, &w->bk, &w->k_norm, keys + t * kvn, d->kv_heads);
            finish_heads(d, &w->bv, NULL, values + t * kvn, d->kv_heads);
            rope(d, keys + t * kvn, d->kv_heads, t);
        }
        for (size_t t = 0; t < n; t++) {
            double *h = hidden + t * width;
            if (path[t].skip_attention == NULL || !path[t].skip_attention[l]) {
                rms_norm(&w->attn_norm, (double)d->rms_eps, h, x);
                multiply(&w->wq, x, query);
                finish_heads(d, &w->bq, &w->q_norm, query, d->heads);
                rope(d, query, d->heads, t);
                attend(d, query, keys, values, t + 1, attended);
                multiply(&w->wo, attended, back);
                for (size_t i = 0; i < width; i++)
                    h[i] += back[i];
            }
            if (path[t].skip_mlp == NULL || !path[t].skip_mlp[l]) {
                rms_norm(&w->ffn_norm, (double)d->rms_eps, h, x);
                multiply(&w->gate, x, gate);
                multiply(&w->up, x, up);
                for (uint32_t i = 0; i < d->ffn; i++)
                    up[i] *= gate[i] / (1 + exp(-gate[i]));
                multiply(&w->down, up, back);
                for (size_t i = 0; i < width; i++)
                    h[i] += back[i];
            }
        }
        memcpy(out + l * width, hidden + (n - 1) * width, width * sizeof *out);
    }
    free(memory);
    return true;
}

void
naive_logits(const struct naive_model *m, const double *hidden, double *out)
{
    double *x = calloc(m->desc.width, sizeof *x);
    if (x == NULL)
        return;
    rms_norm(&m->final_norm, (double)m->desc.rms_eps, hidden, x);
    multiply(&m->head, x, out);
    free(x);
}
