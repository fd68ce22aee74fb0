/* SentencePiece's own files, Unigram models, pieces that merge by rank and nested character classes, against goldens
 * from the sentencepiece and tokenizers libraries (make_pieces_golden.py). Also compares Unigram with its definition,
 * and tests refusals. */
#include <math.h>

#include "base/rng.h"
#include "engine/model/model_open.h"
#include "engine/model/tokenizer/pretokenizer.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tokenizer_rig.h"

/* ---- goldens ---- */

TEST(ids_of_a_folder_are_those_of_the_libraries)
{
    static const char *const families[][2] = {{"model-unigram", "SentencePiece Unigram"},
                                              {"model-unigram-bytes", "SentencePiece Unigram"},
                                              {"model-bpe", "SentencePiece BPE"},
                                              {"model-bpe-bytes", "SentencePiece BPE"},
                                              {"unigram", "Unigram"},
                                              {"unigram-bytes", "Unigram"},
                                              {"unigram-words", "Unigram"},
                                              {"gemma4", "BPE of SentencePiece's"},
                                              {"qwen35", "byte-level BPE"},
                                              {"kimi-k2", "byte-level BPE"},
                                              {"bloom", "byte-level BPE"},
                                              {"seed-coder", "byte-level BPE"},
                                              {"bailingmoe", "byte-level BPE"},
                                              {"viking", "byte-level BPE"},
                                              {"tiny_aya", "byte-level BPE"},
                                              {"nested", "byte-level BPE"},
                                              {"words", "byte-level BPE"}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char folder[200];
        struct tokenizer *t;
        struct err err = {0};
        snprintf(folder, sizeof folder, TOKENIZERS "%s", families[i][0]);
        assert_ok(folder_tokenizer_open(&t, folder, &err), err);
        assert_string_equal(tokenizer_description(t), families[i][1]);
        assert_golden_ids(t, families[i][0], 290);
        tokenizer_close(t);
    }
}

TEST(ids_from_gguf_are_those_of_the_folder)
{
    static const char *const families[] = {"gemma4",     "qwen35",     "kimi-k2", "bloom",
                                           "seed-coder", "bailingmoe", "viking",  "tiny_aya"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char path[200];
        snprintf(path, sizeof path, TOKENIZERS "%s/vocab.gguf", families[i]);
        struct opened o = open_gguf_tokenizer(path);
        assert_golden_ids(o.tokenizer, families[i], 300);
        close_opened(&o);
    }
}

/* Vocabularies like tiktoken's keep a word whole if it is a token, even if no merges produce it. */
TEST(words_that_are_tokens_stay_whole_where_the_family_has_it_so)
{
    static const struct {
        const char *name;
        bool whole, bos;
    } cases[] = {{"llama-bpe", true, true}, {"midm-2.0", true, true},  {"glm4", true, false},
                 {"tekken", true, true},    {"exaone4", false, false}, {"qwen2", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pre_family *family = pre_family_find(cases[i].name, strlen(cases[i].name));
        assert_non_null(family);
        assert_int_equal(family->whole_words, cases[i].whole);
        assert_int_equal(family->bos, cases[i].bos);
    }
}

/* ---- Unigram by definition ---- */

/* Pieces over a, b, c, with scores that add up exactly; d is unknown. */
struct small {
    char text[24][4];
    double score[24];
    size_t n;
};

static struct small
random_vocabulary(uint64_t *random, char *json, size_t size)
{
    struct small s = {.n = 4 + (size_t)(splitmix64(random) % 20)};
    size_t at =
        (size_t)snprintf(json, size, "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0]");
    for (size_t i = 0; i < s.n; i++) {
        const size_t len = 1 + (size_t)(splitmix64(random) % 3);
        for (size_t k = 0; k < len; k++)
            s.text[i][k] = (char)('a' + splitmix64(random) % 3);
        s.score[i] = -(double)(1 + splitmix64(random) % 64) / 8;
        for (size_t k = 0; k < i; k++)
            if (strcmp(s.text[k], s.text[i]) == 0)
                s.score[i] = s.score[k]; /* equal texts have equal scores, since either can be chosen */
        at += (size_t)snprintf(json + at, size - at, ", [\"%s\", %g]", s.text[i], s.score[i]);
    }
    snprintf(json + at, size - at, "]}}");
    return s;
}

/* The highest sum over all ways to split the rest. A character without a piece of its own may be unknown. */
static double
best_sum(const struct small *s, double unknown, const char *rest)
{
    double best = -INFINITY;
    bool single = false;
    if (*rest == '\0')
        return 0;
    for (size_t i = 0; i < s->n; i++) {
        const size_t len = strlen(s->text[i]);
        if (strncmp(rest, s->text[i], len) != 0)
            continue;
        single = single || len == 1;
        best = fmax(best, s->score[i] + best_sum(s, unknown, rest + len));
    }
    return single ? best : fmax(best, unknown + best_sum(s, unknown, rest + 1));
}

TEST(unigram_finds_the_best_of_all_ways_to_cut)
{
    uint64_t random = seed_or(1);
    for (int round = 0; round < 200; round++) {
        char json[2048], text[12];
        struct tokenizer *t;
        struct err err = {0};
        const struct small s = random_vocabulary(&random, json, sizeof json);
        double least = 0;
        for (size_t i = 0; i < s.n; i++)
            least = fmin(least, s.score[i]);
        assert_ok(tokenizer_from_json(&t, &(struct tokenizer_files){.model = slice_of(json)}, "small", &err), err);
        const size_t len = 1 + (size_t)(splitmix64(&random) % 10);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)('a' + splitmix64(&random) % 4);
        text[len] = '\0';
        size_t n, at = 0;
        double sum = 0;
        token_t *ids = encode(t, text, len, (struct tokenize_options){0}, &n);
        for (size_t i = 0; i < n; i++) {
            if (ids[i] == 0) { /* adjacent unknown characters are one */
                for (bool again = true; again; again = at < len && text[at] == 'd') {
                    sum += least - 10;
                    at++;
                }
                continue;
            }
            sum += s.score[ids[i] - 1];
            at += strlen(s.text[ids[i] - 1]);
        }
        const double best = best_sum(&s, least - 10, text);
        if (at == len && fabs(sum - best) > 1e-9) /* otherwise the unknown text had letters without pieces */
            fail_msg("'%s': %g, the best is %g: %s", text, sum, best, json);
        free(ids);
        tokenizer_close(t);
    }
}

