/* Reads the normalizer, the pre_tokenizer and the decoder of a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_files.h"

#define MOST_NESTED  4  /* Sequence in Sequence */
#define MOST_REPLACE 64 /* bytes */

static const char *
type_of(const cJSON *step)
{
    const struct slice type = json_text(json_get(step, "type"));
    return type.len > 0 ? type.data : "without a type";
}

static bool
is(const cJSON *step, const char *type)
{
    return strcmp(type_of(step), type) == 0;
}

/* The state of reading one list of steps. */
struct reading {
    struct tokenizer_json *j;
    bool
        bytes_follow; /* pre_tokenizer: a ByteLevel step was read, so later steps see characters that represent bytes */
    bool fused,
        trimmed; /* decoder: until a Fuse step, steps change the text of each token; after it, that of all tokens */
    struct err why;
};

/* Reads the steps of a Sequence with `read`; a step of another type is not supported. */
static bool
read_sequence(struct reading *r, const char *what, const cJSON *step, const char *key, int depth,
              bool (*read)(struct reading *, const cJSON *step, int depth))
{
    const cJSON *list = json_get(step, key), *one;
    if (!is(step, "Sequence") || !cJSON_IsArray(list) || depth == MOST_NESTED)
        return json_unsupported(r->j, what, type_of(step));
    cJSON_ArrayForEach(one, list)
    {
        if (!read(r, one, depth + 1))
            return false;
    }
    return true;
}

/* ---- normalizer ---- */

/* Copies a step's texts, which are in the JSON. */
static bool
keep_texts(struct tokenizer_json *j, const char *what, struct normal_step *step)
{
    if (step->from.len > MOST_REPLACE || step->to.len > MOST_REPLACE)
        return json_unsupported(j, what, "of long texts");
    return (tokenizer_copy(j->t, step->from.data, step->from.len, &step->from) &&
            tokenizer_copy(j->t, step->to.data, step->to.len, &step->to)) ||
           json_no_memory(j);
}

/* Adds a step to one of the two lists of steps, of the normalizer or the decoder, which owns its pattern then. */
static bool
add_step(struct tokenizer_json *j, const char *what, struct normal_step *list, unsigned *n, struct normal_step step)
{
    bool ok = keep_texts(j, what, &step);
    if (ok && *n == MOST_NORMAL_STEPS)
        ok = err_set(j->err, ERR_WORK, "%s: a %s of more than %d steps is not supported", j->where, what,
                     MOST_NORMAL_STEPS);
    if (ok)
        list[(*n)++] = step;
    else
        pattern_close(step.pattern);
    return ok;
}

static bool
add_normal(struct tokenizer_json *j, struct normal_step step)
{
    return add_step(j, "normalizer", j->t->normal, &j->t->n_normal, step);
}

/* Reads a Replace step, whose pattern is {"Regex": …} or {"String": …}. */
static bool
read_replace(struct tokenizer_json *j, const char *what, const cJSON *step, struct normal_step *out)
{
    const cJSON *pattern = json_get(step, "pattern");
    const struct slice regex = json_text(json_get(pattern, "Regex"));
    struct err why = {0};
    *out = (struct normal_step){.kind = NORMAL_REPLACE,
                                .from = json_text(json_get(pattern, "String")),
                                .to = json_text(json_get(step, "content"))};
    if (regex.len == 0)
        return out->from.len > 0 || json_unsupported(j, what, type_of(step));
    out->kind = NORMAL_PATTERN;
    out->from.len = 0;
    out->pattern = pattern_open(regex.data, regex.len, &why);
    return out->pattern != NULL || err_set(j->err, ERR_WORK, "%s: %.300s", j->where, why.text);
}

