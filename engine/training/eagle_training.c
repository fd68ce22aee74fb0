#include "engine/training/eagle_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/training/adam.h"
#include "engine/training/blas.h"
#include "engine/training/eagle_pass.h"
#include "kernels/cpu/isa.h"
#include "kernels/half.h"
#include "kernels/tensor.h"

struct eagle_training {
    struct eagle_head *head;
    const struct model_desc *target;
    const struct lens *lens;
    struct eagle_options options;
    const struct cpu_isa *isa;
    struct adam adam;
    float *gradient; /* of a step */
    int32_t *output; /* (target_vocab) a token's output of the head, or -1 */
    float *rotation; /* (window + EAGLE_STEPS, head_dim) cosines, then sines, by position */
    struct eagle_batch batch;
    struct eagle_attention *attention;
    /* Values of rows, (rows, …), of the step that is computed. */
    float *features;     /* of all tokens */
    float *pairs;        /* those of the first step's rows */
    float *normed;       /* (width) what a matrix reads after a norm */
    float *active;       /* (ffn) after the activation */
    float *z;            /* (vocab) logits, then the loss's gradients by them */
    float *final;        /* (width) the target's last states, then its distributions' rows: */
    float *wanted;       /* (vocab) the target's distributions, of all tokens that predict */
    double *entropy;     /* of them, nats */
    uint32_t *wanted_at; /* (tokens) a token's row of `wanted` */
    bool *right;         /* EAGLE_STEPS arrays: all predictions up to the row's were right */
    float *slope_x, *slope_q, *slope_attention, *slope_pair, *slope_gate_up, *slope_g; /* gradients by these */
    float *memory;                                                                     /* owns the above */
};

/* ---- memory ---- */

struct memory {
    char *at; /* NULL: only counts */
    size_t used;
};

static void *
take(struct memory *m, size_t n, size_t size)
{
    void *taken = m->at != NULL ? m->at + m->used : NULL;
    m->used += (n * size + 63) / 64 * 64;
    return taken;
}

static void
take_pass(struct memory *m, const struct eagle_head *h, uint32_t rows, struct eagle_pass *p)
{
    const size_t n = rows, w = h->width, q = (size_t)h->heads * h->head_dim, kv = (size_t)h->kv_heads * h->head_dim;
    p->first = take(m, n + 1, sizeof *p->first);
    p->base = take(m, n, sizeof *p->base);
    p->parent = take(m, n, sizeof *p->parent);
    p->g = take(m, n * w, sizeof(float));
    p->pair = take(m, n * 2 * w, sizeof(float));
    p->q = take(m, n * q, sizeof(float));
    p->attention = take(m, n * q, sizeof(float));
    p->kv = take(m, n * 2 * kv, sizeof(float));
    p->x = take(m, n * w, sizeof(float));
    p->gate_up = take(m, n * 2 * h->ffn, sizeof(float));
    p->h = take(m, n * w, sizeof(float));
    p->inverse_g = take(m, n, sizeof(float));
    p->inverse_x = take(m, n, sizeof(float));
    p->inverse_h = take(m, n, sizeof(float));
    p->slope_h = take(m, n * w, sizeof(float));
    p->slope_kv = take(m, n * 2 * kv, sizeof(float));
}

