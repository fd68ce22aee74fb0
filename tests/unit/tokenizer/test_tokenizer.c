/* The tokenizer against an independent one (goldens from the sentencepiece library), and what must hold for any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/golden/gguf_bytes.h"
#include "tests/golden/tinymodel.h"

#define BUNDLED bundled_model_path()

struct opened {
    unsigned char *bytes;
    struct gguf *file;
    struct tokenizer *tokenizer;
};

static struct opened
open_tiny(const struct tinymodel *options)
{
    struct opened o = {0};
    struct err err = {0};
    size_t len;
    if (!tinymodel_build(options, &o.bytes, &len, &err) || !gguf_parse(&o.file, "tiny", o.bytes, len, &err) ||
        !tokenizer_open(&o.tokenizer, o.file, &err))
        fail_msg("%s", err.text);
    return o;
}

static struct opened
open_bundled(void)
{
    struct opened o = {0};
    struct err err = {0};
    if (!gguf_open(&o.file, BUNDLED, &err) || !tokenizer_open(&o.tokenizer, o.file, &err))
        fail_msg("%s", err.text);
    return o;
}

static void
close_opened(struct opened *o)
{
    tokenizer_close(o->tokenizer);
    gguf_close(o->file);
    free(o->bytes);
}

static token_t *
encode(const struct tokenizer *t, const char *text, size_t len, bool bos, bool special, size_t *n)
{
    token_t *ids;
    struct err err = {0};
    if (!tokenizer_encode(t, text, len, (struct tokenize_options){.bos = bos, .special = special}, &ids, n, &err))
        fail_msg("%s", err.text);
    return ids;
}

static void
assert_ids(const struct tokenizer *t, const char *text, bool bos, bool special, const token_t *expected, size_t n)
{
    size_t got;
    token_t *ids = encode(t, text, strlen(text), bos, special, &got);
    assert_int_equal(got, n);
    assert_memory_equal(ids, expected, n * sizeof *ids);
    free(ids);
}

static void
assert_round_trip(const struct tokenizer *t, const char *text, size_t len)
{
    struct err err = {0};
    size_t n, n_back;
    char *back;
    token_t *ids = encode(t, text, len, true, false, &n);
    assert_true(tokenizer_decode(t, ids, n, &back, &n_back, &err));
    assert_int_equal(n_back, len);
    assert_memory_equal(back, text, len);
    assert_int_equal(back[len], '\0');
    free(back);
    free(ids);
}

/* ---- goldens ---- */

static size_t
parse_hex(const char *hex, char *out)
{
    size_t n = 0;
    for (; hex[2 * n] != '\0' && hex[2 * n] != '\t'; n++) {
        char pair[3] = {hex[2 * n], hex[2 * n + 1], '\0'};
        out[n] = (char)strtoul(pair, NULL, 16);
    }
    return n;
}

static size_t
compare_with_golden(const struct tokenizer *t, const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0, lines = 0;
    while (getline(&line, &room, file) > 0) {
        lines++;
        char *ids = strchr(line, '\t'), *text = malloc(room);
        assert_non_null(ids);
        assert_non_null(text);
        size_t len = parse_hex(line, text), n, i = 0;
        token_t *got = encode(t, text, len, false, false, &n);
        char *at = ids + 1, *end;
        for (long id; id = strtol(at, &end, 10), end != at; at = end, i++)
            if (i >= n || got[i] != id)
                fail_msg("%s line %zu: token %zu should be %ld", path, lines, i, id);
        if (i != n)
            fail_msg("%s line %zu: %zu tokens, should be %zu", path, lines, n, i);
        free(got);
        free(text);
    }
    free(line);
    fclose(file);
    return lines;
}

static void
test_bundled_vocabulary_agrees_with_sentencepiece(void **state)
{
    (void)state;
    struct opened o = open_bundled();
    assert_true(compare_with_golden(o.tokenizer, "tests/golden/tokenizer_fables.tsv") >= 400);
    close_opened(&o);
}

static void
test_user_defined_tokens_agree_with_sentencepiece(void **state)
{
    (void)state;
    struct opened o = open_tiny(&(struct tinymodel){.vocab = 900, .n_layers = 1});
    assert_true(compare_with_golden(o.tokenizer, "tests/golden/tokenizer_tiny.tsv") >= 400);
    close_opened(&o);
}

