/* The CPU backend's heads, compared with their definitions: predictions, early exit, distributions, verdicts. */

#include "kernels/cpu/sampling.h"
#include "tests/rigs/cpu_shapes.h"
#include "tests/rigs/prediction_checks.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

static uint64_t seed; /* printed by main */

/* ---- predictions ---- */

static void
check_predictions(struct rig *r, double bound)
{
    (void)bound;
    enum { PROBES = 230 }; /* enough for several tables */
    static struct probe probes[PROBES];
    static struct prediction predictions[PROBES];
    static float logits[8][RIG_DEPTH + 1][RIG_VOCAB];
    const uint32_t depth = r->desc->n_layers, vocab = r->desc->vocab;
    rig_tree(r, 8);
    rig_step_all(r);
    for (size_t i = 0; i < PROBES; i++) /* one ring entry gets far more probes than a table holds */
        probes[i] = (struct probe){.ring = rig_random(r, 3) > 0 ? 5 : rig_random(r, 8),
                                   .layer = rig_random(r, depth + 1),
                                   .temperature = rig_random(r, 2) == 0 ? 1.0f : 1.4f,
                                   .versus_final = rig_random(r, 2) == 0};
    assert_true(r->ops->predict(r->kv_cache, probes, PROBES, predictions));
    rig_wait(r);
    for (int node = 0; node < 8; node++)
        for (uint32_t l = 0; l <= depth; l++)
            rig_logits(r, node, l, logits[node][l]);
    for (size_t i = 0; i < PROBES; i++) {
        const float *z = logits[probes[i].ring][probes[i].layer], *final = logits[probes[i].ring][depth];
        struct prediction want =
            prediction_by_definition(z, vocab, (double)probes[i].temperature, probes[i].versus_final ? final : NULL);
        assert_prediction(&predictions[i], &want);
    }
}

TEST(predictions_are_softmax_statistics_of_the_logits)
{
    on_every_isa_and_shape(false, seed, check_predictions);
}