static void
take_all(struct memory *m, struct eagle_training *t, const struct eagle_head *h, const struct eagle_options *o)
{
    const size_t n = o->rows, w = h->width, q = (size_t)h->heads * h->head_dim;
    for (uint32_t s = 0; s < EAGLE_STEPS; s++)
        take_pass(m, h, o->rows, &t->batch.pass[s]);
    t->batch.start = take(m, n + 1, sizeof *t->batch.start);
    t->gradient = take(m, h->n_values, sizeof(float));
    t->output = take(m, h->target_vocab, sizeof *t->output);
    t->rotation = take(m, ((size_t)o->window + EAGLE_STEPS) * h->head_dim, sizeof(float));
    t->features = take(m, n * h->features, sizeof(float));
    t->pairs = take(m, n * 2 * w, sizeof(float));
    t->normed = take(m, n * w, sizeof(float));
    t->active = take(m, n * h->ffn, sizeof(float));
    t->z = take(m, n * (h->vocab > h->ffn ? h->vocab : h->ffn), sizeof(float));
    t->final = take(m, n * w, sizeof(float));
    t->wanted = take(m, n * h->vocab, sizeof(float));
    t->entropy = take(m, n, sizeof *t->entropy);
    t->wanted_at = take(m, n, sizeof *t->wanted_at);
    t->right = take(m, n * EAGLE_STEPS, sizeof *t->right);
    t->slope_x = take(m, n * w, sizeof(float));
    t->slope_q = take(m, n * q, sizeof(float));
    t->slope_attention = take(m, n * q, sizeof(float));
    t->slope_pair = take(m, n * 2 * w, sizeof(float));
    t->slope_gate_up = take(m, n * 2 * h->ffn, sizeof(float));
    t->slope_g = take(m, n * w, sizeof(float));
}

uint64_t
eagle_training_bytes(const struct eagle_head *h, const struct eagle_options *o)
{
    struct eagle_training none = {0};
    struct memory counted = {0};
    const uint64_t threads = o->threads > 0 ? o->threads : 1;
    take_all(&counted, &none, h, o);
    return counted.used + 2 * h->n_values * sizeof(float) + threads * 2 * o->window * o->window * sizeof(float);
}

static void
set_rotation(struct eagle_training *t)
{
    const uint32_t dim = t->head->head_dim, half = dim / 2;
    for (uint32_t p = 0; p < t->options.window + EAGLE_STEPS; p++)
        for (uint32_t i = 0; i < half; i++) {
            const double angle = p * pow((double)t->head->rope_base, -2.0 * i / dim);
            t->rotation[(size_t)p * dim + i] = (float)cos(angle);
            t->rotation[(size_t)p * dim + half + i] = (float)sin(angle);
        }
}

bool
eagle_training_open(struct eagle_training **out, struct eagle_head *head, const struct model_desc *target,
                    const struct lens *lens, const struct eagle_options *options, struct err *err)
{
    *out = NULL;
    const uint32_t threads = blas_callers(options->threads > 0 ? options->threads : 1, err);
    if (threads == 0)
        return false;
    struct eagle_training *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_set(err, ERR_WORK, "out of memory for training an EAGLE-3 head");
    t->head = head;
    t->target = target;
    t->lens = lens;
    t->options = *options;
    t->options.threads = threads;
    t->isa = cpu_isa_choose(NULL, NULL); /* there is always one */
    struct memory memory = {0};
    take_all(&memory, t, head, &t->options);
    memory = (struct memory){.at = calloc(memory.used, 1)};
    t->memory = (float *)(void *)memory.at;
    bool ok = adam_open(&t->adam, head->n_values) && memory.at != NULL &&
              eagle_attention_open(&t->attention, head, t->options.window, threads);
    if (!ok) {
        err_set(err, ERR_WORK, "out of memory: training takes %.1f GB; use a smaller --batch or --draft-vocab",
                (double)eagle_training_bytes(head, &t->options) * 1e-9);
        eagle_training_close(t);
        return false;
    }
    take_all(&memory, t, head, &t->options);
    for (uint32_t v = 0; v < head->target_vocab; v++)
        t->output[v] = -1;
    for (uint32_t i = 0; i < head->vocab; i++)
        t->output[head->tokens[i]] = (int32_t)i;
    set_rotation(t);
    *out = t;
    return true;
}

void
eagle_training_close(struct eagle_training *t)
{
    if (t == NULL)
        return;
    eagle_attention_close(t->attention, t->options.threads);
    adam_close(&t->adam);
    free(t->memory);
    free(t);
}

