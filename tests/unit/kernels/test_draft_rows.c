/* Sets of tokens: their logits have the bits of the whole head's, for every weight type and with trained heads, and
 * predictions and distributions are those of the definitions, over the set. */
#include <math.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/sampling.h"
#include "tests/rigs/backend_rig.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/prediction_checks.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { NODES = 5, LAYERS = 2, VOCAB = 1200, ROOM = VOCAB + PIECE + DRAFT_RECENT };

static uint64_t seed;

#define IN_BLOCKS(kind, other) RIG_SHAPE(LAYERS, 256, 4, 2, 64, 256, VOCAB, .type = kind, .second = other)

static const struct naive_shape shapes[] = {
    RIG_SHAPE(LAYERS, 40, 4, 2, 10, 50, VOCAB, .type = WEIGHT_F32, .end_biases = true,
              .form = {.layer_norm = true, .logit_scale = 0.5f, .logit_cap = 3}),
    RIG_SHAPE(LAYERS, 40, 4, 2, 10, 48, VOCAB, .type = WEIGHT_F16),
    RIG_SHAPE(LAYERS, 48, 6, 1, 6, 130, VOCAB, .type = WEIGHT_BF16, .end_biases = true),
    RIG_SHAPE(LAYERS, 64, 4, 2, 16, 64, VOCAB, .type = WEIGHT_Q8_0, .end_biases = true),
    IN_BLOCKS(WEIGHT_Q4_0, WEIGHT_Q4_0),
    IN_BLOCKS(WEIGHT_Q4_1, WEIGHT_Q4_1),
    IN_BLOCKS(WEIGHT_Q5_0, WEIGHT_Q5_0),
    IN_BLOCKS(WEIGHT_Q5_1, WEIGHT_Q5_1),
    IN_BLOCKS(WEIGHT_Q2_K, WEIGHT_Q2_K),
    IN_BLOCKS(WEIGHT_Q3_K, WEIGHT_Q3_K),
    IN_BLOCKS(WEIGHT_Q4_K, WEIGHT_Q4_K),
    IN_BLOCKS(WEIGHT_Q5_K, WEIGHT_Q5_K),
    IN_BLOCKS(WEIGHT_Q6_K, WEIGHT_Q6_K),
    IN_BLOCKS(WEIGHT_MXFP4, WEIGHT_IQ4_NL),
    IN_BLOCKS(WEIGHT_IQ4_XS, WEIGHT_IQ3_S),
    IN_BLOCKS(WEIGHT_IQ3_XXS, WEIGHT_IQ2_XXS),
    IN_BLOCKS(WEIGHT_IQ2_S, WEIGHT_IQ1_M),
    IN_BLOCKS(WEIGHT_IQ2_XS, WEIGHT_IQ1_S),
    IN_BLOCKS(WEIGHT_TQ2_0, WEIGHT_TQ1_0),
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* A set as the test made it: its tokens in the order of the set's outputs, which has a gap before the recent ones. */
struct set {
    uint32_t base, n;
    token_t recent[DRAFT_RECENT];
};

static token_t
token_at(const struct rig *r, const struct set *set, size_t output)
{
    const size_t recent = (set->base + PIECE - 1) / PIECE * PIECE;
    return output < set->base ? r->rank[output] : output < recent ? TOKEN_NONE : set->recent[output - recent];
}

static size_t
outputs_of(const struct set *set)
{
    return set->n > 0 ? (set->base + PIECE - 1) / PIECE * PIECE + set->n : set->base;
}

/* Gives a set `base` tokens by rank and n others, and replaces some of the recent tokens that it had. */
static void
make_set(struct rig *r, uint32_t number, struct set *set, uint32_t base, uint32_t n)
{
    const uint32_t keep = set->base <= base ? rig_random(r, set->n + 1) : 0,
                   first = base < r->desc->vocab ? rig_random(r, r->desc->vocab - base) : 0;
    uint32_t at = 0;
    set->base = base;
    set->n = n;
    for (uint32_t i = 0; i < n; i++) {
        bool taken = i >= keep;
        for (uint32_t k = base; k < r->desc->vocab && !taken; k++)
            taken = set->recent[i] == r->rank[k];
        if (i >= keep || !taken) {
            set->recent[i] = r->rank[base + (first + at) % (r->desc->vocab - base)];
            at++;
        }
        for (uint32_t k = 0; k < i; k++)
            if (set->recent[k] == set->recent[i]) { /* it was kept before: take the next one */
                set->recent[i] = r->rank[base + (first + at++) % (r->desc->vocab - base)];
                k = UINT32_MAX;
            }
    }
    assert_true(r->ops->draft_set(r->kv_cache, number, base, set->recent, n));
}

/* Writes the logits that the set has by definition: those of the whole head, and -infinity in the gap. */
static void
expected(struct rig *r, const struct set *set, const float *whole, float *z)
{
    for (size_t o = 0; o < outputs_of(set); o++) {
        const token_t token = token_at(r, set, o);
        z[o] = token == TOKEN_NONE ? -INFINITY : whole[token];
    }
}

static void
check_dist(struct rig *r, const struct set *set, const float *z, uint32_t number, uint32_t node, uint32_t layer)
{
    static float want[ROOM], got[ROOM];
    static uint32_t order[ROOM];
    const struct sampling how = {.temperature = 0.8f, .top_k = rig_random(r, 2) * 40, .top_p = 1};
    const struct dist_req request = {.ring = node, .layer = layer, .sampling = how, .out = 3, .set = number};
    assert_true(r->ops->dist(r->kv_cache, &request, 1));
    assert_true(r->ops->read_dist(r->kv_cache, 3, got));
    rig_wait(r);
    sampling_dist(z, (uint32_t)outputs_of(set), &how, want, order);
    const bool same_bits = strcmp(r->ops->name, "cuda") != 0;
    for (size_t o = 0; o < outputs_of(set); o++) {
        const token_t token = token_at(r, set, o);
        if (token == TOKEN_NONE)
            continue;
        if (memcmp(&got[token], &want[o], sizeof *got) != 0 && (same_bits || fabsf(got[token] - want[o]) > 1e-5f))
            fail_msg("%s: token %d of a set of %u and %u has probability %a, not %a", r->ops->describe(r->backend),
                     token, set->base, set->n, (double)got[token], (double)want[o]);
        got[token] = 0;
    }
    for (uint32_t v = 0; v < r->desc->vocab; v++)
        if (got[v] > 0)
            fail_msg("%s: token %u is outside the set and has probability %g", r->ops->describe(r->backend), v,
                     (double)got[v]);
}

/* Checks probes of several sets and of the whole head in one call. */
static void
check_probes(struct rig *r, const struct set *sets)
{
    enum { PROBES = 4 * (RIG_SETS + 1) };
    static float whole[VOCAB], z[ROOM];
    struct probe probes[PROBES];
    struct prediction got[PROBES];
    for (uint32_t i = 0; i < PROBES; i++)
        probes[i] = (struct probe){.ring = rig_random(r, NODES),
                                   .layer = rig_random(r, LAYERS + 1),
                                   .set = rig_random(r, RIG_SETS + 1),
                                   .temperature = i % 2 == 0 ? 1 : 0.5f};
    assert_true(r->ops->predict(r->kv_cache, probes, PROBES, got));
    rig_wait(r);
    for (uint32_t i = 0; i < PROBES; i++) {
        const struct set *set = &sets[probes[i].set];
        rig_logits(r, (int)probes[i].ring, probes[i].layer, whole);
        if (probes[i].set == 0) {
            struct prediction want =
                prediction_by_definition(whole, r->desc->vocab, (double)probes[i].temperature, NULL);
            assert_prediction(&got[i], &want);
            continue;
        }
        expected(r, set, whole, z);
        struct prediction want =
            prediction_by_definition(z, (uint32_t)outputs_of(set), (double)probes[i].temperature, NULL);
        for (int k = 0; k < PREDICTION_RANKS; k++)
            want.top[k] = want.top[k] == TOKEN_NONE ? TOKEN_NONE : token_at(r, set, (size_t)want.top[k]);
        want.token = want.top[0];
        assert_prediction(&got[i], &want);
        check_dist(r, set, z, probes[i].set, probes[i].ring, probes[i].layer);
    }
}

static void
check_sets(struct rig *r, int turns)
{
    static struct set sets[RIG_SETS + 1];
    const uint32_t vocab = r->desc->vocab;
    memset(sets, 0, sizeof sets);
    rig_tree(r, NODES);
    rig_step_all(r);
    for (int turn = 0; turn < turns; turn++) {
        const uint32_t bases[] = {PIECE < vocab ? PIECE : 64, rig_random(r, vocab - 100), 0};
        for (uint32_t s = 1; s <= RIG_SETS; s++) {
            const uint32_t base = bases[rig_random(r, 3)], left = vocab - base;
            const uint32_t most = left < DRAFT_RECENT ? left : DRAFT_RECENT;
            make_set(r, s, &sets[s], base, base == 0 ? 1 + rig_random(r, 40) : rig_random(r, most));
        }
        check_probes(r, sets);
    }
}

TEST(logits_of_sets_have_the_bits_of_the_whole_heads_for_every_weight_type)
{
    for (size_t i = 0; i < N_SHAPES; i++)
        for (const struct cpu_isa *const *isa = cpu_isas; *isa != NULL; isa++) {
            const bool last = isa[1] == NULL;
            if (!(*isa)->usable() || (!last && isa != cpu_isas && (seed + i) % 2 == 0))
                continue;
            static struct rig r;
            rig_open(&r, i % 4 == 3 ? &check_backend : &cpu_backend, &shapes[i], seed + i,
                     &(struct backend_options){.threads = 1 + (uint32_t)i % 3, .isa = (*isa)->name});
            check_sets(&r, 4);
            rig_close(&r);
        }
}

static const struct naive_shape cuda_types[] = {
    RIG_SHAPE(LAYERS, 40, 4, 2, 10, 50, 200, .type = WEIGHT_F32, .end_biases = true,
              .form = {.layer_norm = true, .logit_scale = 0.5f, .logit_cap = 3}),
    RIG_SHAPE(LAYERS, 40, 4, 2, 10, 48, 200, .type = WEIGHT_F16),
    RIG_SHAPE(LAYERS, 48, 6, 1, 6, 130, 190, .type = WEIGHT_BF16, .end_biases = true, .form = {.layer_norm = true}),
    RIG_SHAPE(LAYERS, 64, 4, 2, 16, 64, 200, .type = WEIGHT_Q8_0),
    RIG_SHAPE(LAYERS, 96, 4, 2, 16, 64, 200, .type = WEIGHT_Q4_0),
    RIG_SHAPE(LAYERS, 512, 4, 2, 128, 256, 200, .type = WEIGHT_Q4_K, .second = WEIGHT_Q4_K),
    RIG_SHAPE(LAYERS, 256, 4, 2, 64, 256, 200, .type = WEIGHT_Q6_K, .second = WEIGHT_Q6_K),
};
#define N_CUDA_TYPES (sizeof cuda_types / sizeof *cuda_types)

static void
open_cuda(struct rig *r, const struct naive_shape *shape)
{
    rig_open(r, cuda_for_tests(), shape, seed,
             &(struct backend_options){.threads = 2, .exact = shape->type == WEIGHT_F32, .gpu = -1});
}

/* Makes sets of all tokens in another order. With the bits of the whole head's logits, their distributions have the bits
 * of the whole head's, because the GPU adds probabilities as integers. */
static void
check_bits_of_all(struct rig *r)
{
    enum { PLACES = NODES * (LAYERS + 1), ALL = PLACES * (RIG_SETS + 1) };
    static float p[2][VOCAB];
    static struct set sets[RIG_SETS + 1];
    struct dist_req requests[ALL];
    const uint32_t vocab = r->desc->vocab;
    memset(sets, 0, sizeof sets);
    make_set(r, 1, &sets[1], vocab - 100, 100);
    make_set(r, 2, &sets[2], 50, vocab - 50);
    make_set(r, 3, &sets[3], vocab, 0);
    for (uint32_t i = 0; i < ALL; i++)
        requests[i] = (struct dist_req){.ring = i % NODES,
                                        .layer = i / NODES % (LAYERS + 1),
                                        .sampling = {.temperature = 1, .top_p = 1},
                                        .out = i,
                                        .set = i / PLACES};
    assert_true(r->ops->dist(r->kv_cache, requests, ALL));
    for (uint32_t i = 0; i < ALL; i++) {
        assert_true(r->ops->read_dist(r->kv_cache, i, p[i >= PLACES]));
        assert_true(r->ops->read_dist(r->kv_cache, i % PLACES, p[0]));
        rig_wait(r);
        assert_memory_equal(p[i >= PLACES], p[0], vocab * sizeof **p);
    }
}

TEST(logits_of_sets_have_the_bits_of_the_whole_heads_on_a_gpu)
{
    NEEDS_CUDA;
    for (size_t i = 0; i < N_CUDA_TYPES; i++) {
        static struct rig r;
        open_cuda(&r, &cuda_types[i]);
        check_sets(&r, 2);
        check_bits_of_all(&r);
        rig_close(&r);
    }
}

TEST(a_set_is_the_same_before_and_after_the_heads_weights_were_repacked)
{
    static struct rig r;
    static float p[2][VOCAB];
    rig_open(&r, &cpu_backend, &shapes[4], seed, &(struct backend_options){.threads = 2});
    rig_tree(&r, NODES);
    rig_step_all(&r);
    const token_t recent[] = {r.rank[PIECE + 9], r.rank[PIECE + 3]};
    for (uint32_t i = 0; i < 2; i++) {
        const struct dist_req request = {
            .ring = 1, .layer = LAYERS, .sampling = {.temperature = 1, .top_p = 1}, .set = 1 + i};
        assert_true(r.ops->draft_set(r.kv_cache, 1 + i, PIECE + i * 100, recent, 2));
        assert_true(r.ops->draft_set(r.kv_cache, 1 + i, PIECE, recent, 2));
        assert_true(r.ops->dist(r.kv_cache, &request, 1));
        assert_true(r.ops->read_dist(r.kv_cache, 0, p[i]));
        rig_wait(&r);
        r.ops->repack(r.weights, NULL);
    }
    assert_memory_equal(p[0], p[1], sizeof p[0]);
    rig_close(&r);
}

enum { AFFINE, FULL };

/* Gives layer 1 of a model of width 64 a random head. */
static void
give_head(struct rig *r, int kind)
{
    static float a[64 * 64], b[64], full[VOCAB * 64];
    struct exit_head heads[LAYERS + 1] = {0};
    struct err err = {0};
    for (size_t i = 0; i < VOCAB * 64; i++) {
        full[i] = (float)rig_random(r, 2000) / 1000 - 1;
        a[i % (64 * 64)] = full[i] / 5;
        b[i % 64] = full[i];
    }
    if (kind == AFFINE)
        heads[1] =
            (struct exit_head){.a = {.data = a, .rows = 64, .cols = 64}, .b = {.data = b, .rows = 1, .cols = 64}};
    else
        heads[1] = (struct exit_head){.weight = {.data = full, .rows = r->desc->vocab, .cols = 64}};
    assert_ok(r->ops->heads(r->weights, heads, &err), err);
}

/* Computes the distribution of a node by layer 1's trained head. */
static void
trained_dist(struct rig *r, uint32_t node, uint32_t set, float *p)
{
    const struct dist_req request = {
        .ring = node, .layer = 1, .head = USE_TRAINED, .sampling = {.temperature = 1, .top_p = 1}, .set = set};
    assert_true(r->ops->dist(r->kv_cache, &request, 1));
    assert_true(r->ops->read_dist(r->kv_cache, 0, p));
    rig_wait(r);
}

static void
check_trained_heads(struct rig *r, uint32_t base)
{
    static float all[VOCAB], p[VOCAB];
    struct set set = {0};
    rig_tree(r, NODES);
    rig_step_all(r);
    make_set(r, 1, &set, base, 60);
    for (int kind = AFFINE; kind <= FULL; kind++) {
        give_head(r, kind);
        trained_dist(r, 2, 0, all);
        trained_dist(r, 2, 1, p);
        double sum = 0;
        for (size_t o = 0; o < outputs_of(&set); o++)
            sum += token_at(r, &set, o) == TOKEN_NONE ? 0 : (double)all[token_at(r, &set, o)];
        for (size_t o = 0; o < outputs_of(&set); o++)
            if (token_at(r, &set, o) != TOKEN_NONE)
                assert_near(p[token_at(r, &set, o)], (double)all[token_at(r, &set, o)] / sum, 1e-5);
    }
}

TEST(trained_heads_compute_the_same_distribution_over_a_set_as_over_all_tokens)
{
    static struct rig r;
    rig_open(&r, &cpu_backend, &shapes[3], seed, &(struct backend_options){.threads = 2});
    check_trained_heads(&r, PIECE);
    rig_close(&r);
}

TEST(trained_heads_compute_the_same_distribution_over_a_set_on_a_gpu)
{
    NEEDS_CUDA;
    static struct rig r;
    open_cuda(&r, &cuda_types[3]);
    check_trained_heads(&r, 40);
    rig_close(&r);
}

/* Runs all layers of a chain with probes over set 1. */
static void
probe_all(struct rig *r, enum head_choice head, struct prediction *probed)
{
    const float temperature[LAYERS + 1] = {1, 1, 1}, threshold[LAYERS + 1] = {2, 1, 1};
    const struct exit_rule rule = {.temperature = temperature, .threshold = threshold, .head = head, .set = 1};
    const int all[NODES] = {0, 1, 2, 3, 4};
    struct exit_result out = {.probed = probed};
    const struct forward_pass pass = *rig_forward(r, all, NODES, LAYERS, 0);
    assert_true(r->ops->until(r->kv_cache, &pass, &rule, &out));
    rig_wait(r);
    assert_int_equal(out.probes, LAYERS);
}

static void
check_exit_rule(struct rig *r, uint32_t base, uint32_t n)
{
    static float whole[VOCAB], z[ROOM];
    struct set set = {0};
    struct prediction probed[LAYERS + 1];
    rig_chain(r, NODES);
    make_set(r, 1, &set, base, n);
    probe_all(r, USE_LENS, probed);
    for (uint32_t l = 1; l <= LAYERS; l++) {
        rig_logits(r, NODES - 1, l, whole);
        expected(r, &set, whole, z);
        struct prediction want = prediction_by_definition(z, (uint32_t)outputs_of(&set), 1, NULL);
        for (int k = 0; k < PREDICTION_RANKS; k++)
            want.top[k] = token_at(r, &set, (size_t)want.top[k]);
        want.token = want.top[0];
        assert_prediction(&probed[l], &want);
    }
}

TEST(an_exit_rule_probes_the_tokens_of_its_set)
{
    static struct rig r;
    rig_open(&r, &check_backend, &shapes[3], seed, &(struct backend_options){.threads = 2});
    check_exit_rule(&r, PIECE, 30);
    rig_close(&r);
}

TEST(an_exit_rule_probes_the_tokens_of_its_set_on_a_gpu)
{
    NEEDS_CUDA;
    static const struct {
        uint32_t base, n;
    } sizes[] = {{80, 30}, {0, 30}, {100, 0}};
    for (size_t i = 0; i < N_CUDA_TYPES; i++) {
        static struct rig r;
        open_cuda(&r, &cuda_types[i]);
        check_exit_rule(&r, sizes[i % 3].base, sizes[i % 3].n);
        rig_close(&r);
    }
}

TEST(an_exit_rule_probes_the_tokens_of_its_set_with_trained_heads_on_a_gpu)
{
    NEEDS_CUDA;
    for (int kind = AFFINE; kind <= FULL; kind++) {
        static struct rig r;
        static float p[VOCAB];
        struct set set = {0};
        struct prediction probed[LAYERS + 1];
        open_cuda(&r, &cuda_types[3]);
        give_head(&r, kind);
        rig_chain(&r, NODES);
        make_set(&r, 1, &set, 40, 30);
        probe_all(&r, USE_TRAINED, probed);
        trained_dist(&r, NODES - 1, 1, p);
        for (int k = 0; k < PREDICTION_TOP; k++)
            assert_near(probed[1].top_p[k], p[probed[1].top[k]], 1e-5);
        for (uint32_t v = 0; v < r.desc->vocab; v++)
            assert_at_most(p[v], probed[1].top_p[0] + 1e-5f);
        rig_close(&r);
    }
}

TEST(requests_that_name_sets_wrongly_are_refused)
{
    static struct rig r;
    struct prediction out;
    const token_t recent[] = {3, VOCAB};
    rig_open(&r, &cpu_backend, &shapes[0], seed, &(struct backend_options){.threads = 1});
    rig_chain(&r, 1);
    rig_step_all(&r);
    assert_false(r.ops->draft_set(r.kv_cache, 0, 10, NULL, 0));
    assert_false(r.ops->draft_set(r.kv_cache, RIG_SETS + 1, 10, NULL, 0));
    assert_false(r.ops->draft_set(r.kv_cache, 1, VOCAB + 1, NULL, 0));
    assert_false(r.ops->draft_set(r.kv_cache, 1, 0, NULL, 0));
    assert_false(r.ops->draft_set(r.kv_cache, 1, 10, recent, 2));
    assert_false(
        r.ops->predict(r.kv_cache, &(struct probe){.temperature = 1, .set = 1, .versus_final = true}, 1, &out));
    assert_false(r.ops->predict(r.kv_cache, &(struct probe){.temperature = 1, .set = RIG_SETS + 1}, 1, &out));
    rig_close(&r);
}

TEST_SEED(seed, 20261129);
