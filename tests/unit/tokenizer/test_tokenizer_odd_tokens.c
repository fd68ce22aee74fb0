/* Tokens of a byte-level GGUF that no text is split into, added tokens among the normal ones, and a Unigram
 * vocabulary. */
#include "engine/model/tokenizer/tokenizer.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/test.h"

/* An emoji's joiner, U+200D, as in Command-R's vocabulary: once literally, and once in the characters that represent
 * its bytes. */
static const char *const pieces[] = {"a",        "<|endoftext|>", "\xe2\x80\x8d",     "\xc3\xa2",
                                     "\xc4\xa2", "\xc4\xaf",      "\xc3\xa2\xc4\xa2", "\xc3\xa2\xc4\xa2\xc4\xaf",
                                     "b"};
enum { A, END, JOINER_AS_IT_IS, BYTE_E2, BYTE_80, BYTE_8D, TWO_BYTES, JOINER, B, PIECES };
static const char *const merges[] = {"\xc3\xa2 \xc4\xa2", "\xc3\xa2\xc4\xa2 \xc4\xaf"};

static struct tokenizer *
open_odd(struct gguf **file, struct gguf_bytes *bytes)
{
    struct err err = {0};
    struct tokenizer *t = NULL;
    *bytes = (struct gguf_bytes){0};
    put_header(bytes, 3, 0, 5);
    put_key_text(bytes, "tokenizer.ggml.model", "gpt2");
    put_key_text(bytes, "tokenizer.ggml.pre", "gpt-2");
    put_key_u32(bytes, "tokenizer.ggml.eos_token_id", END); /* all tokens are normal ones */
    put_key_array(bytes, "tokenizer.ggml.tokens", GGUF_STRING, PIECES);
    for (size_t i = 0; i < PIECES; i++)
        put_text(bytes, pieces[i], strlen(pieces[i]));
    put_key_array(bytes, "tokenizer.ggml.merges", GGUF_STRING, 2);
    for (size_t i = 0; i < 2; i++)
        put_text(bytes, merges[i], strlen(merges[i]));
    assert_false(bytes->failed);
    assert_ok(gguf_parse(file, "f", bytes->data, bytes->len, &err), err);
    assert_ok(tokenizer_open(&t, *file, &err), err);
    return t;
}

static void
assert_ids(const struct tokenizer *t, const char *text, bool special, const token_t *expected, size_t n_expected)
{
    struct err err = {0};
    token_t *ids;
    size_t n;
    assert_ok(tokenizer_encode(t, text, strlen(text), (struct tokenize_options){.special = special}, &ids, &n, &err),
              err);
    assert_int_equal(n, n_expected);
    assert_memory_equal(ids, expected, n * sizeof *ids);
    free(ids);
}

TEST(a_text_is_cut_into_tokens_for_its_bytes)
{
    struct gguf *file;
    struct gguf_bytes bytes;
    struct tokenizer *t = open_odd(&file, &bytes);
    assert_ids(t, "a\xe2\x80\x8d", true, (token_t[]){A, JOINER}, 2);
    const struct slice joiner = tokenizer_bytes(t, JOINER_AS_IT_IS, false); /* it can still be decoded */
    assert_true(slice_is(joiner, "\xe2\x80\x8d"));
    tokenizer_close(t);
    gguf_close(file);
    free(bytes.data);
}

TEST(a_texts_end_among_the_normal_tokens_is_found_whole)
{
    struct gguf *file;
    struct gguf_bytes bytes;
    struct tokenizer *t = open_odd(&file, &bytes);
    assert_ids(t, "a<|endoftext|>b", true, (token_t[]){A, END, B}, 3);
    assert_true(tokenizer_is_end(t, END));
    assert_int_equal(tokenizer_bytes(t, END, false).len, 0); /* it has no text */
    tokenizer_close(t);
    gguf_close(file);
    free(bytes.data);
}

/* ---- vocabularies of a few tokens ---- */

static struct tokenizer *
open_written(struct gguf **file, struct gguf_bytes *b, const char *const *written, const int *kinds,
             const float *scores, uint64_t n, const char *model)
{
    struct err err = {0};
    struct tokenizer *t = NULL;
    put_header(b, 3, 0, 4 + (scores == NULL));
    put_key_text(b, "tokenizer.ggml.model", model);
    put_key_array(b, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        put_text(b, written[i], strlen(written[i]));
    put_key_array(b, "tokenizer.ggml.token_type", GGUF_I32, n);
    for (size_t i = 0; i < n; i++)
        put_bytes(b, &kinds[i], 4);
    if (scores != NULL) {
        put_key_array(b, "tokenizer.ggml.scores", GGUF_F32, n);
        put_bytes(b, scores, n * sizeof *scores);
    } else {
        put_key_text(b, "tokenizer.ggml.pre", "gpt-2");
        put_key_array(b, "tokenizer.ggml.merges", GGUF_STRING, 1);
        put_text(b, "a >", 3);
    }
    assert_false(b->failed);
    if (!gguf_parse(file, "f", b->data, b->len, &err) || !tokenizer_open(&t, *file, &err))
        fail_msg("%s", err.text);
    return t;
}

static void
close_written(struct tokenizer *t, struct gguf *file, struct gguf_bytes *b)
{
    tokenizer_close(t);
    gguf_close(file);
    free(b->data);
}

TEST(a_unigram_vocabulary_in_gguf_cuts_by_score)
{
    static const char *const written[] = {"<pad>", "</s>", "<unk>", "\xe2\x96\x81",  "\xe2\x96\x81the",
                                          "re",    "t",    "here",  "\xe2\x96\x81t", "h"};
    static const int kinds[] = {3, 3, 2, 1, 1, 1, 1, 1, 1, 1};
    static const float scores[] = {0, 0, 0, -3, -2, -2, -5, -4, -3.5f, -6};
    struct gguf *file;
    struct gguf_bytes b = {0};
    struct tokenizer *t = open_written(&file, &b, written, kinds, scores, 10, "t5");
    assert_string_equal(tokenizer_description(t), "SentencePiece Unigram");
    assert_ids(t, " there  there!", false, (token_t[]){4, 5, 4, 5, 2}, 5); /* -4, not -7.5 */
    close_written(t, file, &b);
}

TEST(tokens_that_no_merge_makes_are_added_tokens)
{
    static const char *const written[] = {"a", ">", "<", "a>", "<fim_prefix>", "<a>", "f"};
    static const int kinds[] = {1, 1, 1, 1, 1, 1, 1};
    struct gguf *file;
    struct gguf_bytes b = {0};
    struct tokenizer *t = open_written(&file, &b, written, kinds, NULL, 7, "gpt2");
    assert_int_equal(tokenizer_kind(t, 4), TOKEN_CONTROL);
    assert_int_equal(tokenizer_kind(t, 3), TOKEN_NORMAL);
    assert_ids(t, "a<fim_prefix>a>", true, (token_t[]){0, 4, 0, 1}, 4);
    close_written(t, file, &b);
}