/* ---- a tokenizer.model and the files next to it ---- */

static bool
open_model(struct tokenizer **t, const char *bytes, size_t n, const char *config, const char *added, struct err *err)
{
    const struct tokenizer_files files = {.model = {bytes, n},
                                          .config = {config, config == NULL ? 0 : strlen(config)},
                                          .added = {added, added == NULL ? 0 : strlen(added)}};
    *err = (struct err){0};
    return tokenizer_from_sentencepiece(t, &files, "folder", err);
}

TEST(tokens_that_were_added_are_found)
{
    size_t n, n_ids;
    struct err err;
    struct tokenizer *t;
    char *model = golden_text("model-bpe", "tokenizer.model", &n);
    assert_ok(open_model(&t, model, n, NULL, NULL, &err), err);
    const token_t first = (token_t)tokenizer_size(t);
    assert_int_equal(tokenizer_bos(t), 1);
    tokenizer_close(t);
    char config[600];
    snprintf(
        config, sizeof config,
        "{\"added_tokens_decoder\": {\"%d\": {\"content\": \"<|im_start|>\", \"special\": true, \"rstrip\": true}, "
        "\"%d\": {\"content\": \"<tool>\", \"special\": false}}, \"bos_token\": null, \"eos_token\": {\"content\": "
        "\"<|im_end|>\"}, \"add_eos_token\": true, \"chat_template\": \"{{ messages }}\"}",
        (int)first, (int)first + 1);
    char added[100];
    snprintf(added, sizeof added, "{\"<|im_end|>\": %d, \"plain\": %d}", (int)first + 3, (int)first + 2);
    assert_ok(open_model(&t, model, n, config, added, &err), err);
    assert_int_equal(tokenizer_size(t), first + 4);
    assert_int_equal(tokenizer_bos(t), TOKEN_NONE);
    assert_int_equal(tokenizer_eos(t), first + 3);
    assert_int_equal(tokenizer_kind(t, first + 1), TOKEN_USER);
    assert_int_equal(tokenizer_kind(t, first + 3), TOKEN_CONTROL);
    assert_true(tokenizer_is_end(t, first + 3));
    assert_int_equal(tokenizer_chat_template(t, "default").len, strlen("{{ messages }}"));
    static const char text[] = "<|im_start|>  <tool>plain<|im_end|>";
    token_t *ids =
        encode(t, text, strlen(text), (struct tokenize_options){.special = true, .bos = true, .eos = true}, &n_ids);
    assert_int_equal(n_ids, 5);
    assert_memory_equal(ids, ((token_t[]){first, first + 1, first + 2, first + 3, first + 3}), 5 * sizeof *ids);
    free(ids);
    ids = encode(t, text, strlen(text), (struct tokenize_options){0}, &n_ids);
    for (size_t i = 0; i < n_ids; i++) /* names of control tokens are plain text */
    {
        assert_int_not_equal(ids[i], first);
        assert_int_not_equal(ids[i], first + 3);
    }
    free(ids);
    tokenizer_close(t);
    free(model);
}

