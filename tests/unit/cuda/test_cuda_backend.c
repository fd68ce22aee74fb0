/* The CUDA backend through kernels/backend.h, against definitions; on emulated GPUs, and on a real one (make test-cuda). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernels/cpu/sampling.h"
#include "tests/rigs/backend_rig.h"
#include "tests/rigs/cuda_rig.h"

static uint64_t seed; /* printed by main */
static const struct backend_ops *cuda;

/* The one of Q4_K and Q6_K mixes them as files of Q4_K_M do. */
#define SHAPE(layers, width_, heads_, kv, dim, ffn_, vocab_, ...)                                                      \
    {                                                                                                                  \
        .n_layers = layers, .width = width_, .heads = heads_, .kv_heads = kv, .head_dim = dim, .ffn = ffn_,            \
        .vocab = vocab_, __VA_ARGS__                                                                                   \
    }

static const struct naive_shape shapes[] = {
    SHAPE(3, 37, 3, 1, 22, 41, 130, .rope = ROPE_HALVES),
    SHAPE(2, 64, 4, 2, 16, 90, 75, .type = WEIGHT_F16),
    SHAPE(3, 48, 6, 1, 6, 130, 70, .rope = ROPE_HALVES, .type = WEIGHT_BF16),
    SHAPE(2, 96, 4, 4, 24, 64, 90, .type = WEIGHT_Q8_0),
    SHAPE(2, 64, 4, 2, 24, 64, 60, .rope = ROPE_HALVES, .type = WEIGHT_Q5_1,
          .optional = LAYER_QKV_BIAS | LAYER_QK_NORM),
    SHAPE(2, 40, 2, 1, 16, 48, 50, .type = WEIGHT_F16, .window = 4),
    SHAPE(2, 96, 3, 1, 32, 160, 70, .type = WEIGHT_Q4_0),
    SHAPE(2, 256, 4, 2, 64, 512, 90, .rope = ROPE_HALVES, .type = WEIGHT_Q4_K, .second = WEIGHT_Q6_K,
          .optional = LAYER_QKV_BIAS),
    SHAPE(1, 256, 4, 4, 64, 256, 50, .type = WEIGHT_Q6_K),
};
#define N_SHAPES   (sizeof shapes / sizeof *shapes)
#define MOST_WIDTH 256
#define MOST_VOCAB 130

static void
open_rig(struct rig *r, size_t shape, bool exact)
{
    rig_open(r, cuda, &shapes[shape], seed + shape, &(struct backend_options){.threads = 2, .exact = exact, .gpu = -1});
}

#define NEEDS_CUDA                                                                                                     \
    (void)state;                                                                                                       \
    if (cuda == NULL)                                                                                                  \
    skip()

/* ---- layers ---- */

/* Rounding of activations, keys and values to F16; a layer has some four products on its way. */
static double
bound_of(const struct rig *r, bool exact)
{
    return exact ? 1e-5 : 1e-3 * (1 + r->desc->n_layers);
}

static void
assert_near_naive(struct rig *r, int node, bool exact)
{
    static double hidden[(RIG_DEPTH + 1) * MOST_WIDTH], logits[MOST_VOCAB];
    static float got[MOST_WIDTH > MOST_VOCAB ? MOST_WIDTH : MOST_VOCAB];
    rig_naive(r, node, hidden, logits);
    for (uint32_t l = 0; l <= r->desc->n_layers; l++) {
        rig_hidden(r, node, l, got);
        const double error = rig_distance(got, hidden + l * r->desc->width, r->desc->width);
        if (!(error < (l > 0 ? bound_of(r, exact) : exact ? 1e-7 : 1e-3))) /* an F32 embedding is held as F16 */
            fail_msg("seed %llu, %s: node %d after layer %u: relative error %g", (unsigned long long)seed,
                     r->ops->describe(r->backend), node, l, error);
    }
    rig_logits(r, node, r->desc->n_layers, got);
    const double error = rig_distance(got, logits, r->desc->vocab);
    if (!(error < bound_of(r, exact)))
        fail_msg("seed %llu, %s, width %u: logits of node %d: relative error %g", (unsigned long long)seed,
                 r->ops->describe(r->backend), r->desc->width, node, error);
}

