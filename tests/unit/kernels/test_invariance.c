/* Batch invariance: the bits of a row's hidden states and logits depend only on its token, path and skip mask. */

#include "kernels/cpu/isa.h"
#include "tests/rigs/backend_rig.h"
#include "tests/rigs/cpu_shapes.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define PATH       70 /* longer than a block of attention */
#define VOCAB      600
#define WIDTH      256
#define VOCAB_MOST 1300 /* for shapes of other forms */

static uint64_t seed; /* printed by main */

#define IN_BLOCKS(kind, ...) RIG_SHAPE(2, 256, 4, 2, 64, 256, VOCAB, .type = kind, __VA_ARGS__)

/* Shapes of types up to Q6_K have the index of their type; later shapes have two types each. */
static const struct naive_shape shapes[] = {
    RIG_SHAPE(2, 40, 5, 1, 14, 50, VOCAB, .type = WEIGHT_F32),
    RIG_SHAPE(2, 72, 4, 2, 32, 90, VOCAB, .type = WEIGHT_F16),
    RIG_SHAPE(2, 96, 6, 6, 10, 64, VOCAB, .type = WEIGHT_BF16),
    RIG_SHAPE(3, 64, 4, 2, 32, 160, VOCAB, .type = WEIGHT_Q8_0),
    IN_BLOCKS(WEIGHT_Q4_0, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q4_1, .window = 20),
    IN_BLOCKS(WEIGHT_Q5_0, .optional = LAYER_QK_NORM),
    IN_BLOCKS(WEIGHT_Q5_1, .rope = ROPE_HALVES),
    IN_BLOCKS(WEIGHT_Q2_K, .optional = LAYER_QKV_BIAS, .window = 66),
    IN_BLOCKS(WEIGHT_Q3_K, .rope = ROPE_HALVES, .optional = LAYER_QK_NORM),
    IN_BLOCKS(WEIGHT_Q4_K, .rope = ROPE_HALVES, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q5_K, .window = 64),
    IN_BLOCKS(WEIGHT_Q6_K, .window = 1),
    IN_BLOCKS(WEIGHT_MXFP4, .second = WEIGHT_IQ4_NL, .window = 20),
    IN_BLOCKS(WEIGHT_IQ4_XS, .second = WEIGHT_IQ3_S, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_IQ3_XXS, .second = WEIGHT_IQ2_XXS, .rope = ROPE_HALVES),
    IN_BLOCKS(WEIGHT_IQ2_S, .second = WEIGHT_IQ1_M, .optional = LAYER_QK_NORM),
    IN_BLOCKS(WEIGHT_IQ2_XS, .second = WEIGHT_IQ1_S, .window = 9),
    IN_BLOCKS(WEIGHT_TQ2_0, .second = WEIGHT_TQ1_0, .optional = LAYER_QKV_BIAS),
};

#define SHAPES (sizeof shapes / sizeof *shapes)

/* Mixtures of experts with quantised weights. Rows of a call share some experts, but not all. */
static const struct naive_shape mixtures[] = {
    RIG_SHAPE(2, 64, 4, 2, 32, 96, VOCAB, .type = WEIGHT_Q8_0, .optional = 1ull << LAYER_SHARED_MIX,
              .form = {.experts = {.n = 9, .used = 2, .ffn = 96, .shared_ffn = 64, .renormalised = true}}),
    RIG_SHAPE(
        2, 72, 4, 2, 16, 90, VOCAB, .type = WEIGHT_BF16, .dense = 1, .expert_biases = true,
        .optional = 1ull << LAYER_SINKS | 1ull << LAYER_BROUTER | 1ull << LAYER_CORRECTION,
        .form = {.activation = ACT_SWIGLU_CLAMPED,
                 .experts = {.n = 8, .used = 3, .ffn = 45, .groups = 2, .groups_used = 1, .routing = ROUTE_SIGMOID}}),
    RIG_SHAPE(2, 64, 4, 2, 16, 96, VOCAB, .type = WEIGHT_F16,
              .form = {.experts = {.n = 9, .used = 2, .ffn = 32, .routing = ROUTE_SPARSEMIXER, .jitter = 0.4f}}),
};

struct image { /* results of a row */
    float hidden[RIG_DEPTH + 1][WIDTH], logits[VOCAB_MOST];
};

static void
take(struct rig *r, int node, struct image *image)
{
    memset(image, 0, sizeof *image);
    for (uint32_t l = 0; l <= r->desc->n_layers; l++)
        rig_hidden(r, node, l, image->hidden[l]);
    rig_logits(r, node, r->desc->n_layers, image->logits);
}