/* Compared with AutoTokenizer of transformers 5.24 on the same file. */
TEST(bos_and_eos_are_added_beside_a_tokenizer_model_where_its_settings_say_so)
{
    static const struct {
        const char *class, *settings;
        bool bos, eos;
    } cases[] = {
        {"LlamaTokenizer", "", false, false},
        {"LlamaTokenizer", ", \"add_bos_token\": true", true, false},
        {"LlamaTokenizerFast", ", \"add_bos_token\": false", false, false},
        {"GemmaTokenizer", ", \"add_eos_token\": true", false, true},
        {"PreTrainedTokenizerFast", ", \"add_bos_token\": true, \"add_eos_token\": true", true, true},
        {"T5Tokenizer", "", false, true},
        {"T5Tokenizer", ", \"add_bos_token\": true, \"add_eos_token\": false", false, true},
    };
    size_t n;
    char *model = golden_text("model-bpe-bytes", "tokenizer.model", &n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[200];
        struct tokenizer *t;
        struct err err;
        size_t n_ids;
        snprintf(config, sizeof config,
                 "{\"tokenizer_class\": \"%s\", \"bos_token\": \"<s>\", \"eos_token\": \"</s>\"%s}", cases[i].class,
                 cases[i].settings);
        assert_ok(open_model(&t, model, n, config, NULL, &err), err);
        token_t *ids = encode(t, "the", 3, (struct tokenize_options){.bos = true, .eos = true}, &n_ids);
        if ((ids[0] == tokenizer_bos(t)) != cases[i].bos || (ids[n_ids - 1] == tokenizer_eos(t)) != cases[i].eos)
            fail_msg("%s%s: %d … %d", cases[i].class, cases[i].settings, ids[0], ids[n_ids - 1]);
        free(ids);
        tokenizer_close(t);
    }
    free(model);
}

TEST(decoding_gives_the_text_back)
{
    static const char *const families[] = {"model-bpe-bytes", "model-unigram-bytes"};
    uint64_t random = seed_or(1);
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        struct err err;
        struct tokenizer *t;
        char *model = golden_text(families[i], "tokenizer.model", &n), text[400];
        assert_ok(open_model(&t, model, n, NULL, NULL, &err), err);
        for (int k = 0; k < 300; k++) {
            const size_t len = random_text(&random, text, (size_t)(splitmix64(&random) % 100));
            assert_round_trip(t, families[i], text, len);
        }
        tokenizer_close(t);
        free(model);
    }
}

#define TIMES 40

TEST(a_long_text_is_cut_as_its_parts_are)
{
    size_t n, n_prose, n_once, n_ids;
    struct err err;
    struct tokenizer *t;
    char *model = golden_text("model-unigram-bytes", "tokenizer.model", &n);
    char *prose = golden_text("..", "prose.txt", &n_prose), *text = malloc(TIMES * n_prose);
    assert_ok(open_model(&t, model, n, NULL, NULL, &err), err);
    assert_non_null(text);
    assert_int_equal(prose[n_prose - 1], '\n'); /* encoded as a byte token */
    for (size_t i = 0; i < TIMES; i++)
        memcpy(text + i * n_prose, prose, n_prose);
    token_t *once = encode(t, prose, n_prose, (struct tokenize_options){0}, &n_once);
    token_t *ids = encode(t, text, TIMES * n_prose, (struct tokenize_options){0}, &n_ids);
    assert_int_equal(n_ids, TIMES * n_once);
    for (size_t i = 0; i < n_ids; i++)
        assert_int_equal(ids[i], once[i % n_once]);
    free(once);
    free(ids);
    free(text);
    free(prose);
    free(model);
    tokenizer_close(t);
}

