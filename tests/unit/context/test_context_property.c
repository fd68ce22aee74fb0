/* Random programs (row_program.h) on hashes and on the real backends, with every available instruction set, one to
 * three threads, every weight type, fast and exact. SPECSCOPE_SEED=N chooses the programs, SPECSCOPE_LONG=1 runs ten
 * times as many. */
#include "tests/rigs/check_backend.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/row_program.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/symbolic_backend.h"
#include "tests/rigs/test.h"

static unsigned
times(unsigned n)
{
    return getenv("SPECSCOPE_LONG") != NULL ? 10 * n : n;
}

static void
assert_everything_happened(const struct row_counts *n)
{
    print_message(
        "append %u advance %u until %u guess %u verify %u keep %u discard %u truncate %u fork %u drop %u prefill "
        "%u cancelled %u refused %u full %u compared %u\n",
        n->append, n->advance, n->until, n->prediction, n->verify, n->keep, n->discard, n->truncate, n->fork, n->drop,
        n->prefill, n->cancelled, n->refused, n->full, n->compared);
    assert_true(n->append && n->advance && n->until && n->prediction && n->verify && n->keep && n->discard &&
                n->truncate && n->fork && n->drop && n->prefill && n->cancelled && n->refused && n->compared);
}

/* ---- hashes ---- */

static bool
hash_hidden(const void *model, const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    (void)model;
    symbolic_hidden(path, n, depth, out);
    return true;
}

TEST(random_programs_on_hashes_follow_the_definition)
{
    struct row_counts counts = {0};
    const uint64_t seed = seed_or(1);
    print_message("seeds from %llu\n", (unsigned long long)seed);
    for (unsigned i = 0; i < times(60); i++) {
        const struct model_desc desc = {.n_layers = 2 + i % 6, .width = SYMBOLIC_WIDTH, .vocab = 16};
        struct backend *backend;
        struct weights *weights;
        assert_true(symbolic_backend.open(&backend, &(struct backend_options){0}, NULL));
        assert_true(symbolic_backend.load(backend, &desc, NULL, NULL, &weights, NULL));
        const struct row_world world = {.ops = &symbolic_backend,
                                        .backend = backend,
                                        .weights = weights,
                                        .desc = &desc,
                                        .hidden = hash_hidden,
                                        .cancel_before = symbolic_cancel_before};
        row_program_run(&world, seed + i, 600, &counts);
        symbolic_backend.unload(weights);
        symbolic_backend.close(backend);
    }
    assert_everything_happened(&counts);
    assert_greater(counts.full, 0);
}

/* ---- real backends ---- */

static bool
real_hidden(const void *model, const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    return naive_hidden(model, path, n, depth, out);
}

static void
real_logits(const void *model, const double *hidden, double *out)
{
    naive_logits(model, hidden, out);
}

#define SHAPE(layers, w, h, kv, dim, hidden, tokens, layout, kind)                                                     \
    .n_layers = layers, .width = w, .heads = h, .kv_heads = kv, .head_dim = dim, .ffn = hidden, .vocab = tokens,       \
    .rope = layout, .type = kind

static const struct naive_shape shapes[] = {
    {SHAPE(4, 32, 4, 2, 8, 64, 48, ROPE_ADJACENT, WEIGHT_F32)},
    {SHAPE(3, 64, 4, 1, 16, 96, 40, ROPE_HALVES, WEIGHT_Q8_0)},
    {SHAPE(5, 24, 3, 3, 8, 40, 33, ROPE_ADJACENT, WEIGHT_F16)}, /* no dimension a power of two */
    {SHAPE(3, 48, 2, 2, 24, 56, 37, ROPE_HALVES, WEIGHT_BF16)},
    {SHAPE(3, 40, 4, 2, 10, 48, 39, ROPE_HALVES, WEIGHT_F16), .optional = LAYER_QKV_BIAS, .window = 9},
    {SHAPE(3, 32, 4, 2, 16, 64, 35, ROPE_ADJACENT, WEIGHT_F32), .optional = LAYER_QKV_BIAS | LAYER_QK_NORM,
     .window = 70},
    {SHAPE(4, 32, 4, 2, 8, 64, 48, ROPE_HALVES, WEIGHT_F32), .optional = LAYER_QK_NORM, .attention_every = 4,
     .form =
         {.output_gate = true,
          .recurrent = {.key_heads = 2, .value_heads = 4, .key_dim = 8, .value_dim = 16, .taps = 4, .tiled = true}}},
    {SHAPE(3, 24, 3, 3, 8, 40, 33, ROPE_ADJACENT, WEIGHT_F16), .attention_every = 2,
     .form = {.recurrent = {.key_heads = 2,
                            .value_heads = 2,
                            .key_dim = 6,
                            .value_dim = 10,
                            .taps = 3,
                            .beta = 2,
                            .norm_eps = 0.1f}}},
    {SHAPE(4, 32, 4, 2, 8, 64, 48, ROPE_HALVES, WEIGHT_F32), .optional = LAYER_QK_NORM, .attention_every = 3,
     .form = {.recurrent = {.value_heads = 4, .value_dim = 8, .taps = 3, .kind = RECURRENCE_CONV}}},
    {SHAPE(4, 24, 3, 3, 8, 40, 33, ROPE_ADJACENT, WEIGHT_F16), .attention_every = 4,
     .form =
         {.recurrent =
              {.key_heads = 1, .value_heads = 3, .key_dim = 16, .value_dim = 16, .taps = 4, .kind = RECURRENCE_MAMBA}}},
    {SHAPE(3, 40, 4, 2, 10, 48, 39, ROPE_HALVES, WEIGHT_F16), .attention_every = 2,
     .form = {.recurrent = {.key_heads = 2,
                            .value_heads = 4,
                            .key_dim = 6,
                            .value_dim = 10,
                            .taps = 2,
                            .kind = RECURRENCE_MAMBA,
                            .step_least = 0.2f,
                            .step_most = 1}}},
};
#define RECURRENT 5 /* the last shapes have recurrent layers and run only on the CPU */