/* ---- special tokens ---- */

static void
test_bos_is_put_in_front_only_when_asked_for(void **state)
{
    (void)state;
    struct opened o = open_bundled();
    const token_t with[] = {1, 1023}, without[] = {1023};
    assert_ids(o.tokenizer, "king", true, false, with, 2);
    assert_ids(o.tokenizer, "king", false, false, without, 1);
    assert_ids(o.tokenizer, "", true, false, with, 1);
    assert_ids(o.tokenizer, "", false, false, NULL, 0);
    close_opened(&o);
}

static void
test_control_tokens_are_recognised_only_when_asked_for(void **state)
{
    (void)state;
    struct opened o = open_bundled();
    const token_t both[] = {1, 1023, 2};
    assert_ids(o.tokenizer, "<s>king</s>", false, true, both, 3);
    assert_ids(o.tokenizer, "<s>", false, true, both, 1);
    size_t n;
    token_t *ids = encode(o.tokenizer, "<s>king</s>", 11, false, false, &n);
    assert_true(n > 3);
    for (size_t i = 0; i < n; i++)
        assert_true(tokenizer_kind(o.tokenizer, ids[i]) != TOKEN_CONTROL);
    free(ids);
    close_opened(&o);
}

static void
test_user_defined_tokens_are_always_recognised(void **state)
{
    (void)state;
    struct opened o = open_tiny(&(struct tinymodel){.no_space_prefix = true});
    const uint32_t note = tokenizer_size(o.tokenizer) - 1;
    assert_int_equal(tokenizer_kind(o.tokenizer, (token_t)note), TOKEN_USER);
    const token_t a = 259 + 1, expected[] = {a, (token_t)note, (token_t)note, a};
    assert_ids(o.tokenizer, "a<|note|><|note|>a", false, false, expected, 4);
    close_opened(&o);
}

static void
test_every_end_token_is_known(void **state)
{
    (void)state;
    struct opened o = open_tiny(&(struct tinymodel){0});
    const token_t eot = (token_t)tokenizer_size(o.tokenizer) - 2;
    assert_int_equal(tokenizer_bos(o.tokenizer), 1);
    assert_int_equal(tokenizer_eos(o.tokenizer), 2);
    for (token_t id = -2; id < eot + 4; id++)
        assert_int_equal(tokenizer_is_end(o.tokenizer, id), id == 2 || id == eot);
    close_opened(&o);
}

static void
test_control_tokens_are_text_only_when_shown(void **state)
{
    (void)state;
    struct opened o = open_bundled();
    assert_int_equal(tokenizer_bytes(o.tokenizer, 2, false).len, 0);
    const struct slice shown = tokenizer_bytes(o.tokenizer, 2, true);
    assert_int_equal(shown.len, 4);
    assert_memory_equal(shown.data, "</s>", 4);
    assert_int_equal(tokenizer_bytes(o.tokenizer, -1, true).len, 0);
    assert_int_equal(tokenizer_bytes(o.tokenizer, 1 << 30, true).len, 0);
    const struct slice space = tokenizer_bytes(o.tokenizer, 1023, false);
    assert_memory_equal(space.data, " king", 5);
    const struct slice newline = tokenizer_bytes(o.tokenizer, 4 + '\n', false);
    assert_int_equal(newline.len, 1);
    assert_int_equal(newline.data[0], '\n');
    close_opened(&o);
}

/* ---- any text ---- */

static void
test_dummy_space_goes_in_and_out_once(void **state)
{
    (void)state;
    static const char *const texts[] = {"", " ", "  ", "   x", "x ", " x", "\n x", " \n"};
    struct opened with = open_bundled(), without = open_tiny(&(struct tinymodel){.no_space_prefix = true});
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_round_trip(with.tokenizer, texts[i], strlen(texts[i]));
        assert_round_trip(without.tokenizer, texts[i], strlen(texts[i]));
    }
    close_opened(&with);
    close_opened(&without);
}

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static size_t
put_character(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0u) | c);
    return n;
}