TEST(a_model_that_is_cut_short_or_changed_is_refused_in_one_line)
{
    size_t n;
    struct err err;
    struct tokenizer *t;
    uint64_t random = seed_or(1);
    char *model = golden_text("model-unigram", "tokenizer.model", &n), *changed = malloc(n);
    assert_non_null(changed);
    size_t refused = 0;
    for (size_t len = 0; len < n; len += 1 + len / 16) {
        if (open_model(&t, model, len, NULL, NULL, &err)) /* after a cut at a field's end the file may be valid */
            tokenizer_close(t);
        else
            refused += err.kind == ERR_WORK && strncmp(err.text, "folder: ", 8) == 0 && strchr(err.text, '\n') == NULL;
    }
    assert_greater(refused, 20);
    for (int i = 0; i < 500; i++) {
        memcpy(changed, model, n);
        for (int k = 0; k < 3; k++)
            changed[splitmix64(&random) % n] = (char)splitmix64(&random);
        if (open_model(&t, changed, n, NULL, NULL, &err)) {
            free(encode(t, "Any text, any \xff bytes", 22, (struct tokenize_options){.special = true}, &(size_t){0}));
            tokenizer_close(t);
        }
    }
    free(changed);
    free(model);
}

TEST(an_unsupported_tokenizer_model_is_named)
{
    /* pieces "<unk>" (2, unknown) and "a"; the trainer's field 3 is the kind of model */
    static const struct {
        const char *bytes;
        size_t n;
        const char *config, *added, *says;
    } cases[] = {
#define UNK "\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02"
#define A                                                                                                              \
    "\x0a\x08\x0a\x01"                                                                                                 \
    "a\x15\0\0\0\xc0"
#define M(x) x, sizeof(x) - 1
        {M(UNK A "\x12\x02\x18\x02"), NULL, NULL, NULL},
        {M(UNK A "\x12\x02\x18\x03"), NULL, NULL, "of whole words"},
        {M(UNK A "\x12\x02\x18\x04"), NULL, NULL, "of characters"},
        {M(UNK A "\x12\x03\xc0\x01\x01"), NULL, NULL, "spaces behind words"},
        {M(A), NULL, NULL, "no unknown token"},
        {M(UNK "\x0a\x08\x0a\x01"
               "a\x15\0\0\xc0\x7f"),
         NULL, NULL, "piece 1 of tokenizer.model has no score"},
        {M(UNK "\x0a\x05\x0a\x01"
               "a\x18\x09"),
         NULL, NULL, "piece 1"},
        {M(""), NULL, NULL, "0 pieces"},
        {M("IQ== 0\nIg== 1\n"), NULL, NULL, "tiktoken"},
        {M(UNK A "\x1a\x07\x12\x05\x09\0\0\0x"), NULL, NULL, "damaged"}, /* a character map */
        {M(UNK A "\x13"), NULL, NULL, "damaged"},                        /* a group */
        {M(UNK A), "[]", NULL, "tokenizer_config.json is no JSON object"},
        {M(UNK A), NULL, "7", "added_tokens.json is no JSON object"},
        {M(UNK A), NULL, "{\"x\": 1.5}", "id of the added token 'x'"},
        {M(UNK A), "{\"added_tokens_decoder\": {\"b\": {\"content\": \"x\"}}}", NULL, "id of the added token 'x'"},
        {M(UNK A), NULL, "{\"x\": 70000}", "added ids go up to 70000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;
        struct tokenizer *t;
        const bool ok = open_model(&t, cases[i].bytes, cases[i].n, cases[i].config, cases[i].added, &err);
        if (ok != (cases[i].says == NULL) || (!ok && (t != NULL || strstr(err.text, cases[i].says) == NULL)))
            fail_msg("case %zu: %s", i, ok ? "opens" : err.text);
        tokenizer_close(t);
    }
}

TEST(a_unigram_model_that_is_none_is_refused)
{
    static const char *const cases[][2] = {
        {"[[\"a\", -1], [\"b\"]]", "piece 1 of model.vocab is no text with a score"},
        {"[[\"a\", -1], \"b\"]", "piece 1 of model.vocab"},
        {"[[\"a\", 1e999]]", "piece 0 of model.vocab"},
        {"[[\"a\", -1]], \"unk_id\": 1", "model.unk_id"},
        {"[]", "no tokens"},
        {"{\"a\": 1}", "no model with a vocabulary"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[200];
        struct tokenizer *t;
        struct err err = {0};
        snprintf(json, sizeof json, "{\"model\": {\"type\": \"Unigram\", \"vocab\": %s}}", cases[i][0]);
        assert_false(tokenizer_from_json(&t, &(struct tokenizer_files){.model = slice_of(json)}, "folder", &err));
        if (strstr(err.text, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], err.text);
    }
}