static void
check_until(struct rig *r, double bound)
{
    (void)bound;
    static float want_hidden[RIG_WIDTH], got_hidden[RIG_WIDTH];
    const uint32_t depth = r->desc->n_layers;
    float temperature[RIG_DEPTH + 1], threshold[RIG_DEPTH + 1];
    struct prediction want[RIG_DEPTH + 1], probed[RIG_DEPTH + 1];
    for (uint32_t l = 0; l <= RIG_DEPTH; l++) {
        temperature[l] = 1.2f;
        threshold[l] = l % 2 == 0 ? 2 : 0.02f; /* even layers are not probed */
    }
    rig_chain(r, 8);
    int chain[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    rig_step(r, chain, 5, depth, 0);
    struct exit_rule rule = {.temperature = temperature, .threshold = threshold};
    struct exit_result out = {.probed = probed};
    assert_true(r->ops->until(r->kv_cache, rig_forward(r, chain + 5, 3, depth, 0), &rule, &out));
    rig_wait(r);
    rig_hidden(r, 7, out.depth, got_hidden);

    rig_step(r, chain + 5, 3, depth, 0); /* the same rows layer by layer, from their embeddings */
    uint32_t exit = depth, probes = 0;
    for (uint32_t l = 1; l <= depth; l++) {
        struct probe p = {.ring = 7, .layer = l, .temperature = temperature[l]};
        assert_true(r->ops->predict(r->kv_cache, &p, 1, &want[l]));
        rig_wait(r);
        if (l > exit || threshold[l] > 1)
            assert_int_equal(probed[l].token, TOKEN_NONE);
        if (l > exit || threshold[l] > 1)
            continue;
        probes++;
        assert_memory_equal(&probed[l].top, &want[l].top, sizeof want[l].top);
        assert_number_equal(probed[l].annealed, want[l].annealed);
        assert_number_equal(probed[l].entropy, want[l].entropy);
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

TEST(early_exit_equals_step_and_prediction)
{
    on_every_isa_and_shape(false, seed, check_until);
}

/* ---- distributions ---- */

TEST(distributions_and_draws_are_the_samplers_on_the_logits)
{
    static float p[RIG_VOCAB], got[RIG_VOCAB], want[RIG_VOCAB];
    static uint32_t order[RIG_VOCAB];
    struct rig r;
    rig_open(&r, &cpu_backend, &cpu_shapes[0], seed, &(struct backend_options){.threads = 2});
    const uint32_t vocab = r.desc->vocab, depth = r.desc->n_layers;
    rig_chain(&r, 6);
    rig_step_all(&r);
    const struct sampling sampling = {.temperature = 0.9f, .top_k = 50, .top_p = 0.95f};
    struct dist_req requests[70];
    for (uint32_t i = 0; i < 70; i++) /* more than a table holds */
        requests[i] = (struct dist_req){.ring = i % 6, .layer = i % 2 == 0 ? depth : 1, .sampling = sampling, .out = i};
    assert_true(r.ops->dist(r.kv_cache, requests, 70));
    token_t drawn[2] = {-5, -5};
    const token_t without[1] = {7};
    const struct draw_req draws[2] = {
        {.from = 0, .key = {.seed = 9, .pos = 3}, .out = &drawn[0]},
        {.from = 69, .key = {.seed = 9, .pos = 4}, .without = without, .n_without = 1, .out = &drawn[1]}};
    assert_true(r.ops->draw(r.kv_cache, draws, 2));
    assert_int_equal(drawn[0], -5);
    rig_wait(&r);
    for (dist_t i = 0; i < 70; i += 23) {
        rig_logits(&r, (int)requests[i].ring, requests[i].layer, want);
        sampling_dist(want, vocab, &sampling, p, order);
        assert_true(r.ops->read_dist(r.kv_cache, i, got));
        rig_wait(&r);
        assert_memory_equal(got, p, vocab * sizeof *p);
        if (i == 0)
            assert_int_equal(drawn[0], sampling_draw(p, vocab, &draws[0].key, NULL, 0));
        if (i == 69)
            assert_int_equal(drawn[1], sampling_draw(p, vocab, &draws[1].key, without, 1));
    }
    rig_close(&r);
}

TEST(verdicts_are_the_samplers_on_the_logits)
{
    static float logits[3][RIG_VOCAB];
    struct rig r;
    rig_open(&r, &cpu_backend, &cpu_shapes[0], seed, &(struct backend_options){.threads = 2});
    const uint32_t vocab = r.desc->vocab, depth = r.desc->n_layers;
    rig_chain(&r, 6);
    rig_step_all(&r);
    const float *rows[4] = {NULL}, *q[4] = {NULL};
    struct verify_node nodes[4];
    for (int i = 0; i < 4; i++) {
        nodes[i] = (struct verify_node){.parent = i - 1,
                                        .token = 3 * i,
                                        .pos = (uint32_t)i,
                                        .ring = i < 3 ? (uint32_t)i + 1 : RING_NONE,
                                        .q = DIST_NONE};
        if (i < 3) {
            rig_logits(&r, i + 1, depth, logits[i]);
            rows[i] = logits[i];
        }
    }
    nodes[1].token = sampling_argmax(logits[0], vocab);
    struct verdict verdict, expected;
    memset(&expected, 0, sizeof expected);
    struct verify_req request = {
        .nodes = nodes, .n = 4, .sampling = {.temperature = 0, .top_p = 1}, .seed = 3, .out = &verdict};
    assert_true(r.ops->verify(r.kv_cache, &request, 1));
    rig_wait(&r);
    assert_true(sampling_verify(&request, vocab, rows, q, vocab, NULL, NULL, &expected));
    assert_at_least(verdict.n_path, 1);
    assert_int_equal(verdict.n_path, expected.n_path);
    assert_memory_equal(verdict.path, expected.path, sizeof *verdict.path * verdict.n_path);
    assert_int_equal(verdict.next, expected.next);
    assert_int_equal(verdict.kind, expected.kind);
    for (int i = 0; i < 3; i++) {
        struct prediction prediction = prediction_by_definition(logits[i], vocab, 1, NULL);
        assert_prediction(&verdict.judged[i], &prediction);
    }
    assert_int_equal(verdict.judged[3].token, TOKEN_NONE);
    rig_close(&r);
}

TEST_SEED(seed, 1);