/* ---- operations on rows ---- */

static bool
cancelled(const struct eagle_training *t)
{
    return t->options.cancel != NULL && atomic_load(t->options.cancel);
}

/* c (m, n) = a b + beta c; a's rows are split between the threads. */
static void
split_product(const struct eagle_training *t, const struct host_product *p)
{
    const size_t parts = t->lens->blas != NULL ? 1 : t->options.threads, m = p->m;
    if (cancelled(t) || m == 0 || p->k == 0)
        return;
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads) if (parts > 1)
#endif
    for (size_t i = 0; i < parts; i++) {
        const size_t from = m * i / parts, to = m * (i + 1) / parts;
        struct host_product part = *p;
        part.m = (uint32_t)(to - from);
        part.a += p->transpose_a ? from : from * p->stride_a;
        part.c += from * p->n;
        if (to > from)
            blas_multiply(t->lens->blas, &part);
    }
}

/* y (n, rows) = x (n, cols) times the transposed matrix (rows, cols). */
static void
apply(const struct eagle_training *t, size_t n, uint32_t rows, uint32_t cols, const float *x, const float *matrix,
      float *y)
{
    split_product(t, &(struct host_product){.transpose_b = true,
                                            .m = (uint32_t)n,
                                            .n = rows,
                                            .k = cols,
                                            .a = x,
                                            .stride_a = cols,
                                            .b = matrix,
                                            .stride_b = cols,
                                            .c = y});
}

/* From the gradients `slope` (n, rows) by apply()'s y: those by x, unless slope_x is NULL; adds those by the matrix. */
static void
apply_back(const struct eagle_training *t, size_t n, uint32_t rows, uint32_t cols, const float *x, const float *matrix,
           const float *slope, float beta, float *slope_x, float *gradient)
{
    if (slope_x != NULL)
        split_product(t, &(struct host_product){.m = (uint32_t)n,
                                                .n = cols,
                                                .k = rows,
                                                .a = slope,
                                                .stride_a = rows,
                                                .b = matrix,
                                                .stride_b = cols,
                                                .beta = beta,
                                                .c = slope_x});
    split_product(t, &(struct host_product){.transpose_a = true,
                                            .m = rows,
                                            .n = cols,
                                            .k = (uint32_t)n,
                                            .a = slope,
                                            .stride_a = rows,
                                            .b = x,
                                            .stride_b = cols,
                                            .beta = 1,
                                            .c = gradient});
}

/* y = x / rms(x) ∘ weight; returns 1 / rms(x). */
static float
norm(const struct eagle_head *h, const float *x, const float *weight, float *y)
{
    float squares = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : squares)
#endif
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
#ifdef _OPENMP
#pragma omp simd reduction(+ : dot)
#endif
    for (uint32_t i = 0; i < h->width; i++)
        dot += x[i] * slope[i] * weight[i];
    const float back = dot * inverse * inverse * inverse / (float)h->width;
    for (uint32_t i = 0; i < h->width; i++)
        slope_x[i] += inverse * slope[i] * weight[i] - back * x[i];
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

/* ---- rows of a step ---- */

static uint32_t
window_of(const struct eagle_batch *b, const struct eagle_pass *p, uint32_t row)
{
    uint32_t w = 0;
    while (row >= p->first[w + 1])
        w++;
    (void)b;
    return w;
}

/* Lists the rows of a step, and counts the bases that reach it. */
static void
list_rows(struct eagle_training *t, uint32_t step, struct eagle_score *score)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[step];
    const bool *right = step > 0 ? t->right + (size_t)(step - 1) * t->options.rows : NULL;
    p->n = 0;
    for (uint32_t w = 0; w < b->n; w++) {
        const struct eagle_window *of = &b->windows[w];
        const uint32_t from = step > 0 ? p[-1].first[w] : b->start[w],
                       to = step > 0 ? p[-1].first[w + 1] : b->start[w + 1];
        p->first[w] = p->n;
        for (uint32_t i = from; i < to; i++) {
            const uint32_t base = step > 0 ? p[-1].base[i] : i, predicted = base - b->start[w] + 2 + step;
            if (predicted >= of->n || predicted < of->first)
                continue;
            score->reached[step] += step == 0 || right[i];
            if (t->output[of->tokens[predicted]] < 0)
                continue;
            p->base[p->n] = base;
            p->parent[p->n++] = i;
        }
    }
    p->first[b->n] = p->n;
}