static void
test_rows_of_a_tree_are_those_of_the_naive_model(void **state)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < 2 * N_SHAPES; i++) {
        struct rig r;
        open_rig(&r, i / 2, i % 2);
        rig_tree(&r, cuda_is_emulated() ? 14 : 40);
        rig_step_all(&r);
        for (int node = 0; node < r.n; node += cuda_is_emulated() ? 5 : 2)
            assert_near_naive(&r, node, i % 2);
        rig_close(&r);
    }
}

static void
test_skipped_sublayers_leave_the_stream_as_it_is(void **state)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < N_SHAPES; i += cuda_is_emulated() ? 3 : 1) {
        bool attention[RIG_DEPTH + 1], mlp[RIG_DEPTH + 1];
        int all[RIG_NODES];
        struct rig r;
        open_rig(&r, i, true);
        for (uint32_t l = 0; l <= RIG_DEPTH; l++) {
            attention[l] = rig_random(&r, 2);
            mlp[l] = rig_random(&r, 2);
        }
        rig_tree(&r, 12);
        for (int n = 0; n < r.n; n++) {
            all[n] = n;
            r.nodes[n].skip_attention = attention;
            r.nodes[n].skip_mlp = mlp;
        }
        struct sweep w = *rig_sweep(&r, all, r.n, r.desc->n_layers, 0);
        w.skip_attention = attention;
        w.skip_mlp = mlp;
        assert_true(cuda->step(r.store, &w));
        rig_wait(&r);
        for (int node = 0; node < r.n; node += 3)
            assert_near_naive(&r, node, true);
        rig_close(&r);
    }
}

/* ---- guesses ---- */

static void
assert_same_guess(const struct guess *a, const struct guess *b, const char *what)
{
    const bool tie = fabsf(a->top_p[0] - a->top_p[1]) < 1e-5f;
    if ((a->token != b->token && !tie) || fabsf(a->confidence - b->confidence) > 1e-5f ||
        fabsf(a->annealed - b->annealed) > 1e-5f || fabsf(a->entropy - b->entropy) > 1e-4f ||
        isnan(a->kl_final) != isnan(b->kl_final) || fabsf(a->kl_final - b->kl_final) > 1e-4f ||
        (a->rank_final != b->rank_final && !tie))
        fail_msg("seed %llu: %s: token %d %d, confidence %g %g, annealed %g %g, entropy %g %g, KL %g %g, rank %d %d",
                 (unsigned long long)seed, what, a->token, b->token, (double)a->confidence, (double)b->confidence,
                 (double)a->annealed, (double)b->annealed, (double)a->entropy, (double)b->entropy, (double)a->kl_final,
                 (double)b->kl_final, a->rank_final, b->rank_final);
}

/* By the definitions in backend.h, from logits that were read back. */
static struct guess
define_guess(struct rig *r, uint32_t ring, const struct probe *p)
{
    static float z[MOST_VOCAB], f[MOST_VOCAB];
    const uint32_t vocab = r->desc->vocab;
    struct guess g = {.kl_final = NAN, .rank_final = -1};
    assert_true(cuda->read_logits(r->store, ring, p->layer, z));
    assert_true(cuda->read_logits(r->store, ring, r->desc->n_layers, f));
    rig_wait(r);
    uint32_t best = 0, final = 0;
    for (uint32_t v = 0; v < vocab; v++) {
        best = z[v] > z[best] ? v : best;
        final = f[v] > f[final] ? v : final;
    }
    double sum = 0, cold = 0, f_sum = 0, kl = 0, second = -INFINITY;
    for (uint32_t v = 0; v < vocab; v++) {
        sum += exp((double)z[v] - (double)z[best]);
        cold += exp(((double)z[v] - (double)z[best]) / (double)p->temperature);
        f_sum += exp((double)f[v] - (double)f[final]);
        if (v != best)
            second = fmax(second, (double)z[v]);
    }
    double entropy = 0;
    uint32_t above = 0;
    for (uint32_t v = 0; v < vocab; v++) {
        const double log_q = (double)z[v] - (double)z[best] - log(sum),
                     log_f = (double)f[v] - (double)f[final] - log(f_sum);
        entropy -= exp(log_q) * log_q;
        kl += exp(log_f) * (log_f - log_q);
        above += z[v] > z[final] || (z[v] >= z[final] && v < final);
    }
    g.token = (token_t)best;
    g.confidence = (float)(1 / sum);
    g.annealed = (float)(1 / cold);
    g.entropy = (float)entropy;
    g.top_p[0] = g.confidence;
    g.top_p[1] = (float)(exp(second - (double)z[best]) / sum);
    if (p->versus_final) {
        g.kl_final = (float)kl;
        g.rank_final = (int32_t)above;
    }
    return g;
}