/* Decodes base64 (RFC 4648) and returns the number of bytes; SIZE_MAX if the text is not base64. */
static size_t
read_base64(struct slice text, char *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    uint32_t bits = 0;
    unsigned held = 0;
    while (text.len > 0 && text.data[text.len - 1] == '=')
        text.len--;
    for (size_t i = 0; i < text.len; i++) {
        const char *letter = text.data[i] == '\0' ? NULL : strchr(letters, text.data[i]);
        if (letter == NULL)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)(letter - letters);
        held += 6;
        if (held >= 8)
            out[n++] = (char)(bits >> (held -= 8));
    }
    return n;
}

static bool
read_charsmap(struct tokenizer_json *j, const cJSON *step)
{
    const struct slice text = json_text(json_get(step, "precompiled_charsmap"));
    char *bytes = tokenizer_take(j->t, text.len);
    struct normal_step s = {.kind = NORMAL_CHARSMAP};
    if (bytes == NULL)
        return json_no_memory(j);
    const size_t n = read_base64(text, bytes);
    if (n == SIZE_MAX || !charsmap_read(&s.map, (struct slice){bytes, n}))
        return err_set(j->err, ERR_WORK, "%s: the normalizer's precompiled_charsmap is damaged; fetch it again",
                       j->where);
    return n == 0 || add_normal(j, s);
}

static bool
read_normalizer(struct reading *r, const cJSON *step, int depth)
{
    struct tokenizer_json *j = r->j;
    static const char *const forms[] = {
        [NORMAL_NFC] = "NFC", [NORMAL_NFD] = "NFD", [NORMAL_NFKC] = "NFKC", [NORMAL_NFKD] = "NFKD"};
    if (step == NULL)
        return true;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (is(step, forms[i]))
            return add_normal(j, (struct normal_step){.kind = (enum normal_kind)i});
    if (is(step, "Prepend")) {
        const struct slice prefix = json_text(json_get(step, "prepend"));
        tokenizer_trim_space(&j->t->trim, prefix.len > 0);
        return prefix.len == 0 || add_normal(j, (struct normal_step){.kind = NORMAL_PREPEND, .to = prefix});
    }
    if (is(step, "Strip"))
        return add_normal(j, (struct normal_step){.kind = NORMAL_STRIP,
                                                  .left = cJSON_IsTrue(json_get(step, "strip_left")),
                                                  .right = cJSON_IsTrue(json_get(step, "strip_right"))});
    if (is(step, "Precompiled"))
        return read_charsmap(j, step);
    struct normal_step replace;
    if (is(step, "Replace"))
        return read_replace(j, "normalizer", step, &replace) && add_normal(j, replace);
    return read_sequence(r, "normalizer", step, "normalizers", depth, read_normalizer);
}

/* ---- pre_tokenizer ---- */

static bool
failed(struct reading *r)
{
    return err_set(r->j->err, ERR_WORK, "%s: %.300s", r->j->where, r->why.text);
}

/* Must be called before each step is added: adds the step that a previous ByteLevel requires. */
static bool
next_step(struct reading *r)
{
    const bool bytes = r->bytes_follow;
    r->bytes_follow = false;
    return !bytes || pretokenizer_add_byte_chars(r->j->t->pre, &r->why) || failed(r);
}

static bool
add_split(struct reading *r, struct slice pattern, bool literal, enum split_behavior behavior, bool invert)
{
    return next_step(r) &&
           (pretokenizer_add_split(r->j->t->pre, pattern.data, pattern.len, literal, behavior, invert, &r->why) ||
            failed(r));
}

static bool
add_regex(struct reading *r, const char *pattern, enum split_behavior behavior)
{
    return add_split(r, slice_of(pattern), false, behavior, false);
}

static bool
add_prefix(struct reading *r, const char *prefix, bool only_first)
{
    tokenizer_trim_space(&r->j->t->trim, true);
    return next_step(r) &&
           (pretokenizer_add_prefix(r->j->t->pre, prefix, strlen(prefix), only_first, &r->why) || failed(r));
}

