/* The CPU backend against a naive transformer in double precision: layers, trees, skips, heads, early exit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/sampling.h"
#include "tests/rigs/backend_rig.h"
#include "tests/rigs/seed.h"

#define MOST_VOCAB 1300
#define MOST_WIDTH 256

static uint64_t seed; /* printed by main */

/* Blocks of 256 inputs. */
#define IN_BLOCKS(kind, ...)                                                                                           \
    {                                                                                                                  \
        .n_layers = 2, .width = 256, .heads = 4, .kv_heads = 2, .head_dim = 64, .ffn = 256, .vocab = 300,              \
        .type = kind, __VA_ARGS__                                                                                      \
    }

/* Odd sizes on purpose: widths that no vector divides, groups of heads, vocabularies of several pieces. */
static const struct naive_shape shapes[] = {
    {.n_layers = 3,
     .width = 64,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 16,
     .ffn = 96,
     .vocab = 200,
     .type = WEIGHT_Q8_0},
    {.n_layers = 3,
     .width = 50,
     .heads = 5,
     .kv_heads = 5,
     .head_dim = 10,
     .ffn = 77,
     .vocab = 101,
     .type = WEIGHT_F16},
    {.n_layers = 4,
     .width = 48,
     .heads = 6,
     .kv_heads = 1,
     .head_dim = 6,
     .ffn = 130,
     .vocab = 70,
     .type = WEIGHT_BF16},
    {.n_layers = 2,
     .width = 37,
     .heads = 3,
     .kv_heads = 1,
     .head_dim = 22,
     .ffn = 41,
     .vocab = 1300,
     .rope = ROPE_HALVES},
    {.n_layers = 2,
     .width = 128,
     .heads = 4,
     .kv_heads = 4,
     .head_dim = 24,
     .ffn = 32,
     .vocab = 1100,
     .rope = ROPE_HALVES,
     .type = WEIGHT_Q8_0},
    IN_BLOCKS(WEIGHT_Q4_0, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q4_1, .window = 5),
    IN_BLOCKS(WEIGHT_Q5_0, .optional = LAYER_QK_NORM),
    IN_BLOCKS(WEIGHT_Q5_1, .rope = ROPE_HALVES),
    IN_BLOCKS(WEIGHT_Q2_K, .optional = LAYER_QKV_BIAS, .window = 3),
    IN_BLOCKS(WEIGHT_Q3_K, .optional = LAYER_QK_NORM | LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q4_K, .rope = ROPE_HALVES, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q5_K, .window = 8),
    IN_BLOCKS(WEIGHT_Q6_K, .window = 1),
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

/* What rounding may cost: keys and values in F16, and for blocks activations in 7 bits and a sign at every matrix,
 * about 0.7% each. The kernels themselves are held to 2e-6 in isa_checks.c. */
static double
bound_of(enum weight_type type)
{
    return type < WEIGHT_Q8_0 ? 5e-3 : 0.1;
}

static void
assert_near_naive(struct rig *r, int node, double bound)
{
    static double hidden[(RIG_DEPTH + 1) * MOST_WIDTH], logits[MOST_VOCAB];
    static float got[MOST_VOCAB];
    rig_naive(r, node, hidden, logits);
    for (uint32_t l = 0; l <= r->desc->n_layers; l++) {
        rig_hidden(r, node, l, got);
        double error = rig_distance(got, hidden + l * r->desc->width, r->desc->width);
        if (!(error < (l == 0 ? 1e-7 : bound)))
            fail_msg("%s: node %d after layer %u: relative error %g", r->ops->describe(r->backend), node, l, error);
    }
    rig_logits(r, node, r->desc->n_layers, got);
    double error = rig_distance(got, logits, r->desc->vocab);
    if (!(error < bound))
        fail_msg("%s: logits of node %d: relative error %g", r->ops->describe(r->backend), node, error);
}

static void
on_every_isa_and_shape(bool exact, void (*check)(struct rig *, double bound))
{
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        for (size_t s = 0; s < N_SHAPES && cpu_isas[i]->usable(); s++) {
            struct rig r;
            const struct backend_options o = {.threads = 1 + (uint32_t)s % 2, .isa = cpu_isas[i]->name, .exact = exact};
            rig_open(&r, &cpu_backend, &shapes[s], seed + s, &o);
            check(&r, exact ? 1e-5 : bound_of(shapes[s].type));
            rig_close(&r);
        }
}

/* ---- layers ---- */

static void
check_tree(struct rig *r, double bound)
{
    rig_tree(r, 20);
    rig_step_all(r);
    for (int node = 0; node < r->n; node += 3)
        assert_near_naive(r, node, bound);
}

static void
test_exact_rows_of_a_tree_equal_the_naive_model(void **state)
{
    (void)state;
    on_every_isa_and_shape(true, check_tree);
}

static void
test_fast_rows_of_a_tree_are_near_the_naive_model(void **state)
{
    (void)state;
    on_every_isa_and_shape(false, check_tree);
}

static void
check_skips(struct rig *r, double bound)
{
    bool attention[RIG_DEPTH + 1] = {false}, none[RIG_DEPTH + 1] = {false}, mlp[RIG_DEPTH + 1] = {false};
    attention[1] = mlp[r->desc->n_layers] = mlp[1] = true;
    int chain[12];
    rig_chain(r, 12);
    for (int i = 0; i < 12; i++)
        chain[i] = i;
    rig_step(r, chain, 6, r->desc->n_layers, 0);
    struct sweep sweep = *rig_sweep(r, chain + 6, 6, r->desc->n_layers, 0); /* a draft on top of full rows */
    sweep.skip_attention = attention;
    sweep.skip_mlp = mlp;
    assert_true(r->ops->step(r->store, &sweep));
    for (int i = 6; i < 12; i++) {
        r->nodes[i].skip_attention = attention;
        r->nodes[i].skip_mlp = mlp;
    }
    rig_wait(r);
    assert_near_naive(r, 5, bound);
    assert_near_naive(r, 6, bound);
    assert_near_naive(r, 11, bound);
    sweep.skip_attention = none; /* masks of falses are no masks */
    sweep.skip_mlp = none;
    assert_true(r->ops->step(r->store, &sweep));
    rig_wait(r);
    for (int i = 6; i < 12; i++)
        r->nodes[i].skip_attention = r->nodes[i].skip_mlp = NULL;
    assert_near_naive(r, 11, bound);
}

static void
test_skipped_sublayers_leave_the_stream_as_it_was(void **state)
{
    (void)state;
    on_every_isa_and_shape(true, check_skips);
}

static void
test_long_paths_cross_attention_blocks(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, &cpu_backend, &shapes[0], seed, &(struct backend_options){.threads = 2, .exact = true});
    rig_chain(&r, RIG_NODES);
    int all[RIG_NODES];
    for (int i = 0; i < RIG_NODES; i++)
        all[i] = i;
    rig_step(&r, all, 70, r.desc->n_layers, 0);
    rig_trunk(&r, 0, 69);
    rig_step(&r, all + 70, RIG_NODES - 70, r.desc->n_layers, 70);
    assert_near_naive(&r, 60, 1e-5);
    assert_near_naive(&r, 69, 1e-5);
    assert_near_naive(&r, RIG_NODES - 1, 1e-5);
    rig_close(&r);
}

