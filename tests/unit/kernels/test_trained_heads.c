/* Trained heads in a backend, compared with their definitions in double precision: z = W norm(h + A h + b), z = W_l
 * norm(h). */
#include <math.h>

#include "kernels/cpu/isa.h"
#include "tests/rigs/backend_rig.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { LAYERS = 4, MOST_WIDTH = 64, MOST_VOCAB = 700, NODES = 12 };

static uint64_t seed = 20261121;

static const struct naive_shape shapes[] = {
    RIG_SHAPE(LAYERS, 40, 4, 2, 10, 50, 700, .type = WEIGHT_F32),
    RIG_SHAPE(LAYERS, 64, 4, 2, 16, 64, 530, .type = WEIGHT_Q8_0),
    RIG_SHAPE(LAYERS, 40, 4, 2, 10, 48, 90, .type = WEIGHT_F16, .end_biases = true,
              .form = {.layer_norm = true, .logit_scale = 0.5f, .logit_cap = 3}),
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* Heads by layer: layer 1 has none, layer 2 an affine one, layer 3 a full one. */
struct heads {
    struct exit_head by_layer[LAYERS + 1];
    float a[MOST_WIDTH * MOST_WIDTH], b[MOST_WIDTH], weight[MOST_VOCAB * MOST_WIDTH];
};

static float
any_number(struct rig *r, float size)
{
    return ((float)rig_random(r, 20001) / 10000 - 1) * size;
}

static struct tensor
tensor(const float *data, uint32_t rows, uint32_t cols)
{
    return (struct tensor){.data = data, .type = WEIGHT_F32, .rows = rows, .cols = cols};
}

static void
make_heads(struct rig *r, struct heads *h)
{
    const uint32_t width = r->desc->width, vocab = r->desc->vocab;
    memset(h, 0, sizeof *h);
    for (uint32_t i = 0; i < width * width; i++)
        h->a[i] = any_number(r, 0.2f);
    for (uint32_t i = 0; i < width; i++)
        h->b[i] = any_number(r, 1);
    for (uint32_t i = 0; i < vocab * width; i++)
        h->weight[i] = any_number(r, 0.5f);
    h->by_layer[2].a = tensor(h->a, width, width);
    h->by_layer[2].b = tensor(h->b, 1, width);
    h->by_layer[3].weight = tensor(h->weight, vocab, width);
    struct err err = {.kind = ERR_NONE};
    assert_ok(r->ops->heads(r->weights, h->by_layer, &err), err);
}

/* Computes the softmax of the layer's head on a node's hidden state. */
static void
expected(struct rig *r, const struct heads *h, int node, uint32_t layer, enum head_choice head, double *p)
{
    static float hidden[MOST_WIDTH];
    double x[MOST_WIDTH], y[MOST_WIDTH], most = -INFINITY, sum = 0;
    const uint32_t width = r->desc->width, vocab = r->desc->vocab;
    const bool trained = head == USE_TRAINED;
    rig_hidden(r, node, layer, hidden);
    for (uint32_t i = 0; i < width; i++) {
        x[i] = (double)hidden[i];
        if (trained && layer == 2)
            x[i] += (double)h->b[i];
        for (uint32_t k = 0; k < width && trained && layer == 2; k++)
            x[i] += (double)h->a[i * width + k] * (double)hidden[k];
    }
    if (trained && layer == 3) {
        naive_final_norm(r->model, x, y);
        for (uint32_t v = 0; v < vocab; v++) {
            p[v] = 0;
            for (uint32_t i = 0; i < width; i++)
                p[v] += (double)h->weight[v * width + i] * y[i];
        }
        naive_shape_logits(r->model, p);
    } else {
        naive_logits(r->model, x, p);
    }
    for (uint32_t v = 0; v < vocab; v++)
        most = fmax(most, p[v]);
    for (uint32_t v = 0; v < vocab; v++)
        sum += exp(p[v] - most);
    for (uint32_t v = 0; v < vocab; v++)
        p[v] = exp(p[v] - most) / sum;
}

static double
distance(const float *got, const double *want, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += fabs((double)got[i] - want[i]);
    return sum / 2;
}

/* ---- checks ---- */

/* Checks distributions and predictions of every node and layer with both heads in one call. */
static void
check_predictions(struct rig *r, const struct heads *h, double bound)
{
    enum { PROBES = NODES * (LAYERS + 1) * 2, DISTS = 60 };
    static struct probe probes[PROBES];
    static struct prediction predictions[PROBES];
    static struct dist_req dists[DISTS];
    static double want[MOST_VOCAB];
    static float got[MOST_VOCAB];
    const uint32_t vocab = r->desc->vocab;
    rig_tree(r, NODES);
    rig_step_all(r);
    for (uint32_t i = 0; i < PROBES; i++)
        probes[i] = (struct probe){.ring = i / 2 % NODES,
                                   .layer = i / 2 / NODES,
                                   .head = i % 2 == 0 ? USE_TRAINED : USE_LENS,
                                   .temperature = 1,
                                   .versus_final = i % 3 == 0};
    for (uint32_t i = 0; i < DISTS; i++)
        dists[i] = (struct dist_req){.ring = rig_random(r, NODES),
                                     .layer = rig_random(r, LAYERS + 1),
                                     .head = rig_random(r, 3) > 0 ? USE_TRAINED : USE_LENS,
                                     .sampling = {.temperature = 1, .top_p = 1},
                                     .out = i};
    assert_true(r->ops->predict(r->kv_cache, probes, PROBES, predictions));
    assert_true(r->ops->dist(r->kv_cache, dists, DISTS));
    rig_wait(r);
    for (uint32_t i = 0; i < DISTS; i++) {
        expected(r, h, (int)dists[i].ring, dists[i].layer, dists[i].head, want);
        assert_true(r->ops->read_dist(r->kv_cache, i, got));
        rig_wait(r);
        if (!(distance(got, want, vocab) < bound))
            fail_msg("%s: head %d at layer %u: total variation %g", r->ops->describe(r->backend), (int)dists[i].head,
                     dists[i].layer, distance(got, want, vocab));
    }
    for (uint32_t i = 0; i < PROBES; i++) {
        const struct prediction *g = &predictions[i];
        expected(r, h, (int)probes[i].ring, probes[i].layer, probes[i].head, want);
        double most = 0, kl = 0;
        for (uint32_t v = 0; v < vocab; v++)
            most = fmax(most, want[v]);
        if (!(fabs((double)g->confidence - most) < bound && fabs(want[g->token] - most) < bound))
            fail_msg("%s: probe %u of layer %u: confidence %g, not %g", r->ops->describe(r->backend), i,
                     probes[i].layer, (double)g->confidence, most);
        assert_int_equal(probes[i].versus_final, g->rank_final >= 0);
        if (!probes[i].versus_final)
            continue;
        static double final[MOST_VOCAB];
        expected(r, h, (int)probes[i].ring, LAYERS, USE_LENS, final);
        for (uint32_t v = 0; v < vocab; v++)
            kl += final[v] * log(final[v] / want[v]);
        if (!(fabs((double)g->kl_final - kl) < bound * 20))
            fail_msg("%s: probe %u of layer %u: KL %g, not %g", r->ops->describe(r->backend), i, probes[i].layer,
                     (double)g->kl_final, kl);
    }
}

/* Checks that an early exit has the same predictions as a request with the same head. */
static void
check_until(struct rig *r, const struct heads *h, double bound)
{
    (void)h;
    for (int head = USE_LENS; head <= USE_TRAINED; head++) {
        const float temperature[LAYERS + 1] = {1, 1, 1, 1, 1}, threshold[LAYERS + 1] = {1, 1, 1, 1, 1};
        struct prediction probed[LAYERS + 1];
        struct exit_result out = {.probed = probed};
        const struct exit_rule rule = {
            .temperature = temperature, .threshold = threshold, .head = (enum head_choice)head};
        rig_restart(r);
        rig_chain(r, 3);
        const int chain[3] = {0, 1, 2};
        assert_true(r->ops->until(r->kv_cache, rig_forward(r, chain, 3, LAYERS, 0), &rule, &out));
        rig_wait(r);
        assert_int_equal(out.probes, LAYERS);
        for (uint32_t l = 1; l <= LAYERS; l++) {
            const struct probe p = {
                .ring = 2, .layer = l, .head = (enum head_choice)head, .temperature = temperature[l]};
            struct prediction g;
            assert_true(r->ops->predict(r->kv_cache, &p, 1, &g));
            rig_wait(r);
            assert_int_equal(g.token, probed[l].token);
            assert_near((double)g.confidence, (double)probed[l].confidence, bound);
        }
    }
}

/* Checks that heads do not change the bits of verdicts and of the last layer's logits. */
static void
check_last_layer(struct rig *r, const struct heads *h, double bound)
{
    (void)bound;
    static float with[MOST_VOCAB], without[MOST_VOCAB];
    struct err err;
    rig_restart(r);
    rig_chain(r, 4);
    rig_step_all(r);
    const struct probe p[2] = {{.ring = 3, .layer = LAYERS, .head = USE_TRAINED, .temperature = 1},
                               {.ring = 3, .layer = 2, .head = USE_TRAINED, .temperature = 1}};
    struct prediction trained[2], lens[2];
    rig_logits(r, 3, LAYERS, with);
    assert_true(r->ops->predict(r->kv_cache, p, 2, trained));
    rig_wait(r);
    assert_ok(r->ops->heads(r->weights, NULL, &err), err); /* without heads, all predictions use the logit lens */
    rig_logits(r, 3, LAYERS, without);
    assert_memory_equal(with, without, r->desc->vocab * sizeof *with);
    assert_true(r->ops->predict(r->kv_cache, p, 2, lens));
    rig_wait(r);
    assert_memory_equal(&trained[0], &lens[0], offsetof(struct prediction, kl_final));
    assert_true(trained[1].confidence != lens[1].confidence);
    assert_ok(r->ops->heads(r->weights, h->by_layer, &err), err);
}

static void
on_all(const struct backend_ops *ops, void (*check)(struct rig *, const struct heads *, double bound))
{
    static struct heads heads;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        for (size_t s = 0; s < N_SHAPES && cpu_isas[i]->usable(); s++) {
            struct rig r;
            const struct backend_options o = {.threads = 1 + (uint32_t)s, .isa = cpu_isas[i]->name};
            rig_open(&r, ops, &shapes[s], seed + s, &o);
            make_heads(&r, &heads);
            check(&r, &heads, shapes[s].type == WEIGHT_F32 ? 1e-5 : 0.02);
            rig_close(&r);
        }
}

TEST(predictions_and_distributions_are_those_of_the_definition)
{
    on_all(&cpu_backend, check_predictions);
    on_all(&check_backend, check_predictions);
}

TEST(early_exits_ask_the_head_that_was_asked_for)
{
    on_all(&cpu_backend, check_until);
    on_all(&check_backend, check_until);
}

TEST(the_last_layer_is_never_changed)
{
    on_all(&cpu_backend, check_last_layer);
}

TEST(a_gpu_has_them_too)
{
    static struct heads heads;
    const struct backend_ops *ops = cuda_for_tests();
    static void (*const checks[])(struct rig *, const struct heads *, double bound) = {check_predictions, check_until,
                                                                                       check_last_layer};
    if (ops == NULL)
        skip();
    for (int exact = 0; exact < 2; exact++)
        for (size_t s = 0; s < N_SHAPES; s++)
            for (size_t c = 0; c < sizeof checks / sizeof *checks; c++) {
                struct rig r;
                const struct backend_options o = {.gpu = -1, .exact = exact > 0};
                if (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL && ((size_t)exact + s + c + seed) % 2 != 0)
                    continue; /* the emulator is slow: a check of a shape is either in F16 or exact */
                rig_open(&r, ops, &shapes[s], seed + s, &o);
                make_heads(&r, &heads);
                checks[c](&r, &heads, exact > 0 ? 1e-5 : 0.02);
                rig_close(&r);
            }
}

/* No forward pass comes in between, because it would give pending copies the time to finish. */
TEST(heads_are_there_for_the_very_next_request)
{
    static struct heads heads;
    const struct backend_ops *ops = cuda_for_tests();
    const struct probe p = {.layer = 2, .head = USE_TRAINED, .temperature = 1};
    struct prediction at_once, later;
    struct rig r;
    if (ops == NULL)
        skip();
    rig_open(&r, ops, &shapes[0], seed, &(struct backend_options){.gpu = -1});
    rig_chain(&r, 1);
    rig_step_all(&r);
    for (int i = 0; i < 3; i++) {
        make_heads(&r, &heads);
        assert_true(r.ops->predict(r.kv_cache, &p, 1, &at_once));
        rig_wait(&r);
        assert_true(r.ops->predict(r.kv_cache, &p, 1, &later));
        rig_wait(&r);
        assert_memory_equal(&at_once, &later, offsetof(struct prediction, kl_final));
    }
    rig_close(&r);
}

TEST(heads_of_another_shape_are_refused_and_leave_none)
{
    static struct heads heads;
    struct rig r;
    struct err err = {.kind = ERR_NONE};
    rig_open(&r, &cpu_backend, &shapes[0], seed, &(struct backend_options){.threads = 1});
    make_heads(&r, &heads);
    struct exit_head bad[LAYERS + 1];
    memcpy(bad, heads.by_layer, sizeof bad);
    bad[2].a.rows--;
    assert_false(r.ops->heads(r.weights, bad, &err));
    assert_contains(err.text, "another model");
    memcpy(bad, heads.by_layer, sizeof bad);
    bad[2].b.data = NULL;
    assert_false(r.ops->heads(r.weights, bad, &err));
    rig_chain(&r, 1);
    rig_step_all(&r);
    const struct probe p[2] = {{.layer = 2, .head = USE_TRAINED, .temperature = 1}, {.layer = 2, .temperature = 1}};
    struct prediction g[2];
    assert_true(r.ops->predict(r.kv_cache, p, 2, g));
    rig_wait(&r);
    assert_memory_equal(&g[0], &g[1], offsetof(struct prediction, kl_final));
    rig_close(&r);
}

TEST(a_head_that_does_not_exist_is_a_malformed_request)
{
    struct rig r;
    rig_open(&r, &cpu_backend, &shapes[0], seed, &(struct backend_options){.threads = 1});
    rig_chain(&r, 1);
    rig_step_all(&r);
    const struct probe probe = {.layer = 1, .head = (enum head_choice)2, .temperature = 1};
    const struct dist_req dist = {.layer = 1, .head = (enum head_choice)2, .sampling = {.temperature = 1, .top_p = 1}};
    struct prediction g;
    assert_false(r.ops->predict(r.kv_cache, &probe, 1, &g));
    assert_false(r.ops->dist(r.kv_cache, &dist, 1));
    rig_close(&r);
}

TEST_SEED(seed, seed);
