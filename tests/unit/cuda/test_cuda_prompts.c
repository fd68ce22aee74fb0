/* Prompts by cuBLASLt (kernels/cuda/requests.h), on the emulated one or a real GPU's: right, of one set of bits wherever a
 * row stands in its chunk, and without any bearing on the rows that are not a prompt's. SPECSCOPE_SEED=N chooses weights and
 * tokens. */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "kernels/request.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { CHUNK = 32, PROMPT = 2 * CHUNK + 6, BEHIND = 5 };

static uint64_t seed;

static bool
has_library(void)
{
    struct backend *b;
    struct err err = {.kind = ERR_NONE};
    const struct backend_options options = {.threads = 1, .gpu = -1, .prompt_rows = CHUNK};
    if (cuda_for_tests() == NULL)
        return false;
    if (cuda_for_tests()->open(&b, &options, &err)) {
        cuda_for_tests()->close(b);
        return true;
    }
    print_message("skipped: %s\n", err.text);
    return false;
}
#define NEEDS_LIBRARY                                                                                                  \
    (void)state;                                                                                                       \
    if (!has_library())                                                                                                \
    skip()

static void
open_rig(struct rig *r, size_t shape)
{
    rig_open(r, cuda_for_tests(), &cuda_shapes[shape], seed + shape,
             &(struct backend_options){.threads = 2, .gpu = -1, .prompt_rows = CHUNK});
}

/* Of the forms that are not Llama's one, by the seed, where there is no time. */
static bool
is_another_form(size_t shape)
{
    const size_t forms = CUDA_MOE - CUDA_PLAIN_SHAPES;
    return shape >= CUDA_PLAIN_SHAPES && shape != CUDA_PLAIN_SHAPES + seed % forms &&
           getenv("SPECSCOPE_LONG") == NULL && cuda_is_emulated();
}

/* All shapes where there is time, else types that differ in how they are multiplied. */
static bool
is_left_out(size_t shape)
{
    return shape != 2 && shape != 3 && shape != 7 && getenv("SPECSCOPE_LONG") == NULL && cuda_is_emulated();
}

static void
numbers(int *to, int first, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = first + i;
}

/* Nodes 0 to n - 1, a chain, as a prompt; they are sequence 0's trunk then. */
static void
read_prompt(struct rig *r, int n)
{
    int nodes[CHUNK];
    for (int at = 0; at < n; at += CHUNK) {
        const int count = n - at < CHUNK ? n - at : CHUNK;
        numbers(nodes, at, count);
        rig_prompt(r, nodes, count, (uint32_t)at);
        rig_trunk(r, 0, at + count - 1);
    }
}

/* Hidden states of nodes from `first` on behind all layers, (n, L + 1, width). */
static float *
states(struct rig *r, int first, int n)
{
    const size_t width = r->desc->width, depths = r->desc->n_layers + 1;
    float *all = calloc((size_t)n * depths * width, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < n; i++)
        for (uint32_t l = 0; l < depths; l++)
            rig_hidden(r, first + i, l, all + ((size_t)i * depths + l) * width);
    return all;
}

static size_t
states_size(const struct rig *r, int n)
{
    return (size_t)n * (r->desc->n_layers + 1) * r->desc->width * sizeof(float);
}

/* All rows together: a row alone may stand on the edge. */
static void
assert_near_definition(struct rig *r, int n)
{
    static double hidden[(RIG_DEPTH + 1) * RIG_WIDTH], logits[RIG_VOCAB];
    static float got[RIG_WIDTH];
    const uint32_t width = r->desc->width, last = r->desc->n_layers;
    double apart = 0, all = 0;
    for (int i = 0; i < n; i++) {
        rig_naive(r, i, hidden, logits);
        rig_hidden(r, i, last, got);
        for (uint32_t k = 0; k < width; k++) {
            apart += pow((double)got[k] - hidden[last * width + k], 2);
            all += pow(hidden[last * width + k], 2);
        }
    }
    if (!(sqrt(apart / all) < 1e-3 * (1 + last)))
        fail_msg("width %u: %g apart from the definition", width, sqrt(apart / all));
}

TEST(prompts_agree_with_their_definition)
{
    NEEDS_LIBRARY;
    for (size_t shape = 0; shape < CUDA_MOE; shape++) {
        struct rig r;
        int behind[BEHIND];
        if (is_another_form(shape))
            continue;
        open_rig(&r, shape);
        rig_chain(&r, PROMPT + BEHIND);
        read_prompt(&r, PROMPT);
        numbers(behind, PROMPT, BEHIND);
        rig_step(&r, behind, BEHIND, r.desc->n_layers, PROMPT);
        assert_near_definition(&r, PROMPT + BEHIND);
        rig_close(&r);
    }
}

