/* Attention of an EAGLE-3 head's training-time test: rows of a step attend to the first step's rows up to their base,
 * and to their own rows of the later steps. */
#include <math.h>
#include <string.h>

#include "engine/training/blas.h"
#include "engine/training/eagle_internal.h"
#include "kernels/openmp.h"

struct eagle_attention {
    const struct cpu_isa *isa;
    float *weight, *slope; /* (window, window) */
    float *own, *rows;     /* (window, EAGLE_STEPS), (window, head_dim) */
};

struct eagle_attention *
eagle_attention_open(const struct eagle_head *h, uint32_t window, uint32_t threads, struct blocks *b)
{
    struct eagle_attention *a = blocks_take(b, threads, sizeof *a);
    for (uint32_t i = 0; i < threads && a != NULL; i++) {
        a[i].isa = cpu_isa_choose(NULL, NULL); /* there is always one */
        a[i].weight = blocks_take(b, (size_t)window * window, sizeof *a->weight);
        a[i].slope = blocks_take(b, (size_t)window * window, sizeof *a->slope);
        a[i].own = blocks_take(b, (size_t)window * EAGLE_STEPS, sizeof *a->own);
        a[i].rows = blocks_take(b, (size_t)window * h->head_dim, sizeof *a->rows);
    }
    return a;
}

/* One head in one window. Keys and values of its tokens are n rows, `stride` apart. */
struct unit {
    const struct eagle_head *h;
    const struct eagle_batch *b;
    uint32_t step, window, head;
    uint32_t n, rows, first; /* tokens; rows of the step, from `first` */
    uint32_t q, k, v;        /* where the head's values begin in a row of q, and in one of keys and values */
    size_t stride_q, stride; /* of q, of keys and values */
    float scale;
};

static struct unit
unit_of(const struct eagle_head *h, const struct eagle_batch *b, uint32_t step, uint32_t window, uint32_t head)
{
    const uint32_t *first = b->pass[step].first, dim = h->head_dim, kv = head / (h->heads / h->kv_heads) * dim;
    return (struct unit){.h = h,
                         .b = b,
                         .step = step,
                         .window = window,
                         .head = head,
                         .n = b->start[window + 1] - b->start[window],
                         .rows = first[window + 1] - first[window],
                         .first = first[window],
                         .q = head * dim,
                         .k = kv,
                         .v = h->kv_heads * dim + kv,
                         .stride_q = (size_t)h->heads * dim,
                         .stride = 2 * (size_t)h->kv_heads * dim,
                         .scale = 1 / sqrtf((float)dim)};
}

static float
dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
    PARALLEL(omp simd reduction(+ : sum))
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void
add_scaled(float *to, const float *from, float scale, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += scale * from[i];
}

/* c (m, n) = a b, or a transposed times b, or a times b transposed. */
static void
product(bool transpose_a, bool transpose_b, uint32_t m, uint32_t n, uint32_t k, const float *a, size_t stride_a,
        const float *b, size_t stride_b, float *c)
{
    struct host_product p = blas_packed(transpose_a, transpose_b, m, n, k, a, b, 0, c);
    p.stride_a = stride_a;
    p.stride_b = stride_b;
    blas_multiply(NULL, &p);
}

/* The row of an earlier step, 1 or later, in the same chain. */
static uint32_t
chain_row(const struct unit *u, uint32_t row, uint32_t step)
{
    for (uint32_t s = u->step; s > step; s--)
        row = u->b->pass[s].parent[row];
    return row;
}

static const float *
tokens_kv(const struct unit *u, uint32_t at)
{
    return u->b->pass[0].kv + u->b->start[u->window] * u->stride + at;
}

/* The tokens of the window that a row attends to. */
static uint32_t
reach(const struct unit *u, uint32_t row)
{
    return u->b->pass[u->step].base[row] - u->b->start[u->window] + 1;
}

/* The attention's weights: a->weight (rows, n), 0 after the base, and a->own (rows, EAGLE_STEPS) of steps 1 to
 * `step`. */
static void
find_weights(struct eagle_attention *a, const struct unit *u)
{
    const struct eagle_pass *p = &u->b->pass[u->step];
    const uint32_t dim = u->h->head_dim;
    product(false, true, u->rows, u->n, dim, p->q + u->first * u->stride_q + u->q, u->stride_q, tokens_kv(u, u->k),
            u->stride, a->weight);
    for (uint32_t i = 0; i < u->rows; i++) {
        const uint32_t row = u->first + i, n = reach(u, row);
        float *w = a->weight + (size_t)i * u->n, *own = a->own + (size_t)i * EAGLE_STEPS, sum = 0;
        for (uint32_t t = 0; t < n; t++)
            w[t] *= u->scale;
        float most = a->isa->most(w, n);
        for (uint32_t s = 1; s <= u->step; s++) {
            own[s] = u->scale * dot(p->q + row * u->stride_q + u->q,
                                    u->b->pass[s].kv + chain_row(u, row, s) * u->stride + u->k, dim);
            most = own[s] > most ? own[s] : most;
        }
        sum = a->isa->exp_sum(w, n, most);
        for (uint32_t s = 1; s <= u->step; s++)
            sum += own[s] = expf(own[s] - most);
        const float part = 1 / sum;
        for (uint32_t t = 0; t < n; t++)
            w[t] *= part;
        memset(w + n, 0, (u->n - n) * sizeof *w);
        for (uint32_t s = 1; s <= u->step; s++)
            own[s] *= part;
    }
}