/* ---- rotations ---- */

static void
test_rope_rotates_pairs_of_both_layouts_and_leaves_the_rest(void **state)
{
    (void)state;
    static const float factors[3] = {1, 2, 5};
    for (int layout = 0; layout < 2; layout++) {
        struct naive_model *model = naive_model_random(&shapes[1], seed);
        assert_non_null(model);
        struct model_desc d = *naive_model_desc(model);
        d.rope = layout == 0 ? ROPE_ADJACENT : ROPE_HALVES;
        d.rope_dims = 6; /* of 10 */
        d.rope_factors = factors;
        d.rope_scale = 0.5f;
        struct backend *b;
        struct weights *w;
        struct err err;
        assert_true(cpu_backend.open(&b, &(struct backend_options){.threads = 1}, &err));
        assert_true(cpu_backend.load(b, &d, NULL, NULL, &w, &err));
        float turns[6], x[10], was[10];
        for (int i = 0; i < 10; i++)
            was[i] = x[i] = (float)(i * i) - 7;
        rope_turns(w, 1001, turns);
        rope(&d, turns, x);
        for (int i = 0; i < 3; i++) {
            int a = layout == 0 ? 2 * i : i, c = layout == 0 ? 2 * i + 1 : i + 3;
            double angle = 1001 * 0.5 / factors[i] / pow(10000, 2.0 * i / 6);
            assert_true(fabs(x[a] - (was[a] * cos(angle) - was[c] * sin(angle))) < 1e-5 * 40);
            assert_true(fabs(x[c] - (was[a] * sin(angle) + was[c] * cos(angle))) < 1e-5 * 40);
        }
        assert_memory_equal(x + 6, was + 6, 4 * sizeof *x);
        cpu_backend.unload(w);
        cpu_backend.close(b);
        naive_model_free(model);
    }
}

