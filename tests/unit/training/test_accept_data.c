/* What acceptance heads are trained on, against reading every text from its beginning; and vocabularies that match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/context/context.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary_match.h"
#include "engine/training/accept_data.h"
#include "kernels/tensor.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/seed.h"

#define PROMPT   5
#define RESPONSE 9

static uint64_t seed;

static struct engine *
open_tiny(const struct tinymodel *shape)
{
    char path[64];
    struct err err = {0};
    struct engine *e = NULL;
    assert_true(tinymodel_write_temp(path, sizeof path, shape, &err));
    const struct engine_options options = {
        .model_path = path, .backend = "cpu", .heads = "none", .backend_options = {.threads = 1, .exact = true}};
    if (!engine_open(&e, &options, NULL, NULL, &err))
        fail_msg("%s", err.text);
    unlink(path);
    return e;
}

/* Logits and the final hidden state after a text, in a context of its own. */
static void
read_all(const struct engine *e, const token_t *text, size_t n, float *logits, float *hidden)
{
    struct context *c;
    struct err err = {0};
    const struct context_options options = {.ctx = 64};
    const uint32_t layers = e->model->desc.n_layers;
    assert_true(context_open(&c, e->ops, e->backend, e->weights, &e->model->desc, &options, &err));
    const seq_t seq = context_sequence(c);
    assert_true(context_prefill(c, seq, text, n, NULL, NULL));
    const slot_t last = context_at(c, seq, (uint32_t)n - 1);
    assert_true(logits == NULL || context_read_logits(c, last, layers, logits));
    assert_true(hidden == NULL || context_read_hidden(c, last, layers, hidden));
    context_close(c);
}

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
check_hidden(const struct engine *draft, const token_t *text, size_t n, const float *x)
{
    const struct model_desc *d = &draft->model->desc;
    float *hidden = malloc(d->width * sizeof *hidden), *norm = malloc(d->width * sizeof *norm);
    double squares = 0;
    read_all(draft, text, n, NULL, hidden);
    tensor_row(&d->final_norm, 0, norm);
    for (uint32_t k = 0; k < d->width; k++)
        squares += (double)hidden[k] * (double)hidden[k];
    for (uint32_t k = 0; k < d->width; k++) {
        const double expected = (double)hidden[k] * (double)norm[k] / sqrt(squares / d->width + (double)d->rms_eps);
        assert_true(fabs(expected - (double)x[k]) < 1e-5 * (1 + fabs(expected)));
    }
    free(hidden);
    free(norm);
}

static void
test_greedy_candidates_are_labelled_by_what_the_target_says(void **unused)
{
    (void)unused;
    struct engine *target = open_tiny(&(struct tinymodel){.seed = seed, .sharpness = 8}),
                  *draft = open_tiny(&(struct tinymodel){.seed = seed, .sharpness = 8, .n_layers = 2});
    const uint32_t vocab = target->model->desc.vocab, more = draft->model->desc.vocab, width = draft->model->desc.width;
    const struct accept_data_options options = {.prompt = PROMPT, .response = RESPONSE, .seed = seed};
    struct accept_data *a;
    struct err err = {0};
    assert_true(accept_data_open(&a, target, draft, &options, NULL, &err));
    float *z = malloc(more * sizeof *z), *x = malloc(RESPONSE * width * sizeof *x), label[RESPONSE];
    for (token_t first = 300; first < 306; first++) {
        token_t text[PROMPT + RESPONSE] = {1, 280, first, 290, 285}, drafted[PROMPT + RESPONSE];
        size_t rows;
        assert_true(accept_data_prompt(a, (uint64_t)first, text, PROMPT, x, label, &rows, &err));
        assert_true(rows >= 1 && rows <= RESPONSE);
        memcpy(drafted, text, sizeof drafted);
        for (size_t i = 0; i < rows; i++) {
            read_all(draft, text, PROMPT + i, z, NULL);
            drafted[PROMPT + i] = argmax(z, more);
            read_all(target, text, PROMPT + i, z, NULL);
            text[PROMPT + i] = argmax(z, vocab);
            assert_true(fabs((double)label[i] - (drafted[PROMPT + i] == text[PROMPT + i])) < 0.1);
            check_hidden(draft, drafted, PROMPT + i + 1, x + i * width); /* none is mixed in */
        }
        assert_true(rows == RESPONSE || tokenizer_is_end(target->model->tokenizer, text[PROMPT + rows - 1]));
    }
    free(z);
    free(x);
    accept_data_close(a);
    engine_close(draft);
    engine_close(target);
}

