/* The layer of an EAGLE-3 head in training, forwards and backwards: see eagle_training.h for its rows. */
#include <math.h>
#include <string.h>

#include "engine/training/blas.h"
#include "engine/training/eagle_internal.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

/* ---- operations on rows ---- */

/* c (m, n) = a b + beta c; a's rows are split between the threads. */
static void
split_product(const struct eagle_training *t, struct host_product p)
{
    const size_t parts = t->lens->blas != NULL ? 1 : t->options.threads, m = p.m;
    if (eagle_cancelled(t) || m == 0 || p.k == 0)
        return;
    PARALLEL(omp parallel for num_threads(t->options.threads) if (parts > 1))
    for (size_t i = 0; i < parts; i++) {
        const size_t from = m * i / parts, to = m * (i + 1) / parts;
        struct host_product part = p;
        part.m = (uint32_t)(to - from);
        part.a += p.transpose_a ? from : from * p.stride_a;
        part.c += from * p.n;
        if (to > from)
            blas_multiply(t->lens->blas, &part);
    }
}

void
eagle_apply(const struct eagle_training *t, size_t n, uint32_t rows, uint32_t cols, const float *x, const float *matrix,
            float *y)
{
    split_product(t, blas_packed(false, true, n, rows, cols, x, matrix, 0, y));
}

/* From the gradients `slope` (n, rows) by apply()'s y: those by x, unless slope_x is NULL; adds those by the matrix. */
static void
apply_back(const struct eagle_training *t, enum eagle_part part, size_t n, uint32_t rows, uint32_t cols, const float *x,
           const float *slope, float beta, float *slope_x, float *gradient)
{
    if (slope_x != NULL)
        split_product(t, blas_packed(false, false, n, cols, rows, slope, eagle_part(t->head, part), beta, slope_x));
    split_product(t, blas_packed(true, false, rows, cols, n, slope, x, 1, gradient + t->head->at[part]));
}

/* y = x / rms(x) ∘ weight; returns 1 / rms(x). */
static float
norm(const struct eagle_head *h, const float *x, const float *weight, float *y)
{
    float squares = 0;
    PARALLEL(omp simd reduction(+ : squares))
    for (uint32_t i = 0; i < h->width; i++)
        squares += x[i] * x[i];
    const float inverse = 1 / sqrtf(squares / (float)h->width + h->eps);
    for (uint32_t i = 0; i < h->width; i++)
        y[i] = x[i] * inverse * weight[i];
    return inverse;
}

/* Adds to slope_x the gradient by norm()'s x, from that by y: r s - r^3 x (x·s) / width with s = slope ∘ weight. */
static void
norm_back(const struct eagle_head *h, const float *x, const float *weight, float inverse, const float *slope,
          float *slope_x)
{
    float dot = 0;
    PARALLEL(omp simd reduction(+ : dot))
    for (uint32_t i = 0; i < h->width; i++)
        dot += x[i] * slope[i] * weight[i];
    const float back = dot * inverse * inverse * inverse / (float)h->width;
    for (uint32_t i = 0; i < h->width; i++)
        slope_x[i] += inverse * slope[i] * weight[i] - back * x[i];
}

/* The same for n rows, x of which are `width` apart, and slopes `stride`. */
static void
norm_back_rows(const struct eagle_training *t, size_t n, const float *x, enum eagle_part weight, const float *inverse,
               const float *slope, size_t stride, float *slope_x)
{
    const struct eagle_head *h = t->head;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < n; i++)
        norm_back(h, x + i * h->width, eagle_part(h, weight), inverse[i], slope + i * stride, slope_x + i * h->width);
}

/* Rotates all heads of a row to a position; sign -1: back. */
static void
rotate(const struct eagle_training *t, float *x, uint32_t heads, uint32_t position, float sign)
{
    const uint32_t dim = t->head->head_dim, half = dim / 2;
    const float *cosine = t->rotation + (size_t)position * dim, *sine = cosine + half;
    for (uint32_t k = 0; k < heads; k++, x += dim)
        for (uint32_t i = 0; i < half; i++) {
            const float low = x[i], high = x[half + i];
            x[i] = low * cosine[i] - sign * high * sine[i];
            x[half + i] = high * cosine[i] + sign * low * sine[i];
        }
}

/* ---- forwards ---- */

