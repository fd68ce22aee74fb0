/* Tokenizers of well-known model families against goldens from the tokenizers and sentencepiece libraries
 * (make_tokenizer_golden.py), each from tokenizer.json and from GGUF metadata. Compares merging with its definition. */
#include <cjson/cJSON.h>
#include <unistd.h>

#include "base/rng.h"
#include "engine/model/tokenizer/pretokenizer.h"
#include "engine/model/tokenizer/tokenizer_normalize.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tokenizer_rig.h"

static struct opened
open_json(const char *family)
{
    struct opened o = {0};
    struct err err = {0};
    size_t n_json, n_config;
    char *json = golden_text(family, "tokenizer.json", &n_json);
    char *config = golden_text(family, "tokenizer_config.json", &n_config);
    const struct tokenizer_files files = {.model = {json, n_json}, .config = {config, n_config}};
    assert_ok(tokenizer_from_json(&o.tokenizer, &files, family, &err), err);
    free(json);
    free(config);
    return o;
}

static struct opened
open_vocabulary(const char *family)
{
    char path[200];
    snprintf(path, sizeof path, TOKENIZERS "%s/vocab.gguf", family);
    return open_gguf_tokenizer(path);
}

/* ---- goldens ---- */

struct family {
    const char *name, *description; /* of the GGUF file */
    size_t lines;
};

static const struct family families[] = {
    {"llama-bpe", "byte-level BPE, llama-bpe", 550},
    {"qwen2", "byte-level BPE, qwen2", 550},
    {"gpt2", "byte-level BPE, gpt-2", 520},
    {"spm", "SentencePiece BPE", 520},
    {"smollm", "byte-level BPE, smollm", 300},
    {"deepseek-llm", "byte-level BPE, deepseek-llm", 300},
    {"deepseek-v3", "byte-level BPE, deepseek-v3", 300},
    {"deepseek-coder", "byte-level BPE, deepseek-coder", 300},
    {"falcon", "byte-level BPE, falcon", 300},
    {"tekken", "byte-level BPE, tekken", 300},
    {"gpt-4o", "byte-level BPE, gpt-4o", 300},
};
#define N_FAMILIES (sizeof families / sizeof *families)

TEST(ids_from_tokenizer_json_are_those_of_the_tokenizers_library)
{
    for (size_t i = 0; i < N_FAMILIES; i++) {
        struct opened o = open_json(families[i].name);
        assert_golden_ids(o.tokenizer, families[i].name, families[i].lines);
        close_opened(&o);
    }
    static const char *const without_gguf[] = {"spm-first", "flags", "splits", "spaced"};
    for (size_t i = 0; i < sizeof without_gguf / sizeof *without_gguf; i++) {
        struct opened o = open_json(without_gguf[i]);
        assert_golden_ids(o.tokenizer, without_gguf[i], 300);
        close_opened(&o);
    }
}

TEST(ids_from_gguf_are_those_of_the_same_vocabulary_in_json)
{
    for (size_t i = 0; i < N_FAMILIES; i++) {
        struct opened o = open_vocabulary(families[i].name);
        assert_string_equal(tokenizer_description(o.tokenizer), families[i].description);
        assert_string_equal(tokenizer_note(o.tokenizer), "");
        assert_golden_ids(o.tokenizer, families[i].name, families[i].lines);
        close_opened(&o);
    }
}

static void
assert_begins(const char *family, const struct opened *o, bool bos)
{
    size_t n;
    token_t *ids = encode(o->tokenizer, "x", 1, (struct tokenize_options){.bos = true, .eos = true}, &n);
    if ((ids[0] == tokenizer_bos(o->tokenizer)) != bos || tokenizer_kind(o->tokenizer, ids[n - 1]) == TOKEN_CONTROL)
        fail_msg("%s: begins with %d", family, (int)ids[0]);
    free(ids);
}