/* E[min(1, p(Y) / q(Y))] = Σ min(p, q), of the first position, whatever is mixed in. */
static void
test_the_mean_label_is_the_overlap(void **unused)
{
    (void)unused;
    enum { N = 3000 };
    struct engine *target = open_tiny(&(struct tinymodel){.seed = seed}),
                  *draft = open_tiny(&(struct tinymodel){.seed = seed + 1});
    const uint32_t vocab = target->model->desc.vocab;
    const struct accept_data_options options = {
        .prompt = 3, .response = 1, .temperature = 0.7f, .mixing = 0.2, .seed = seed};
    const token_t text[3] = {1, 300, 270};
    struct accept_data *a;
    struct err err = {0};
    float *p = malloc(vocab * sizeof *p), *q = malloc(vocab * sizeof *q);
    float *x = malloc(draft->model->desc.width * sizeof *x), label;
    read_all(target, text, 3, p, NULL);
    read_all(draft, text, 3, q, NULL);
    double sum_p = 0, sum_q = 0, overlap = 0, sum = 0, squares = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        sum_p += exp((double)p[i] / 0.7);
        sum_q += exp((double)q[i] / 0.7);
    }
    for (uint32_t i = 0; i < vocab; i++)
        overlap += fmin(exp((double)p[i] / 0.7) / sum_p, exp((double)q[i] / 0.7) / sum_q);
    assert_true(accept_data_open(&a, target, draft, &options, NULL, &err));
    size_t n = 0;
    for (uint64_t i = 0; i < N; i++) {
        size_t rows;
        assert_true(accept_data_prompt(a, i, text, 3, x, &label, &rows, &err));
        for (size_t k = 0; k < rows; k++, n++) {
            sum += (double)label;
            squares += (double)label * (double)label;
        }
    }
    const double mean = sum / (double)n, deviation = sqrt((squares / (double)n - mean * mean) / (double)n);
    assert_true(fabs(mean - overlap) < 4.5 * deviation);
    assert_true(fabs((double)n / N - 0.8) < 4.5 * sqrt(0.16 / N)); /* a fifth is the target's own */
    free(p);
    free(q);
    free(x);
    accept_data_close(a);
    engine_close(draft);
    engine_close(target);
}

static void
test_a_model_as_its_own_draft_is_always_accepted(void **unused)
{
    (void)unused;
    struct engine *target = open_tiny(&(struct tinymodel){.seed = seed});
    const struct accept_data_options options = {
        .prompt = 4, .response = RESPONSE, .temperature = 1, .mixing = 0.15, .seed = seed};
    const token_t text[4] = {1, 300, 270, 299};
    struct accept_data *a;
    struct err err = {0};
    float *x = malloc(RESPONSE * target->model->desc.width * sizeof *x), label[RESPONSE];
    assert_true(accept_data_open(&a, target, target, &options, NULL, &err));
    for (uint64_t i = 0; i < 20; i++) {
        size_t rows;
        assert_true(accept_data_prompt(a, i, text, 4, x, label, &rows, &err));
        for (size_t k = 0; k < rows; k++)
            assert_true(label[k] > 0.999f);
    }
    free(x);
    accept_data_close(a);
    engine_close(target);
}

static void
test_other_vocabularies_are_refused_by_the_first_token_that_differs(void **unused)
{
    (void)unused;
    struct engine *one = open_tiny(&(struct tinymodel){.seed = seed}),
                  *nasty = open_tiny(&(struct tinymodel){.seed = seed, .nasty = true}),
                  *larger = open_tiny(&(struct tinymodel){.seed = seed, .vocab = 352});
    struct err err = {0};
    const struct tokenizer *t = one->model->tokenizer;
    assert_true(vocabularies_match(t, "one", t, "two", &err));
    assert_false(vocabularies_match(t, "one", nasty->model->tokenizer, "two", &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "token 259 "));
    assert_non_null(strstr(err.text, "one and two"));
    /* the tiny vocabularies end in control tokens, so a larger one differs where the smaller one ends */
    assert_false(vocabularies_match(t, "one", larger->model->tokenizer, "two", &err));
    assert_non_null(strstr(err.text, "token 318 "));
    const struct accept_data_options options = {.prompt = 4, .response = 4};
    struct accept_data *a;
    assert_false(accept_data_open(&a, one, nasty, &options, NULL, &err));
    assert_null(a);
    engine_close(one);
    engine_close(nasty);
    engine_close(larger);
}

int
main(void)
{
    seed = seed_or(7);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_candidates_are_labelled_by_what_the_target_says),
        cmocka_unit_test(test_the_mean_label_is_the_overlap),
        cmocka_unit_test(test_a_model_as_its_own_draft_is_always_accepted),
        cmocka_unit_test(test_other_vocabularies_are_refused_by_the_first_token_that_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
