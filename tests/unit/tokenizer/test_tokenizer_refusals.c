/* Invalid or unsupported parts of tokenizer.json, and of GGUF's byte-level BPE, are refused with one line that names
 * them. */
#include <cjson/cJSON.h>

#include "engine/model/tokenizer/pretokenizer.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "tests/rigs/gguf_bytes.h"
#include "tests/rigs/test.h"

/* ---- tokenizer.json ---- */

#define BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}"

/* A tokenizer of few pieces in which one member is replaced. */
static bool
opens_json(const char *key, const char *value, const char *config, char *why, size_t size)
{
    cJSON *root =
        cJSON_Parse("{\"added_tokens\": [{\"id\": 5, \"content\": \"<s>\", \"special\": true}], \"normalizer\": null,"
                    "\"pre_tokenizer\": " BYTES ", \"post_processor\": null,"
                    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"\\u0120\": 3},"
                    "\"merges\": [\"a b\"]}}");
    cJSON *item = cJSON_Parse(value), *model = cJSON_GetObjectItem(root, "model");
    assert_non_null(root);
    assert_non_null(item);
    const char *dot = strchr(key, '.');
    cJSON *into = dot == NULL ? root : model;
    const char *name = dot == NULL ? key : dot + 1;
    if (cJSON_GetObjectItem(into, name) != NULL)
        assert_true(cJSON_ReplaceItemInObjectCaseSensitive(into, name, item));
    else
        assert_true(cJSON_AddItemToObject(into, name, item));
    char *text = cJSON_PrintUnformatted(root);
    assert_non_null(text);
    struct tokenizer *t;
    struct err err = {0};
    const struct tokenizer_files files = {.model = slice_of(text),
                                          .config = {config, config == NULL ? 0 : strlen(config)}};
    const bool ok = tokenizer_from_json(&t, &files, "folder", &err);
    assert_int_equal(ok, t != NULL);
    snprintf(why, size, "%s", err.text);
    tokenizer_close(t);
    cJSON_free(text);
    cJSON_Delete(root);
    return ok;
}

static const struct refusal {
    const char *key, *value, *says; /* says NULL: it opens */
} refusals[] = {
    {"normalizer", "null", NULL},
    {"normalizer", "{\"type\": \"Sequence\", \"normalizers\": []}", NULL},
    {"decoder", "null", NULL},
    {"decoder", "{\"type\": \"ByteLevel\"}", NULL},
    {"decoder", "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"ByteLevel\"}]}", NULL},
    {"decoder", "{\"type\": \"WordPiece\", \"prefix\": \"##\"}", "decoder 'WordPiece' is not supported"},
    {"decoder", "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": \"CTC\"}]}", "decoder 'CTC'"},
    {"decoder", "{\"type\": \"Sequence\", \"decoders\": 7}", "decoder 'Sequence'"},
    {"decoder", "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\"}, \"content\": \"x\"}", "decoder 'Replace'"},
    {"decoder", "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"(\"}, \"content\": \"x\"}", "cannot be used"},
    {"decoder", "{\"type\": \"Strip\", \"content\": \"ab\", \"start\": 1, \"stop\": 0}", "decoder 'Strip'"},
    {"decoder",
     "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": "
     "\"ab\"}, \"content\": \"\"}]}",
     "decoder 'Replace after Fuse'"},
    {"normalizer", "{\"type\": \"Lowercase\"}", "normalizer 'Lowercase' is not supported"},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"x\"}, \"content\": \"\"}", NULL},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"(\"}, \"content\": \"\"}", "cannot be used"},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {}, \"content\": \"\"}", "normalizer 'Replace'"},
    {"normalizer", "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AQ*=\"}",
     "precompiled_charsmap is damaged"},
    {"normalizer", "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"EAAAAA==\"}",
     "precompiled_charsmap is damaged"},
    {"normalizer", "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"\"}", NULL},
    {"normalizer", "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}", NULL},
    {"normalizer", "{}", "'without a type'"},
    {"pre_tokenizer", "null", NULL},
    {"pre_tokenizer", "{\"type\": \"BertPreTokenizer\"}", "pre-tokenizer 'BertPreTokenizer' is not supported"},
    {"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": \"Isolated\"}",
     "cannot be used"},
    {"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a&&[b]]\"}, \"behavior\": \"Isolated\"}",
     NULL},
    {"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a&&[b]\"}, \"behavior\": \"Isolated\"}",
     "class does not end"},
    {"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {}, \"behavior\": \"Isolated\"}", "0 bytes"},
    {"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"String\": \"x\"}, \"behavior\": \"Shuffled\"}",
     "'Shuffled'"},
    {"pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"_\"}", "'_' is not supported"},
    {"pre_tokenizer",
     "{\"type\": \"Sequence\", \"pretokenizers\": [" BYTES ", {\"type\": \"Metaspace\", \"replacement\": "
     "\"\\u2581\"}]}",
     "adds to words which it has turned into bytes"},
    {"pre_tokenizer",
     "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, {\"type\": \"Metaspace\", "
     "\"replacement\": "
     "\"\\u2581\"}, {\"type\": \"Metaspace\", \"replacement\": \"\\u2581\"}]}",
     "adds to words again"},
    {"pre_tokenizer", "{\"type\": \"Sequence\", \"pretokenizers\": [" BYTES ", " BYTES ", " BYTES "]}", "twice"},
    {"post_processor", "{\"type\": \"BertProcessing\"}", "post-processor 'BertProcessing' is not supported"},
    {"post_processor",
     "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}], "
     "\"special_tokens\": {\"<s>\": {\"ids\": [6]}}}",
     "'<s>' is not in the vocabulary"},
    {"post_processor",
     "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}], "
     "\"special_tokens\": {\"<s>\": {\"ids\": [5, 5, 5, 5, 5, 5, 5, 5, 5]}}}",
     "more than 8"},
    {"model", "null", "no model with a vocabulary"},
    {"model.type", "\"WordPiece\"", "its tokenizer is WordPiece, that of encoders like BERT, which write no text"},
    {"model.type", "\"Unigram\"", "no model with a vocabulary"},
    {"model", "{\"type\": \"Unigram\", \"vocab\": [[\"a\", -1]]}", "of a Unigram model 'ByteLevel' is not supported"},
    {"model.type", "\"WordLevel\"", "'WordLevel' is not supported"},
    {"model.vocab", "{}", "merge 0"}, /* the added token alone */
    {"model.vocab", "{\"a\": -1}", "id of token 'a'"},
    {"model.vocab", "{\"a\": 0.5}", "id of token 'a'"},
    {"model.vocab", "{\"a\": 1e300}", "id of token 'a'"},
    {"model.vocab", "{\"a\\u001b\": \"1\"}", "id of token 'a\\x1b'"},
    {"model.vocab", "{\"a\": 100000000}", "ids go up to 100000000"},
    {"model.merges", "[\"a c\"]", "merge 0"},
    {"model.merges", "[\"a b\", \"b a\"]", "merge 1"},
    {"model.merges", "[\"ab\"]", "merge 0"},
    {"model.merges", "[[\"a\"]]", "merge 0"},
    {"model.merges", "[[\"a\", 1]]", "merge 0"},
    {"model.merges", "[[\"a\", \"b\"]]", NULL},
    {"model.merges", "{\"a\": 1}", "no merges"},
    {"model.dropout", "0.1", "'dropout'"},
    {"model.end_of_word_suffix", "\"</w>\"", "'end_of_word_suffix'"},
    {"model.unk_token", "\"<unk>\"", "unknown token '<unk>'"},
    {"model.unk_token", "\"<s>\"", NULL},
    {"added_tokens", "[{\"id\": 9}]", "added_tokens"},
    {"added_tokens", "[{\"content\": \"x\"}]", "added_tokens"},
    {"added_tokens", "[7]", "added_tokens"},
    {"added_tokens", "[{\"id\": 0, \"content\": \"\"}]", NULL},
    {"added_tokens", "null", NULL},
};

