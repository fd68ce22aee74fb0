/* Training data of acceptance heads, against reading every text from its beginning. Also compares vocabularies. */
#include <math.h>

#include "engine/model/tokenizer/tokenizer.h"
#include "engine/training/accept_training.h"
#include "kernels/tensor.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define PROMPT   5
#define RESPONSE 9

static uint64_t seed;

static token_t
argmax(const float *z, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (z[i] > z[best])
            best = i;
    return (token_t)best;
}

static void
check_hidden(const struct engine *e, const token_t *text, size_t n, const float *x)
{
    const struct model_desc *d = &engine_draft_model(e)->desc;
    float *hidden = malloc(d->width * sizeof *hidden), *norm = malloc(d->width * sizeof *norm);
    double squares = 0;
    exact_rig_read(e, READS_DRAFT, text, n, NULL, hidden);
    tensor_row(&d->final_norm, 0, norm);
    for (uint32_t k = 0; k < d->width; k++)
        squares += (double)hidden[k] * (double)hidden[k];
    for (uint32_t k = 0; k < d->width; k++) {
        const double expected = (double)hidden[k] * (double)norm[k] / sqrt(squares / d->width + (double)d->rms_eps);
        assert_near(expected, (double)x[k], 1e-5 * (1 + fabs(expected)));
    }
    free(hidden);
    free(norm);
}

/* Generates one prompt's rows. */
static size_t
answer(struct accept_data *a, uint64_t index, const token_t *text, size_t n, float *x, float *label)
{
    struct accept_prompt p = {.index = index, .tokens = text, .n = n, .x = x, .label = label};
    struct err err = {0};
    assert_ok(accept_data_prompts(a, &p, 1, &err), err);
    return p.rows;
}

static void
check_greedy(const struct engine *e)
{
    const uint32_t vocab = e->model->desc.vocab, more = engine_draft_model(e)->desc.vocab,
                   width = engine_draft_model(e)->desc.width;
    const struct accept_data_options options = {
        .prompt = PROMPT, .response = RESPONSE, .sampling = {.top_p = 1}, .seed = seed, .sequences = 1};
    struct accept_data *a;
    struct err err = {0};
    assert_ok(accept_data_open(&a, e, &options, NULL, &err), err);
    float *z = malloc(more * sizeof *z), *x = malloc(RESPONSE * width * sizeof *x), label[RESPONSE];
    for (token_t first = 300; first < 306; first++) {
        token_t text[PROMPT + RESPONSE] = {1, 280, first, 290, 285}, drafted[PROMPT + RESPONSE];
        const size_t rows = answer(a, (uint64_t)first, text, PROMPT, x, label);
        assert_between(rows, 1, RESPONSE);
        memcpy(drafted, text, sizeof drafted);
        for (size_t i = 0; i < rows; i++) {
            exact_rig_read(e, READS_DRAFT, text, PROMPT + i, z, NULL);
            drafted[PROMPT + i] = argmax(z, more);
            exact_rig_read(e, READS_TARGET, text, PROMPT + i, z, NULL);
            text[PROMPT + i] = argmax(z, vocab);
            assert_near((double)label[i], drafted[PROMPT + i] == text[PROMPT + i], 0.1);
            check_hidden(e, drafted, PROMPT + i + 1, x + i * width); /* no token is replaced */
        }
        assert_true(rows == RESPONSE || tokenizer_is_end(e->model->tokenizer, text[PROMPT + rows - 1]));
    }
    free(z);
    free(x);
    accept_data_close(a);
}

TEST(greedy_candidates_are_labelled_by_the_targets_argmax)
{
    const struct tinymodel shape = {.seed = seed, .sharpness = 8},
                           small = {.seed = seed, .sharpness = 8, .n_layers = 2};
    struct engine *e = exact_rig_tiny(&shape, &small, NULL);
    check_greedy(e);
    engine_close(e);
}

TEST(greedy_candidates_of_the_targets_own_layers_are_labelled_by_the_targets_argmax)
{
    const struct tinymodel shape = {.seed = seed, .sharpness = 8, .n_layers = 4};
    struct engine *e = exact_rig_own_layers(&shape, "self:2", NULL);
    check_greedy(e);
    engine_close(e);
}

/* E[min(1, p(Y) / q(Y))] = Σ min(p, q) at the first position, whatever share of tokens is replaced. */
TEST(the_mean_label_is_the_overlap)
{
    enum { N = 3000 };
    struct engine *e = exact_rig_tiny(&(struct tinymodel){.seed = seed}, &(struct tinymodel){.seed = seed + 1}, NULL);
    const uint32_t vocab = e->model->desc.vocab;
    const struct accept_data_options options = {.prompt = 3,
                                                .response = 1,
                                                .sampling = {.temperature = 0.7f, .top_p = 1},
                                                .mixing = 0.2,
                                                .seed = seed,
                                                .sequences = 1};
    const token_t text[3] = {1, 300, 270};
    struct accept_data *a;
    struct err err = {0};
    float *p = malloc(vocab * sizeof *p), *q = malloc(vocab * sizeof *q);
    float *x = malloc(engine_draft_model(e)->desc.width * sizeof *x), label;
    exact_rig_read(e, READS_TARGET, text, 3, p, NULL);
    exact_rig_read(e, READS_DRAFT, text, 3, q, NULL);
    double sum_p = 0, sum_q = 0, overlap = 0, sum = 0, squares = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        sum_p += exp((double)p[i] / 0.7);
        sum_q += exp((double)q[i] / 0.7);
    }
    for (uint32_t i = 0; i < vocab; i++)
        overlap += fmin(exp((double)p[i] / 0.7) / sum_p, exp((double)q[i] / 0.7) / sum_q);
    assert_ok(accept_data_open(&a, e, &options, NULL, &err), err);
    size_t n = 0;
    for (uint64_t i = 0; i < N; i++) {
        const size_t rows = answer(a, i, text, 3, x, &label);
        for (size_t k = 0; k < rows; k++, n++) {
            sum += (double)label;
            squares += (double)label * (double)label;
        }
    }
    const double mean = sum / (double)n, deviation = sqrt((squares / (double)n - mean * mean) / (double)n);
    assert_near(mean, overlap, 4.5 * deviation);
    assert_near((double)n / N, 0.8, 4.5 * sqrt(0.16 / N)); /* mixing replaces a fifth by the target's tokens */
    free(p);
    free(q);
    free(x);
    accept_data_close(a);
    engine_close(e);
}