/* Runs a program on a backend with these options. Returns false if this machine lacks the instruction set. */
static bool
run_backend(const struct backend_ops *ops, struct backend_options options, unsigned operations, uint64_t seed,
            struct row_counts *counts)
{
    struct err e = {.kind = ERR_NONE};
    struct backend *backend;
    struct weights *weights;
    if (!ops->open(&backend, &options, &e))
        return false;
    print_message("%s: %s\n", ops->name, ops->describe(backend));
    const struct naive_shape *shape =
        &shapes[seed % (sizeof shapes / sizeof *shapes - (ops->advance == NULL ? RECURRENT : 0))];
    struct naive_model *model = naive_model_random(shape, seed);
    assert_non_null(model);
    assert_ok(ops->load(backend, naive_model_desc(model), NULL, NULL, &weights, &e), e);
    const struct row_world world = {.ops = ops,
                                    .backend = backend,
                                    .weights = weights,
                                    .desc = naive_model_desc(model),
                                    .hidden = real_hidden,
                                    .logits = real_logits,
                                    .model = model,
                                    /* Fast computing has F16 keys and values, and 8-bit activations with Q8_0. */
                                    .tolerance = options.exact                ? 1e-4
                                                 : shape->type == WEIGHT_Q8_0 ? 0.08
                                                                              : 0.01};
    row_program_run(&world, seed, operations, counts);
    ops->unload(weights);
    naive_model_free(model);
    ops->close(backend);
    return true;
}

static const char *const isas[] = {"reference", "avx2", "avx512", "neon"};

static void
run_matrix(const struct backend_ops *ops, unsigned operations)
{
    struct row_counts counts = {0};
    const uint64_t seed = seed_or(1);
    print_message("seeds from %llu\n", (unsigned long long)seed);
    unsigned programs = 0;
    for (unsigned round = 0; round < times(1); round++)
        for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++)
            for (uint32_t threads = 1; threads <= 3; threads++)
                for (int exact = 0; exact < 2; exact++) {
                    const struct backend_options options = {
                        .threads = threads, .isa = isas[isa], .exact = exact, .gpu = -1};
                    /* The steps are 1 and 2, so that every shape runs both fast and exact. */
                    programs += run_backend(ops, options, operations, seed + programs + programs / 2, &counts);
                }
    assert_at_least(programs, 6); /* every machine has the reference kernels */
    assert_everything_happened(&counts);
}

TEST(random_programs_on_the_cpu_backend_follow_the_definition)
{
    run_matrix(&cpu_backend, 70);
}

TEST(random_programs_on_the_check_backend_follow_the_definition)
{
    run_matrix(&check_backend, 50);
}

TEST(random_programs_on_the_cuda_backend_follow_the_definition)
{
    const struct backend_ops *cuda = cuda_for_tests();
    if (cuda == NULL)
        skip();
    struct row_counts counts = {0};
    const uint64_t seed = seed_or(1);
    const unsigned programs = times(cuda_is_emulated() ? 3 : 16), operations = cuda_is_emulated() ? 50 : 200;
    print_message("seeds from %llu\n", (unsigned long long)seed);
    for (unsigned i = 0; i < programs; i++) /* runs every shape, fast and exact in turn */
        assert_true(run_backend(cuda, (struct backend_options){.threads = 2, .exact = (i + i / 4) % 2, .gpu = -1},
                                operations, seed + i, &counts));
    assert_true(counts.advance && counts.until && counts.prediction && counts.verify && counts.compared);
}