/* More probes than the head takes at once, final layers asked for early, late, not at all, twice. */
static void
test_guesses_follow_their_definitions_whatever_shares_the_call(void **state)
{
    NEEDS_CUDA;
    static struct guess got[300];
    struct probe probes[300];
    struct rig r;
    open_rig(&r, 0, false);
    rig_tree(&r, 40);
    rig_step_all(&r);
    for (size_t i = 0; i < 300; i++)
        probes[i] = (struct probe){.ring = rig_random(&r, (uint32_t)r.n),
                                   .layer = rig_random(&r, r.desc->n_layers + 1),
                                   .temperature = 0.5f + (float)rig_random(&r, 100) / 50,
                                   .versus_final = rig_random(&r, 2)};
    assert_true(cuda->guess(r.store, probes, 300, got));
    rig_wait(&r);
    for (size_t i = 0; i < 300; i += cuda_is_emulated() ? 23 : 3) {
        const struct guess want = define_guess(&r, probes[i].ring, &probes[i]);
        assert_same_guess(&want, &got[i], "a guess among 300 and its definition");
    }
    rig_close(&r);
}

/* ---- early exit ---- */

static void
test_until_leaves_where_layer_by_layer_guesses_say(void **state)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < N_SHAPES; i += cuda_is_emulated() ? 2 : 1) {
        struct rig r;
        open_rig(&r, i, i % 2);
        const uint32_t layers = r.desc->n_layers;
        float temperature[RIG_DEPTH + 1], threshold[RIG_DEPTH + 1];
        struct guess by_layer[RIG_DEPTH + 1], probed[RIG_DEPTH + 1];
        int all[RIG_NODES];
        rig_chain(&r, 9);
        for (int n = 0; n < 9; n++)
            all[n] = n;
        for (int round = 0; round < (cuda_is_emulated() ? 2 : 8);
             round++) { /* the last two rows carried along, from depth 0, into fresh places */
            struct exit_result got = {.probed = probed};
            uint32_t want = layers, probes = 0;
            if (round > 0)
                rig_restart(&r), rig_chain(&r, 9);
            rig_step(&r, all, 9, layers, 0);
            for (uint32_t l = 1; l <= layers; l++) {
                temperature[l] = 0.7f;
                threshold[l] = rig_random(&r, 3) == 0 ? 2 : (float)rig_random(&r, 100) / 400;
                const struct probe p = {.ring = 8, .layer = l, .temperature = temperature[l]};
                by_layer[l] = define_guess(&r, 8, &p);
            }
            bool exited = false, close_call = false;
            for (uint32_t l = 1; l <= layers && !exited; l++) {
                if (threshold[l] > 1)
                    continue;
                probes++;
                exited = by_layer[l].annealed >= threshold[l];
                close_call = close_call || fabsf(by_layer[l].annealed - threshold[l]) < 1e-4f;
                want = exited ? l : want;
            }
            for (int n = 7; n < 9; n++)
                r.nodes[n].depth = 0;
            const struct sweep *w = rig_sweep(&r, &all[7], 2, layers, 0);
            assert_true(
                cuda->until(r.store, w, &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &got));
            rig_wait(&r);
            if (close_call)
                continue;
            assert_int_equal(got.exited, exited);
            assert_int_equal(got.depth, want);
            assert_int_equal(got.probes, probes);
            assert_ptr_equal(got.probed, probed);
            for (uint32_t l = 0; l <= layers; l++) {
                const bool looked = l > 0 && l <= want && threshold[l] <= 1;
                if (looked)
                    assert_same_guess(&by_layer[l], &probed[l], "a probed layer");
                else
                    assert_int_equal(probed[l].token, TOKEN_NONE);
            }
            if (probes == 0)
                assert_int_equal(got.guess.token, TOKEN_NONE);
            else
                assert_true(got.guess.confidence > 0);
        }
        rig_close(&r);
    }
}

