#include "tests/rigs/block_rig.h"

#include <math.h>

#include "base/rng.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"
#include "tests/rigs/test.h"

enum { WIDTH = BLOCK_WIDTH, HEADS = 4, KV_HEADS = 2, DIM = 16, FFN = 96, FEATURES = 3 * WIDTH };

#define EPSILON 1e-6f
#define BASE    10000.0f

/* ---- weights ---- */

static struct tensor
matrix(struct block_model *m, const struct block_form *f, uint32_t rows, uint32_t cols)
{
    struct synthetic *s = blocks_take(&m->blocks, 1, sizeof *s);
    assert_non_null(s);
    *s = (struct synthetic){synthetic_key(m->seed, m->n++), synthetic_scale(1 / SYNTHETIC_DEVIATION / sqrt(cols)), rows,
                            cols};
    struct tensor t = {.synthetic = s, .type = f->type, .rows = rows, .cols = cols};
    const size_t bytes = synthetic_row_bytes(t.type, cols);
    unsigned char *data = f->of_file ? blocks_take(&m->blocks, rows, bytes) : NULL;
    for (uint32_t r = 0; r < rows && data != NULL; r++)
        synthetic_row(&t, r, data + r * bytes);
    t.data = data;
    return t;
}

static float
number(uint64_t *random)
{
    return (float)(splitmix64(random) % 2001) / 1000 - 1;
}

static struct tensor
vector(struct block_model *m, uint32_t n, float mean, uint64_t *random)
{
    float *x = blocks_take(&m->blocks, n, sizeof *x);
    assert_non_null(x);
    for (uint32_t i = 0; i < n; i++)
        x[i] = mean + 0.3f * number(random);
    return (struct tensor){.data = x, .type = WEIGHT_F32, .rows = 1, .cols = n};
}

static void
make_layer(struct block_model *m, const struct block_form *f, struct layer_desc *l, uint64_t *random)
{
    l->wq = matrix(m, f, HEADS * DIM, WIDTH);
    l->wk = matrix(m, f, KV_HEADS * DIM, WIDTH);
    l->wv = matrix(m, f, KV_HEADS * DIM, WIDTH);
    l->wo = matrix(m, f, WIDTH, HEADS * DIM);
    l->gate = matrix(m, f, FFN, WIDTH);
    l->up = matrix(m, f, FFN, WIDTH);
    l->down = matrix(m, f, WIDTH, FFN);
    l->attn_norm = vector(m, WIDTH, 1, random);
    l->ffn_norm = vector(m, WIDTH, 1, random);
    l->form.causal = f->mixed && l == m->layers;
    l->form.sees_all = f->mixed && l != m->layers;
    if (f->plain) {
        l->bq = vector(m, HEADS * DIM, 0, random);
        l->bk = vector(m, KV_HEADS * DIM, 0, random);
        l->bv = vector(m, KV_HEADS * DIM, 0, random);
    } else {
        l->q_norm = vector(m, DIM, 2, random);
        l->k_norm = vector(m, DIM, 2, random);
    }
}

void
block_model_open(struct block_model *m, const struct block_form *f, uint64_t seed)
{
    uint64_t random = seed;
    *m = (struct block_model){.seed = seed};
    const uint32_t outputs = f->named ? BLOCK_OUTPUTS : BLOCK_VOCAB;
    for (uint32_t l = 0; l < f->layers; l++)
        make_layer(m, f, &m->layers[l], &random);
    m->drafter = (struct drafter_desc){.features = f->plain ? WIDTH : FEATURES,
                                       .parts = 1,
                                       .feature_norm = vector(m, WIDTH, 1, &random),
                                       .block = f->block,
                                       .mask = BLOCK_VOCAB - 1,
                                       .causal = f->causal,
                                       .from_anchor = f->from_anchor};
    if (f->plain)
        m->drafter.norm = vector(m, WIDTH, 1, &random);
    else
        m->drafter.projection = matrix(m, f, WIDTH, FEATURES);
    if (f->markov) {
        m->drafter.markov_w1 = matrix(m, f, BLOCK_VOCAB, BLOCK_RANK);
        m->drafter.markov_w2 = matrix(m, f, outputs, BLOCK_RANK);
        m->drafter.confidence = vector(m, WIDTH + BLOCK_RANK, 0, &random);
    }
    if (f->named) {
        token_t *tokens = blocks_take(&m->blocks, outputs, sizeof *tokens);
        assert_non_null(tokens);
        for (uint32_t i = 0; i < outputs; i++) /* not in ascending order */
            tokens[i] = (token_t)((i * 37 + 5) % BLOCK_VOCAB);
        m->drafter.tokens = tokens;
    }
    m->desc = (struct model_desc){.n_layers = f->layers,
                                  .width = WIDTH,
                                  .heads = HEADS,
                                  .vocab = BLOCK_VOCAB,
                                  .kv_heads = KV_HEADS,
                                  .head_dim = DIM,
                                  .ffn = FFN,
                                  .rope_dims = DIM,
                                  .rope = ROPE_HALVES,
                                  .rope_base = BASE,
                                  .rope_scale = 1,
                                  .rms_eps = EPSILON,
                                  .window = f->window,
                                  .embedding = matrix(m, f, BLOCK_VOCAB, WIDTH),
                                  .head = matrix(m, f, outputs, WIDTH),
                                  .final_norm = vector(m, WIDTH, 1, &random),
                                  .layers = m->layers,
                                  .drafter = &m->drafter};
}

