/* The CUDA backend through kernels/backend.h, against definitions; on emulated GPUs, and on a real one (make
 * test-cuda). */
#include <math.h>

#include "kernels/cpu/sampling.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/prediction_definition.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

static uint64_t seed; /* printed by main */

/* ---- layers ---- */

TEST(rows_of_a_tree_are_those_of_the_naive_model)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < 2 * CUDA_SHAPES; i++) {
        struct rig r;
        if (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL && (i / 2 + i + seed) % 2 == 1)
            continue; /* a shape is tested either in F16 or exactly */
        cuda_rig_open(&r, i / 2, i % 2, seed);
        rig_tree(&r, cuda_is_emulated() ? 10 : 40);
        rig_step(&r, (const int[]){0, 1, 2, 3, 4}, 5, r.desc->n_layers,
                 0); /* few rows, which each block norms itself */
        rig_step_all(&r);
        for (int node = 0; node < r.n; node += cuda_is_emulated() ? 5 : 2)
            cuda_rig_assert_near_naive(&r, node, i % 2);
        rig_close(&r);
    }
}

TEST(branches_that_leave_a_path_late_are_those_of_the_naive_model)
{
    NEEDS_CUDA;
    static const struct {
        size_t shape;
        bool exact;
    } runs[] = {{0, false}, {CUDA_MOE_WIDE, false}, {CUDA_MOE_WIDE, true}};
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
        struct rig r;
        if (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL && run == 1 + seed % 2)
            continue;
        cuda_rig_open(&r, runs[run].shape, runs[run].exact, seed);
        rig_chain(&r, 40); /* the path is longer than a block of positions */
        rig_step_all(&r);
        for (int i = 0; i < 5; i++)
            rig_add(&r, 34 + i, (token_t)rig_random(&r, r.desc->vocab));
        rig_step(&r, (const int[]){40, 41, 42, 43, 44}, 5, r.desc->n_layers, 0);
        for (int node = 40; node < 45; node++)
            cuda_rig_assert_near_naive(&r, node, runs[run].exact);
        rig_close(&r);
    }
}

TEST(skipped_sublayers_leave_the_residual_stream_unchanged)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < CUDA_SHAPES; i += cuda_is_emulated() ? 3 : 1) {
        bool attention[RIG_DEPTH + 1], mlp[RIG_DEPTH + 1];
        int all[RIG_NODES];
        struct rig r;
        cuda_rig_open(&r, i, true, seed);
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
        struct forward_pass w = *rig_forward(&r, all, r.n, r.desc->n_layers, 0);
        w.skip_attention = attention;
        w.skip_mlp = mlp;
        assert_true(cuda->step(r.kv_cache, &w));
        rig_wait(&r);
        for (int node = 0; node < r.n; node += 3)
            cuda_rig_assert_near_naive(&r, node, true);
        rig_close(&r);
    }
}

/* ---- predictions ---- */

static void
assert_same_prediction(const struct prediction *a, const struct prediction *b, const char *what)
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

/* Computes the prediction from logits that were read back. */
static struct prediction
define_prediction(struct rig *r, uint32_t ring, const struct probe *p)
{
    static float z[RIG_VOCAB], f[RIG_VOCAB];
    assert_true(r->ops->read_logits(r->kv_cache, ring, p->layer, z));
    assert_true(r->ops->read_logits(r->kv_cache, ring, r->desc->n_layers, f));
    rig_wait(r);
    return prediction_by_definition(z, r->desc->vocab, (double)p->temperature, p->versus_final ? f : NULL);
}

