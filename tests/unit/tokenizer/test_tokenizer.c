/* The tokenizer against an independent one (goldens from the sentencepiece library), and its special tokens. */
#include "cli/options/commands.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tokenizer_rig.h"

#define BUNDLED bundled_model_path()

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
        token_t *got = encode(t, text, len, (struct tokenize_options){0}, &n);
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

TEST(bundled_vocabulary_agrees_with_sentencepiece)
{
    struct opened o = open_gguf_tokenizer(BUNDLED);
    assert_at_least(compare_with_golden(o.tokenizer, "tests/golden/tokenizer_fables.tsv"), 400);
    close_opened(&o);
}

TEST(user_defined_tokens_agree_with_sentencepiece)
{
    struct opened o = open_tiny_tokenizer(&(struct tinymodel){.vocab = 900, .n_layers = 1});
    assert_at_least(compare_with_golden(o.tokenizer, "tests/golden/tokenizer_tiny.tsv"), 400);
    close_opened(&o);
}

/* ---- special tokens ---- */

TEST(bos_is_put_in_front_only_when_asked_for)
{
    struct opened o = open_gguf_tokenizer(BUNDLED);
    const token_t with[] = {1, 1023}, without[] = {1023};
    assert_ids(o.tokenizer, "king", (struct tokenize_options){.bos = true}, with, 2);
    assert_ids(o.tokenizer, "king", (struct tokenize_options){0}, without, 1);
    assert_ids(o.tokenizer, "", (struct tokenize_options){.bos = true}, with, 1);
    assert_ids(o.tokenizer, "", (struct tokenize_options){0}, NULL, 0);
    close_opened(&o);
}

TEST(control_tokens_are_recognised_only_when_asked_for)
{
    struct opened o = open_gguf_tokenizer(BUNDLED);
    const token_t both[] = {1, 1023, 2};
    assert_ids(o.tokenizer, "<s>king</s>", (struct tokenize_options){.special = true}, both, 3);
    assert_ids(o.tokenizer, "<s>", (struct tokenize_options){.special = true}, both, 1);
    size_t n;
    token_t *ids = encode(o.tokenizer, "<s>king</s>", 11, (struct tokenize_options){0}, &n);
    assert_greater(n, 3);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(tokenizer_kind(o.tokenizer, ids[i]), TOKEN_CONTROL);
    free(ids);
    close_opened(&o);
}

TEST(user_defined_tokens_are_always_recognised)
{
    struct opened o = open_tiny_tokenizer(&(struct tinymodel){.no_space_prefix = true});
    const uint32_t note = tokenizer_size(o.tokenizer) - 1;
    assert_int_equal(tokenizer_kind(o.tokenizer, (token_t)note), TOKEN_USER);
    const token_t a = 259 + 1, expected[] = {a, (token_t)note, (token_t)note, a};
    assert_ids(o.tokenizer, "a<|note|><|note|>a", (struct tokenize_options){0}, expected, 4);
    close_opened(&o);
}

TEST(every_end_token_is_known)
{
    struct opened o = open_tiny_tokenizer(&(struct tinymodel){0});
    const token_t eot = (token_t)tokenizer_size(o.tokenizer) - 2;
    assert_int_equal(tokenizer_bos(o.tokenizer), 1);
    assert_int_equal(tokenizer_eos(o.tokenizer), 2);
    for (token_t id = -2; id < eot + 4; id++)
        assert_int_equal(tokenizer_is_end(o.tokenizer, id), id == 2 || id == eot);
    close_opened(&o);
}

TEST(control_tokens_are_text_only_when_shown)
{
    struct opened o = open_gguf_tokenizer(BUNDLED);
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

TEST(dummy_space_goes_in_and_out_once)
{
    static const char *const texts[] = {"", " ", "  ", "   x", "x ", " x", "\n x", " \n"};
    struct opened with = open_gguf_tokenizer(BUNDLED),
                  without = open_tiny_tokenizer(&(struct tinymodel){.no_space_prefix = true});
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_round_trip(with.tokenizer, "with", texts[i], strlen(texts[i]));
        assert_round_trip(without.tokenizer, "without", texts[i], strlen(texts[i]));
    }
    close_opened(&with);
    close_opened(&without);
}