TEST(parts_of_tokenizer_json_that_are_not_supported_are_named)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        char why[400];
        const char *says = r->says;
        const bool ok = opens_json(r->key, r->value, NULL, why, sizeof why);
        if (ok != (says == NULL) || (says != NULL && strstr(why, says) == NULL))
            fail_msg("%s = %s: \"%s\", should say \"%s\"", r->key, r->value, why, says == NULL ? "nothing" : says);
        if (!ok)
            assert_memory_equal(why, "folder: ", 8);
    }
}

TEST(invalid_json_is_refused)
{
    static const char *const texts[] = {"", "[", "[]", "7", "{\"model\":", "null"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tokenizer *t;
        struct err err = {0};
        assert_false(tokenizer_from_json(&t, &(struct tokenizer_files){.model = slice_of(texts[i])}, "folder", &err));
        assert_null(t);
        assert_contains(err.text, "tokenizer.json is no JSON object");
    }
    char why[400];
    assert_false(opens_json("added_tokens", "null", "{", why, sizeof why));
    assert_contains(why, "tokenizer_config.json is no JSON object");
    assert_true(opens_json("added_tokens", "null", "{\"bos_token\": 7, \"chat_template\": [1, {}]}", why, sizeof why));
}

/* ---- GGUF ---- */

struct byte_level {
    const char *pre; /* NULL: the file names none */
    const char *merge;
    bool no_merges;
};

static struct tokenizer *
open_byte_level(const struct byte_level *b, struct gguf **file, struct gguf_bytes *bytes, struct err *err)
{
    static const char *const pieces[] = {"a", "b", "ab", "\xc4\xa0"};
    *bytes = (struct gguf_bytes){0};
    put_header(bytes, 3, 0, (uint64_t)(2 + (b->pre != NULL) + !b->no_merges));
    put_key_text(bytes, "tokenizer.ggml.model", "gpt2");
    if (b->pre != NULL)
        put_key_text(bytes, "tokenizer.ggml.pre", b->pre);
    put_key_array(bytes, "tokenizer.ggml.tokens", GGUF_STRING, 4);
    for (size_t i = 0; i < 4; i++)
        put_text(bytes, pieces[i], strlen(pieces[i]));
    if (!b->no_merges) {
        put_key_array(bytes, "tokenizer.ggml.merges", GGUF_STRING, 1);
        put_text(bytes, b->merge, strlen(b->merge));
    }
    assert_false(bytes->failed);
    struct tokenizer *t = NULL;
    assert_true(gguf_parse(file, "f", bytes->data, bytes->len, err));
    tokenizer_open(&t, *file, err);
    return t;
}

