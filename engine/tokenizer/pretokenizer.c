/* A pre-tokenizer's steps. */
#include "engine/tokenizer/pretokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

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

bool
pretokenizer_add_split(struct pretokenizer *p, const char *pattern, size_t len, bool literal,
                       enum split_behavior behavior, bool invert, struct err *err)
{
    pcre2_code *code = pretokenizer_compile(pattern, len, literal, err);
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
    bool split = false;
    unsigned added =
        0; /* by steps behind a split: a mark and a prefix are one pre-tokenizer's; more could make any length of a text */
    for (unsigned i = 0; i < p->n_steps; i++) {
        const enum pre_kind before = p->steps[i].kind;
        split = split || before == PRE_SPLIT;
        added += split && (before == PRE_PREFIX || before == PRE_SPACE_MARK);
        if (before == PRE_BYTES || added == 2)
            return err_set(err, ERR_WORK, "a pre-tokenizer that adds to words %s is not supported",
                           added == 2 ? "again" : "which it has turned into bytes");
    }
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