static void
test_until_with_nothing_to_run_says_where_the_row_is(void **state)
{
    NEEDS_CUDA;
    struct rig r;
    open_rig(&r, 1, false);
    const float never[RIG_DEPTH + 1] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    struct exit_result got = {.depth = 77, .probes = 77};
    const int node = 0;
    rig_chain(&r, 1);
    rig_step_all(&r);
    const struct sweep *w = rig_sweep(&r, &node, 1, 1, 0);
    assert_true(cuda->until(r.store, w, &(struct exit_rule){.temperature = never, .threshold = never}, &got));
    rig_wait(&r);
    assert_false(got.exited);
    assert_int_equal(got.depth, r.desc->n_layers);
    assert_int_equal(got.probes, 0);
    assert_int_equal(got.guess.token, TOKEN_NONE);
    rig_close(&r);
}

/* ---- distributions and verification ---- */

static void
test_distributions_are_those_of_the_cpu(void **state)
{
    NEEDS_CUDA;
    static float got[MOST_VOCAB], want[MOST_VOCAB], z[MOST_VOCAB];
    static uint32_t order[MOST_VOCAB];
    const struct sampling ways[] = {{0, 0, 1}, {1, 0, 1}, {0.8f, 7, 1}, {1.3f, 0, 0.6f}, {0.9f, 20, 0.8f}};
    struct rig r;
    open_rig(&r, 2, false);
    rig_chain(&r, 5);
    rig_step_all(&r);
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct dist_req q = {.ring = i, .layer = r.desc->n_layers, .sampling = ways[i], .out = i + 3};
        assert_true(cuda->dist(r.store, &q, 1));
        assert_true(cuda->read_dist(r.store, i + 3, got));
        assert_true(cuda->read_logits(r.store, i, r.desc->n_layers, z));
        rig_wait(&r);
        sampling_dist(z, r.desc->vocab, &ways[i], want, order);
        for (uint32_t v = 0; v < r.desc->vocab; v++)
            assert_true((got[v] > 0) == (want[v] > 0) && fabsf(got[v] - want[v]) < 1e-5f);
    }
    rig_close(&r);
}

static void
test_greedy_verdicts_are_those_of_the_cpu(void **state)
{
    NEEDS_CUDA;
    static float z[VERIFY_NODES][MOST_VOCAB], p[MOST_VOCAB];
    static uint32_t order[MOST_VOCAB];
    struct rig r;
    open_rig(&r, 1, false);
    for (int round = 0; round < (cuda_is_emulated() ? 2 : 20); round++) {
        struct verify_node nodes[VERIFY_NODES];
        const float *logits[VERIFY_NODES], *q[VERIFY_NODES] = {NULL};
        struct verdict got, want = {.n_path = 0};
        if (round > 0)
            rig_restart(&r);
        rig_tree(&r, 20);
        rig_step_all(&r);
        for (int i = 0; i < 20; i++) {
            assert_true(cuda->read_logits(r.store, (uint32_t)i, r.desc->n_layers, z[i]));
            nodes[i] = (struct verify_node){.parent = r.nodes[i].parent,
                                            .token = r.nodes[i].token,
                                            .pos = r.nodes[i].position,
                                            .ring = i > 0 && rig_random(&r, 6) == 0 ? RING_NONE : (uint32_t)i,
                                            .q = DIST_NONE};
        }
        rig_wait(&r);
        for (int i = 0; i < 20; i++) {
            logits[i] = nodes[i].ring == RING_NONE ? NULL : z[i];
            if (i > 0 && rig_random(&r, 2) == 0) /* accepted, if its parent is */
                nodes[i].token = sampling_argmax(z[nodes[i].parent], r.desc->vocab);
        }
        const struct verify_req request = {.nodes = nodes, .n = 20, .sampling = {.top_p = 1}, .out = &got};
        assert_true(cuda->verify(r.store, &request));
        rig_wait(&r);
        assert_true(sampling_verify(&request, r.desc->vocab, logits, q, p, order, &want));
        assert_int_equal(got.n_path, want.n_path);
        assert_memory_equal(got.path, want.path, want.n_path * sizeof *want.path);
        assert_int_equal(got.next, want.next);
        assert_int_equal(got.kind, want.kind);
        for (int i = 0; i < 20; i++)
            assert_int_equal(got.judged[i].token,
                             logits[i] == NULL ? TOKEN_NONE : sampling_argmax(z[i], r.desc->vocab));
    }
    rig_close(&r);
}

