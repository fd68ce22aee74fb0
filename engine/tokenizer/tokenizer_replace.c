/* Replacing what a regular expression matches, as a normaliser does. */
#include <stdlib.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/pretokenizer_internal.h"
#include "engine/tokenizer/tokenizer_internal.h"

struct pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

void
pattern_close(struct pattern *p)
{
    if (p == NULL)
        return;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    free(p);
}

struct pattern *
pattern_open(const char *text, size_t len, struct err *err)
{
    struct pattern *p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_set(err, ERR_WORK, "out of memory for a pattern");
        return NULL;
    }
    p->code = pretokenizer_compile(text, len, false, err);
    p->limits = p->code == NULL ? NULL : pcre2_match_context_create(NULL);
    if (p->limits != NULL) {
        pcre2_set_match_limit(p->limits, MATCH_LIMIT);
        pcre2_set_heap_limit(p->limits, MATCH_HEAP_KIB);
        return p;
    }
    if (p->code != NULL)
        err_set(err, ERR_WORK, "out of memory for a pattern");
    pattern_close(p);
    return NULL;
}

static bool
put_matches(const struct normal_step *step, struct slice in, pcre2_match_data *match, struct bytes *out)
{
    const struct pattern *p = step->pattern;
    size_t done = 0;
    for (size_t at = 0; at <= in.len;) {
        PCRE2_SPTR text = (PCRE2_SPTR)in.data;
        int found = pcre2_match(p->code, text, in.len, at, PCRE2_NO_UTF_CHECK, match, p->limits);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(p->code, text, in.len, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, p->limits);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(match);
        if (found < 0 || place[0] < done || place[1] < place[0] ||
            !bytes_append(out, in.data + done, place[0] - done) || !bytes_append(out, step->to.data, step->to.len))
            return false;
        done = at = place[1];
        if (place[0] == place[1]) { /* nothing, here: look from the next character on */
            const size_t n = utf8_character(in.data + at, in.len - at, NULL);
            at += n > 0 ? n : 1;
        }
    }
    return bytes_append(out, in.data + done, in.len - done);
}

/* Segments of whole characters are looked at; broken bytes between them stay. */
bool
normal_put_pattern(const struct normal_step *step, struct slice in, struct bytes *out)
{
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(step->pattern->code, NULL);
    bool ok = match != NULL;
    for (size_t at = 0; ok && at < in.len;) {
        const size_t start = at;
        for (size_t n; at < in.len && (n = utf8_character(in.data + at, in.len - at, NULL)) > 0;)
            at += n;
        ok = at == start || put_matches(step, (struct slice){in.data + start, at - start}, match, out);
        if (ok && at < in.len)
            ok = bytes_append(out, in.data + at++, 1);
    }
    pcre2_match_data_free(match);
    return ok;
}