void
block_model_close(struct block_model *m)
{
    blocks_free(&m->blocks);
}

void
block_features(const struct block_model *m, uint64_t seed, uint32_t n, float *features)
{
    for (size_t i = 0; i < (size_t)n * m->drafter.features; i++)
        features[i] = 3 * number(&seed);
}

/* ---- the reference ---- */

/* y = W x + b; b may be absent */
static void
times(const struct tensor *w, const struct tensor *b, const double *x, double *y)
{
    float row[FEATURES], bias[FEATURES] = {0};
    if (tensor_present(b))
        tensor_row(b, 0, bias);
    for (uint32_t o = 0; o < w->rows; o++) {
        tensor_row(w, o, row);
        y[o] = tensor_present(b) ? (double)bias[o] : 0;
        for (uint32_t k = 0; k < w->cols; k++)
            y[o] += (double)row[k] * x[k];
    }
}

static void
normed(const struct tensor *norm, const double *x, uint32_t n, double *y)
{
    float weight[FEATURES];
    double sum = 0;
    tensor_row(norm, 0, weight);
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    const double scale = 1 / sqrt(sum / n + (double)EPSILON);
    for (uint32_t i = 0; i < n; i++)
        y[i] = x[i] * scale * (double)weight[i];
}

/* Normalises the heads of q or of k, if there is a norm, and rotates them. */
static void
finish_heads(const struct tensor *norm, uint32_t heads, uint32_t position, double *x)
{
    for (uint32_t h = 0; h < heads; h++, x += DIM) {
        if (tensor_present(norm))
            normed(norm, x, DIM, x);
        for (int i = 0; i < DIM / 2; i++) {
            const double angle = position * pow((double)BASE, -2.0 * i / DIM), a = x[i], b = x[i + DIM / 2];
            x[i] = a * cos(angle) - b * sin(angle);
            x[i + DIM / 2] = a * sin(angle) + b * cos(angle);
        }
    }
}

static void
keys_and_values(const struct layer_desc *l, uint32_t position, const double *x, double *k, double *v)
{
    times(&l->wk, &l->bk, x, k);
    times(&l->wv, &l->bv, x, v);
    finish_heads(&l->k_norm, KV_HEADS, position, k);
}

/* g of a row that is fed */
static void
context_row(const struct block_model *m, const float *features, double *g)
{
    const struct drafter_desc *d = &m->drafter;
    double x[FEATURES], y[FEATURES];
    for (uint32_t i = 0; i < d->features; i++)
        x[i] = (double)features[i];
    if (tensor_present(&d->norm))
        normed(&d->norm, x, d->features, x);
    if (tensor_present(&d->projection))
        times(&d->projection, &(struct tensor){0}, x, y);
    normed(&d->feature_norm, tensor_present(&d->projection) ? y : x, WIDTH, g);
}

/* Attention of one row over the positions first..n-1, whose keys and values are (n, KV_HEADS, DIM). */
static void
attend(const double *q, const double *keys, const double *values, uint32_t first, uint32_t n, double *scores,
       double *out)
{
    for (int h = 0; h < HEADS; h++) {
        const size_t at = (size_t)(h / (HEADS / KV_HEADS)) * DIM;
        double sum = 0;
        for (uint32_t t = first; t < n; t++) {
            double dot = 0;
            for (int i = 0; i < DIM; i++)
                dot += q[h * DIM + i] * keys[(size_t)t * KV_HEADS * DIM + at + (size_t)i];
            scores[t] = exp(dot / sqrt(DIM));
            sum += scores[t];
        }
        for (int i = 0; i < DIM; i++) {
            out[h * DIM + i] = 0;
            for (uint32_t t = first; t < n; t++)
                out[h * DIM + i] += scores[t] / sum * values[(size_t)t * KV_HEADS * DIM + at + (size_t)i];
        }
    }
}