static void
attend(struct eagle_attention *a, const struct unit *u)
{
    const struct eagle_pass *p = &u->b->pass[u->step];
    const uint32_t dim = u->h->head_dim;
    if (u->rows == 0)
        return;
    find_weights(a, u);
    product(false, false, u->rows, dim, u->n, a->weight, u->n, tokens_kv(u, u->v), u->stride, a->rows);
    for (uint32_t i = 0; i < u->rows; i++) {
        const uint32_t row = u->first + i;
        float *to = p->attention + row * u->stride_q + u->q;
        memcpy(to, a->rows + (size_t)i * dim, dim * sizeof *to);
        for (uint32_t s = 1; s <= u->step; s++)
            add_scaled(to, u->b->pass[s].kv + chain_row(u, row, s) * u->stride + u->v,
                       a->own[(size_t)i * EAGLE_STEPS + s], dim);
    }
}

/* a->slope and a->own become the gradients by the scores, from the weights and the gradients by them. */
static void
back_through_softmax(struct eagle_attention *a, const struct unit *u, uint32_t i, const float *slope_own)
{
    const uint32_t n = reach(u, u->first + i);
    const float *w = a->weight + (size_t)i * u->n;
    float *s = a->slope + (size_t)i * u->n, *own = a->own + (size_t)i * EAGLE_STEPS, mean = dot(w, s, n);
    for (uint32_t k = 1; k <= u->step; k++)
        mean += own[k] * slope_own[k];
    for (uint32_t t = 0; t < n; t++)
        s[t] = u->scale * w[t] * (s[t] - mean);
    memset(s + n, 0, (u->n - n) * sizeof *s);
    for (uint32_t k = 1; k <= u->step; k++)
        own[k] *= u->scale * (slope_own[k] - mean);
}

/* Adds c (n, dim) to keys' or values' gradients of the window's tokens. */
static void
add_rows(const struct unit *u, uint32_t at, const float *c)
{
    float *to = u->b->pass[0].slope_kv + u->b->start[u->window] * u->stride + at;
    for (uint32_t t = 0; t < u->n; t++)
        add_scaled(to + t * u->stride, c + (size_t)t * u->h->head_dim, 1, u->h->head_dim);
}

static void
attend_back(struct eagle_attention *a, const struct unit *u, const float *slope, float *slope_q)
{
    const struct eagle_pass *p = &u->b->pass[u->step];
    const uint32_t dim = u->h->head_dim;
    if (u->rows == 0)
        return;
    const float *out = slope + u->first * u->stride_q + u->q;
    find_weights(a, u);
    product(true, false, u->n, dim, u->rows, a->weight, u->n, out, u->stride_q, a->rows);
    add_rows(u, u->v, a->rows);
    product(false, true, u->rows, u->n, dim, out, u->stride_q, tokens_kv(u, u->v), u->stride, a->slope);
    for (uint32_t i = 0; i < u->rows; i++) {
        const float *of = out + i * u->stride_q, *own = a->own + (size_t)i * EAGLE_STEPS;
        float slope_own[EAGLE_STEPS];
        for (uint32_t s = 1; s <= u->step; s++) {
            const size_t at = chain_row(u, u->first + i, s) * u->stride + u->v;
            slope_own[s] = dot(of, u->b->pass[s].kv + at, dim);
            add_scaled(u->b->pass[s].slope_kv + at, of, own[s], dim);
        }
        back_through_softmax(a, u, i, slope_own);
    }
    product(false, false, u->rows, dim, u->n, a->slope, u->n, tokens_kv(u, u->k), u->stride, a->rows);
    for (uint32_t i = 0; i < u->rows; i++) {
        const uint32_t row = u->first + i;
        const float *q = p->q + row * u->stride_q + u->q, *own = a->own + (size_t)i * EAGLE_STEPS;
        float *to = slope_q + row * u->stride_q + u->q;
        memcpy(to, a->rows + (size_t)i * dim, dim * sizeof *to);
        for (uint32_t s = 1; s <= u->step; s++) {
            const size_t at = chain_row(u, row, s) * u->stride + u->k;
            add_scaled(to, u->b->pass[s].kv + at, own[s], dim);
            add_scaled(u->b->pass[s].slope_kv + at, q, own[s], dim);
        }
    }
    product(true, false, u->n, dim, u->rows, a->slope, u->n, p->q + u->first * u->stride_q + u->q, u->stride_q,
            a->rows);
    add_rows(u, u->k, a->rows);
}

void
eagle_attend(struct eagle_attention *a, uint32_t threads, const struct eagle_head *h, const struct eagle_batch *b,
             uint32_t step)
{
    (void)threads; /* without OpenMP */
    PARALLEL(omp parallel for schedule(dynamic) num_threads(threads))
    for (size_t i = 0; i < b->n * h->heads; i++) {
        const struct unit u = unit_of(h, b, step, (uint32_t)(i / h->heads), (uint32_t)(i % h->heads));
        attend(&a[openmp_thread()], &u);
    }
}

void
eagle_attend_back(struct eagle_attention *a, uint32_t threads, const struct eagle_head *h, const struct eagle_batch *b,
                  uint32_t step, const float *slope, float *slope_q)
{
    const uint32_t group = h->heads / h->kv_heads;
    (void)threads;
    PARALLEL(omp parallel for schedule(dynamic) num_threads(threads))
    for (size_t i = 0; i < b->n * h->kv_heads; i++) /* one thread for all heads that share keys and values */
        for (uint32_t k = 0; k < group; k++) {
            const struct unit u =
                unit_of(h, b, step, (uint32_t)(i / h->kv_heads), (uint32_t)(i % h->kv_heads) * group + k);
            attend_back(&a[openmp_thread()], &u, slope, slope_q);
        }
}