/* More probes than one head call computes; the final layer is requested first, last, never, or twice. */
TEST(predictions_follow_their_definitions_whatever_shares_the_call)
{
    NEEDS_CUDA;
    static struct prediction got[300];
    struct probe probes[300];
    struct rig r;
    cuda_rig_open(&r, 3, false, seed); /* a row has several stages of a tile */
    rig_tree(&r, 40);
    rig_step_all(&r);
    for (size_t i = 0; i < 300; i++)
        probes[i] = (struct probe){.ring = rig_random(&r, (uint32_t)r.n),
                                   .layer = rig_random(&r, r.desc->n_layers + 1),
                                   .temperature = 0.5f + (float)rig_random(&r, 100) / 50,
                                   .versus_final = rig_random(&r, 2)};
    assert_true(cuda->predict(r.kv_cache, probes, 300, got));
    rig_wait(&r);
    for (size_t i = 0; i < 300; i += cuda_is_emulated() ? 23 : 3) {
        const struct prediction want = define_prediction(&r, probes[i].ring, &probes[i]);
        assert_same_prediction(&want, &got[i], "a guess among 300 and its definition");
    }
    rig_close(&r);
}

/* ---- early exit ---- */

/* Finds the layer at which a rule with these thresholds exits. Returns true if a score is too close to a threshold. */
static bool
exit_by_definition(const struct rig *r, const float *threshold, const struct prediction *by_layer,
                   struct exit_result *out)
{
    bool close_call = false;
    *out = (struct exit_result){.depth = r->desc->n_layers};
    for (uint32_t l = 1; l <= r->desc->n_layers && !out->exited; l++) {
        if (threshold[l] > 1)
            continue;
        out->probes++;
        out->exited = by_layer[l].annealed >= threshold[l];
        out->depth = out->exited ? l : r->desc->n_layers;
        close_call = close_call || fabsf(by_layer[l].annealed - threshold[l]) < 1e-4f;
    }
    return close_call;
}

TEST(a_forward_pass_until_a_confidence_ends_where_layer_by_layer_predictions_do)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < CUDA_SHAPES; i += cuda_is_emulated() ? 2 : 1) {
        struct rig r;
        cuda_rig_open(&r, i, i % 2, seed);
        const uint32_t layers = r.desc->n_layers;
        float temperature[RIG_DEPTH + 1], threshold[RIG_DEPTH + 1];
        struct prediction by_layer[RIG_DEPTH + 1], probed[RIG_DEPTH + 1];
        int all[RIG_NODES];
        rig_chain(&r, 9);
        for (int n = 0; n < 9; n++)
            all[n] = n;
        for (int round = 0; round < (cuda_is_emulated() ? 2 : 8);
             round++) { /* the last two rows skip the layers, into new slots */
            struct exit_result got = {.probed = probed}, want;
            if (round > 0)
                rig_restart(&r), rig_chain(&r, 9);
            rig_step(&r, all, 9, layers, 0);
            for (uint32_t l = 1; l <= layers; l++) {
                temperature[l] = 0.7f;
                threshold[l] = rig_random(&r, 3) == 0 ? 2 : (float)rig_random(&r, 100) / 400;
                const struct probe p = {.ring = 8, .layer = l, .temperature = temperature[l]};
                by_layer[l] = define_prediction(&r, 8, &p);
            }
            if (exit_by_definition(&r, threshold, by_layer, &want))
                continue;
            for (int n = 7; n < 9; n++)
                r.nodes[n].depth = 0;
            const struct forward_pass *w = rig_forward(&r, &all[7], 2, layers, 0);
            assert_true(cuda->until(r.kv_cache, w,
                                    &(struct exit_rule){.temperature = temperature, .threshold = threshold}, &got));
            rig_wait(&r);
            assert_int_equal(got.exited, want.exited);
            assert_int_equal(got.depth, want.depth);
            assert_int_equal(got.probes, want.probes);
            assert_ptr_equal(got.probed, probed);
            for (uint32_t l = 0; l <= layers; l++) {
                const bool looked = l > 0 && l <= want.depth && threshold[l] <= 1;
                if (looked)
                    assert_same_prediction(&by_layer[l], &probed[l], "a probed layer");
                else
                    assert_int_equal(probed[l].token, TOKEN_NONE);
            }
            if (want.probes == 0)
                assert_int_equal(got.prediction.token, TOKEN_NONE);
            else
                assert_greater(got.prediction.confidence, 0);
        }
        rig_close(&r);
    }
}