/* Every code point but U+2581, which a SentencePiece vocabulary cannot tell from a space. */
static size_t
random_text(uint64_t *random, char *out, size_t characters)
{
    size_t len = 0;
    for (size_t i = 0; i < characters; i++) {
        static const uint32_t limits[] = {0x80, 0x80, 0x80, 0x100, 0x3000, 0x10000, 0x110000};
        uint32_t c = (uint32_t)(next_random(random) % limits[next_random(random) % 7]);
        if (next_random(random) % 6 == 0)
            c = ' ';
        if (c == 0x2581 || (c >= 0xd800 && c < 0xe000))
            c = 'e';
        len += put_character(out + len, c);
    }
    return len;
}

static void
test_random_unicode_comes_back_unchanged(void **state)
{
    (void)state;
    struct opened o = open_bundled(), tiny = open_tiny(&(struct tinymodel){.nasty = true});
    uint64_t random = (uint64_t)time(NULL) | 1;
    print_message("# seed %llu\n", (unsigned long long)random);
    char text[400];
    for (int i = 0; i < 3000; i++) {
        size_t len = random_text(&random, text, (size_t)(next_random(&random) % 100));
        assert_round_trip(o.tokenizer, text, len);
        assert_round_trip(tiny.tokenizer, text, len);
    }
    close_opened(&o);
    close_opened(&tiny);
}

static void
test_random_bytes_come_back_unchanged(void **state)
{
    (void)state;
    struct opened o = open_bundled(), tiny = open_tiny(&(struct tinymodel){.nasty = true});
    uint64_t random = (uint64_t)time(NULL) | 1;
    print_message("# seed %llu\n", (unsigned long long)random);
    char text[200];
    for (int i = 0; i < 3000; i++) {
        size_t len = (size_t)(next_random(&random) % sizeof text);
        for (size_t k = 0; k < len; k++)
            text[k] = (char)(next_random(&random) % 8 == 0 ? "\xe2\x96\x80\xf0\xc3\xff "[next_random(&random) % 7]
                                                           : (int)(next_random(&random) & 0xff));
        if (memmem(text, len, "\xe2\x96\x81", 3) != NULL)
            continue;
        assert_round_trip(o.tokenizer, text, len);
        assert_round_trip(tiny.tokenizer, text, len);
    }
    close_opened(&o);
    close_opened(&tiny);
}

/* By definition, without a heap: again and again the best pair of neighbours, the leftmost of equals. */
static size_t
naive_bpe(const struct tokenizer *t, const char *text, token_t *out)
{
    struct slice pieces[300];
    size_t n = 0;
    for (const char *c = text; *c != '\0'; c += pieces[n++].len)
        pieces[n] = (struct slice){c, utf8_character(c, strlen(c), NULL)};
    for (;;) {
        size_t best = n;
        token_t best_id = (token_t)tokenizer_size(t);
        for (size_t i = 0; i + 1 < n; i++)
            for (token_t id = 259; id < best_id; id++) { /* the tiny vocabulary's scores fall with the id */
                const struct slice piece = tokenizer_bytes(t, id, false);
                if (tokenizer_kind(t, id) == TOKEN_NORMAL && piece.len == pieces[i].len + pieces[i + 1].len &&
                    memcmp(piece.data, pieces[i].data, piece.len) == 0) {
                    best = i;
                    best_id = id;
                }
            }
        if (best == n)
            break;
        pieces[best].len += pieces[best + 1].len;
        memmove(&pieces[best + 1], &pieces[best + 2], (n - best - 2) * sizeof pieces[0]);
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = TOKEN_NONE;
        for (token_t id = 259; out[i] == TOKEN_NONE && id < (token_t)tokenizer_size(t); id++) {
            const struct slice piece = tokenizer_bytes(t, id, false);
            if (piece.len == pieces[i].len && memcmp(piece.data, pieces[i].data, piece.len) == 0)
                out[i] = id;
        }
    }
    return n;
}

static void
test_merging_by_heap_equals_merging_by_definition(void **state)
{
    (void)state;
    struct opened o = open_tiny(&(struct tinymodel){.vocab = 1200, .no_space_prefix = true, .n_layers = 1});
    uint64_t random = (uint64_t)time(NULL) | 1;
    print_message("# seed %llu\n", (unsigned long long)random);
    for (int round = 0; round < 60; round++) {
        char text[64];
        token_t expected[64];
        const size_t len = 1 + (size_t)(next_random(&random) % 60);
        for (size_t i = 0; i < len; i++)
            text[i] = "bcdaeio ab"[next_random(&random) % 10];
        text[len] = '\0';
        assert_ids(o.tokenizer, text, false, false, expected, naive_bpe(o.tokenizer, text, expected));
    }
    close_opened(&o);
}

