/* The repeated computation of p̂: the order of sums, and the memory. test_accept_head.c compares it with the
 * definition. */
#include <math.h>
#include <unistd.h>

#include "base/rng.h"
#include "engine/model/trained/accept_head.h"
#include "engine/session/engine_internal.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

static uint64_t seed;

static void
fill(uint64_t *random_state, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)(splitmix64(random_state) >> 11) * 0x1p-52 - 1);
}

/* Each output's z, summed separately: products in order, rounded at every step. */
static double
probability_in_order(const struct accept_head *h, const float *row, float *x, float *next)
{
    const uint32_t n = h->width;
    memcpy(x, row, n * sizeof *x);
    for (uint32_t d = 0; d < h->n_blocks; d++) {
        for (uint32_t o = 0; o < n; o++) {
            volatile float sum = 0, product;
            for (uint32_t k = 0; k < n; k++) {
                product = h->block[d].w[(size_t)o * n + k] * x[k];
                sum = sum + product;
            }
            float z = sum;
            z += h->block[d].b[o];
            next[o] = x[o] + z / (1 + expf(-z));
        }
        memcpy(x, next, n * sizeof *x);
    }
    double difference = (double)h->c[1] - (double)h->c[0];
    for (uint32_t k = 0; k < n; k++)
        difference += ((double)h->v[n + k] - (double)h->v[k]) * (double)x[k];
    return 1 / (1 + exp(-difference));
}

/* Compares bit for bit, at widths that fill whole groups of lanes and at others, with and without threads. */
TEST(sums_have_one_order_for_all_vectors_and_threads)
{
    static const uint32_t widths[] = {1, 7, 32, 33, 130, 300, 1030};
    uint64_t random_state = seed;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const uint32_t width = widths[w];
        struct accept_head *h;
        struct err err = {0};
        float *x = calloc(3 * (size_t)width, sizeof *x);
        assert_ok(accept_head_new(&h, width, 2, w % 2 == 0, &err), err);
        fill(&random_state, h->values, h->n_values);
        for (size_t i = 0; i < h->n_values; i++)
            h->values[i] /= sqrtf((float)width);
        for (uint32_t threads = 0; threads <= 3; threads += 3) {
            struct accept_predictor *predictor;
            assert_ok(accept_predictor_open(&predictor, h, threads, &err), err);
            for (int i = 0; i < 2; i++) {
                fill(&random_state, x, width);
                assert_number_equal(accept_predictor_ask(predictor, x),
                                    probability_in_order(h, x, x + width, x + 2 * width));
            }
            accept_predictor_close(predictor);
        }
        free(x);
        accept_head_free(h);
    }
}

TEST(a_head_that_does_not_fit_into_memory_is_refused_before_it_is_read)
{
    const struct tinymodel small = {.seed = 5, .n_layers = 2};
    char model[128], path[64];
    struct engine *engine;
    struct accept_head *h;
    struct err err = {0};
    uint32_t n_blocks;
    uint64_t bytes;
    snprintf(path, sizeof path, "/tmp/accept-head-%ld.safetensors", (long)getpid());
    assert_ok(tinymodel_write_temp(model, sizeof model, &small, &err), err);
    assert_ok(session_rig_engine_with(&engine, model, "self:1", "cpu", 1, &err), err);
    unlink(model);
    assert_ok(accept_head_new(&h, engine->model->desc.width, 3, false, &err), err);
    assert_ok(accept_head_write(h, path, &err), err);
    assert_ok(accept_head_measure(path, engine->model, &n_blocks, &bytes, &err), err);
    assert_int_equal(n_blocks, 3);
    assert_at_least(bytes, 2 * h->n_values * sizeof *h->values - 64);
    assert_less(bytes, 3 * h->n_values * sizeof *h->values);
    accept_head_free(engine->accept);
    engine->accept = NULL;
    assert_false(engine_accept_open(engine, path, bytes - 1, &err));
    assert_null(engine->accept);
    assert_contains(err.text, "needs ");
    assert_contains(err.text, "models leave ");
    assert_int_equal(engine_accept_bytes(engine), 0);
    assert_ok(engine_accept_open(engine, path, bytes, &err), err);
    assert_int_equal(engine_accept_bytes(engine), bytes);
    unlink(path);
    accept_head_free(h);
    engine_close(engine);
}

TEST_SEED(seed, 20261122);
