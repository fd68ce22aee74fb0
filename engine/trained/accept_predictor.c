#include "engine/trained/accept_predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 32   /* outputs that are summed side by side */
#define PIECE 128  /* inputs; a long sum loses less in pieces */
#define WIDE  1024 /* from here on several threads are worth waking */
#define ALIGN 64

/* out[o] = Σ_k w[k][o] x[k] for the group's outputs; w (n, GROUP), aligned. */
typedef void (*sums_fn)(const float *w, const float *x, uint32_t n, float *out);

struct accept_predictor {
    uint32_t width, groups, n_blocks, threads;
    sums_fn sums;
    const float *w[ACCEPT_HEAD_BLOCKS], *b[ACCEPT_HEAD_BLOCKS]; /* (groups, width, GROUP), (groups, GROUP) */
    float *values;                                              /* owns them */
    float *now, *next;                                          /* (groups, GROUP) x_i, x_{i+1}; zeros behind width */
    double *v, c;                                               /* (width) of z_accept - z_reject */
};

/* The sums with vectors of so many lanes, which stay in registers. */
#define SUMS(n_lanes)                                                                                                  \
    typedef float lanes __attribute__((vector_size((n_lanes) * sizeof(float)), may_alias));                            \
    lanes sum[GROUP / (n_lanes)] = {{0}};                                                                              \
    for (uint32_t at = 0; at < n; at += PIECE) {                                                                       \
        const uint32_t end = n - at < PIECE ? n : at + PIECE;                                                          \
        lanes piece[GROUP / (n_lanes)] = {{0}};                                                                        \
        for (uint32_t k = at; k < end; k++) {                                                                          \
            const lanes *row = (const lanes *)(const void *)(w + (size_t)k * GROUP);                                   \
            _Pragma("GCC unroll 8") for (int i = 0; i < GROUP / (n_lanes); i++) piece[i] += row[i] * x[k];             \
        }                                                                                                              \
        _Pragma("GCC unroll 8") for (int i = 0; i < GROUP / (n_lanes); i++) sum[i] += piece[i];                        \
    }                                                                                                                  \
    memcpy(out, sum, sizeof sum)

static void
sums_4(const float *w, const float *x, uint32_t n, float *out)
{
    SUMS(4);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void
sums_8(const float *w, const float *x, uint32_t n, float *out)
{
    SUMS(8);
}
#endif

static sums_fn
choose_sums(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return sums_8;
#endif
    return sums_4;
}

static size_t
block_values(uint32_t width)
{
    const size_t groups = (width + GROUP - 1) / GROUP;
    return groups * GROUP * ((size_t)width + 1);
}

uint64_t
accept_predictor_bytes(uint32_t width, uint32_t n_own)
{
    return (uint64_t)n_own * block_values(width) * sizeof(float) + width * (2 * sizeof(float) + sizeof(double));
}

/* One block's weights to where the groups want them; what lies behind the last output stays 0. */
static void
lay_out(const struct accept_block *block, uint32_t width, float *to)
{
    const uint32_t groups = (width + GROUP - 1) / GROUP;
    for (uint32_t o = 0; o < width; o++) {
        float *group = to + (size_t)(o / GROUP) * width * GROUP + o % GROUP;
        for (uint32_t k = 0; k < width; k++)
            group[(size_t)k * GROUP] = block->w[(size_t)o * width + k];
    }
    memcpy(to + (size_t)groups * width * GROUP, block->b, width * sizeof *to);
}

static void *
zeros(size_t bytes)
{
    const size_t room = (bytes + ALIGN) / ALIGN * ALIGN;
    void *p = aligned_alloc(ALIGN, room);
    return p != NULL ? memset(p, 0, room) : NULL;
}

bool
accept_predictor_open(struct accept_predictor **out, const struct accept_head *h, uint32_t threads, struct err *err)
{
    *out = NULL;
    struct accept_predictor *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    const uint32_t own = h->shared ? 1 : h->n_blocks;
    const size_t block = block_values(h->width);
    p->width = h->width;
    p->groups = (h->width + GROUP - 1) / GROUP;
    p->n_blocks = h->n_blocks;
    p->threads = h->width >= WIDE && threads > 1 ? threads : 1;
    p->sums = choose_sums();
    p->values = zeros(own * block * sizeof *p->values);
    p->now = zeros((size_t)p->groups * GROUP * sizeof *p->now);
    p->next = zeros((size_t)p->groups * GROUP * sizeof *p->next);
    p->v = zeros(h->width * sizeof *p->v);
    if (p->values == NULL || p->now == NULL || p->next == NULL || p->v == NULL) {
        accept_predictor_close(p);
        return err_set(err, ERR_WORK, "out of memory for the acceptance head");
    }
    for (uint32_t i = 0; i < own; i++)
        lay_out(&h->block[i], h->width, p->values + i * block);
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        p->w[i] = p->values + (h->shared ? 0 : i * block);
        p->b[i] = p->w[i] + (size_t)p->groups * h->width * GROUP;
    }
    for (uint32_t k = 0; k < h->width; k++)
        p->v[k] = (double)h->v[h->width + k] - (double)h->v[k];
    p->c = (double)h->c[1] - (double)h->c[0];
    *out = p;
    return true;
}

void
accept_predictor_close(struct accept_predictor *p)
{
    if (p == NULL)
        return;
    free(p->values);
    free(p->now);
    free(p->next);
    free(p->v);
    free(p);
}

/* next = now + SiLU(W now + b) */
static void
run_block(const struct accept_predictor *p, const float *w, const float *b)
{
#ifdef _OPENMP
#pragma omp parallel for num_threads(p->threads) if (p->threads > 1)
#endif
    for (uint32_t g = 0; g < p->groups; g++) {
        const size_t at = (size_t)g * GROUP;
        float z[GROUP];
        p->sums(w + at * p->width, p->now, p->width, z);
        for (size_t i = 0; i < GROUP; i++) {
            z[i] += b[at + i];
            p->next[at + i] = p->now[at + i] + z[i] / (1 + expf(-z[i]));
        }
    }
}

double
accept_predictor_ask(struct accept_predictor *p, const float *x)
{
    memcpy(p->now, x, p->width * sizeof *x);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        run_block(p, p->w[i], p->b[i]);
        float *was = p->now;
        p->now = p->next;
        p->next = was;
    }
    double difference = p->c;
    for (uint32_t k = 0; k < p->width; k++)
        difference += p->v[k] * (double)p->now[k];
    return 1 / (1 + exp(-difference));
}