/* [norm(e); norm(g)] of a row, whose g is at `index` of the step's. */
static void
make_pair(struct eagle_training *t, struct eagle_pass *p, size_t index, token_t token)
{
    const struct eagle_head *h = t->head;
    float *pair = p->pair + index * 2 * h->width;
    tensor_row(&t->target->embedding, (size_t)token, pair);
    norm(h, pair, eagle_part(h, EAGLE_TOKEN_NORM), pair);
    p->inverse_g[index] = norm(h, p->g + index * h->width, eagle_part(h, EAGLE_FEATURE_NORM), pair + h->width);
}

void
eagle_begin_batch(struct eagle_training *t)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[0];
    const struct eagle_head *h = t->head;
    const uint32_t kv = 2 * h->kv_heads * h->head_dim;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t w = 0; w < b->n; w++)
        for (uint32_t i = 0; i < b->windows[w].n; i++) {
            const uint16_t *state = b->windows[w].states + (size_t)i * (h->n_features + 1) * h->width;
            float *to = t->features + (size_t)(b->start[w] + i) * h->features;
            for (uint32_t k = 0; k < h->features; k++)
                to[k] = bf16_to_f32(state[k]);
        }
    eagle_apply(t, b->tokens, h->width, h->features, t->features, eagle_part(h, EAGLE_FC), p->g);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t w = 0; w < b->n; w++)
        for (uint32_t i = 0; i < b->windows[w].n; i++)
            make_pair(t, p, b->start[w] + i, b->windows[w].tokens[i + 1 < b->windows[w].n ? i + 1 : i]);
    eagle_apply(t, b->tokens, kv, 2 * h->width, p->pair, eagle_part(h, EAGLE_K), p->kv);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t w = 0; w < b->n; w++)
        for (uint32_t i = 0; i < b->windows[w].n; i++)
            rotate(t, p->kv + (size_t)(b->start[w] + i) * kv, h->kv_heads, i, 1);
}

/* The input of a step's rows: of the first step, those of their bases; of a later one, also keys and values. */
static void
begin_step(struct eagle_training *t, uint32_t step)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[step];
    const struct eagle_head *h = t->head;
    const uint32_t kv = 2 * h->kv_heads * h->head_dim, w2 = 2 * h->width;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < p->n; i++) {
        if (step == 0) {
            memcpy(t->pairs + i * w2, p->pair + p->base[i] * (size_t)w2, w2 * sizeof *t->pairs);
            continue;
        }
        const uint32_t w = eagle_window_of(p, (uint32_t)i);
        memcpy(p->g + i * h->width, p[-1].h + p->parent[i] * (size_t)h->width, h->width * sizeof *p->g);
        make_pair(t, p, i, b->windows[w].tokens[p->base[i] - b->start[w] + 1 + step]);
    }
    const float *pairs = step == 0 ? t->pairs : p->pair;
    eagle_apply(t, p->n, h->heads * h->head_dim, w2, pairs, eagle_part(h, EAGLE_Q), p->q);
    if (step > 0)
        eagle_apply(t, p->n, kv, w2, pairs, eagle_part(h, EAGLE_K), p->kv);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t position = p->base[i] - b->start[eagle_window_of(p, (uint32_t)i)] + step;
        rotate(t, p->q + i * h->heads * h->head_dim, h->heads, position, 1);
        if (step > 0)
            rotate(t, p->kv + i * kv, h->kv_heads, position, 1);
    }
}

/* g of a row: in the first step its base's. */
static float *
input_of(const struct eagle_training *t, uint32_t step, size_t row)
{
    const struct eagle_pass *p = &t->batch.pass[step];
    return p->g + (step == 0 ? p->base[row] : row) * t->head->width;
}

/* t->active = silu(gate) ∘ up */
static void
activate(struct eagle_training *t, const struct eagle_pass *p)
{
    const uint32_t ffn = t->head->ffn;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < p->n; i++) {
        memcpy(t->active + i * ffn, p->gate_up + i * 2 * ffn, ffn * sizeof *t->active);
        t->isa->swiglu(t->active + i * ffn, p->gate_up + i * 2 * ffn + ffn, ffn);
    }
}

/* Sets t->normed to the norms of rows (n, width), and their inverses, unless NULL. */
static void
norm_rows(struct eagle_training *t, size_t n, const float *x, enum eagle_part weight, float *inverse)
{
    const struct eagle_head *h = t->head;
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < n; i++) {
        const float r = norm(h, x + i * h->width, eagle_part(h, weight), t->normed + i * h->width);
        if (inverse != NULL)
            inverse[i] = r;
    }
}