static bool
read_behavior(struct reading *r, const cJSON *step, enum split_behavior *behavior)
{
    static const char *const names[] = {[SPLIT_ISOLATED] = "Isolated",
                                        [SPLIT_REMOVED] = "Removed",
                                        [SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [SPLIT_WITH_NEXT] = "MergedWithNext",
                                        [SPLIT_CONTIGUOUS] = "Contiguous"};
    const struct slice name = json_text(json_get(step, "behavior"));
    *behavior = SPLIT_ISOLATED;
    if (name.len == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name.data) == 0) {
            *behavior = (enum split_behavior)i;
            return true;
        }
    return json_unsupported(r->j, "splitting behavior", name.data);
}

static bool
read_split(struct reading *r, const cJSON *step)
{
    const cJSON *pattern = json_get(step, "pattern");
    const struct slice regex = json_text(json_get(pattern, "Regex"));
    const struct slice text = json_text(json_get(pattern, "String"));
    enum split_behavior behavior;
    return read_behavior(r, step, &behavior) &&
           add_split(r, regex.len > 0 ? regex : text, regex.len == 0, behavior, cJSON_IsTrue(json_get(step, "invert")));
}

/* Returns whether a ByteLevel step adds a space; these classes of transformers take it from tokenizer_config.json. */
static bool
adds_space(const struct tokenizer_json *j, const cJSON *step)
{
    static const char *const classes[] = {"GPT2Tokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (json_is_class(j, classes[i]))
            step = j->config;
    return cJSON_IsTrue(json_get(step, "add_prefix_space"));
}

static bool
read_byte_level(struct reading *r, const cJSON *step)
{
    r->j->t->byte_level = true;
    if (adds_space(r->j, step) && !add_prefix(r, " ", false))
        return false;
    if (!cJSON_IsFalse(json_get(step, "use_regex")) && !add_regex(r, pre_gpt2_pattern, SPLIT_ISOLATED))
        return false;
    r->bytes_follow = true;
    return true;
}

/* Reads a Metaspace step: spaces become ▁, another ▁ is prepended, and a word begins at each ▁. */
static bool
read_metaspace(struct reading *r, const cJSON *step)
{
    const struct slice mark = json_text(json_get(step, "replacement"));
    const struct slice scheme = json_text(json_get(step, "prepend_scheme"));
    const bool first = strcmp(scheme.data, "first") == 0;
    const bool prefix =
        scheme.len > 0 ? strcmp(scheme.data, "never") != 0 : !cJSON_IsFalse(json_get(step, "add_prefix_space"));
    if (strcmp(mark.data, SPACE_MARK) != 0)
        return json_unsupported(r->j, "mark for spaces", mark.data);
    if (!next_step(r) || !(pretokenizer_add_space_mark(r->j->t->pre, mark.data, mark.len, &r->why) || failed(r)))
        return false;
    if (prefix && !add_prefix(r, SPACE_MARK, first))
        return false;
    return cJSON_IsFalse(json_get(step, "split")) || add_split(r, mark, true, SPLIT_WITH_NEXT, false);
}

static bool
read_pretokenizer(struct reading *r, const cJSON *step, int depth)
{
    enum split_behavior behavior;
    if (is(step, "Split"))
        return read_split(r, step);
    if (is(step, "ByteLevel"))
        return read_byte_level(r, step);
    if (is(step, "Metaspace"))
        return read_metaspace(r, step);
    if (is(step, "Digits"))
        return add_regex(r, cJSON_IsTrue(json_get(step, "individual_digits")) ? "\\p{N}" : "\\p{N}+", SPLIT_ISOLATED);
    if (is(step, "Punctuation"))
        return read_behavior(r, step, &behavior) && add_regex(r, "[\\p{P}!-/:-@\\[-`{-~]", behavior);
    if (is(step, "WhitespaceSplit"))
        return add_regex(r, "\\s", SPLIT_REMOVED);
    return read_sequence(r, "pre-tokenizer", step, "pretokenizers", depth, read_pretokenizer);
}

/* ---- decoder ---- */

static bool
one_character(struct slice text)
{
    return text.len > 0 && utf8_character(text.data, text.len, NULL) == text.len;
}

static bool
add_decoder(struct reading *r, struct normal_step step)
{
    return add_step(r->j, "decoder", r->j->decoder, &r->j->n_decoder, step);
}

/* Reads a Replace step. After Fuse, only a single character can be replaced in each token. */
static bool
read_decoder_replace(struct reading *r, const cJSON *step)
{
    struct normal_step replace;
    if (!read_replace(r->j, "decoder", step, &replace))
        return false;
    if (!r->trimmed && (!r->fused || (replace.pattern == NULL && one_character(replace.from))))
        return add_decoder(r, replace);
    pattern_close(replace.pattern);
    return json_unsupported(r->j, "decoder", "Replace after Fuse");
}

static bool
read_decoder_strip(struct reading *r, const cJSON *step)
{
    const cJSON *start = json_get(step, "start"), *stop = json_get(step, "stop");
    struct normal_step trim = {.kind = NORMAL_TRIM,
                               .from = json_text(json_get(step, "content")),
                               .first = cJSON_IsNumber(start) && start->valueint > 0 ? (uint32_t)start->valueint : 0,
                               .last = cJSON_IsNumber(stop) && stop->valueint > 0 ? (uint32_t)stop->valueint : 0};
    if (!one_character(trim.from) || r->trimmed)
        return json_unsupported(r->j, "decoder", type_of(step));
    if (!r->fused)
        return add_decoder(r, trim);
    r->trimmed = true;
    if (!keep_texts(r->j, "decoder", &trim))
        return false;
    r->j->t->trim = trim;
    return true;
}

/* Reads a Metaspace step: ▁ becomes a space, and the first one is removed if encoding adds one. */
static bool
read_decoder_metaspace(struct reading *r, const cJSON *step)
{
    const struct slice mark = json_text(json_get(step, "replacement"));
    const struct slice scheme = json_text(json_get(step, "prepend_scheme"));
    const bool prefix =
        scheme.len > 0 ? strcmp(scheme.data, "never") != 0 : !cJSON_IsFalse(json_get(step, "add_prefix_space"));
    if (!one_character(mark) || r->trimmed)
        return json_unsupported(r->j, "decoder", type_of(step));
    tokenizer_trim_space(&r->j->t->trim, prefix);
    r->trimmed = true;
    return add_decoder(r, (struct normal_step){.kind = NORMAL_REPLACE, .from = mark, .to = {" ", 1}});
}

static bool
read_decoder(struct reading *r, const cJSON *step, int depth)
{
    if (is(step, "Fuse"))
        r->fused = true;
    if (is(step, "Fuse") || is(step, "ByteFallback") || (is(step, "ByteLevel") && r->j->t->byte_level))
        return true;
    if (is(step, "Replace"))
        return read_decoder_replace(r, step);
    if (is(step, "Strip"))
        return read_decoder_strip(r, step);
    if (is(step, "Metaspace"))
        return read_decoder_metaspace(r, step);
    return read_sequence(r, "decoder", step, "decoders", depth, read_decoder);
}

bool
json_read_steps(struct tokenizer_json *j)
{
    const cJSON *pre = json_get(j->root, "pre_tokenizer"), *decoder = json_get(j->root, "decoder");
    struct reading r = {.j = j};
    if (!read_normalizer(&r, json_get(j->root, "normalizer"), 0))
        return false;
    j->t->pre = pre == NULL ? NULL : pretokenizer_new();
    if (pre != NULL && j->t->pre == NULL)
        return json_no_memory(j);
    if (pre != NULL && !read_pretokenizer(&r, pre, 0))
        return false;
    if (decoder == NULL || is(decoder, "ByteLevel"))
        return true; /* decoding removes what encoding has added */
    j->decodes = true;
    tokenizer_trim_space(&j->t->trim, false);
    return read_decoder(&r, decoder, 0);
}