static void
assert_same(struct rig *r, int node, const struct image *want, const char *how)
{
    static struct image got;
    take(r, node, &got);
    if (memcmp(&got, want, sizeof got) != 0)
        fail_msg("%s: node %d has other bits %s", r->ops->describe(r->backend), node, how);
}

/* Runs the path alone in a new KV cache, one row at a time, each committed to the trunk before the next. */
static void
one_by_one(struct rig *r, const token_t *tokens, struct image *last, struct image *middle)
{
    rig_restart(r);
    for (int i = 0; i < PATH; i++) {
        rig_add(r, i - 1, tokens[i]);
        rig_step(r, &i, 1, r->desc->n_layers, (uint32_t)i);
        rig_trunk(r, 0, i);
    }
    take(r, PATH - 1, last);
    take(r, PATH / 2, middle);
}

/* Runs the path in random chunks; the trunk ends at a random row. */
static void
chunked(struct rig *r, const token_t *tokens)
{
    rig_restart(r);
    int nodes[RIG_NODES];
    for (int at = 0; at < PATH;) {
        int n = at == 0 ? 33 + (int)rig_random(r, PATH - 33)
                        : 1 + (int)rig_random(r, 33); /* some chunks are computed in tiles (kernels/cuda) */
        n = n < PATH - at ? n : PATH - at;
        for (int i = 0; i < n; i++) {
            rig_add(r, at + i - 1, tokens[at + i]);
            nodes[i] = at + i;
        }
        rig_step(r, nodes, n, r->desc->n_layers, rig_random(r, (uint32_t)at + 1));
        at += n;
        rig_trunk(r, 0, at - 1);
    }
}

/* Runs the path in a tree with side branches everywhere; rows join the forward pass at their own depths. Stores the
 * nodes of the path's last and middle rows. */
static void
in_a_tree(struct rig *r, const token_t *tokens, int *last, int *middle)
{
    rig_restart(r);
    int path[PATH], nodes[RIG_NODES], parent = -1, n = 0;
    for (int i = 0; i < PATH; i++) {
        if (i > 0 && r->n + (PATH - i) < RIG_NODES && rig_random(r, 2) == 0)
            nodes[n++] = rig_add(r, parent, (token_t)rig_random(r, r->desc->vocab));
        parent = path[i] = nodes[n++] = rig_add(r, parent, tokens[i]);
    }
    for (int at = 0; at < n;) { /* nodes[0..at) are done; some of the next are first run through part of the layers */
        int m = 1 + (int)rig_random(r, 32);
        m = m < n - at ? m : n - at;
        const uint32_t part = rig_random(r, r->desc->n_layers);
        if (part > 0)
            rig_step(r, nodes + at, 1 + (int)rig_random(r, (uint32_t)m), part, 0);
        rig_step(r, nodes + at, m, r->desc->n_layers, 0);
        at += m;
    }
    *last = path[PATH - 1];
    *middle = path[PATH / 2];
}

static bool
everything(void)
{
    return getenv("SPECSCOPE_LONG") != NULL;
}

/* Runs with one thread; on the CPU also with two or four, as the seed chooses, or with both. */
static void
check_bits(const struct backend_ops *ops, const char *isa, const struct naive_shape *shape, bool exact)
{
    static struct image last, middle;
    token_t tokens[PATH];
    struct rig r;
    for (uint32_t threads = 1; threads <= (ops == &cpu_backend ? 4 : 1); threads *= 2) {
        if (threads > 1 && !everything() && threads != 2u << seed % 2)
            continue;
        rig_open(&r, ops, shape, seed,
                 &(struct backend_options){.threads = threads, .isa = isa, .exact = exact, .gpu = -1});
        if (threads == 1) {
            for (int i = 0; i < PATH; i++)
                tokens[i] = (token_t)rig_random(&r, shape->vocab);
            one_by_one(&r, tokens, &last, &middle);
        }
        r.random += threads;
        chunked(&r, tokens);
        assert_same(&r, PATH - 1, &last, "when its prompt came in chunks");
        assert_same(&r, PATH / 2, &middle, "when its prompt came in chunks");
        int last_node, middle_node;
        in_a_tree(&r, tokens, &last_node, &middle_node);
        assert_same(&r, last_node, &last, "in a tree");
        assert_same(&r, middle_node, &middle, "in a tree");
        rig_close(&r);
    }
}