/* x = g + O attention, h = x + MLP. */
static void
run_layer(struct eagle_training *t, uint32_t step)
{
    struct eagle_pass *p = &t->batch.pass[step];
    const struct eagle_head *h = t->head;
    eagle_attend(t->attention, t->options.threads, h, &t->batch, step);
    eagle_apply(t, p->n, h->width, h->heads * h->head_dim, p->attention, eagle_part(h, EAGLE_O), p->x);
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < h->width; k++)
            p->x[i * h->width + k] += input_of(t, step, i)[k];
    norm_rows(t, p->n, p->x, EAGLE_FFN_NORM, p->inverse_x);
    eagle_apply(t, p->n, 2 * h->ffn, h->width, t->normed, eagle_part(h, EAGLE_GATE), p->gate_up);
    activate(t, p);
    eagle_apply(t, p->n, h->width, h->ffn, t->active, eagle_part(h, EAGLE_DOWN), p->h);
    for (size_t i = 0; i < p->n * h->width; i++)
        p->h[i] += p->x[i];
}

void
eagle_run_step(struct eagle_training *t, uint32_t step)
{
    struct eagle_pass *p = &t->batch.pass[step];
    const struct eagle_head *h = t->head;
    begin_step(t, step);
    run_layer(t, step);
    norm_rows(t, p->n, p->h, EAGLE_FINAL_NORM, p->inverse_h);
    eagle_apply(t, p->n, h->vocab, h->width, t->normed, eagle_part(h, EAGLE_HEAD), t->z);
}

/* ---- backwards ---- */

/* From slope_h, the gradient by the layer's output: slope_x, by the residual after attention. */
static void
mlp_back(struct eagle_training *t, uint32_t step, float *gradient)
{
    struct eagle_pass *p = &t->batch.pass[step];
    const struct eagle_head *h = t->head;
    const uint32_t ffn = h->ffn;
    activate(t, p);
    float *slope_active = t->z; /* (n, ffn), which has room: see take_all() */
    apply_back(t, EAGLE_DOWN, p->n, h->width, ffn, t->active, p->slope_h, 0, slope_active, gradient);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < p->n; i++) {
        const float *gate = p->gate_up + i * 2 * ffn, *up = gate + ffn, *s = slope_active + i * ffn;
        float *to = t->slope_gate_up + i * 2 * ffn;
        for (uint32_t k = 0; k < ffn; k++) {
            const float part = 1 / (1 + expf(-gate[k])); /* silu(x) = x part */
            to[k] = s[k] * up[k] * part * (1 + gate[k] * (1 - part));
            to[ffn + k] = s[k] * gate[k] * part;
        }
    }
    norm_rows(t, p->n, p->x, EAGLE_FFN_NORM, NULL);
    float *slope_normed = t->slope_g;
    apply_back(t, EAGLE_GATE, p->n, 2 * ffn, h->width, t->normed, t->slope_gate_up, 0, slope_normed, gradient);
    memcpy(t->slope_x, p->slope_h, p->n * h->width * sizeof *t->slope_x);
    norm_back_rows(t, p->n, p->x, EAGLE_FFN_NORM, p->inverse_x, slope_normed, h->width, t->slope_x);
}

/* From slope_x: slope_q, before RoPE, and what the step adds to the keys' and values' gradients. */
static void
attention_back(struct eagle_training *t, uint32_t step, float *gradient)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[step];
    const struct eagle_head *h = t->head;
    const uint32_t q = h->heads * h->head_dim;
    apply_back(t, EAGLE_O, p->n, h->width, q, p->attention, t->slope_x, 0, t->slope_attention, gradient);
    if (!eagle_cancelled(t))
        eagle_attend_back(t->attention, t->options.threads, h, b, step, t->slope_attention, t->slope_q);
    for (size_t i = 0; i < p->n; i++)
        rotate(t, t->slope_q + i * q, h->heads, p->base[i] - b->start[eagle_window_of(p, (uint32_t)i)] + step, -1);
}

