/* Shared code of tests of sampling on the device: a KV cache of the smallest size that they need, random logits and
 * settings. Only one C file of a program may include it, as with draws.h. */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/device/launch.h"
#include "tests/rigs/device_memory.h"
#include "tests/rigs/draws.h"

enum { MAX_VOCAB = 20000, ROWS = VERIFY_NODES, DISTS = VERIFY_NODES, BENCH_ROUNDS = 20 };

struct bench {
    struct dev_model model, *dev_model;
    struct dev_kv_cache kv_cache;
    void *arena; /* requests and results of one call */
};

enum { ARENA = 1 << 20 };

static inline int
open_bench(void **state)
{
    static struct bench b;
    seed = seed_or(1);
    b.dev_model = take(sizeof *b.dev_model);
    b.kv_cache.head_rows = ROWS;
    b.kv_cache.head_logits = take(sizeof(float) * ROWS * MAX_VOCAB);
    b.kv_cache.dists_p = take(sizeof(float) * DISTS * MAX_VOCAB);
    b.kv_cache.verify_p = take(sizeof(float) * VERIFY_WALKS * 2 * MAX_VOCAB);
    b.kv_cache.row_dists = take(sizeof(struct row_dist) * BENCH_ROUNDS * VERIFY_NODES);
    b.arena = take(ARENA);
    *state = &b;
    return 0;
}

static inline int
close_bench(void **state)
{
    struct bench *b = *state;
    void *all[] = {b->dev_model,         b->kv_cache.head_logits, b->kv_cache.dists_p,
                   b->kv_cache.verify_p, b->kv_cache.row_dists,   b->arena};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(cudaFree(all[i]), cudaSuccess);
    return 0;
}

static inline void
set_vocab(struct bench *b, uint32_t vocab)
{
    b->model.vocab = b->kv_cache.dists_vocab = vocab;
    send(b->dev_model, &b->model, sizeof b->model);
}

enum shape { SMOOTH, STAIRS, FLAT, RAMP, PEAKED, ODD, SHAPES };

static inline void
random_logits(float *z, uint32_t n, enum shape shape)
{
    const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 0, 3e38f, -3e38f, 1e-40f, -1e-40f};
    const float spread = (float)pow(10, 2 * uniform() - 1);
    for (uint32_t v = 0; v < n; v++)
        switch (shape) {
        case SMOOTH: z[v] = spread * gaussian(); break;
        case STAIRS: z[v] = (float)random_below(64) / 8.0f - 4.0f; break;
        case FLAT: z[v] = 1.5f; break;
        case RAMP: z[v] = (float)v * 1e-4f; break;
        case PEAKED: z[v] = gaussian() + (random_below(50) == 0 ? 20.0f : 0.0f); break;
        default: z[v] = random_below(3) == 0 ? odd[random_below(9)] : gaussian(); break;
        }
}

static inline struct sampling
random_sampling(uint32_t n)
{
    struct sampling s = {.temperature = (float)pow(10, 2 * uniform() - 1), .top_p = 1};
    uint32_t kind = random_below(8);
    if (kind == 0)
        s.temperature = random_below(2) ? 0 : random_below(2) ? 1e-30f : 1e38f;
    if (kind == 0)
        kind = random_below(8);
    if (kind % 2 == 1)
        s.top_k = 1 + random_below(random_below(2) ? n + 2 : 50);
    if (kind >= 4)
        s.top_p = random_below(8) == 0 ? 0 : (float)uniform();
    return s;
}

/* Returns the statistic of counts (n) against expectations p (n) * total. */
static inline double
chi_square(const uint32_t *counts, const double *p, uint32_t n, uint32_t total)
{
    double x = 0;
    for (uint32_t v = 0; v < n; v++) {
        const double expected = p[v] * total, d = counts[v] - expected;
        x += d * d / expected;
    }
    return x;
}
