/* Random rounds of sequences that share a context (batch_program.h), on hashes and on the real backends.
 * SPECSCOPE_SEED=N chooses the rounds, SPECSCOPE_LONG=1 runs five times as many. */
#include <math.h>

#include "engine/context/context.h"
#include "kernels/experts.h"
#include "tests/rigs/backend_rig.h"
#include "tests/rigs/batch_program.h"
#include "tests/rigs/check_backend.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/symbolic_backend.h"
#include "tests/rigs/test.h"

static uint64_t seed;

static unsigned
times(unsigned n)
{
    return getenv("SPECSCOPE_LONG") != NULL ? 5 * n : n;
}

TEST(sixteen_long_sequences_of_hashes_are_as_alone)
{
    const struct model_desc desc = {.n_layers = 4, .width = SYMBOLIC_WIDTH, .vocab = 16};
    struct batch_world w = {.ops = &symbolic_backend, .desc = &desc, .n = BATCH_MOST, .ctx = BATCH_CTX};
    assert_true(w.ops->open(&w.backend, &(struct backend_options){0}, NULL));
    assert_true(w.ops->load(w.backend, &desc, NULL, NULL, &w.weights, NULL));
    batch_program_run(&w, seed, times(30));
    w.ops->unload(w.weights);
    w.ops->close(w.backend);
}

#define SHAPE(layers, w, h, kv, dim, hidden, tokens, layout, kind)                                                     \
    .n_layers = layers, .width = w, .heads = h, .kv_heads = kv, .head_dim = dim, .ffn = hidden, .vocab = tokens,       \
    .rope = layout, .type = kind

static const struct naive_shape shapes[] = {
    {SHAPE(3, 64, 4, 1, 16, 96, 40, ROPE_HALVES, WEIGHT_Q8_0)},
    {SHAPE(2, 32, 4, 2, 8, 64, 21, ROPE_ADJACENT, WEIGHT_F32)},
    {SHAPE(2, 40, 4, 2, 10, 48, 33, ROPE_HALVES, WEIGHT_F16), .optional = LAYER_QKV_BIAS, .window = 9},
};

static void
run_on(const struct backend_ops *ops, struct backend_options options, size_t shape, uint32_t n, uint32_t ctx,
       unsigned rounds)
{

    struct err e = {.kind = ERR_NONE};
    struct batch_world w = {.ops = ops, .n = n, .ctx = ctx};
    assert_ok(ops->open(&w.backend, &options, &e), e);
    struct naive_model *model = naive_model_random(&shapes[shape], seed + shape);
    assert_non_null(model);
    w.model = model;
    w.desc = naive_model_desc(model);
    w.tolerance = options.exact ? 1e-4 : shapes[shape].type == WEIGHT_Q8_0 ? 0.08 : 0.02;
    assert_ok(ops->load(w.backend, w.desc, NULL, NULL, &w.weights, &e), e);
    batch_program_run(&w, seed, rounds);
    ops->unload(w.weights);
    naive_model_free(model);
    ops->close(w.backend);
}

TEST(sequences_of_a_batch_on_the_cpu_are_as_alone)
{
    run_on(&cpu_backend, (struct backend_options){.threads = 2}, 0, BATCH_MOST, 300, times(12));
    run_on(&cpu_backend, (struct backend_options){.threads = 1}, 1, 5, 90, times(20));
    run_on(&cpu_backend, (struct backend_options){.threads = 3, .isa = "reference"}, 2, 8, 60, times(10));
    run_on(&cpu_backend, (struct backend_options){.threads = 2, .exact = true}, 0, 3, 60, times(15));
}

TEST(sequences_of_a_batch_on_the_check_backend_are_as_alone)
{
    run_on(&check_backend, (struct backend_options){.threads = 2}, 0, 8, 70, times(10));
}

TEST(sequences_of_a_batch_on_a_gpu_are_as_alone)
{
    NEEDS_CUDA;
    const bool all = !cuda_is_emulated() || times(1) > 1;
    const unsigned rounds = cuda_is_emulated() ? 2 : 30;
    run_on(cuda, (struct backend_options){.threads = 2, .gpu = -1}, 0, all ? 12 : 4, 45, rounds);
    if (all)
        run_on(cuda, (struct backend_options){.threads = 2, .gpu = -1, .exact = true}, 2, 4, 45, rounds);
}

/* With a mixture of experts, a row alone counts one load per layer. Rows together also count the further experts that
 * they use. */
