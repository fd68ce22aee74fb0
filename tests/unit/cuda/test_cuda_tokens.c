/* Compares a real model on the GPU with the CPU. The CPU generates tokens, the GPU reads the same tokens, and the
 * logits of each row are compared. If the most likely tokens differ, it must be a near tie, which is printed with its
 * margin. A GPU runs the bundled model, the emulator its draft model (SPECSCOPE_LONG=1: all tokens). */
#include <math.h>

#include "engine/context/context.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/session/engine.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/test.h"

#define MODEL  "models/fables-q8_0.gguf"
#define DRAFT  "models/fables-draft-q8_0.gguf"
#define PROMPT "Three mice sat on a wall,"

struct side {
    struct engine *engine;
    struct context *ctx;
    seq_t seq;
    slot_t last;
    float *logits; /* (vocab) */
};

static void
side_open(struct side *s, const char *backend, const char *path, bool exact, uint32_t ctx)
{
    struct err err = {.kind = ERR_NONE};
    const struct engine_options options = {.model_path = path,
                                           .backend = backend,
                                           .backend_options = {.threads = 2, .exact = exact, .gpu = -1},
                                           .heads = "none",
                                           .ctx = ctx};
    const struct context_options limits = {.ctx = ctx};
    assert_ok(engine_open(&s->engine, &options, NULL, NULL, &err), err);
    const struct model_desc *d = &s->engine->model->desc;
    assert_ok(context_open(&s->ctx, s->engine->ops, s->engine->backend, s->engine->weights, d, &limits, &err), err);
    s->seq = context_sequence(s->ctx);
    s->logits = malloc(d->vocab * sizeof *s->logits);
    assert_non_null(s->logits);
}

static void
side_close(struct side *s)
{
    free(s->logits);
    context_close(s->ctx);
    engine_close(s->engine);
}

/* Reads a token and stores the logits after it in s->logits. */
static void
side_read(struct side *s, token_t token)
{
    const uint32_t layers = s->engine->model->desc.n_layers;
    const slot_t slot = context_append(s->ctx, s->seq, SLOT_NONE, token);
    if (slot == SLOT_NONE || !context_advance(s->ctx, &slot, 1, layers, NULL) ||
        !context_read_logits(s->ctx, slot, layers, s->logits) || !context_keep(s->ctx, s->seq, &slot, 1))
        fail_msg("%s", context_error(s->ctx)->text);
}

static token_t
likeliest(const float *z, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t v = 1; v < n; v++)
        best = z[v] > z[best] ? v : best;
    return (token_t)best;
}

/* Returns |a - b| / |b - mean of b|. */
static double
distance(const float *a, const float *b, uint32_t n)
{
    double mean = 0, apart = 0, all = 0;
    for (uint32_t v = 0; v < n; v++)
        mean += (double)b[v] / n;
    for (uint32_t v = 0; v < n; v++) {
        apart += pow((double)a[v] - (double)b[v], 2);
        all += pow((double)b[v] - mean, 2);
    }
    return sqrt(apart / all);
}

static void
name_tie(const struct side *cpu, const struct side *gpu, uint32_t pos, token_t a, token_t b)
{
    const struct slice x = tokenizer_bytes(cpu->engine->model->tokenizer, a, true),
                       y = tokenizer_bytes(cpu->engine->model->tokenizer, b, true);
    print_message("# position %u: \"%.*s\" on the CPU, by %.4f; \"%.*s\" on the GPU, by %.4f\n", (unsigned)pos,
                  (int)x.len, x.data, (double)(cpu->logits[a] - cpu->logits[b]), (int)y.len, y.data,
                  (double)(gpu->logits[b] - gpu->logits[a]));
}

/* `bound` limits the difference of logits. */
static void
compare(const char *path, bool exact, uint32_t tokens, double bound)
{
    struct side cpu, gpu;
    token_t *ids = NULL, next = 0;
    size_t n = 0;
    uint32_t same = 0, ties = 0;
    double worst = 0;
    struct err err = {.kind = ERR_NONE};
    side_open(&cpu, "cpu", path, exact, 256);
    side_open(&gpu, "cuda", path, exact, 256);
    const uint32_t vocab = cpu.engine->model->desc.vocab;
    const struct tokenize_options how = {.bos = true};
    assert_ok(tokenizer_encode(cpu.engine->model->tokenizer, PROMPT, strlen(PROMPT), how, &ids, &n, &err), err);
    for (uint32_t pos = 0; pos < tokens; pos++) {
        const token_t token = pos < n ? ids[pos] : next;
        side_read(&cpu, token);
        side_read(&gpu, token);
        next = likeliest(cpu.logits, vocab);
        const token_t other = likeliest(gpu.logits, vocab);
        const double apart = distance(gpu.logits, cpu.logits, vocab);
        worst = apart > worst ? apart : worst;
        same += next == other;
        if (next != other && ++ties > 0)
            name_tie(&cpu, &gpu, pos + 1, next, other);
        if (!(apart < bound))
            fail_msg("behind position %u logits are %.2g from the CPU's, at most %.2g was expected", (unsigned)pos,
                     apart, bound);
    }
    print_message("# %s%s: %u of %u tokens are the CPU's, %u near ties; logits differ by %.2g\n", path,
                  exact ? ", exact" : "", (unsigned)same, (unsigned)tokens, (unsigned)ties, worst);
    assert_at_most(ties * 10, tokens);
    free(ids);
    side_close(&cpu);
    side_close(&gpu);
}

/* Returns the number of tokens; the emulator is slow. */
static uint32_t
tokens_here(uint32_t in_short)
{
    return !cuda_is_emulated() ? 200 : getenv("SPECSCOPE_LONG") != NULL ? 80 : in_short;
}

TEST(exact_tokens_are_those_of_the_cpu)
{
    NEEDS_CUDA;
    compare(DRAFT, true, tokens_here(8), 1e-4);
    if (tokens_here(0) > 0)
        compare(MODEL, true, tokens_here(0), 1e-4);
}

/* The CPU rounds activations to 8 bits before products with Q8_0, the GPU to F16. */
TEST(tokens_are_those_of_the_cpu_but_for_near_ties)
{
    NEEDS_CUDA;
    compare(DRAFT, false, tokens_here(12), 0.1);
    if (tokens_here(0) > 0)
        compare(MODEL, false, tokens_here(0), 0.1);
}
