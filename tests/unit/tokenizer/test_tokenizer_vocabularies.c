/* Vocabularies that are large, damaged, or lack tokens for bytes. */
#include "tests/rigs/test.h"

enum { PIECE = 10 }; /* bytes */

static uint64_t compared; /* whole pieces, counted by the index, whose source is included */

static int
counted_memcmp(const void *a, const void *b, size_t n)
{
    compared += n == PIECE;
    return memcmp(a, b, n);
}

#define memcmp counted_memcmp
#include "engine/model/tokenizer/tokenizer_make.c"
#undef memcmp

#include "engine/model/files/gguf.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/tokenizer_rig.h"

/* Opens a vocabulary of so many pieces of PIECE bytes. Returns the number of comparisons between pieces. */
static uint64_t
comparisons_of(uint32_t n)
{
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 3);
    put_key_text(&b, "tokenizer.ggml.model", "llama");
    put_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (uint32_t i = 0; i < n; i++) {
        char piece[16];
        const int len = snprintf(piece, sizeof piece, "%08xab", (unsigned)(i * 2654435761u)); /* odd: all different */
        put_text(&b, piece, (size_t)len);
    }
    put_key_array(&b, "tokenizer.ggml.scores", GGUF_F32, n);
    for (uint32_t i = 0; i < n; i++)
        put_f32(&b, -(float)i);
    assert_false(b.failed);
    struct gguf *file;
    struct tokenizer *t;
    struct err err = {0};
    assert_ok(gguf_parse(&file, "f", b.data, b.len, &err), err);
    compared = 0;
    assert_ok(tokenizer_open(&t, file, &err), err);
    const uint64_t n_compared = compared;
    assert_int_equal(tokenizer_size(t), n);
    tokenizer_close(t);
    gguf_close(file);
    free(b.data);
    return n_compared;
}

/* A piece is compared with few others; comparing every piece with every other would be n² / 2. */
TEST(opening_a_vocabulary_compares_a_piece_with_few_others)
{
    for (uint32_t n = 150000 / 8; n <= 150000; n *= 8) {
        const uint64_t few = comparisons_of(n);
        assert_in_range(few, 1, 4 * (uint64_t)n);
    }
}

struct vocabulary {
    const char *model;
    uint32_t n, n_scores, n_types;
    uint32_t type;    /* of every token */
    const char *text; /* of every token but the first, which is "x" */
    float score;
    uint32_t eos;
    bool collapse;
};

static bool
opens(const struct vocabulary *v, char *why, size_t size)
{
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 6);
    put_key_text(&b, "tokenizer.ggml.model", v->model);
    put_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        put_text(&b, i == 0 && v->type != 6 ? "x" : v->text, i == 0 && v->type != 6 ? 1 : strlen(v->text));
    put_key_array(&b, "tokenizer.ggml.scores", GGUF_F32, v->n_scores);
    for (uint32_t i = 0; i < v->n_scores; i++)
        put_f32(&b, v->score);
    put_key_array(&b, "tokenizer.ggml.token_type", GGUF_I32, v->n_types);
    for (uint32_t i = 0; i < v->n_types; i++)
        put_u32(&b, v->type);
    put_key_u32(&b, "tokenizer.ggml.eos_token_id", v->eos);
    put_key_bool(&b, "tokenizer.ggml.remove_extra_whitespaces", v->collapse);
    assert_false(b.failed);
    struct gguf *file;
    struct tokenizer *t = NULL;
    struct err err = {0};
    assert_ok(gguf_parse(&file, "f", b.data, b.len, &err), err);
    const bool ok = tokenizer_open(&t, file, &err);
    snprintf(why, size, "%s", err.text);
    tokenizer_close(t);
    gguf_close(file);
    free(b.data);
    return ok;
}

TEST(damaged_vocabularies_are_refused_with_a_reason)
{
    const struct {
        struct vocabulary v;
        const char *says; /* NULL: it opens */
    } cases[] = {
        {{"llama", 3, 3, 3, 1, "y", 0, 2, false}, NULL},
        {{"llama", 3, 3, 3, 1, "", 0, UINT32_MAX, false}, NULL}, /* empty pieces, no EOS */
        {{"llama", 3, 3, 3, 6, "<0x0a>", 0, 2, false}, NULL},    /* one byte three times */
        {{"gpt2\x1b[2J", 3, 3, 3, 1, "y", 0, 2, false}, "gpt2\\x1b[2J"},
        {{"", 3, 3, 3, 1, "y", 0, 2, false}, "does not name its tokenizer"},
        {{"llama", 0, 0, 0, 1, "y", 0, 2, false}, "0 tokens"},
        {{"llama", 3, 2, 3, 1, "y", 0, 2, false}, "scores"},
        {{"llama", 3, 3, 4, 1, "y", 0, 2, false}, "token_type"},
        {{"llama", 3, 3, 3, 7, "y", 0, 2, false}, "unknown type 7"},
        {{"llama", 3, 3, 3, 6, "<0xG0>", 0, 2, false}, "<0xG0>"},
        {{"llama", 3, 3, 3, 1, "y", (float)0, 3, false}, "only 3 tokens"},
        {{"llama", 3, 3, 3, 1, "y", 0, 2, true}, "extra spaces"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char why[400];
        assert_int_equal(opens(&cases[i].v, why, sizeof why), cases[i].says == NULL);
        if (cases[i].says != NULL && strstr(why, cases[i].says) == NULL)
            fail_msg("case %zu says \"%s\", not \"%s\"", i, why, cases[i].says);
    }
    char why[400];
    union {
        uint32_t bits;
        float f;
    } nan = {0x7fc00000u};
    assert_false(opens(&(struct vocabulary){"llama", 3, 3, 3, 1, "y", nan.f, 2, false}, why, sizeof why));
    assert_contains(why, "score");
}

TEST(unknown_characters_become_unk_in_a_vocabulary_without_byte_tokens)
{
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 4);
    put_key_text(&b, "tokenizer.ggml.model", "llama");
    put_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, 2);
    put_text(&b, "<unk>", 5);
    put_text(&b, "a", 1);
    put_key_array(&b, "tokenizer.ggml.scores", GGUF_F32, 2);
    put_f32(&b, 0);
    put_f32(&b, 0);
    put_key_bool(&b, "tokenizer.ggml.add_space_prefix", false);
    struct gguf *file;
    struct tokenizer *t;
    struct err err = {0};
    assert_ok(gguf_parse(&file, "f", b.data, b.len, &err), err);
    assert_ok(tokenizer_open(&t, file, &err), err);
    const token_t expected[] = {1, 0, 1};
    assert_ids(t,
               "a\xc3\xa9"
               "a",
               (struct tokenize_options){.bos = true, .special = true}, expected, 3);
    tokenizer_close(t);
    gguf_close(file);
    free(b.data);
}
