/* A pre-tokenizer's steps. Patterns are written for Oniguruma (Hugging Face) and mean the same to PCRE2 in UTF and UCP
 * mode but for white space, which is spelled out, and for nested classes, which are refused. */
#include "engine/tokenizer/pretokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/base/utf8.h"

/* Unicode's White_Space; PCRE2's \s has U+180E too. */
#define WHITE_SPACE "\\p{Z}\\t-\\r\\x{85}"

struct pretokenizer *
pretokenizer_new(void)
{
    struct pretokenizer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->limits = pcre2_match_context_create(NULL);
    if (p->limits == NULL) {
        free(p);
        return NULL;
    }
    pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(p->limits, MATCH_HEAP_KIB);
    return p;
}

void
pretokenizer_free(struct pretokenizer *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->n_steps; i++) {
        pcre2_code_free(p->steps[i].code);
        free(p->steps[i].text);
    }
    pcre2_match_context_free(p->limits);
    free(p);
}

static struct pre_step *
new_step(struct pretokenizer *p, enum pre_kind kind, struct err *err)
{
    if (p->n_steps == MOST_STEPS) {
        err_set(err, ERR_WORK, "a pre-tokenizer of more than %d steps is not supported", MOST_STEPS);
        return NULL;
    }
    p->steps[p->n_steps] = (struct pre_step){.kind = kind};
    return &p->steps[p->n_steps++];
}

/* ---- patterns ---- */

struct pattern {
    char *text;
    size_t len;
};

static void
put(struct pattern *out, const char *text)
{
    const size_t n = strlen(text);
    memcpy(out->text + out->len, text, n);
    out->len += n;
}

/* White space spelled out. False: a class within a class, or an intersection, which PCRE2 would take for plain text. */
static bool
translate(const char *pattern, size_t len, struct pattern *out)
{
    bool in_class = false;
    for (size_t at = 0; at < len; at++) {
        const char c = pattern[at], next = at + 1 < len ? pattern[at + 1] : '\0';
        if (c == '\\' && next == 's') {
            put(out, in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
            at++;
        } else if (c == '\\' && next == 'S' && !in_class) {
            put(out, "[^" WHITE_SPACE "]");
            at++;
        } else if (c == '\\' && at + 1 < len) {
            out->text[out->len++] = c;
            out->text[out->len++] = next;
            at++;
        } else if (!in_class && c == '[') {
            in_class = true;
            out->text[out->len++] = c;
            if (next == '^')
                out->text[out->len++] = pattern[++at];
            if (at + 1 < len && pattern[at + 1] == ']')
                out->text[out->len++] = pattern[++at];
        } else if (in_class && ((c == '[' && next != ':') || (c == '&' && next == '&'))) {
            return false;
        } else if (in_class && c == '[') { /* [:alpha:] */
            do
                out->text[out->len++] = pattern[at++];
            while (at + 1 < len && pattern[at] != ']');
            if (at < len)
                out->text[out->len++] = pattern[at];
        } else {
            in_class = in_class && c != ']';
            out->text[out->len++] = c;
        }
    }
    return true;
}

static pcre2_code *
compile(const char *pattern, size_t len, bool literal, struct err *err)
{
    char shown[120], message[160];
    printable_line(shown, sizeof shown, pattern, len);
    const size_t longest = sizeof "[^" WHITE_SPACE "]"; /* of what stands for two bytes */
    if (len > LONGEST_PATTERN || len == 0) {
        err_set(err, ERR_WORK, "a pattern of %zu bytes is not supported", len);
        return NULL;
    }
    struct pattern p = {.text = malloc(len * longest)};
    if (p.text == NULL) {
        err_set(err, ERR_WORK, "out of memory for the pattern '%s'", shown);
        return NULL;
    }
    pcre2_code *code = NULL;
    if (!literal && !translate(pattern, len, &p)) {
        err_set(err, ERR_WORK, "a character class within another is not supported: '%s'", shown);
    } else {
        int number;
        PCRE2_SIZE place;
        const uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
        code = pcre2_compile((PCRE2_SPTR)(literal ? pattern : p.text), literal ? len : p.len, options, &number, &place,
                             NULL);
        if (code == NULL) {
            pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof message);
            err_set(err, ERR_WORK, "the pattern '%s' cannot be used: %s", shown, message);
        } else {
            pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it, it only takes longer */
        }
    }
    free(p.text);
    return code;
}

bool
pretokenizer_add_split(struct pretokenizer *p, const char *pattern, size_t len, bool literal,
                       enum split_behavior behavior, bool invert, struct err *err)
{
    pcre2_code *code = compile(pattern, len, literal, err);
    struct pre_step *step = code == NULL ? NULL : new_step(p, PRE_SPLIT, err);
    if (step == NULL) {
        pcre2_code_free(code);
        return false;
    }
    step->code = code;
    step->behavior = behavior;
    step->invert = invert;
    return true;
}

/* ---- the other steps ---- */

static bool
add_text_step(struct pretokenizer *p, enum pre_kind kind, const char *text, size_t len, bool only_first,
              struct err *err)
{
    for (unsigned i = 0; i < p->n_steps; i++)
        if (p->steps[i].kind == PRE_SPLIT || p->steps[i].kind == PRE_BYTES)
            return err_set(err, ERR_WORK, "a pre-tokenizer that adds to words which it has cut is not supported");
    if (!utf8_valid(text, len))
        return err_set(err, ERR_WORK, "a pre-tokenizer that adds broken UTF-8 is not supported");
    struct pre_step *step = new_step(p, kind, err);
    if (step == NULL)
        return false;
    step->only_first = only_first;
    step->n_text = len;
    step->text = malloc(len + 1);
    if (step->text == NULL)
        return err_set(err, ERR_WORK, "out of memory for a pre-tokenizer");
    memcpy(step->text, text, len);
    return true;
}

bool
pretokenizer_add_prefix(struct pretokenizer *p, const char *prefix, size_t len, bool only_first, struct err *err)
{
    return add_text_step(p, PRE_PREFIX, prefix, len, only_first, err);
}

bool
pretokenizer_add_space_mark(struct pretokenizer *p, const char *to, size_t len, struct err *err)
{
    return add_text_step(p, PRE_SPACE_MARK, to, len, false, err);
}

bool
pretokenizer_add_byte_chars(struct pretokenizer *p, struct err *err)
{
    if (p->byte_chars)
        return err_set(err, ERR_WORK, "a pre-tokenizer that writes bytes as characters twice is not supported");
    p->byte_chars = new_step(p, PRE_BYTES, err) != NULL;
    return p->byte_chars;
}