/* Turns a row of the lens' products into a distribution; returns its entropy in nats. The operations on logits are those
 * of kernels/cpu/head.c. */
static double
finish_wanted(const struct eagle_training *t, float *p)
{
    const struct lens *lens = t->lens;
    const uint32_t n = lens->vocab;
    const float scale = form_factor(lens->scale);
    for (uint32_t v = 0; v < n; v++)
        p[v] = (p[v] + (lens->bias != NULL ? lens->bias[v] : 0)) * scale;
    for (uint32_t v = 0; v < n && lens->cap > 0; v++)
        p[v] = lens->cap * tanhf(p[v] / lens->cap);
    const float most = t->isa->most(p, n), sum = t->isa->exp_sum(p, n, most);
    double entropy = 0;
    for (uint32_t v = 0; v < n; v++) {
        p[v] /= sum;
        entropy -= p[v] > 0 ? (double)p[v] * (double)logf(p[v]) : 0;
    }
    return entropy;
}

/* The target's distributions over S for all tokens that the first step's rows, or later ones, are compared with: those
 * before a predicted token of S. */
static void
find_wanted(struct eagle_training *t)
{
    const struct eagle_batch *b = &t->batch;
    const struct eagle_head *h = t->head;
    size_t n = 0;
    for (uint32_t w = 0; w < b->n; w++) {
        const struct eagle_window *of = &b->windows[w];
        for (uint32_t i = of->first > 1 ? of->first - 1 : 1; i + 1 < of->n; i++) {
            if (t->output[of->tokens[i + 1]] < 0)
                continue;
            const uint16_t *state = of->states + ((size_t)i * (h->n_features + 1) + h->n_features) * h->width;
            float *to = t->final + n * h->width;
            for (uint32_t k = 0; k < h->width; k++)
                to[k] = bf16_to_f32(state[k]);
            final_norm_apply(&t->lens->norm, to, to);
            t->wanted_at[b->start[w] + i] = (uint32_t)n++;
        }
    }
    apply(t, n, h->vocab, h->width, t->final, t->lens->head, t->wanted);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < n; i++)
        t->entropy[i] = finish_wanted(t, t->wanted + i * h->vocab);
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