/* ---- queue, wait, cancel ---- */

static void
test_results_come_with_wait_and_not_before(void **state)
{
    NEEDS_CUDA;
    struct rig r;
    struct guess guess = {.token = 12345};
    float hidden[MOST_WIDTH] = {-77};
    open_rig(&r, 1, false);
    rig_chain(&r, 3);
    rig_step_all(&r);
    assert_true(cuda->guess(r.store, &(struct probe){.ring = 1, .layer = 1, .temperature = 1}, 1, &guess));
    assert_true(cuda->read_hidden(r.store, 1, 1, hidden));
    assert_int_equal(guess.token, 12345);
    assert_true(hidden[0] == -77);
    rig_wait(&r);
    assert_true(guess.token >= 0 && (uint32_t)guess.token < r.desc->vocab);
    assert_true(hidden[0] != -77);
    rig_close(&r);
}

/* Far more than the arenas were made for waits in the queue; all of it comes, in order. */
static void
test_a_queue_longer_than_its_memory_is_served(void **state)
{
    NEEDS_CUDA;
    static struct guess guesses[12][300];
    static float hidden[12][MOST_WIDTH];
    struct probe probes[300];
    struct rig r;
    open_rig(&r, 2, false);
    rig_chain(&r, 30);
    rig_step_all(&r);
    for (uint32_t i = 0; i < 300; i++)
        probes[i] = (struct probe){.ring = i % 30, .layer = i / 30 % 4, .temperature = 1};
    for (int i = 0; i < 12; i++) {
        assert_true(cuda->guess(r.store, probes, i == 11 ? 300 : 60, guesses[i]));
        assert_true(cuda->read_hidden(r.store, (uint32_t)i, 1, hidden[i]));
    }
    rig_wait(&r);
    for (int i = 1; i < 12; i++)
        assert_memory_equal(guesses[0], guesses[i], 60 * sizeof guesses[0][0]);
    for (int i = 0; i < 12; i++) {
        float alone[MOST_WIDTH];
        rig_hidden(&r, i, 1, alone);
        assert_memory_equal(alone, hidden[i], r.desc->width * sizeof *alone);
    }
    rig_close(&r);
}

