/* Compares the CPU's fast path (weights as in the file, int8 activations for weights in blocks, F16 keys and values)
 * with its exact one (all in F32), teacher-forced and for every weight type: how much the next token's distribution
 * changes, and how often its most likely token differs.
 *
 * The weights are the bundled model's, requantised. A trained model's distributions have the margins and outliers that
 * decide such a comparison; those of random or synthetic weights do not. Blocks of 256 need widths that are multiples
 * of 256, so the FFN is widened by units whose weights are all zero, which does not change the model's results.
 *
 * KL(exact || fast) must be below 1e-3 nats, and the most likely token the same at 99% of positions. The share is a
 * random number, since there are only POSITIONS positions: for a type, and for all types with blocks together, it must
 * not be more than three standard deviations below 99%. Text with a high entropy (a small model on prose: 3.5 nats a
 * token) is the hard case, because any rounding swaps tokens of nearly equal probability.
 *
 * The best instruction set is used, since products in int8 have the same bits in all (test_isa.c). With SPECSCOPE_LONG
 * all types are tested, otherwise a common one, which the seed chooses. Run from the repository's root. */
#include <math.h>

#include "cli/options/commands.h"
#include "engine/model/model_open.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "kernels/tensor.h"
#include "tests/rigs/requantise.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define TEXT       "tests/golden/prose.txt" /* from Lewis Carroll, Alice's Adventures in Wonderland (1865), chapter 1 */
#define MOST_BYTES 8000
#define LENGTH     500u /* positions of a sequence, the first token BOS */
#define SEQUENCES  4u
#define POSITIONS  (SEQUENCES * LENGTH)
#define CHUNK      100u /* rows in one forward pass */
#define BLOCK      256u /* the largest of any type */
#define MOST_KL    1e-3
#define SAME_TOP_1 0.99
#define MOST_LOSS  4.5 /* nats a token; chance is log 2048 = 7.6 */

static uint64_t seed;
static struct model *model;
static token_t text[POSITIONS];
static uint32_t all_positions, all_same; /* sums over all types with blocks */

/* ---- the model in another type ---- */

struct copy {
    struct model_desc desc;
    struct layer_desc *layers;
    void **memory;
    size_t n_memory;
};

/* Returns t in another type, padded with zeros to rows and cols. */
static struct tensor
requantised(struct copy *c, const struct tensor *t, enum weight_type type, uint32_t rows, uint32_t cols)
{
    const size_t row_bytes = tensor_row_bytes(type, cols), bytes = rows * row_bytes;
    unsigned char *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    float *x = calloc(cols, sizeof *x);
    assert_non_null(data);
    assert_non_null(x);
    assert_int_equal(cols % tensor_block_values(type), 0);
    c->memory[c->n_memory++] = data;
    for (uint32_t r = 0; r < rows; r++) {
        if (r < t->rows)
            tensor_row(t, r, x);
        else
            memset(x, 0, cols * sizeof *x);
        requantise_row(type, x, cols, data + r * row_bytes);
    }
    free(x);
    return (struct tensor){.data = data, .type = type, .rows = rows, .cols = cols};
}

static struct copy
copy_in(enum weight_type type)
{
    const struct model_desc *d = &model->desc;
    struct copy c = {.desc = *d};
    c.layers = calloc(d->n_layers, sizeof *c.layers);
    c.memory = calloc(2 + LAYER_TENSORS * (size_t)d->n_layers, sizeof *c.memory);
    assert_non_null(c.layers);
    assert_non_null(c.memory);
    c.desc.ffn = (d->ffn + BLOCK - 1) / BLOCK * BLOCK;
    c.desc.layers = c.layers;
    c.desc.embedding = requantised(&c, &d->embedding, type, d->vocab, d->width);
    c.desc.head = model->tied ? c.desc.embedding : requantised(&c, &d->head, type, d->vocab, d->width);
    for (uint32_t l = 0; l < d->n_layers; l++) {
        const struct layer_desc *from = &d->layers[l];
        struct layer_desc *to = &c.layers[l];
        *to = *from;
        for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
            uint32_t rows, cols;
            layer_tensor_shape(&c.desc, 1, i, &rows, &cols);
            if (layer_tensors[i].kind == LAYER_MATRIX)
                to->all[i] = requantised(&c, &from->all[i], type, rows, cols);
        }
    }
    return c;
}