/* Keys and values of all tokens in the first step. */
static void
begin_batch(struct eagle_training *t)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[0];
    const struct eagle_head *h = t->head;
    const uint32_t kv = 2 * h->kv_heads * h->head_dim;
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t w = 0; w < b->n; w++)
        for (uint32_t i = 0; i < b->windows[w].n; i++) {
            const uint16_t *state = b->windows[w].states + (size_t)i * (h->n_features + 1) * h->width;
            float *to = t->features + (size_t)(b->start[w] + i) * h->features;
            for (uint32_t k = 0; k < h->features; k++)
                to[k] = bf16_to_f32(state[k]);
        }
    apply(t, b->tokens, h->width, h->features, t->features, eagle_part(h, EAGLE_FC), p->g);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t w = 0; w < b->n; w++)
        for (uint32_t i = 0; i < b->windows[w].n; i++)
            make_pair(t, p, b->start[w] + i, b->windows[w].tokens[i + 1 < b->windows[w].n ? i + 1 : i]);
    apply(t, b->tokens, kv, 2 * h->width, p->pair, eagle_part(h, EAGLE_K), p->kv);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
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
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < p->n; i++) {
        if (step == 0) {
            memcpy(t->pairs + i * w2, p->pair + p->base[i] * (size_t)w2, w2 * sizeof *t->pairs);
            continue;
        }
        const uint32_t w = window_of(b, p, (uint32_t)i);
        memcpy(p->g + i * h->width, p[-1].h + p->parent[i] * (size_t)h->width, h->width * sizeof *p->g);
        make_pair(t, p, i, b->windows[w].tokens[p->base[i] - b->start[w] + 1 + step]);
    }
    const float *pairs = step == 0 ? t->pairs : p->pair;
    apply(t, p->n, h->heads * h->head_dim, w2, pairs, eagle_part(h, EAGLE_Q), p->q);
    if (step > 0)
        apply(t, p->n, kv, w2, pairs, eagle_part(h, EAGLE_K), p->kv);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t position = p->base[i] - b->start[window_of(b, p, (uint32_t)i)] + step;
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
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
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
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
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
    apply(t, p->n, h->width, h->heads * h->head_dim, p->attention, eagle_part(h, EAGLE_O), p->x);
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < h->width; k++)
            p->x[i * h->width + k] += input_of(t, step, i)[k];
    norm_rows(t, p->n, p->x, EAGLE_FFN_NORM, p->inverse_x);
    apply(t, p->n, 2 * h->ffn, h->width, t->normed, eagle_part(h, EAGLE_GATE), p->gate_up);
    activate(t, p);
    apply(t, p->n, h->width, h->ffn, t->active, eagle_part(h, EAGLE_DOWN), p->h);
    for (size_t i = 0; i < p->n * h->width; i++)
        p->h[i] += p->x[i];
}

/* Compares the rows' predictions with the target's distributions. t->z becomes the loss's gradient by the logits. */
static void
compare(struct eagle_training *t, uint32_t step, float weight, token_t *drafts, struct eagle_score *score)
{
    const struct eagle_batch *b = &t->batch;
    const struct eagle_pass *p = &b->pass[step];
    const struct eagle_head *h = t->head;
    bool *right = t->right + (size_t)step * t->options.rows;
    double loss = 0, accepted = 0;
    const float share = weight / (float)(p->n > 0 ? p->n : 1);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads) reduction(+ : loss, accepted)
#endif
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t w = window_of(b, p, (uint32_t)i), at = p->base[i] - b->start[w];
        const size_t row = t->wanted_at[p->base[i] + 1 + step];
        float *q = t->z + i * h->vocab;
        const float *target = t->wanted + row * h->vocab, most = t->isa->most(q, h->vocab);
        double mean = 0; /* KL = sum p log p - sum p (z - max) + log sum exp(z - max) */
        uint32_t best = h->vocab;
        for (uint32_t v = 0; v < h->vocab; v++) {
            mean += (double)target[v] * (double)(q[v] - most);
            best = best == h->vocab && !(q[v] < most) ? v : best;
        }
        const float sum = t->isa->exp_sum(q, h->vocab, most);
        loss += log((double)sum) - mean - t->entropy[row];
        for (uint32_t v = 0; v < h->vocab; v++)
            q[v] = (q[v] / sum - target[v]) * share;
        right[i] = (step == 0 || right[p->parent[i] - (size_t)t->options.rows]) && best < h->vocab &&
                   h->tokens[best] == b->windows[w].tokens[at + 2 + step];
        accepted += right[i];
        if (drafts != NULL && best < h->vocab)
            drafts[(size_t)p->base[i] * EAGLE_STEPS + step] = h->tokens[best];
    }
    score->bases[step] += p->n;
    score->loss[step] += loss;
    score->accepted[step] += accepted;
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
    apply_back(t, p->n, h->width, ffn, t->active, eagle_part(h, EAGLE_DOWN), p->slope_h, 0, slope_active,
               gradient + h->at[EAGLE_DOWN]);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
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
    apply_back(t, p->n, 2 * ffn, h->width, t->normed, eagle_part(h, EAGLE_GATE), t->slope_gate_up, 0, slope_normed,
               gradient + h->at[EAGLE_GATE]);
    memcpy(t->slope_x, p->slope_h, p->n * h->width * sizeof *t->slope_x);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < p->n; i++)
        norm_back(h, p->x + i * h->width, eagle_part(h, EAGLE_FFN_NORM), p->inverse_x[i], slope_normed + i * h->width,
                  t->slope_x + i * h->width);
}