TEST(damaged_byte_level_vocabularies_are_refused_with_a_reason)
{
    static const struct {
        struct byte_level b;
        const char *says; /* NULL: it opens */
    } cases[] = {
        {{"gpt-2", "a b", false}, NULL},
        {{"my-own\x1b", "a b", false}, "pre-tokenizer 'my-own\\x1b' (metadata 'tokenizer.ggml.pre') is not supported"},
        {{"llama", "a b", false}, "'llama'"}, /* a prefix of a name is not a name */
        {{"gpt-2", "", true}, "has no merges"},
        {{"gpt-2", "b a", false}, "merge 0 of tokenizer.ggml.merges, 'b a'"},
        {{"gpt-2", "ab", false}, "'ab'"},
        {{"gpt-2", " ", false}, "merge 0"},
        {{"gpt-2", "", false}, "merge 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        struct gguf *file;
        struct gguf_bytes bytes;
        struct tokenizer *t = open_byte_level(&cases[i].b, &file, &bytes, &err);
        if ((t != NULL) != (cases[i].says == NULL) || (t == NULL && strstr(err.text, cases[i].says) == NULL))
            fail_msg("case %zu says \"%s\"", i, err.text);
        tokenizer_close(t);
        gguf_close(file);
        free(bytes.data);
    }
}

TEST(a_file_that_names_no_pretokenizer_is_read_with_a_note)
{
    static const char *const names[] = {NULL, "default"};
    for (size_t i = 0; i < 2; i++) {
        struct err err = {0};
        struct gguf *file;
        struct gguf_bytes bytes;
        struct tokenizer *t = open_byte_level(&(struct byte_level){names[i], "a b", false}, &file, &bytes, &err);
        assert_non_null(t);
        assert_contains(tokenizer_note(t), "does not say how its tokenizer cuts words");
        tokenizer_close(t);
        gguf_close(file);
        free(bytes.data);
    }
}

TEST(bytes_without_a_token_are_left_out)
{
    struct err err = {0};
    struct gguf *file;
    struct gguf_bytes bytes;
    struct tokenizer *t = open_byte_level(&(struct byte_level){"gpt-2", "a b", false}, &file, &bytes, &err);
    token_t *ids;
    size_t n;
    assert_true(
        tokenizer_encode(t, "ab c\xff", 5, (struct tokenize_options){.bos = true, .eos = true}, &ids, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 3);
    free(ids);
    tokenizer_close(t);
    gguf_close(file);
    free(bytes.data);
}

/* ---- patterns ---- */

TEST(every_named_pretokenizer_can_be_used)
{
    static const char *const names[] = {"llama3",
                                        "llama-v3",
                                        "llama-bpe",
                                        "smaug-bpe",
                                        "dbrx",
                                        "qwen2",
                                        "deepseek-r1-qwen",
                                        "stablelm2",
                                        "gpt-2",
                                        "phi-2",
                                        "olmo",
                                        "mpt",
                                        "starcoder",
                                        "refact",
                                        "smollm",
                                        "codeshell",
                                        "command-r",
                                        "deepseek-llm",
                                        "deepseek-coder",
                                        "deepseek-v3",
                                        "tekken",
                                        "gpt-4o",
                                        "falcon",
                                        "default",
                                        ""};
    struct words words = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct pretokenizer *p;
        struct err err = {0};
        const struct pre_family *family = pre_family_find(names[i], strlen(names[i]));
        assert_non_null(family);
        if (!pretokenizer_of_family(&p, family, &err) || !pretokenizer_split(p, "a  b1\xff", 6, true, &words, &err))
            fail_msg("%s: %s", names[i], err.text);
        size_t len = 0;
        for (size_t w = 0; w < words.n; len += words.word[w++].len)
            assert_int_equal(words.word[w].at, len);
        assert_int_equal(len, 6);
        assert_memory_equal(words.text, "a  b1\xff", 6);
        pretokenizer_free(p);
    }
    words_free(&words);
    assert_null(pre_family_find("gpt", 3));
    assert_null(pre_family_find("gpt-2 phi-2", 11));
}

TEST(a_pattern_that_never_comes_to_an_end_is_given_up)
{
    struct pretokenizer *p = pretokenizer_new();
    struct words words = {0};
    struct err err = {0};
    assert_non_null(p);
    assert_ok(pretokenizer_add_split(p, "(x+x+)+[yz]", 11, false, SPLIT_ISOLATED, false, &err), err);
    char text[64];
    memset(text, 'x', sizeof text);
    assert_false(pretokenizer_split(p, text, sizeof text, true, &words, &err));
    assert_contains(err.text, "cannot be tokenized");
    words_free(&words);
    pretokenizer_free(p);
}