/* Uses an instruction set that the seed chooses, or all with SPECSCOPE_LONG. */
static void
check_isas(const struct naive_shape *shape, size_t s, bool exact)
{
    size_t usable = 0;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        usable += cpu_isas[i]->usable();
    for (size_t i = 0, n = 0; cpu_isas[i] != NULL; n += cpu_isas[i++]->usable())
        if (cpu_isas[i]->usable() && (everything() || (seed + s) % usable == n))
            check_bits(&cpu_backend, cpu_isas[i]->name, shape, exact);
}

TEST(a_rows_bits_are_its_own_on_every_isa)
{
    for (size_t s = 0; s < SHAPES; s++)
        check_isas(&shapes[s], s, false);
}

TEST(a_rows_bits_are_its_own_among_experts)
{
    for (size_t s = 0; s < 2; s++)
        check_isas(&mixtures[s], s, false);
    check_bits(&cpu_backend, NULL, &mixtures[1], true);
}

TEST(a_rows_bits_are_its_own_when_exact)
{
    check_bits(&cpu_backend, NULL, &shapes[WEIGHT_Q8_0], true);
    check_bits(&cpu_backend, "reference", &shapes[WEIGHT_F16], true);
}

/* A quarter of the forms is also computed exactly. */
TEST(a_rows_bits_are_its_own_in_every_form)
{
    for (size_t s = CPU_FORMS_FROM; s < cpu_shapes_n; s++) {
        check_isas(&cpu_shapes[s], s, false);
        if (everything() || s % 4 == seed % 4)
            check_isas(&cpu_shapes[s], s, true);
    }
}

/* An emulated GPU is slow, so it runs one form or mixture, which the seed chooses. test_cuda_products checks the bits
 * of all types. */
TEST(a_rows_bits_are_its_own_on_cuda)
{
    const struct backend_ops *cuda = cuda_for_tests();
    if (cuda == NULL)
        skip();
    const bool all = !cuda_is_emulated() || everything();
    for (size_t s = 0; s < SHAPES; s++)
        if (all)
            check_bits(cuda, NULL, &shapes[s], false);
    if (all)
        check_bits(cuda, NULL, &shapes[WEIGHT_F32], true);
    for (size_t i = CUDA_PLAIN_SHAPES; i < CUDA_SHAPES; i++)
        if (all || i == CUDA_PLAIN_SHAPES + seed % (CUDA_SHAPES - CUDA_PLAIN_SHAPES))
            check_bits(cuda, NULL, &cuda_shapes[i], i >= CUDA_MOE && seed % 4 == 1);
    for (size_t i = CUDA_MOE; all && i < CUDA_SHAPES; i++)
        check_bits(cuda, NULL, &cuda_shapes[i], seed % 4 != 1);
}

/* The final logits of predict, dist and verify are those of read_logits for any other rows in the call. */
TEST(final_logits_are_the_same_in_every_request)
{
    static float want[VOCAB], got[VOCAB];
    struct rig r;
    rig_open(&r, &cpu_backend, &shapes[WEIGHT_Q8_0], seed, &(struct backend_options){.threads = 2});
    rig_chain(&r, 40);
    rig_step_all(&r);
    struct dist_req requests[33];
    struct probe probes[33];
    struct prediction predictions[33], alone;
    for (uint32_t i = 0; i < 33; i++) {
        requests[i] = (struct dist_req){
            .ring = i, .layer = r.desc->n_layers, .sampling = {.temperature = 1, .top_p = 1}, .out = i};
        probes[i] = (struct probe){.ring = i, .layer = r.desc->n_layers, .temperature = 1};
    }
    assert_true(r.ops->dist(r.kv_cache, requests, 33));
    assert_true(r.ops->predict(r.kv_cache, probes, 33, predictions));
    assert_true(r.ops->read_dist(r.kv_cache, 20, got));
    requests[20].out = 50;
    assert_true(r.ops->dist(r.kv_cache, &requests[20], 1));
    assert_true(r.ops->predict(r.kv_cache, &probes[20], 1, &alone));
    assert_true(r.ops->read_dist(r.kv_cache, 50, want));
    rig_wait(&r);
    assert_memory_equal(got, want, sizeof got);
    assert_memory_equal(predictions[20].top, alone.top, sizeof alone.top);
    assert_memory_equal(predictions[20].top_p, alone.top_p, sizeof alone.top_p);
    assert_number_equal(predictions[20].confidence, alone.confidence);
    assert_number_equal(predictions[20].entropy, alone.entropy);
    rig_close(&r);
}

TEST_SEED(seed, 1);