/* From slope_x: slope_q, before RoPE, and what the step adds to the keys' and values' gradients. */
static void
attention_back(struct eagle_training *t, uint32_t step, float *gradient)
{
    struct eagle_batch *b = &t->batch;
    struct eagle_pass *p = &b->pass[step];
    const struct eagle_head *h = t->head;
    const uint32_t q = h->heads * h->head_dim;
    apply_back(t, p->n, h->width, q, p->attention, eagle_part(h, EAGLE_O), t->slope_x, 0, t->slope_attention,
               gradient + h->at[EAGLE_O]);
    if (!cancelled(t))
        eagle_attend_back(t->attention, t->options.threads, h, b, step, t->slope_attention, t->slope_q);
    for (size_t i = 0; i < p->n; i++)
        rotate(t, t->slope_q + i * q, h->heads, p->base[i] - b->start[window_of(b, p, (uint32_t)i)] + step, -1);
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
        rotate(t, p->slope_kv + i * kv, h->kv_heads, p->base[i] - b->start[window_of(b, p, (uint32_t)i)] + step, -1);
    apply_back(t, p->n, q, 2 * w, p->pair, eagle_part(h, EAGLE_Q), t->slope_q, 0, t->slope_pair,
               gradient + h->at[EAGLE_Q]);
    apply_back(t, p->n, kv, 2 * w, p->pair, eagle_part(h, EAGLE_K), p->slope_kv, 1, t->slope_pair,
               gradient + h->at[EAGLE_K]);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
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
    apply_back(t, p->n, q, 2 * w, t->pairs, eagle_part(h, EAGLE_Q), t->slope_q, 0, NULL, gradient + h->at[EAGLE_Q]);
    apply_back(t, b->tokens, kv, 2 * w, p->pair, eagle_part(h, EAGLE_K), p->slope_kv, 0, t->slope_pair,
               gradient + h->at[EAGLE_K]);
    split_product(t, &(struct host_product){.m = p->n,
                                            .n = 2 * w,
                                            .k = q,
                                            .a = t->slope_q,
                                            .stride_a = q,
                                            .b = eagle_part(h, EAGLE_Q),
                                            .stride_b = 2 * (size_t)w,
                                            .c = slope_rows});
    memset(t->slope_g, 0, (size_t)b->tokens * w * sizeof *t->slope_g);
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < w; k++) {
            t->slope_pair[p->base[i] * 2 * (size_t)w + w + k] += slope_rows[i * 2 * w + w + k];
            t->slope_g[p->base[i] * (size_t)w + k] = t->slope_x[i * w + k];
        }
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < b->tokens; i++)
        norm_back(h, p->g + i * w, eagle_part(h, EAGLE_FEATURE_NORM), p->inverse_g[i], t->slope_pair + i * 2 * w + w,
                  t->slope_g + i * w);
    apply_back(t, b->tokens, w, h->features, t->features, eagle_part(h, EAGLE_FC), t->slope_g, 0, NULL,
               gradient + h->at[EAGLE_FC]);
}