/* Of a later step, whose rows have g of their own: adds the gradient by g to slope_h of the step before. */
static void
chain_back(struct eagle_training *t, uint32_t step, float *gradient)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[step];
    const struct eagle_head *h = t->head;
    const uint32_t q = h->heads * h->head_dim, kv = 2 * h->kv_heads * h->head_dim, w = h->width;
    for (size_t i = 0; i < p->n; i++)
        rotate(t, p->slope_kv + i * kv, h->kv_heads, p->base[i] - b->start[eagle_window_of(p, (uint32_t)i)] + step, -1);
    apply_back(t, EAGLE_Q, p->n, q, 2 * w, p->pair, t->slope_q, 0, t->slope_pair, gradient);
    apply_back(t, EAGLE_K, p->n, kv, 2 * w, p->pair, p->slope_kv, 1, t->slope_pair, gradient);
    PARALLEL(omp parallel for num_threads(t->options.threads))
    for (size_t i = 0; i < p->n; i++) {
        float *to = p[-1].slope_h + p->parent[i] * (size_t)w;
        norm_back(h, p->g + i * w, eagle_part(h, EAGLE_FEATURE_NORM), p->inverse_g[i], t->slope_pair + i * 2 * w + w,
                  to);
        for (uint32_t k = 0; k < w; k++)
            to[k] += t->slope_x[i * w + k];
    }
}

/* Of the first step: the rows' q, all tokens' keys and values, and the projection of features. */
static void
batch_back(struct eagle_training *t, float *gradient)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[0];
    const struct eagle_head *h = t->head;
    const uint32_t q = h->heads * h->head_dim, kv = 2 * h->kv_heads * h->head_dim, w = h->width;
    for (size_t k = 0; k < b->n; k++)
        for (uint32_t i = 0; i < b->windows[k].n; i++)
            rotate(t, p->slope_kv + (size_t)(b->start[k] + i) * kv, h->kv_heads, i, -1);
    float *slope_rows = t->pairs; /* overwritten after its last use */
    for (size_t i = 0; i < p->n; i++)
        memcpy(t->pairs + i * 2 * w, p->pair + p->base[i] * 2 * (size_t)w, 2 * (size_t)w * sizeof *t->pairs);
    apply_back(t, EAGLE_Q, p->n, q, 2 * w, t->pairs, t->slope_q, 0, NULL, gradient);
    apply_back(t, EAGLE_K, b->tokens, kv, 2 * w, p->pair, p->slope_kv, 0, t->slope_pair, gradient);
    split_product(t,
                  blas_packed(false, false, p->n, 2 * (size_t)w, q, t->slope_q, eagle_part(h, EAGLE_Q), 0, slope_rows));
    memset(t->slope_g, 0, (size_t)b->tokens * w * sizeof *t->slope_g);
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < w; k++) {
            t->slope_pair[p->base[i] * 2 * (size_t)w + w + k] += slope_rows[i * 2 * w + w + k];
            t->slope_g[p->base[i] * (size_t)w + k] = t->slope_x[i * w + k];
        }
    norm_back_rows(t, b->tokens, p->g, EAGLE_FEATURE_NORM, p->inverse_g, t->slope_pair + w, 2 * w, t->slope_g);
    apply_back(t, EAGLE_FC, b->tokens, w, h->features, t->features, t->slope_g, 0, NULL, gradient);
}

void
eagle_head_back(struct eagle_training *t, uint32_t step, float *gradient)
{
    struct eagle_pass *p = &t->batch.pass[step];
    const struct eagle_head *h = t->head;
    float *slope_normed = t->slope_g;
    apply_back(t, EAGLE_HEAD, p->n, h->vocab, h->width, t->normed, t->z, 0, slope_normed, gradient);
    memset(p->slope_h, 0, p->n * (size_t)h->width * sizeof *p->slope_h);
    norm_back_rows(t, p->n, p->h, EAGLE_FINAL_NORM, p->inverse_h, slope_normed, h->width, p->slope_h);
}

void
eagle_back(struct eagle_training *t, uint32_t steps, float *gradient)
{
    const struct eagle_head *h = t->head;
    const size_t kv = 2 * (size_t)h->kv_heads * h->head_dim;
    for (uint32_t s = 0; s < steps; s++)
        memset(t->batch.pass[s].slope_kv, 0,
               (s == 0 ? t->batch.tokens : t->batch.pass[s].n) * kv * sizeof *t->batch.pass[s].slope_kv);
    for (uint32_t s = steps; s-- > 0 && !eagle_cancelled(t);) {
        mlp_back(t, s, gradient);
        attention_back(t, s, gradient);
        if (s > 0)
            chain_back(t, s, gradient);
        else
            batch_back(t, gradient);
    }
}
