/* Reads the normalizer and the pre_tokenizer of a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_files.h"

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

/* ---- normalizer ---- */

/* Adds a step whose texts are in the JSON. */
static bool
add_normal(struct tokenizer_json *j, struct normal_step step)
{
    bool ok = true;
    if (step.from.len > MOST_REPLACE || step.to.len > MOST_REPLACE)
        ok = json_unsupported(j, "normalizer", "of long texts");
    else if (!tokenizer_copy(j->t, step.from.data, step.from.len, &step.from) ||
             !tokenizer_copy(j->t, step.to.data, step.to.len, &step.to))
        ok = err_set(j->err, ERR_WORK, "%s: out of memory for the tokenizer", j->where);
    if (!ok) {
        pattern_close(step.pattern);
        return false;
    }
    return tokenizer_add_normal_step(j->t, step) ||
           err_set(j->err, ERR_WORK, "%s: a normalizer of more than %d steps is not supported", j->where,
                   MOST_NORMAL_STEPS);
}

/* Reads a Replace step with {"Regex": …} instead of {"String": …}. */
static bool
read_pattern(struct tokenizer_json *j, const cJSON *step, struct slice regex)
{
    struct err why = {0};
    struct normal_step s = {.kind = NORMAL_PATTERN, .to = json_text(json_get(step, "content"))};
    s.pattern = pattern_open(regex.data, regex.len, &why);
    return s.pattern != NULL ? add_normal(j, s) : err_set(j->err, ERR_WORK, "%s: %.300s", j->where, why.text);
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
        return err_set(j->err, ERR_WORK, "%s: out of memory for the tokenizer", j->where);
    const size_t n = read_base64(text, bytes);
    if (n == SIZE_MAX || !charsmap_read(&s.map, (struct slice){bytes, n}))
        return err_set(j->err, ERR_WORK, "%s: the normalizer's precompiled_charsmap is damaged; fetch it again",
                       j->where);
    return n == 0 || add_normal(j, s);
}

static bool
read_normalizer(struct tokenizer_json *j, const cJSON *step, int depth)
{
    static const char *const forms[] = {
        [NORMAL_NFC] = "NFC", [NORMAL_NFD] = "NFD", [NORMAL_NFKC] = "NFKC", [NORMAL_NFKD] = "NFKD"};
    if (step == NULL)
        return true;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (is(step, forms[i]))
            return add_normal(j, (struct normal_step){.kind = (enum normal_kind)i});
    if (is(step, "Prepend")) {
        const struct slice prefix = json_text(json_get(step, "prepend"));
        j->t->strips_space = prefix.len > 0;
        return prefix.len == 0 || add_normal(j, (struct normal_step){.kind = NORMAL_PREPEND, .to = prefix});
    }
    if (is(step, "Strip"))
        return add_normal(j, (struct normal_step){.kind = NORMAL_STRIP,
                                                  .left = cJSON_IsTrue(json_get(step, "strip_left")),
                                                  .right = cJSON_IsTrue(json_get(step, "strip_right"))});
    if (is(step, "Precompiled"))
        return read_charsmap(j, step);
    const struct slice from = json_text(json_get(json_get(step, "pattern"), "String"));
    const struct slice regex = json_text(json_get(json_get(step, "pattern"), "Regex"));
    if (is(step, "Replace") && regex.len > 0)
        return read_pattern(j, step, regex);
    if (is(step, "Replace") && from.len > 0)
        return add_normal(
            j, (struct normal_step){.kind = NORMAL_REPLACE, .from = from, .to = json_text(json_get(step, "content"))});
    const cJSON *list = json_get(step, "normalizers"), *one;
    if (!is(step, "Sequence") || !cJSON_IsArray(list) || depth == MOST_NESTED)
        return json_unsupported(j, "normalizer", type_of(step));
    cJSON_ArrayForEach(one, list)
    {
        if (!read_normalizer(j, one, depth + 1))
            return false;
    }
    return true;
}

/* ---- pre_tokenizer ---- */

struct pre_reading {
    struct tokenizer_json *j;
    bool bytes_follow; /* a ByteLevel step was read: later steps see characters that represent bytes */
    struct err why;
};

static bool
failed(struct pre_reading *r)
{
    return err_set(r->j->err, ERR_WORK, "%s: %.300s", r->j->where, r->why.text);
}

/* Must be called before each step is added: adds the step that a previous ByteLevel requires. */
static bool
next_step(struct pre_reading *r)
{
    const bool bytes = r->bytes_follow;
    r->bytes_follow = false;
    return !bytes || pretokenizer_add_byte_chars(r->j->t->pre, &r->why) || failed(r);
}

static bool
add_split(struct pre_reading *r, struct slice pattern, bool literal, enum split_behavior behavior, bool invert)
{
    return next_step(r) &&
           (pretokenizer_add_split(r->j->t->pre, pattern.data, pattern.len, literal, behavior, invert, &r->why) ||
            failed(r));
}

static bool
add_regex(struct pre_reading *r, const char *pattern, enum split_behavior behavior)
{
    return add_split(r, slice_of(pattern), false, behavior, false);
}

static bool
add_prefix(struct pre_reading *r, const char *prefix, bool only_first)
{
    r->j->t->strips_space = true;
    return next_step(r) &&
           (pretokenizer_add_prefix(r->j->t->pre, prefix, strlen(prefix), only_first, &r->why) || failed(r));
}

static bool
read_behavior(struct pre_reading *r, const cJSON *step, enum split_behavior *behavior)
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
read_split(struct pre_reading *r, const cJSON *step)
{
    const cJSON *pattern = json_get(step, "pattern");
    const struct slice regex = json_text(json_get(pattern, "Regex"));
    const struct slice text = json_text(json_get(pattern, "String"));
    enum split_behavior behavior;
    return read_behavior(r, step, &behavior) &&
           add_split(r, regex.len > 0 ? regex : text, regex.len == 0, behavior, cJSON_IsTrue(json_get(step, "invert")));
}

static bool
read_byte_level(struct pre_reading *r, const cJSON *step)
{
    r->j->t->byte_level = true;
    if (cJSON_IsTrue(json_get(step, "add_prefix_space")) && !add_prefix(r, " ", false))
        return false;
    if (!cJSON_IsFalse(json_get(step, "use_regex")) && !add_regex(r, pre_gpt2_pattern, SPLIT_ISOLATED))
        return false;
    r->bytes_follow = true;
    return true;
}

/* Reads a Metaspace step: spaces become ▁, another ▁ is prepended, and a word begins at each ▁. */
static bool
read_metaspace(struct pre_reading *r, const cJSON *step)
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
read_pretokenizer(struct pre_reading *r, const cJSON *step, int depth)
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
    const cJSON *list = json_get(step, "pretokenizers"), *one;
    if (!is(step, "Sequence") || !cJSON_IsArray(list) || depth == MOST_NESTED)
        return json_unsupported(r->j, "pre-tokenizer", type_of(step));
    cJSON_ArrayForEach(one, list)
    {
        if (!read_pretokenizer(r, one, depth + 1))
            return false;
    }
    return true;
}

bool
json_read_steps(struct tokenizer_json *j)
{
    const cJSON *pre = json_get(j->root, "pre_tokenizer");
    struct pre_reading r = {.j = j};
    if (!read_normalizer(j, json_get(j->root, "normalizer"), 0))
        return false;
    if (pre == NULL)
        return true;
    j->t->pre = pretokenizer_new();
    if (j->t->pre == NULL)
        return err_set(j->err, ERR_WORK, "%s: out of memory for the tokenizer", j->where);
    return read_pretokenizer(&r, pre, 0);
}