TEST(a_forward_pass_without_layers_to_run_returns_the_rows_depth)
{
    NEEDS_CUDA;
    struct rig r;
    cuda_rig_open(&r, 1, false, seed);
    const float never[RIG_DEPTH + 1] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    struct exit_result got = {.depth = 77, .probes = 77};
    const int node = 0;
    rig_chain(&r, 1);
    rig_step_all(&r);
    const struct forward_pass *w = rig_forward(&r, &node, 1, 1, 0);
    assert_true(cuda->until(r.kv_cache, w, &(struct exit_rule){.temperature = never, .threshold = never}, &got));
    rig_wait(&r);
    assert_false(got.exited);
    assert_int_equal(got.depth, r.desc->n_layers);
    assert_int_equal(got.probes, 0);
    assert_int_equal(got.prediction.token, TOKEN_NONE);
    rig_close(&r);
}

/* ---- distributions and verification ---- */

TEST(distributions_are_those_of_the_cpu)
{
    NEEDS_CUDA;
    static float got[RIG_VOCAB], want[RIG_VOCAB], z[RIG_VOCAB];
    static uint32_t order[RIG_VOCAB];
    const struct sampling ways[] = {{0, 0, 1}, {1, 0, 1}, {0.8f, 7, 1}, {1.3f, 0, 0.6f}, {0.9f, 20, 0.8f}};
    struct rig r;
    cuda_rig_open(&r, 2, false, seed);
    rig_chain(&r, 5);
    rig_step_all(&r);
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct dist_req q = {.ring = i, .layer = r.desc->n_layers, .sampling = ways[i], .out = i + 3};
        assert_true(cuda->dist(r.kv_cache, &q, 1));
        assert_true(cuda->read_dist(r.kv_cache, i + 3, got));
        assert_true(cuda->read_logits(r.kv_cache, i, r.desc->n_layers, z));
        rig_wait(&r);
        sampling_dist(z, r.desc->vocab, &ways[i], want, order);
        for (uint32_t v = 0; v < r.desc->vocab; v++) {
            assert_int_equal(got[v] > 0, want[v] > 0);
            assert_near(got[v], want[v], 1e-5f);
        }
    }
    rig_close(&r);
}

TEST(greedy_verdicts_are_those_of_the_cpu)
{
    NEEDS_CUDA;
    static float z[VERIFY_NODES][RIG_VOCAB], p[RIG_VOCAB];
    static uint32_t order[RIG_VOCAB];
    struct rig r;
    cuda_rig_open(&r, 1, false, seed);
    for (int round = 0; round < (cuda_is_emulated() ? 2 : 20); round++) {
        struct verify_node nodes[VERIFY_NODES];
        const float *logits[VERIFY_NODES], *q[VERIFY_NODES] = {NULL};
        struct verdict got, want = {.n_path = 0};
        if (round > 0)
            rig_restart(&r);
        rig_tree(&r, 20);
        rig_step_all(&r);
        for (int i = 0; i < 20; i++) {
            assert_true(cuda->read_logits(r.kv_cache, (uint32_t)i, r.desc->n_layers, z[i]));
            nodes[i] = (struct verify_node){.parent = r.nodes[i].parent,
                                            .token = r.nodes[i].token,
                                            .pos = r.nodes[i].position,
                                            .ring = i > 0 && rig_random(&r, 6) == 0 ? RING_NONE : (uint32_t)i,
                                            .q = DIST_NONE};
        }
        rig_wait(&r);
        for (int i = 0; i < 20; i++) {
            logits[i] = nodes[i].ring == RING_NONE ? NULL : z[i];
            if (i > 0 && rig_random(&r, 2) == 0) /* accepted if its parent is accepted */
                nodes[i].token = sampling_argmax(z[nodes[i].parent], r.desc->vocab);
        }
        const struct verify_req request = {.nodes = nodes, .n = 20, .sampling = {.top_p = 1}, .out = &got};
        assert_true(cuda->verify(r.kv_cache, &request, 1));
        rig_wait(&r);
        assert_true(sampling_verify(&request, r.desc->vocab, logits, q, r.desc->vocab, p, order, &want));
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

TEST_SEED(seed, 1);