static void
copy_free(struct copy *c)
{
    for (size_t i = 0; i < c->n_memory; i++)
        free(c->memory[i]);
    free(c->memory);
    free(c->layers);
}

/* ---- logits of the text ---- */

/* Runs rows first..first+n of a sequence, after the rows before them. */
static void
forward_rows(struct kv_cache *s, const token_t *tokens, uint32_t first, uint32_t n, uint32_t depth)
{
    struct row rows[CHUNK];
    slot_t slots[CHUNK];
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = first + i;
        rows[i] =
            (struct row){.token = tokens[first + i], .slot = first + i, .ring = i, .n_trunk = first, .n_tail = i + 1};
    }
    const struct forward_pass forward = {.rows = rows, .n = n, .tails = slots, .n_tails = n, .to = depth};
    assert_true(cpu_backend.embed(s, rows, n) && cpu_backend.step(s, &forward) &&
                cpu_backend.trunk(s, 0, first, slots, n));
}

/* Computes the logits (POSITIONS, vocab) of every position. */
static void
logits_of(const struct model_desc *desc, bool exact, float *logits)
{
    struct err err = {.kind = ERR_NONE};
    struct backend *b;
    struct weights *w;
    struct kv_cache *s;
    const struct backend_options o = {.threads = 2, .exact = exact};
    const struct kv_cache_desc d = {
        .slots = LENGTH, .ring = CHUNK, .seqs = 1, .trunk = LENGTH, .max_rows = CHUNK, .max_probes = 1};
    if (!cpu_backend.open(&b, &o, &err) || !cpu_backend.load(b, desc, NULL, NULL, &w, &err))
        fail_msg("%s", err.text);
    for (uint32_t at = 0; at < POSITIONS; at += LENGTH) {
        assert_ok(cpu_backend.kv_cache(w, &d, &s, &err), err);
        for (uint32_t first = 0; first < LENGTH; first += CHUNK) {
            forward_rows(s, text + at, first, CHUNK, desc->n_layers);
            for (uint32_t i = 0; i < CHUNK; i++)
                assert_true(
                    cpu_backend.read_logits(s, i, desc->n_layers, logits + (size_t)(at + first + i) * desc->vocab));
            assert_ok(cpu_backend.wait(s, &err), err);
        }
        cpu_backend.drop(s);
    }
    cpu_backend.unload(w);
    cpu_backend.close(b);
}

/* ---- differences ---- */

struct difference {
    double kl;      /* mean KL(exact || fast), nats */
    double most_kl; /* the largest KL of a position */
    uint32_t same;  /* positions with the same most likely token */
    double loss;    /* mean -log p of the next token by the exact path, nats: must be low */
};

static uint32_t
argmax(const float *z, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        best = z[i] > z[best] ? i : best;
    return best;
}

static double
log_sum_exp(const float *z, uint32_t n)
{
    double sum = 0;
    const double most = (double)z[argmax(z, n)];
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)z[i] - most);
    return most + log(sum);
}

static struct difference
compare(const float *exact, const float *fast, uint32_t vocab)
{
    struct difference d = {0};
    for (uint32_t p = 0; p < POSITIONS; p++, exact += vocab, fast += vocab) {
        const double a = log_sum_exp(exact, vocab), b = log_sum_exp(fast, vocab);
        double kl = 0;
        for (uint32_t v = 0; v < vocab; v++)
            kl += exp((double)exact[v] - a) * (((double)exact[v] - a) - ((double)fast[v] - b));
        d.kl += kl / POSITIONS;
        d.most_kl = fmax(d.most_kl, kl);
        d.same += argmax(exact, vocab) == argmax(fast, vocab);
        if ((p + 1) % LENGTH != 0)
            d.loss += (a - (double)exact[text[p + 1]]) / (POSITIONS - SEQUENCES);
    }
    return d;
}

static void
assert_mostly_same(uint32_t same, uint32_t n)
{
    const double deviation = sqrt(SAME_TOP_1 * (1 - SAME_TOP_1) / n);
    assert_greater((double)same / n, SAME_TOP_1 - 3 * deviation);
}

/* ---- tests ---- */