/* ---- heads ---- */

/* A guess from logits, by the definitions. */
static struct guess
plain_guess(const float *z, const float *final, uint32_t n, double temperature)
{
    struct guess g = {.kl_final = NAN, .rank_final = -1};
    double lse = 0, annealed = 0, entropy = 0, kl = 0, final_lse = 0;
    bool taken[MOST_VOCAB] = {false};
    for (size_t i = 0; i < GUESS_TOP; i++) {
        g.top[i] = TOKEN_NONE;
        for (uint32_t v = 0; v < n; v++)
            if (!taken[v] && (g.top[i] == TOKEN_NONE || z[v] > z[g.top[i]]))
                g.top[i] = (token_t)v;
        taken[g.top[i]] = true;
    }
    g.token = g.top[0];
    for (uint32_t v = 0; v < n; v++) {
        lse += exp((double)z[v] - z[g.token]);
        annealed += exp(((double)z[v] - z[g.token]) / temperature);
    }
    for (uint32_t v = 0; v < n; v++) {
        double p = exp((double)z[v] - z[g.token]) / lse;
        entropy -= p * (((double)z[v] - z[g.token]) - log(lse));
    }
    for (size_t i = 0; i < GUESS_TOP; i++)
        g.top_p[i] = (float)(exp((double)z[g.top[i]] - z[g.token]) / lse);
    g.confidence = (float)(1 / lse);
    g.annealed = (float)(1 / annealed);
    g.entropy = (float)entropy;
    if (final == NULL)
        return g;
    uint32_t best = 0;
    for (uint32_t v = 0; v < n; v++)
        best = final[v] > final[best] ? v : best;
    for (uint32_t v = 0; v < n; v++)
        final_lse += exp((double) final[v] - final[best]);
    g.rank_final = 0;
    for (uint32_t v = 0; v < n; v++) {
        double log_final = (double) final[v] - final[best] - log(final_lse);
        kl += exp(log_final) * (log_final - ((double)z[v] - z[g.token] - log(lse)));
        g.rank_final += z[v] > z[best] || (z[v] == z[best] && v < best);
    }
    g.kl_final = (float)kl;
    return g;
}

static void
assert_close(float got, float want, double bound, const char *what)
{
    if (isnan(want) ? !isnan(got) : !(fabs((double)got - want) <= bound * (1 + fabs((double)want))))
        fail_msg("%s is %g, not %g", what, got, want);
}

static void
assert_guess(const struct guess *got, const struct guess *want)
{
    assert_int_equal(got->token, want->token);
    assert_memory_equal(got->top, want->top, sizeof got->top);
    assert_int_equal(got->rank_final, want->rank_final);
    assert_close(got->confidence, want->confidence, 1e-5, "confidence");
    assert_close(got->annealed, want->annealed, 1e-5, "annealed");
    assert_close(got->entropy, want->entropy, 1e-4, "entropy");
    assert_close(got->kl_final, want->kl_final, 1e-4, "KL");
    for (size_t i = 0; i < GUESS_TOP; i++)
        assert_close(got->top_p[i], want->top_p[i], 1e-5, "probability");
}