/* Rows of a chunk in any order, and in a chunk that has fewer: the same bits. */
TEST(a_rows_bits_do_not_hang_on_its_place_in_the_padded_chunk)
{
    NEEDS_LIBRARY;
    for (size_t shape = 0; shape < CUDA_MOE; shape++) {
        if (is_left_out(shape))
            continue;
        struct rig r;
        int nodes[CHUNK];
        open_rig(&r, shape);
        rig_chain(&r, CHUNK);
        read_prompt(&r, CHUNK);
        float *const whole = states(&r, 0, CHUNK);
        for (int turn = 0; turn < 3; turn++) {
            const int n = turn == 2 ? CHUNK / 2 + 3 : CHUNK;
            numbers(nodes, 0, n);
            for (int i = n; i-- > 1 && turn < 2;) {
                const int other = turn == 0 ? (int)rig_random(&r, (uint32_t)i + 1) : i / 2, held = nodes[i];
                nodes[i] = nodes[other];
                nodes[other] = held;
            }
            for (int i = 0; i < CHUNK; i++) {
                r.nodes[i].depth = 0;
                assert_true(r.ops->embed(
                    r.kv_cache,
                    &(struct row){.token = r.nodes[i].token, .slot = r.nodes[i].slot, .ring = r.nodes[i].ring}, 1));
            }
            rig_prompt(&r, nodes, n, 0);
            float *const again = states(&r, 0, n);
            assert_memory_equal(whole, again, states_size(&r, n));
            free(again);
        }
        free(whole);
        rig_close(&r);
    }
}

/* What is generated from a prompt: the same bits one by one, together, and when it is restored; and another class's than
 * the prompt's own. */
TEST(generated_rows_never_take_the_library)
{
    NEEDS_LIBRARY;
    int others = 0;
    for (size_t shape = 0; shape < CUDA_MOE; shape++) {
        if (is_left_out(shape))
            continue;
        struct rig r, plain;
        int behind[BEHIND];
        open_rig(&r, shape);
        cuda_rig_open(&plain, shape, false, seed); /* the same model and tokens, on a backend without the library */
        rig_chain(&r, PROMPT + BEHIND);
        rig_chain(&plain, PROMPT + BEHIND);
        read_prompt(&r, PROMPT);
        numbers(behind, PROMPT, BEHIND);
        rig_step(&r, behind, BEHIND, r.desc->n_layers, PROMPT);
        float *const together = states(&r, PROMPT, BEHIND), *const prompt = states(&r, 0, PROMPT);
        for (int i = PROMPT; i < PROMPT + BEHIND; i++) {
            r.nodes[i].depth = 0;
            rig_step(&r, &i, 1, r.desc->n_layers, PROMPT);
        }
        float *const alone = states(&r, PROMPT, BEHIND);
        assert_memory_equal(together, alone, states_size(&r, BEHIND));
        int all[PROMPT];
        numbers(all, 0, PROMPT);
        rig_step(&plain, all, PROMPT, plain.desc->n_layers, 0);
        float *const rows = states(&plain, 0, PROMPT);
        others += memcmp(prompt, rows, states_size(&r, PROMPT)) != 0;
        /* Rows in a store with the library are those of a store without. */
        for (int i = 0; i < PROMPT; i++)
            r.nodes[i].depth = 0;
        rig_step(&r, all, PROMPT, r.desc->n_layers, 0);
        float *const same = states(&r, 0, PROMPT);
        assert_memory_equal(same, rows, states_size(&r, PROMPT));
        free(together);
        free(prompt);
        free(alone);
        free(rows);
        free(same);
        rig_close(&plain);
        rig_close(&r);
    }
    assert_true(others > 0); /* or the library was never asked; the smallest shapes have too few terms to differ */
}

/* An emulated library adds up in one order whatever the shape, so here slabs change no bit. */
TEST(slabs_cover_every_strip)
{
    NEEDS_LIBRARY;
    if (!cuda_is_emulated())
        skip();
    for (size_t shape = 0; shape < CUDA_MOE; shape++) {
        if (is_left_out(shape))
            continue;
        struct rig r;
        float *by[2];
        char *text[2];
        for (int i = 0; i < 2; i++) {
            if (i == 1)
                setenv("SPECSCOPE_CUDA_SLAB", "4", 1);
            open_rig(&r, shape);
            unsetenv("SPECSCOPE_CUDA_SLAB");
            rig_chain(&r, PROMPT);
            read_prompt(&r, PROMPT);
            by[i] = states(&r, 0, PROMPT);
            text[i] = strdup(r.ops->prompts(r.kv_cache));
            if (i == 0)
                rig_close(&r);
        }
        assert_memory_equal(by[0], by[1], states_size(&r, PROMPT));
        if (r.desc->width >= 256) /* several slabs there are */
            assert_string_not_equal(text[0], text[1]);
        for (int i = 0; i < 2; i++) {
            free(by[i]);
            free(text[i]);
        }
        rig_close(&r);
    }
}