static int
open_model(void **state)
{
    (void)state;
    static char bytes[MOST_BYTES];
    struct err err = {.kind = ERR_NONE};
    if (!model_open(&model, bundled_model_path(), &err)) {
        print_error("%s\n", err.text);
        return -1;
    }
    FILE *f = fopen(TEXT, "rb");
    const size_t len = f != NULL ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f != NULL)
        fclose(f);
    token_t *ids;
    size_t n;
    if (!tokenizer_encode(model->tokenizer, bytes, len, (struct tokenize_options){.bos = false}, &ids, &n, &err))
        return -1;
    const bool enough = n >= POSITIONS;
    for (uint32_t p = 0; enough && p < POSITIONS; p++)
        text[p] = p % LENGTH == 0 ? tokenizer_bos(model->tokenizer) : ids[p];
    free(ids);
    if (!enough)
        print_error("%s: %zu tokens; %u are needed\n", TEXT, n, POSITIONS);
    return enough ? 0 : -1;
}

static int
close_model(void **state)
{
    (void)state;
    model_close(model);
    return 0;
}

static const struct named_type {
    enum weight_type type;
    const char *name; /* the name of its test */
    unsigned usual;   /* the number, from 1, of a common type */
} types[] = {
    {WEIGHT_F32, "test_f32_is_near_the_exact_path", 0},       {WEIGHT_F16, "test_f16_is_near_the_exact_path", 0},
    {WEIGHT_BF16, "test_bf16_is_near_the_exact_path", 0},     {WEIGHT_Q8_0, "test_q8_0_is_near_the_exact_path", 1},
    {WEIGHT_Q4_0, "test_q4_0_is_near_the_exact_path", 0},     {WEIGHT_Q4_1, "test_q4_1_is_near_the_exact_path", 0},
    {WEIGHT_Q5_0, "test_q5_0_is_near_the_exact_path", 0},     {WEIGHT_Q5_1, "test_q5_1_is_near_the_exact_path", 0},
    {WEIGHT_Q2_K, "test_q2_k_is_near_the_exact_path", 0},     {WEIGHT_Q3_K, "test_q3_k_is_near_the_exact_path", 0},
    {WEIGHT_Q4_K, "test_q4_k_is_near_the_exact_path", 2},     {WEIGHT_Q5_K, "test_q5_k_is_near_the_exact_path", 0},
    {WEIGHT_Q6_K, "test_q6_k_is_near_the_exact_path", 3},     {WEIGHT_MXFP4, "test_mxfp4_is_near_the_exact_path", 0},
    {WEIGHT_IQ4_NL, "test_iq4_nl_is_near_the_exact_path", 0},
};
#define N_TYPES (sizeof types / sizeof *types)

static void
test_type(void **state)
{
    const struct named_type *t = *state;
    if (getenv("SPECSCOPE_LONG") == NULL && t->usual != 1 + seed % 3)
        skip();
    struct copy c = copy_in(t->type);
    const size_t n = (size_t)POSITIONS * c.desc.vocab;
    float *exact = calloc(n, sizeof *exact), *fast = calloc(n, sizeof *fast);
    assert_non_null(exact);
    assert_non_null(fast);
    logits_of(&c.desc, true, exact);
    logits_of(&c.desc, false, fast);
    const struct difference d = compare(exact, fast, c.desc.vocab);
    print_message("%-5s KL %.2e nats, at most %.2e; top-1 %.2f%%; the text %.3f nats a token\n",
                  tensor_type_name(t->type), d.kl, d.most_kl, 100.0 * d.same / POSITIONS, d.loss);
    assert_at_least(d.kl, 0);
    assert_less(d.kl, MOST_KL);
    assert_mostly_same(d.same, POSITIONS);
    assert_less(d.loss, MOST_LOSS);
    if (tensor_block_values(t->type) > 1) {
        all_positions += POSITIONS;
        all_same += d.same;
    }
    free(exact);
    free(fast);
    copy_free(&c);
}

static void
test_all_types_with_blocks_together_choose_the_same_token(void **state)
{
    (void)state;
    if (all_positions == 0) /* the tests of these types were skipped */
        skip();
    print_message("top-1 %.3f%% of %u positions\n", 100.0 * all_same / all_positions, all_positions);
    assert_mostly_same(all_same, all_positions);
}

int
main(void)
{
    seed = seed_or(1);
    struct CMUnitTest tests[N_TYPES + 1];
    for (size_t i = 0; i < N_TYPES; i++)
        tests[i] = (struct CMUnitTest){
            .name = types[i].name, .test_func = test_type, .initial_state = (void *)(uintptr_t)&types[i]};
    tests[N_TYPES] = (struct CMUnitTest)cmocka_unit_test(test_all_types_with_blocks_together_choose_the_same_token);
    return cmocka_run_group_tests(tests, open_model, close_model);
}