static void
check_guesses(struct rig *r, double bound)
{
    (void)bound;
    enum { PROBES = 230 }; /* several tables full */
    static struct probe probes[PROBES];
    static struct guess guesses[PROBES];
    static float logits[8][RIG_DEPTH + 1][MOST_VOCAB];
    const uint32_t depth = r->desc->n_layers, vocab = r->desc->vocab;
    rig_tree(r, 8);
    rig_step_all(r);
    for (size_t i = 0; i < PROBES; i++) /* one ring entry gets far more than a table's worth */
        probes[i] = (struct probe){.ring = rig_random(r, 3) > 0 ? 5 : rig_random(r, 8),
                                   .layer = rig_random(r, depth + 1),
                                   .temperature = rig_random(r, 2) == 0 ? 1.0f : 1.4f,
                                   .versus_final = rig_random(r, 2) == 0};
    assert_true(r->ops->guess(r->store, probes, PROBES, guesses));
    rig_wait(r);
    for (int node = 0; node < 8; node++)
        for (uint32_t l = 0; l <= depth; l++)
            rig_logits(r, node, l, logits[node][l]);
    for (size_t i = 0; i < PROBES; i++) {
        const float *z = logits[probes[i].ring][probes[i].layer], *final = logits[probes[i].ring][depth];
        struct guess want = plain_guess(z, probes[i].versus_final ? final : NULL, vocab, (double)probes[i].temperature);
        assert_guess(&guesses[i], &want);
    }
}

static void
test_guesses_are_softmax_statistics_of_the_logits(void **state)
{
    (void)state;
    on_every_isa_and_shape(false, check_guesses);
}