/* Of each shape the first algorithm of the list that neither splits k nor works in memory, which is what is told. */
TEST(the_chosen_algorithms_are_described)
{
    NEEDS_LIBRARY;
    struct rig r;
    open_rig(&r, 1);
    const char *text = r.ops->prompts(r.kv_cache);
    assert_non_null(strstr(text, "cuBLASLt "));
    assert_non_null(strstr(text, "32 rows; 32x"));
    assert_non_null(strstr(text, " F16: "));
    if (cuda_is_emulated())
        for (const char *at = text; (at = strstr(at, "F16: ")) != NULL; at++)
            assert_memory_equal(at, "F16: 66/20/36/", strlen("F16: 66/20/36/"));
    rig_close(&r);
    cuda_rig_open(&r, 1, false, seed);
    assert_null(r.ops->prompts(r.kv_cache));
    rig_close(&r);
}

TEST(a_cancelled_chunk_leaves_no_rows)
{
    NEEDS_LIBRARY;
    struct rig r;
    int nodes[CHUNK];
    struct err err = {.kind = ERR_NONE};
    open_rig(&r, 1);
    rig_chain(&r, CHUNK);
    rig_wait(&r);
    numbers(nodes, 0, CHUNK);
    struct forward_pass w = *rig_forward(&r, nodes, CHUNK, r.desc->n_layers, 0);
    w.prompt = true;
    for (int turn = 0; turn < 2; turn++) { /* before it is queued; while it waits */
        atomic_store(&r.cancel, turn == 0);
        assert_true(r.ops->step(r.kv_cache, &w));
        atomic_store(&r.cancel, true);
        assert_false(r.ops->wait(r.kv_cache, &err));
        assert_int_equal(err.kind, ERR_CANCELLED);
        atomic_store(&r.cancel, false);
    }
    read_prompt(&r, CHUNK);
    assert_near_definition(&r, CHUNK);
    rig_close(&r);
}

TEST(invalid_chunks_are_refused)
{
    NEEDS_LIBRARY;
    struct rig r;
    int nodes[CHUNK + 1];
    bool skip_one[RIG_DEPTH + 1] = {false};
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    open_rig(&r, 1);
    rig_chain(&r, CHUNK + 1);
    numbers(nodes, 0, CHUNK + 1);
    struct forward_pass w = *rig_forward(&r, nodes, CHUNK + 1, r.desc->n_layers, 0);
    w.prompt = true;
    assert_false(r.ops->step(r.kv_cache, &w)); /* a row too many */
    w.n = CHUNK;
    w.skip_mlp = skip_one;
    assert_false(r.ops->step(r.kv_cache, &w));
    w.skip_mlp = NULL;
    rig_step(&r, nodes, 1, 1, 0);
    w = *rig_forward(&r, nodes, 2, r.desc->n_layers, 0);
    w.prompt = true;
    assert_false(r.ops->step(r.kv_cache, &w)); /* not from the beginning */
    rig_close(&r);
    cuda_rig_open(&r, 1, false, seed);
    rig_chain(&r, 2);
    w = *rig_forward(&r, nodes, 2, r.desc->n_layers, 0);
    w.prompt = true;
    assert_false(r.ops->step(r.kv_cache, &w)); /* a store without */
    rig_close(&r);
    struct naive_model *m = naive_model_random(&cuda_shapes[CUDA_MOE], seed); /* whose prompts are rows */
    struct weights *weights;
    struct kv_cache *kv_cache;
    assert_true(r.ops->open(&b, &(struct backend_options){.threads = 1, .gpu = -1, .prompt_rows = CHUNK}, &err) &&
                r.ops->load(b, naive_model_desc(m), NULL, NULL, &weights, &err));
    struct kv_cache_desc desc = kv_cache_defaults(64);
    desc.prompt_rows = CHUNK;
    assert_false(r.ops->kv_cache(weights, &desc, &kv_cache, &err));
    assert_non_null(strstr(err.text, "--prefill blas: reads no prompts of mixtures of experts"));
    r.ops->unload(weights);
    r.ops->close(b);
    naive_model_free(m);
    assert_false(cuda_for_tests()->open(
        &b, &(struct backend_options){.threads = 1, .gpu = -1, .exact = true, .prompt_rows = CHUNK}, &err));
    assert_non_null(strstr(err.text, "--exact"));
    assert_false(cpu_backend.open(&b, &(struct backend_options){.threads = 1, .prompt_rows = CHUNK}, &err));
    assert_non_null(strstr(err.text, "--prefill blas"));
}

/* usage: test_cuda_prompts [PATTERN]: tests of such names alone */
TEST_SEED(seed, (uint64_t)time(NULL));