TEST(a_model_as_its_own_draft_is_always_accepted)
{
    const struct tinymodel shape = {.seed = seed};
    struct engine *e = exact_rig_tiny(&shape, &shape, NULL);
    const struct accept_data_options options = {.prompt = 4,
                                                .response = RESPONSE,
                                                .sampling = {.temperature = 1, .top_p = 1},
                                                .mixing = 0.15,
                                                .seed = seed,
                                                .sequences = 1};
    const token_t text[4] = {1, 300, 270, 299};
    struct accept_data *a;
    struct err err = {0};
    float *x = malloc(RESPONSE * e->model->desc.width * sizeof *x), label[RESPONSE];
    assert_ok(accept_data_open(&a, e, &options, NULL, &err), err);
    for (uint64_t i = 0; i < 20; i++) {
        const size_t rows = answer(a, i, text, 4, x, label);
        for (size_t k = 0; k < rows; k++)
            assert_greater(label[k], 0.999f);
    }
    free(x);
    accept_data_close(a);
    engine_close(e);
}

/* Compares bit for bit: prompts of several lengths, answers that end early, more of them than sequences. */
static void
check_sequences(struct engine *e)
{
    enum { N = 7, LONG = 70 };
    const uint32_t width = engine_draft_model(e)->desc.width;
    struct accept_data_options options = {.prompt = LONG,
                                          .response = RESPONSE,
                                          .sampling = {.temperature = 1.2f, .top_p = 1},
                                          .mixing = 0.15,
                                          .seed = seed};
    float *x[2], label[2][N][RESPONSE];
    token_t text[N][LONG];
    size_t rows[2][N];
    struct err err = {0};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < LONG; k++)
            text[i][k] = k == 0 ? 1 : 259 + (i * 7 + k * 3) % 50;
    for (int side = 0; side < 2; side++) { /* one at a time, then three */
        struct accept_data *a;
        options.sequences = side == 0 ? 1 : 3;
        x[side] = calloc((size_t)N * RESPONSE * width, sizeof *x[side]);
        assert_ok(accept_data_open(&a, e, &options, NULL, &err), err);
        for (size_t at = 0; at < N; at += options.sequences) {
            struct accept_prompt p[3];
            const size_t n = N - at < options.sequences ? N - at : options.sequences;
            for (size_t i = 0; i < n; i++)
                p[i] = (struct accept_prompt){.index = at + i,
                                              .tokens = text[at + i],
                                              .n = at + i == 1 ? LONG : 3 + at + i,
                                              .x = x[side] + (at + i) * RESPONSE * width,
                                              .label = label[side][at + i]};
            assert_ok(accept_data_prompts(a, p, n, &err), err);
            for (size_t i = 0; i < n; i++)
                rows[side][at + i] = p[i].rows;
        }
        accept_data_close(a);
    }
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    assert_memory_equal(x[0], x[1], (size_t)N * RESPONSE * width * sizeof *x[0]);
    for (int i = 0; i < N; i++)
        assert_memory_equal(label[0][i], label[1][i], rows[0][i] * sizeof label[0][i][0]);
    free(x[0]);
    free(x[1]);
}

TEST(prompts_that_share_passes_get_the_bits_that_they_get_alone)
{
    const struct tinymodel shape = {.seed = seed, .n_layers = 4}, small = {.seed = seed + 1, .n_layers = 2};
    struct engine *two = exact_rig_tiny(&shape, &small, NULL), *own = exact_rig_own_layers(&shape, "self:1", NULL);
    check_sequences(two);
    check_sequences(own);
    engine_close(two);
    engine_close(own);
}

TEST(other_vocabularies_are_refused_by_the_first_token_that_differs)
{
    struct engine *one = exact_rig_tiny(&(struct tinymodel){.seed = seed}, NULL, NULL),
                  *nasty = exact_rig_tiny(&(struct tinymodel){.seed = seed, .nasty = true}, NULL, NULL),
                  *larger = exact_rig_tiny(&(struct tinymodel){.seed = seed, .vocab = 352}, NULL, NULL);
    struct err err = {0};
    const struct tokenizer *t = one->model->tokenizer;
    assert_ok(vocabularies_match(t, "one", t, "two", &err), err);
    assert_false(vocabularies_match(t, "one", nasty->model->tokenizer, "two", &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, "token 259 ");
    assert_contains(err.text, "one and two");
    /* the tiny vocabularies end in control tokens, so a larger one differs where the smaller one ends */
    assert_false(vocabularies_match(t, "one", larger->model->tokenizer, "two", &err));
    assert_contains(err.text, "token 318 ");
    engine_close(one);
    engine_close(nasty);
    engine_close(larger);
}

TEST_SEED(seed, 7);