static void
test_a_cancelled_sweep_is_dropped_and_the_next_one_runs(void **state)
{
    NEEDS_CUDA;
    struct rig r;
    struct err err = {.kind = ERR_NONE};
    const int nodes[] = {0, 1, 2};
    struct guess guess = {.token = 12345};
    open_rig(&r, 0, true);
    rig_chain(&r, 3);
    atomic_store(&r.cancel, true);
    assert_true(cuda->step(r.store, rig_sweep(&r, nodes, 3, r.desc->n_layers, 0)));
    assert_true(cuda->guess(r.store, &(struct probe){.ring = 1, .layer = 1, .temperature = 1}, 1, &guess));
    assert_false(cuda->wait(r.store, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_int_equal(guess.token, 12345);
    atomic_store(&r.cancel, false);
    assert_true(cuda->step(r.store, rig_sweep(&r, nodes, 3, r.desc->n_layers, 0))); /* the flag rises behind it */
    atomic_store(&r.cancel, true);
    (void)cuda->wait(r.store, &err);
    atomic_store(&r.cancel, false);
    rig_step_all(&r);
    for (int i = 0; i < 3; i++)
        assert_near_naive(&r, i, true);
    rig_close(&r);
}

static void
test_malformed_requests_are_refused(void **state)
{
    NEEDS_CUDA;
    struct rig r;
    struct guess guess;
    slot_t tails[RIG_NODES + 1] = {0};
    open_rig(&r, 0, false);
    rig_chain(&r, 1);
    const struct row row = {.n_trunk = RIG_NODES, .tail = 0, .n_tail = 1}, bad = {.slot = RIG_NODES};
    struct sweep w = {.rows = &row, .n = 1, .tails = tails, .n_tails = 1, .to = 1};
    assert_false(cuda->step(r.store, &w)); /* longer than there are slots */
    w.rows = &bad;
    assert_false(cuda->step(r.store, &w));
    assert_false(cuda->embed(r.store, &bad, 1));
    assert_false(cuda->trunk(r.store, 3, 0, tails, 1));
    assert_false(cuda->guess(r.store, &(struct probe){.layer = r.desc->n_layers + 1, .temperature = 1}, 1, &guess));
    assert_false(cuda->read_dist(r.store, 70, NULL));
    rig_wait(&r);
    rig_close(&r);
}

/* ---- weights ---- */

static bool
stop_at_once(void *user, double done)
{
    (void)user;
    (void)done;
    return false;
}

static void
test_loading_stops_when_it_is_cancelled(void **state)
{
    NEEDS_CUDA;
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct naive_model *m = naive_model_random(&shapes[1], seed);
    assert_non_null(m);
    assert_true(cuda->open(&b, &(struct backend_options){.threads = 1, .gpu = -1}, &err));
    assert_false(cuda->load(b, naive_model_desc(m), stop_at_once, NULL, &w, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    cuda->close(b);
    naive_model_free(m);
}

static void
test_a_model_of_wrong_shapes_is_refused(void **state)
{
    NEEDS_CUDA;
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct naive_model *m = naive_model_random(&shapes[1], seed);
    assert_non_null(m);
    assert_true(cuda->open(&b, &(struct backend_options){.threads = 1, .gpu = -1}, &err));
    const struct model_desc *d = naive_model_desc(m);
    for (int i = 0; i < 5; i++) {
        struct model_desc wrong = *d;
        struct layer_desc layers[2] = {d->layers[0], d->layers[1]};
        wrong.layers = layers;
        switch (i) {
        case 0: layers[1].up.rows--; break;
        case 1: layers[0].wq.type = WEIGHT_TYPES; break;
        case 2: wrong.head.data = NULL; break;
        case 3: wrong.kv_heads = 3; break;
        default: wrong.final_norm.cols++; break;
        }
        err.kind = ERR_NONE;
        assert_false(cuda->load(b, &wrong, NULL, NULL, &w, &err));
        assert_int_equal(err.kind, ERR_WORK);
    }
    cuda->close(b);
    naive_model_free(m);
}

static void
test_types_that_the_device_does_not_hold_are_named(void **state)
{
    NEEDS_CUDA;
    static const struct {
        size_t shape;
        bool exact;
        const char *said;
    } cases[] = {{0, false, "F32 held as F16"},
                 {1, false, NULL},
                 {0, true, NULL},
                 {4, false, "Q5_1 held as F16"},
                 {6, false, NULL},
                 {7, false, NULL},
                 {8, false, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig r;
        open_rig(&r, cases[i].shape, cases[i].exact);
        const char *said = cuda->describe(r.backend);
        assert_true(cases[i].said != NULL ? strstr(said, cases[i].said) != NULL : strstr(said, "held as") == NULL);
        rig_close(&r);
    }
}

int
main(void)
{
    const char *given = getenv("SPECSCOPE_SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    cuda = cuda_for_tests();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_a_tree_are_those_of_the_naive_model),
        cmocka_unit_test(test_skipped_sublayers_leave_the_stream_as_it_is),
        cmocka_unit_test(test_guesses_follow_their_definitions_whatever_shares_the_call),
        cmocka_unit_test(test_until_leaves_where_layer_by_layer_guesses_say),
        cmocka_unit_test(test_until_with_nothing_to_run_says_where_the_row_is),
        cmocka_unit_test(test_distributions_are_those_of_the_cpu),
        cmocka_unit_test(test_greedy_verdicts_are_those_of_the_cpu),
        cmocka_unit_test(test_results_come_with_wait_and_not_before),
        cmocka_unit_test(test_a_queue_longer_than_its_memory_is_served),
        cmocka_unit_test(test_a_cancelled_sweep_is_dropped_and_the_next_one_runs),
        cmocka_unit_test(test_malformed_requests_are_refused),
        cmocka_unit_test(test_loading_stops_when_it_is_cancelled),
        cmocka_unit_test(test_a_model_of_wrong_shapes_is_refused),
        cmocka_unit_test(test_types_that_the_device_does_not_hold_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
