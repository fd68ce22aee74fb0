/* The order of a vocabulary's tokens by id and by counts, and the file of counts. */
#include <unistd.h>

#include "engine/model/token_rank.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "tests/rigs/test.h"

#define VOCAB 400

static struct tokenizer *tokenizer; /* of VOCAB - 8 tokens, so that the last 8 ids are padding */
static char path[64];

static int
open_all(void **state)
{
    struct err err = {0};
    (void)state;
    snprintf(path, sizeof path, "/tmp/specscope-counts-%d", (int)getpid());
    return tokenizer_synthetic(&tokenizer, VOCAB - 8, "test", &err) ? 0 : -1;
}

static int
close_all(void **state)
{
    (void)state;
    unlink(path);
    tokenizer_close(tokenizer);
    return 0;
}

TEST(without_counts_the_order_is_that_of_the_ids_with_control_tokens_and_padding_last)
{
    token_t ids[VOCAB];
    struct err err = {0};
    uint32_t n = 0;
    assert_ok(token_rank(tokenizer, VOCAB, NULL, ids, &err), err);
    for (int pass = 0; pass < 2; pass++)
        for (token_t t = 0; t < VOCAB; t++) {
            const bool last = t >= VOCAB - 8 || tokenizer_kind(tokenizer, t) == TOKEN_CONTROL ||
                              tokenizer_kind(tokenizer, t) == TOKEN_UNKNOWN;
            if (last == (pass == 1))
                assert_int_equal(ids[n++], t);
        }
    assert_int_equal(n, VOCAB);
    assert_false(token_ranks_last(tokenizer, ids[0]));
    assert_true(token_ranks_last(tokenizer, VOCAB - 1));
}

TEST(counted_tokens_are_first_in_descending_order_and_the_others_are_in_the_order_of_ids)
{
    uint64_t counts[VOCAB] = {0};
    token_t ids[VOCAB], plain[VOCAB];
    struct err err = {0};
    counts[300] = 7;
    counts[20] = 3;
    counts[10] = 3;
    counts[0] = 1; /* a control token that the text had */
    assert_ok(token_rank(tokenizer, VOCAB, counts, ids, &err), err);
    assert_ok(token_rank(tokenizer, VOCAB, NULL, plain, &err), err);
    const token_t first[] = {300, 10, 20, 0};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ids[i], first[i]);
    uint32_t n = 4;
    for (uint32_t i = 0; i < VOCAB; i++)
        if (counts[plain[i]] == 0)
            assert_int_equal(ids[n++], plain[i]);
    assert_int_equal(n, VOCAB);
}

TEST(a_file_has_the_counts_that_were_written)
{
    uint64_t counts[VOCAB] = {0}, again[VOCAB];
    struct err err = {0};
    for (uint32_t i = 0; i < VOCAB; i += 3)
        counts[i] = 1 + i * i * 1000003ull;
    assert_ok(token_counts_write(path, counts, VOCAB, &err), err);
    assert_ok(token_counts_write(path, counts, VOCAB, &err), err); /* replaces a file of its own kind */
    assert_ok(token_counts_read(path, again, VOCAB, &err), err);
    for (uint32_t i = 0; i < VOCAB; i++)
        assert_int_equal(again[i], counts[i]);
}

static void
refuses(const char *text, const char *why)
{
    uint64_t counts[VOCAB];
    struct err err = {0};
    assert_false(token_counts_parse("f", text, strlen(text), counts, VOCAB, &err));
    assert_contains(err.text, why);
}

TEST(files_that_are_wrong_are_refused_with_the_line)
{
    refuses("{}", "f:1: not a file of token counts: the first line is not 'specscope token counts 1'");
    refuses("specscope token counts 1\n400\n", "f:2: not a file of token counts: the second line");
    refuses("specscope token counts 1\nvocabulary 401\n", "counts for a vocabulary of 401 tokens, not of 400");
    refuses("specscope token counts 1\nvocabulary 400\n1 2\n3\n", "f:4: not a file of token counts: the line is not");
    refuses("specscope token counts 1\nvocabulary 400\n400 2\n", "has no token with this id");
    refuses("specscope token counts 1\nvocabulary 400\n1 2\n1 2\n", "f:4: not a file of token counts: the token is");
    refuses("specscope token counts 1\nvocabulary 400\n1 99999999999999999999\n", "the line is not 'ID COUNT'");
}

FIXTURE(open_all, close_all);