static void
test_long_texts_do_not_take_quadratic_time(void **state)
{
    (void)state;
    struct opened o = open_bundled();
    const size_t len = 2u << 20; /* quadratic merging would take hours */
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'a', len);
    const clock_t start = clock();
    assert_round_trip(o.tokenizer, text, len);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 30);
    free(text);
    close_opened(&o);
}

/* Not a benchmark: the limit is far above what it takes, and far below what comparing every piece with every other does. */
static void
test_vocabulary_of_150000_pieces_opens_at_once(void **state)
{
    (void)state;
    enum { N = 150000 };
    struct gguf_bytes b = {0};
    put_header(&b, 3, 0, 3);
    put_key_text(&b, "tokenizer.ggml.model", "llama");
    put_key_array(&b, "tokenizer.ggml.tokens", GGUF_STRING, N);
    for (uint32_t i = 0; i < N; i++) {
        char piece[16];
        const int len = snprintf(piece, sizeof piece, "%08xab", (unsigned)(i * 2654435761u)); /* odd: all different */
        put_text(&b, piece, (size_t)len);
    }
    put_key_array(&b, "tokenizer.ggml.scores", GGUF_F32, N);
    for (uint32_t i = 0; i < N; i++)
        put_f32(&b, -(float)i);
    assert_false(b.failed);
    struct gguf *file;
    struct tokenizer *t;
    struct err err = {0};
    assert_true(gguf_parse(&file, "f", b.data, b.len, &err));
    const clock_t start = clock();
    assert_true(tokenizer_open(&t, file, &err));
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 1); /* some 20 ms without sanitizers */
    assert_int_equal(tokenizer_size(t), N);
    tokenizer_close(t);
    gguf_close(file);
    free(b.data);
}

/* ---- damaged vocabularies ---- */

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
    assert_true(gguf_parse(&file, "f", b.data, b.len, &err));
    const bool ok = tokenizer_open(&t, file, &err);
    snprintf(why, size, "%s", err.text);
    tokenizer_close(t);
    gguf_close(file);
    free(b.data);
    return ok;
}

static void
test_damaged_vocabularies_are_refused_with_a_reason(void **state)
{
    (void)state;
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
    assert_non_null(strstr(why, "score"));
}

static void
test_without_byte_tokens_unknown_characters_become_unk(void **state)
{
    (void)state;
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
    assert_true(gguf_parse(&file, "f", b.data, b.len, &err));
    assert_true(tokenizer_open(&t, file, &err));
    const token_t expected[] = {1, 0, 1};
    assert_ids(t,
               "a\xc3\xa9"
               "a",
               true, true, expected, 3);
    tokenizer_close(t);
    gguf_close(file);
    free(b.data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_vocabulary_agrees_with_sentencepiece),
        cmocka_unit_test(test_user_defined_tokens_agree_with_sentencepiece),
        cmocka_unit_test(test_bos_is_put_in_front_only_when_asked_for),
        cmocka_unit_test(test_control_tokens_are_recognised_only_when_asked_for),
        cmocka_unit_test(test_user_defined_tokens_are_always_recognised),
        cmocka_unit_test(test_every_end_token_is_known),
        cmocka_unit_test(test_control_tokens_are_text_only_when_shown),
        cmocka_unit_test(test_dummy_space_goes_in_and_out_once),
        cmocka_unit_test(test_random_unicode_comes_back_unchanged),
        cmocka_unit_test(test_random_bytes_come_back_unchanged),
        cmocka_unit_test(test_merging_by_heap_equals_merging_by_definition),
        cmocka_unit_test(test_long_texts_do_not_take_quadratic_time),
        cmocka_unit_test(test_vocabulary_of_150000_pieces_opens_at_once),
        cmocka_unit_test(test_damaged_vocabularies_are_refused_with_a_reason),
        cmocka_unit_test(test_without_byte_tokens_unknown_characters_become_unk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