/* x += W y */
static void
add(const struct tensor *w, const double *y, double *x)
{
    double sum[WIDTH];
    times(w, &(struct tensor){0}, y, sum);
    for (int i = 0; i < WIDTH; i++)
        x[i] += sum[i];
}

static void
mlp(const struct layer_desc *l, double *x)
{
    double normal[WIDTH], gate[FFN], up[FFN];
    normed(&l->ffn_norm, x, WIDTH, normal);
    times(&l->gate, &(struct tensor){0}, normal, gate);
    times(&l->up, &(struct tensor){0}, normal, up);
    for (int i = 0; i < FFN; i++)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    add(&l->down, up, x);
}

void
block_naive(const struct block_model *m, const float *features, uint32_t n_context, const token_t *tokens, uint32_t n,
            double *hidden, double *logits)
{
    const uint32_t layers = m->desc.n_layers, all = n_context + n;
    const size_t kv = (size_t)KV_HEADS * DIM;
    double *g = test_calloc((size_t)n_context * WIDTH + 1, sizeof *g), *keys = test_calloc(all * kv, sizeof *keys),
           *values = test_calloc(all * kv, sizeof *values), *scores = test_calloc(all, sizeof *scores);
    for (uint32_t t = 0; t < n_context; t++)
        context_row(m, features + (size_t)t * m->drafter.features, g + (size_t)t * WIDTH);
    for (uint32_t i = 0; i < n; i++) {
        float e[WIDTH];
        tensor_row(&m->desc.embedding, (size_t)tokens[i], e);
        for (int k = 0; k < WIDTH; k++)
            hidden[(size_t)i * (layers + 1) * WIDTH + (size_t)k] = (double)e[k];
    }
    for (uint32_t l = 1; l <= layers; l++) {
        const struct layer_desc *layer = &m->layers[l - 1];
        const uint32_t window = layer->form.sees_all ? 0 : m->desc.window;
        const bool causal = m->drafter.causal || layer->form.causal;
        double x[WIDTH], q[HEADS * DIM], out[HEADS * DIM];
        for (uint32_t t = 0; t < all; t++) {
            const double *row = t < n_context ? g + (size_t)t * WIDTH : x;
            if (t >= n_context)
                normed(&layer->attn_norm, hidden + ((size_t)(t - n_context) * (layers + 1) + l - 1) * WIDTH, WIDTH, x);
            keys_and_values(layer, t, row, keys + t * kv, values + t * kv);
        }
        for (uint32_t i = 0; i < n; i++) {
            const double *before = hidden + ((size_t)i * (layers + 1) + l - 1) * WIDTH;
            double *after = hidden + ((size_t)i * (layers + 1) + l) * WIDTH;
            const uint32_t own = n_context + i, first = window > 0 && own + 1 > window ? own + 1 - window : 0;
            normed(&layer->attn_norm, before, WIDTH, x);
            times(&layer->wq, &layer->bq, x, q);
            finish_heads(&layer->q_norm, HEADS, own, q);
            attend(q, keys, values, first, causal ? own + 1 : all, scores, out);
            for (int k = 0; k < WIDTH; k++)
                after[k] = before[k];
            add(&layer->wo, out, after);
            mlp(layer, after);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        double x[WIDTH];
        normed(&m->desc.final_norm, hidden + ((size_t)i * (layers + 1) + layers) * WIDTH, WIDTH, x);
        times(&m->desc.head, &(struct tensor){0}, x, logits + (size_t)i * m->desc.head.rows);
    }
    test_free(g);
    test_free(keys);
    test_free(values);
    test_free(scores);
}

void
block_naive_bias(const struct block_model *m, token_t before, double *logits)
{
    float row[BLOCK_RANK];
    double x[BLOCK_RANK], bias[BLOCK_VOCAB];
    tensor_row(&m->drafter.markov_w1, (size_t)before, row);
    for (uint32_t i = 0; i < BLOCK_RANK; i++)
        x[i] = (double)row[i];
    times(&m->drafter.markov_w2, &(struct tensor){0}, x, bias);
    for (uint32_t i = 0; i < m->desc.head.rows; i++)
        logits[i] += bias[i];
}
