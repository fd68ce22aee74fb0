/* Answers of the target to prompts, against reading every text from its beginning. */
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/training/answers.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define PROMPTS  7
#define RESPONSE 9

static uint64_t seed;

/* Prompts of 1 to 7 tokens. */
static void
set_prompts(token_t *tokens, size_t *begin)
{
    begin[0] = 0;
    for (size_t i = 0; i < PROMPTS; i++) {
        begin[i + 1] = begin[i] + 1 + i;
        for (size_t k = begin[i]; k < begin[i + 1]; k++)
            tokens[k] = k == begin[i] ? 1 : (token_t)(260 + (seed + 31 * k + i * i) % 50);
    }
}

static struct answers
answer(const struct engine *e, struct answers_options options)
{
    token_t tokens[PROMPTS * PROMPTS];
    size_t begin[PROMPTS + 1];
    struct answers a;
    struct err err = {0};
    set_prompts(tokens, begin);
    options.response = RESPONSE;
    assert_ok(answers_write(&a, e, tokens, begin, PROMPTS, &options, NULL, &err), err);
    assert_int_equal(a.n, PROMPTS);
    for (size_t i = 0; i < PROMPTS; i++) {
        assert_int_equal(a.at[i].prompt, begin[i + 1] - begin[i]);
        assert_memory_equal(a.at[i].text, tokens + begin[i], a.at[i].prompt * sizeof *tokens);
    }
    return a;
}

TEST(greedy_answers_are_the_argmax_of_the_text_read_from_its_beginning)
{
    struct engine *e = exact_rig_tiny(&(struct tinymodel){.seed = seed, .sharpness = 8}, NULL, NULL);
    const uint32_t vocab = e->model->desc.vocab;
    float *z = malloc(vocab * sizeof *z);
    struct answers a = answer(e, (struct answers_options){.sequences = 3, .sampling = {.top_p = 1}});
    uint64_t written = 0;
    for (size_t i = 0; i < PROMPTS; i++) {
        const struct answer *at = &a.at[i];
        for (uint32_t k = at->prompt; k < at->n; k++) {
            token_t best = 0;
            exact_rig_read(e, READS_TARGET, at->text, k, z, NULL);
            for (uint32_t v = 1; v < vocab; v++)
                best = z[v] > z[best] ? (token_t)v : best;
            assert_int_equal(at->text[k], best);
            assert_true(k + 1 == at->n || !tokenizer_is_end(e->model->tokenizer, best));
        }
        assert_true(at->n == at->prompt + RESPONSE || tokenizer_is_end(e->model->tokenizer, at->text[at->n - 1]));
        written += at->n - at->prompt;
    }
    assert_int_equal(a.written, written);
    answers_free(&a);
    free(z);
    engine_close(e);
}

TEST(sampled_answers_are_the_same_whatever_shares_their_passes)
{
    struct engine *e = exact_rig_tiny(&(struct tinymodel){.seed = seed}, NULL, NULL);
    const struct sampling sampling = {.temperature = 1, .top_k = 40, .top_p = 0.9f};
    struct answers alone = answer(e, (struct answers_options){.sequences = 1, .sampling = sampling, .seed = seed});
    struct answers other = answer(e, (struct answers_options){.sequences = 1, .sampling = sampling, .seed = seed + 1});
    size_t differing = 0;
    for (uint32_t sequences = 2; sequences <= PROMPTS + 2; sequences++) {
        struct answers a =
            answer(e, (struct answers_options){.sequences = sequences, .sampling = sampling, .seed = seed});
        for (size_t i = 0; i < PROMPTS; i++) {
            assert_int_equal(a.at[i].n, alone.at[i].n);
            assert_memory_equal(a.at[i].text, alone.at[i].text, a.at[i].n * sizeof *a.at[i].text);
        }
        answers_free(&a);
    }
    for (size_t i = 0; i < PROMPTS; i++)
        differing += memcmp(alone.at[i].text, other.at[i].text, alone.at[i].n * sizeof *alone.at[i].text) != 0;
    assert_greater(differing, PROMPTS / 2); /* the seed chooses the answers */
    answers_free(&alone);
    answers_free(&other);
    engine_close(e);
}

TEST(no_answer_is_begun_after_the_wanted_number_of_tokens)
{
    struct engine *e = exact_rig_tiny(&(struct tinymodel){.seed = seed}, NULL, NULL);
    struct answers all = answer(e, (struct answers_options){.sequences = 2, .sampling = {.top_p = 1}});
    const uint64_t wanted = (uint64_t)(all.at[0].n - all.at[0].prompt) + 2;
    struct answers a = answer(e, (struct answers_options){.sequences = 1, .tokens = wanted, .sampling = {.top_p = 1}});
    assert_int_equal(a.at[0].n, all.at[0].n);
    assert_int_equal(a.at[1].n, all.at[1].n); /* begun before, so written to its end */
    for (size_t i = 0; i < PROMPTS; i++)
        assert_true(i < 2 || a.at[i].n == 0 || a.at[i - 1].n > 0);
    assert_int_equal(a.at[PROMPTS - 1].n, 0);
    answers_free(&a);
    answers_free(&all);
    engine_close(e);
}

static atomic_bool cancel;

static void
cancel_after_two(void *user, const struct answers *a, size_t begun)
{
    int *passes = user;
    assert_int_equal(begun, 2);
    assert_int_equal(a->written, 2 * (uint64_t)++ * passes);
    atomic_store(&cancel, *passes == 2);
}

TEST(a_flag_ends_the_writing_within_a_pass)
{
    struct engine *e = exact_rig_tiny(&(struct tinymodel){.seed = seed}, NULL, NULL);
    const token_t tokens[] = {1, 280, 1, 290};
    const size_t begin[] = {0, 2, 4};
    int passes = 0;
    const struct answers_options options = {
        .response = 50, .sequences = 2, .sampling = {.top_p = 1}, .progress = cancel_after_two, .user = &passes};
    struct answers a;
    struct err err = {0};
    assert_false(answers_write(&a, e, tokens, begin, 2, &options, &cancel, &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_int_equal(passes, 2);
    answers_free(&a);
    engine_close(e);
}

int
main(void)
{
    seed = seed_or(20240617);
    return run_listed_tests();
}