static void
check_until(struct rig *r, double bound)
{
    (void)bound;
    static float want_hidden[MOST_WIDTH], got_hidden[MOST_WIDTH];
    const uint32_t depth = r->desc->n_layers;
    float temperature[RIG_DEPTH + 1], threshold[RIG_DEPTH + 1];
    struct guess want[RIG_DEPTH + 1], probed[RIG_DEPTH + 1];
    for (uint32_t l = 0; l <= RIG_DEPTH; l++) {
        temperature[l] = 1.2f;
        threshold[l] = l % 2 == 0 ? 2 : 0.02f; /* even layers are not looked at */
    }
    rig_chain(r, 8);
    int chain[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    rig_step(r, chain, 5, depth, 0);
    struct exit_rule rule = {.temperature = temperature, .threshold = threshold};
    struct exit_result out = {.probed = probed};
    assert_true(r->ops->until(r->store, rig_sweep(r, chain + 5, 3, depth, 0), &rule, &out));
    rig_wait(r);
    rig_hidden(r, 7, out.depth, got_hidden);

    rig_step(r, chain + 5, 3, depth, 0); /* the same rows layer by layer, from their embeddings */
    uint32_t exit = depth, probes = 0;
    for (uint32_t l = 1; l <= depth; l++) {
        struct probe p = {.ring = 7, .layer = l, .temperature = temperature[l]};
        assert_true(r->ops->guess(r->store, &p, 1, &want[l]));
        rig_wait(r);
        if (l > exit || threshold[l] > 1)
            assert_int_equal(probed[l].token, TOKEN_NONE);
        if (l > exit || threshold[l] > 1)
            continue;
        probes++;
        assert_memory_equal(&probed[l].top, &want[l].top, sizeof want[l].top);
        assert_true(probed[l].annealed == want[l].annealed && probed[l].entropy == want[l].entropy);
        if (want[l].annealed >= threshold[l])
            exit = l;
    }
    assert_int_equal(out.depth, exit);
    assert_int_equal(out.probes, probes);
    assert_ptr_equal(out.probed, probed);
    assert_int_equal(out.exited, threshold[exit] <= 1 && want[exit].annealed >= threshold[exit]);
    rig_hidden(r, 7, exit, want_hidden);
    assert_memory_equal(got_hidden, want_hidden, r->desc->width * sizeof *want_hidden);
}

static void
test_early_exit_equals_step_and_guess(void **state)
{
    (void)state;
    on_every_isa_and_shape(false, check_until);
}

/* ---- distributions ---- */

static void
test_distributions_draws_and_verdicts_are_the_samplers_on_the_logits(void **state)
{
    (void)state;
    static float logits[8][MOST_VOCAB], p[MOST_VOCAB], got[MOST_VOCAB], want[MOST_VOCAB];
    static uint32_t order[MOST_VOCAB];
    struct rig r;
    rig_open(&r, &cpu_backend, &shapes[0], seed, &(struct backend_options){.threads = 2});
    const uint32_t vocab = r.desc->vocab, depth = r.desc->n_layers;
    rig_chain(&r, 6);
    rig_step_all(&r);
    const struct sampling sampling = {.temperature = 0.9f, .top_k = 50, .top_p = 0.95f};
    struct dist_req requests[70];
    for (uint32_t i = 0; i < 70; i++) /* more than a table's worth */
        requests[i] = (struct dist_req){.ring = i % 6, .layer = i % 2 == 0 ? depth : 1, .sampling = sampling, .out = i};
    assert_true(r.ops->dist(r.store, requests, 70));
    token_t drawn[2] = {-5, -5};
    const token_t without[1] = {7};
    const struct draw_req draws[2] = {
        {.from = 0, .key = {.seed = 9, .pos = 3}, .out = &drawn[0]},
        {.from = 69, .key = {.seed = 9, .pos = 4}, .without = without, .n_without = 1, .out = &drawn[1]}};
    assert_true(r.ops->draw(r.store, draws, 2));
    assert_int_equal(drawn[0], -5);
    rig_wait(&r);
    for (dist_t i = 0; i < 70; i += 23) {
        rig_logits(&r, (int)requests[i].ring, requests[i].layer, want);
        sampling_dist(want, vocab, &sampling, p, order);
        assert_true(r.ops->read_dist(r.store, i, got));
        rig_wait(&r);
        assert_memory_equal(got, p, vocab * sizeof *p);
        if (i == 0)
            assert_int_equal(drawn[0], sampling_draw(p, vocab, &draws[0].key, NULL, 0));
        if (i == 69)
            assert_int_equal(drawn[1], sampling_draw(p, vocab, &draws[1].key, without, 1));
    }

    const float *rows[4], *q[4] = {NULL, NULL, NULL, NULL};
    struct verify_node nodes[4];
    for (int i = 0; i < 4; i++) {
        nodes[i] = (struct verify_node){
            .parent = i - 1, .token = 3 * i, .pos = (uint32_t)i, .ring = (uint32_t)i + 1, .q = DIST_NONE};
        rig_logits(&r, i + 1, depth, logits[i]);
        rows[i] = logits[i];
    }
    nodes[3].ring = RING_NONE;
    rows[3] = NULL;
    nodes[1].token = sampling_argmax(logits[0], vocab);
    struct verdict verdict, expected;
    memset(&expected, 0, sizeof expected);
    struct verify_req request = {
        .nodes = nodes, .n = 4, .sampling = {.temperature = 0, .top_p = 1}, .seed = 3, .out = &verdict};
    assert_true(r.ops->verify(r.store, &request));
    rig_wait(&r);
    assert_true(sampling_verify(&request, vocab, rows, q, p, order, &expected));
    assert_true(verdict.n_path >= 1);
    assert_int_equal(verdict.n_path, expected.n_path);
    assert_memory_equal(verdict.path, expected.path, sizeof *verdict.path * verdict.n_path);
    assert_int_equal(verdict.next, expected.next);
    assert_int_equal(verdict.kind, expected.kind);
    for (int i = 0; i < 3; i++) {
        struct guess guess = plain_guess(logits[i], NULL, vocab, 1);
        assert_guess(&verdict.judged[i], &guess);
    }
    assert_int_equal(verdict.judged[3].token, TOKEN_NONE);
    rig_close(&r);
}

int
main(void)
{
    seed = seed_or((uint64_t)time(NULL));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_rows_of_a_tree_equal_the_naive_model),
        cmocka_unit_test(test_fast_rows_of_a_tree_are_near_the_naive_model),
        cmocka_unit_test(test_skipped_sublayers_leave_the_stream_as_it_was),
        cmocka_unit_test(test_long_paths_cross_attention_blocks),
        cmocka_unit_test(test_rope_rotates_pairs_of_both_layouts_and_leaves_the_rest),
        cmocka_unit_test(test_guesses_are_softmax_statistics_of_the_logits),
        cmocka_unit_test(test_early_exit_equals_step_and_guess),
        cmocka_unit_test(test_distributions_draws_and_verdicts_are_the_samplers_on_the_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