/* The head's part of the gradient, from t->z and t->normed: slope_h of the step's rows. */
static void
head_back(struct eagle_training *t, uint32_t step, float *gradient)
{
    struct eagle_pass *p = &t->batch.pass[step];
    const struct eagle_head *h = t->head;
    float *slope_normed = t->slope_g;
    apply_back(t, p->n, h->vocab, h->width, t->normed, eagle_part(h, EAGLE_HEAD), t->z, 0, slope_normed,
               gradient + h->at[EAGLE_HEAD]);
    memset(p->slope_h, 0, p->n * (size_t)h->width * sizeof *p->slope_h);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < p->n; i++)
        norm_back(h, p->h + i * h->width, eagle_part(h, EAGLE_FINAL_NORM), p->inverse_h[i], slope_normed + i * h->width,
                  p->slope_h + i * h->width);
}

static void
back(struct eagle_training *t, uint32_t steps, float *gradient)
{
    const struct eagle_head *h = t->head;
    const size_t kv = 2 * (size_t)h->kv_heads * h->head_dim;
    for (uint32_t s = 0; s < steps; s++)
        memset(t->batch.pass[s].slope_kv, 0,
               (s == 0 ? t->batch.tokens : t->batch.pass[s].n) * kv * sizeof *t->batch.pass[s].slope_kv);
    for (uint32_t s = steps; s-- > 0 && !cancelled(t);) {
        mlp_back(t, s, gradient);
        attention_back(t, s, gradient);
        if (s > 0)
            chain_back(t, s, gradient);
        else
            batch_back(t, gradient);
    }
}

void
eagle_loss(struct eagle_training *t, const struct eagle_window *windows, size_t n, uint32_t steps, float *gradient,
           token_t *drafts, struct eagle_score *score)
{
    struct eagle_batch *b = &t->batch;
    const struct eagle_head *h = t->head;
    b->n = n;
    b->windows = windows;
    b->tokens = 0;
    for (size_t w = 0; w < n; w++) {
        b->start[w] = b->tokens;
        b->tokens += windows[w].n;
    }
    b->start[n] = b->tokens;
    for (size_t i = 0; drafts != NULL && i < (size_t)b->tokens * EAGLE_STEPS; i++)
        drafts[i] = TOKEN_NONE;
    if (gradient != NULL)
        memset(gradient, 0, h->n_values * sizeof *gradient);
    find_wanted(t);
    begin_batch(t);
    float weight = 1;
    for (uint32_t s = 0; s < steps && !cancelled(t); s++, weight *= EAGLE_FADE) {
        struct eagle_pass *p = &b->pass[s];
        list_rows(t, s, score);
        begin_step(t, s);
        run_layer(t, s);
        norm_rows(t, p->n, p->h, EAGLE_FINAL_NORM, p->inverse_h);
        apply(t, p->n, h->vocab, h->width, t->normed, eagle_part(h, EAGLE_HEAD), t->z);
        if (cancelled(t))
            return;
        compare(t, s, weight, drafts, score);
        if (gradient != NULL)
            head_back(t, s, gradient);
    }
    if (gradient != NULL)
        back(t, steps, gradient);
}

void
eagle_training_step(struct eagle_training *t, const struct eagle_window *windows, size_t n, uint32_t steps, float rate,
                    struct eagle_score *score)
{
    const struct eagle_head *h = t->head;
    const size_t threads = t->options.threads;
    eagle_loss(t, windows, n, steps, t->gradient, NULL, score);
    if (cancelled(t) || t->batch.pass[0].n == 0)
        return;
    double squares = 0;
    for (size_t i = 0; i < h->n_values; i++)
        squares += (double)t->gradient[i] * (double)t->gradient[i];
    const float scale = squares > 1 ? (float)(1 / sqrt(squares)) : 1;
    for (size_t i = 0; i < h->n_values && scale < 1; i++)
        t->gradient[i] *= scale;
    adam_begin(&t->adam);
#ifdef _OPENMP
#pragma omp parallel for num_threads(t->options.threads)
#endif
    for (size_t i = 0; i < threads; i++) {
        const size_t from = h->n_values * i / threads, to = h->n_values * (i + 1) / threads;
        adam_move(&t->adam, from, to - from, h->values + from, t->gradient + from, rate, 0, NULL);
    }
}