TEST(loads_count_the_experts_that_rows_go_to)
{
    const struct naive_shape shape =
        RIG_SHAPE(3, 64, 4, 2, 16, 96, 90, .type = WEIGHT_F16, .dense = 1,
                  .form = {.experts = {.n = 16, .used = 2, .ffn = 64, .renormalised = true}});
    struct err err = {.kind = ERR_NONE};
    struct naive_model *model = naive_model_random(&shape, 5);
    const struct model_desc *desc = naive_model_desc(model);
    struct backend *backend;
    struct weights *weights;
    struct context *c;
    slot_t rows[12];
    bool no_mlp[4] = {false, true, true, true};
    assert_ok(cpu_backend.open(&backend, &(struct backend_options){.threads = 2}, &err), err);
    assert_ok(cpu_backend.load(backend, desc, NULL, NULL, &weights, &err), err);
    assert_true(
        context_open(&c, &cpu_backend, backend, weights, desc, &(struct context_options){.ctx = 40, .seqs = 1}, &err));
    const seq_t seq = context_sequence(c);
    for (int i = 0; i < 12; i++)
        rows[i] = context_append(c, seq, i > 0 ? rows[i - 1] : SLOT_NONE, (token_t)(7 * i % 90));
    assert_true(context_advance(c, rows, 1, 3, NULL));
    const double one = context_loads(c).layers;
    assert_near(one, 3, 1e-9);
    assert_true(context_advance(c, rows + 1, 10, 3, NULL));
    const double ten = context_loads(c).layers - one;
    /* Ten rows read most of 16 experts, one row reads 2. A layer's other parts are as large as one expert. */
    assert_greater(ten, 4);
    assert_less(ten, 1 + 2 * 8);
    assert_true(context_advance(c, rows + 11, 1, 3, &(struct plan){.skip_mlp = no_mlp}));
    assert_near(context_loads(c).layers - one - ten, 1.5, 1e-9);
    context_close(c);
    cpu_backend.unload(weights);
    cpu_backend.close(backend);
    naive_model_free(model);
}

/* Asserts that the row's experts are those of the definition, heaviest first, for the layers that ran. */
static void
assert_experts(const struct context *c, slot_t row, uint32_t depth, const double *weights)
{
    for (uint32_t l = 1; l <= 3; l++) {
        struct route got[4];
        const uint32_t n = context_experts(c, row, l, got, 4);
        assert_int_equal(n, l > 1 && l <= depth ? 2 : 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_less(got[i].expert, 16);
            if (i > 0)
                assert_at_most(got[i].weight, got[i - 1].weight);
            assert_near((double)got[i].weight, weights[l * 16 + got[i].expert], 1e-3);
        }
    }
}

TEST(the_experts_of_rows_are_kept_while_they_are_followed)
{
    const struct naive_shape shape =
        RIG_SHAPE(3, 64, 4, 2, 16, 96, 90, .dense = 1, .form = {.experts = {.n = 16, .used = 2, .ffn = 64}});
    struct err err = {.kind = ERR_NONE};
    struct naive_model *model = naive_model_random(&shape, 6);
    const struct model_desc *desc = naive_model_desc(model);
    struct backend *backend;
    struct weights *weights;
    struct context *c;
    struct route got[4];
    slot_t rows[8];
    assert_ok(check_backend.open(&backend, &(struct backend_options){.threads = 2, .exact = true}, &err), err);
    assert_ok(check_backend.load(backend, desc, NULL, NULL, &weights, &err), err);
    assert_true(context_open(&c, &check_backend, backend, weights, desc,
                             &(struct context_options){.ctx = 40, .seqs = 1}, &err));
    const seq_t seq = context_sequence(c);
    const token_t text[3] = {5, 6, 7};
    double routes[4 * 16], hidden[4 * 64];
    struct naive_token path[8] = {{.token = 5}, {.token = 6}, {.token = 7}};
    rows[0] = context_append(c, seq, SLOT_NONE, 1);
    assert_true(isnan(context_experts_touched(c)));
    assert_true(context_advance(c, rows, 1, 3, NULL));
    assert_int_equal(context_experts(c, rows[0], 2, got, 4), 0); /* experts are not followed yet */
    assert_near(context_experts_touched(c), 2, 1e-12);
    context_discard(c, rows[0]);
    context_follow_experts(c, true);
    assert_true(context_prefill(c, seq, text, 3, NULL, NULL));
    assert_int_equal(context_experts(c, context_at(c, seq, 2), 2, got, 4), 0); /* experts are not kept in prefill */
    for (int i = 0; i < 5; i++) {
        path[3 + i].token = (token_t)(20 + i);
        rows[i] = context_append(c, seq, i > 0 ? rows[i - 1] : SLOT_NONE, (token_t)(20 + i));
    }
    assert_true(context_advance(c, rows, 3, 2, NULL));
    assert_int_equal(context_experts(c, rows[0], 2, got, 1), 1);
    assert_experts(c, rows[3], 0, routes);
    assert_true(context_advance(c, rows, 5, 3, NULL));
    assert_greater(context_experts_touched(c), 2);
    assert_at_most(context_experts_touched(c), 10);
    assert_true(context_keep(c, seq, rows, 4));
    naive_model_routes(model, routes);
    for (size_t i = 0; i < 4; i++) {
        assert_true(naive_hidden(model, path, 4 + i, 3, hidden));
        assert_experts(c, rows[i], 3, routes);
    }
    context_follow_experts(c, false);
    assert_int_equal(context_experts(c, rows[0], 2, got, 4), 0);
    context_close(c);
    check_backend.unload(weights);
    check_backend.close(backend);
    naive_model_free(model);
}

TEST_SEED(seed, 1);