TEST(bos_goes_in_front_where_the_model_wants_it)
{
    static const struct {
        const char *family;
        bool bos;
        const char *eos;
    } expected[] = {{"llama-bpe", true, "<|end_of_text|>"},
                    {"qwen2", false, "<|im_end|>"},
                    {"gpt2", false, "<|endoftext|>"},
                    {"spm", true, "</s>"},
                    {"tekken", true, "</s>"},
                    {"smollm", false, "<|im_end|>"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct opened both[] = {open_json(expected[i].family), open_vocabulary(expected[i].family)};
        for (int k = 0; k < 2; k++) {
            const struct tokenizer *t = both[k].tokenizer;
            assert_begins(expected[i].family, &both[k], expected[i].bos);
            const struct slice eos = tokenizer_bytes(t, tokenizer_eos(t), true);
            assert_int_equal(eos.len, strlen(expected[i].eos));
            assert_memory_equal(eos.data, expected[i].eos, eos.len);
            assert_true(tokenizer_is_end(t, tokenizer_eos(t)));
            close_opened(&both[k]);
        }
    }
}

/* ---- any text ---- */

/* Qwen's tokenizer is left out: it normalises the text. */
TEST(random_unicode_and_random_bytes_come_back_unchanged)
{
    uint64_t random = seed_or(1);
    static const char *const lossless[] = {"llama-bpe", "gpt2", "spm", "falcon", "deepseek-v3", "tekken"};
    for (size_t f = 0; f < sizeof lossless / sizeof *lossless; f++) {
        struct opened both[] = {open_json(lossless[f]), open_vocabulary(lossless[f])};
        char text[400];
        for (int i = 0; i < 400; i++) {
            size_t len = random_text(&random, text, (size_t)(splitmix64(&random) % 100));
            assert_round_trip(both[i % 2].tokenizer, lossless[f], text, len);
            for (size_t k = 0; k < len; k++) /* some bytes are random */
                if (splitmix64(&random) % 8 == 0)
                    text[k] = (char)splitmix64(&random);
            if (memmem(text, len, "\xe2\x96\x81", 3) == NULL)
                assert_round_trip(both[i % 2].tokenizer, lossless[f], text, len);
        }
        close_opened(&both[0]);
        close_opened(&both[1]);
    }
}

/* ---- merging by definition ---- */

struct definition {
    cJSON *root;
    const cJSON *vocab;
    char **left, **right; /* (n) the merges, in order of rank */
    size_t n;
};

static struct definition
read_definition(const char *family)
{
    struct definition d = {0};
    size_t len, i = 0;
    char *text = golden_text(family, "tokenizer.json", &len);
    d.root = cJSON_ParseWithLength(text, len);
    free(text);
    const cJSON *model = cJSON_GetObjectItem(d.root, "model"), *merges = cJSON_GetObjectItem(model, "merges"), *m;
    d.vocab = cJSON_GetObjectItem(model, "vocab");
    d.n = (size_t)cJSON_GetArraySize(merges);
    d.left = calloc(d.n, sizeof *d.left);
    d.right = calloc(d.n, sizeof *d.right);
    cJSON_ArrayForEach(m, merges)
    {
        if (cJSON_IsArray(m)) {
            d.left[i] = strdup(m->child->valuestring);
            d.right[i++] = strdup(m->child->next->valuestring);
        } else {
            const char *space = strchr(m->valuestring, ' ');
            d.left[i] = strndup(m->valuestring, (size_t)(space - m->valuestring));
            d.right[i++] = strdup(space + 1);
        }
    }
    return d;
}

static void
free_definition(struct definition *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->left[i]);
        free(d->right[i]);
    }
    free(d->left);
    free(d->right);
    cJSON_Delete(d->root);
}

/* Applies the merge of the lowest rank at its leftmost place until no merge applies. */
static size_t
merge_by_definition(const struct definition *d, const char *word, size_t len, token_t *out)
{
    char *symbols[512];
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char character[3] = {0};
        byte_char_put(character, (unsigned char)word[i]);
        symbols[n++] = strdup(character);
    }
    for (size_t rank = 0; rank < d->n; rank++)
        for (size_t i = 0; i + 1 < n; i++)
            if (strcmp(symbols[i], d->left[rank]) == 0 && strcmp(symbols[i + 1], d->right[rank]) == 0) {
                char *joined = malloc(strlen(symbols[i]) + strlen(symbols[i + 1]) + 1);
                assert_non_null(joined);
                stpcpy(stpcpy(joined, symbols[i]), symbols[i + 1]);
                free(symbols[i]);
                free(symbols[i + 1]);
                symbols[i] = joined;
                memmove(&symbols[i + 1], &symbols[i + 2], (n - i - 2) * sizeof *symbols);
                n--;
                rank = SIZE_MAX; /* starts again at the lowest rank */
                break;
            }
    for (size_t i = 0; i < n; i++) {
        out[i] = (token_t)cJSON_GetObjectItemCaseSensitive(d->vocab, symbols[i])->valueint;
        free(symbols[i]);
    }
    return n;
}

TEST(merging_equals_merging_by_definition_on_random_unicode)
{
    uint64_t random = seed_or(1);
    static const char *const names[] = {"gpt2", "smollm"};
    for (size_t f = 0; f < 2; f++) {
        struct opened o = open_json(names[f]);
        struct definition d = read_definition(names[f]);
        struct pretokenizer *pre;
        struct words words = {0};
        struct err err = {0};
        assert_ok(pretokenizer_of_family(&pre, pre_family_find(f == 0 ? "gpt-2" : "smollm", f == 0 ? 5 : 6), &err),
                  err);
        for (int i = 0; i < 60; i++) {
            char text[160];
            token_t expected[160];
            size_t len = random_text(&random, text, (size_t)(splitmix64(&random) % 40)), n = 0, n_got;
            assert_ok(pretokenizer_split(pre, text, len, true, &words, &err), err);
            for (size_t w = 0; w < words.n; w++)
                n += merge_by_definition(&d, words.text + words.word[w].at, words.word[w].len, expected + n);
            token_t *got = encode(o.tokenizer, text, len, (struct tokenize_options){0}, &n_got);
            assert_int_equal(n_got, n);
            assert_memory_equal(got, expected, n * sizeof *got);
            free(got);
        }
        words_free(&words);
        pretokenizer_free(pre);
        free_definition(&d);
        close_opened(&o);
    }
}

/* ---- long texts ---- */

/* Each text takes milliseconds. In quadratic time each would take half a minute or more, and the alarm would end the
 * test. ThreadSanitizer's memmem() reads the whole rest of the text at every call. */
TEST(long_texts_of_one_kind_do_not_take_quadratic_time)
{
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    static const char *const units[] = {"a", " ", "\n", "1", "\xe6\x97\xa5", "'", "\xff", "e\xcc\x81", "aB", " \n"};
    const size_t len = 300000;
    char *text = malloc(len);
    assert_non_null(text);
    alarm(1200);
    for (size_t f = 0; f < N_FAMILIES; f++) {
        struct opened o = open_vocabulary(families[f].name);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            const size_t n_unit = strlen(units[u]);
            size_t n = 0;
            for (size_t i = 0; i < len; i++)
                text[i] = units[u][i % n_unit];
            free(encode(o.tokenizer, text, len - len % n_unit, (struct tokenize_options){0}, &n));
        }
        close_opened(&o);
    }
    alarm(0);
    free(text);
}
