/* Oniguruma's patterns (Hugging Face's) as PCRE2's in UTF and UCP mode, which mean the same but for white space and what is in
 * words, which are spelled out, and for classes in classes: [a[^b]], [\p{L}&&[^\p{Han}]]. Those become alternatives and assertions of single
 * characters. */
#include "engine/tokenizer/pretokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/printable.h"

/* Unicode's White_Space; PCRE2's \s has U+180E too. */
#define WHITE_SPACE "\\p{Z}\\t-\\r\\x{85}"
/* What is alphabetic, a mark, a digit or joins: letters in circles and squares are. Outside of classes what Latin-1 has of other
 * numbers, too. */
#define IN_WORDS                                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{"    \
    "1F189}"
#define WORD         IN_WORDS "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"
#define WORD_AHEAD   "(?=[" WORD "])"
#define NO_WORD      "(?![" WORD "])"
#define WORD_BEHIND  "(?<=[" WORD "])"
#define NONE_BEHIND  "(?<![" WORD "])"
#define MOST_NESTED  16
#define MOST_WRITTEN (16 * LONGEST_PATTERN) /* bytes */

struct text {
    char *at;
    size_t len, room;
};

struct translation {
    const char *pattern;
    size_t at, len;
    const char *why; /* it can't be translated, or NULL: out of memory */
};

static bool
put_bytes(struct text *t, const char *bytes, size_t n)
{
    if (t->len + n > MOST_WRITTEN)
        return false;
    if (t->len + n > t->room) {
        const size_t room = 2 * (t->len + n) + 64;
        char *grown = realloc(t->at, room);
        if (grown == NULL)
            return false;
        t->at = grown;
        t->room = room;
    }
    if (n > 0)
        memcpy(t->at + t->len, bytes, n);
    t->len += n;
    return true;
}

static bool
put(struct text *t, const char *bytes)
{
    return put_bytes(t, bytes, strlen(bytes));
}

static bool
put_text(struct text *t, const struct text *other)
{
    return put_bytes(t, other->at, other->len);
}

static bool
refuse(struct translation *p, const char *why)
{
    p->why = why;
    return false;
}

static char
ahead(const struct translation *p, size_t by)
{
    return p->at + by < p->len ? p->pattern[p->at + by] : '\0';
}

/* ---- escapes ---- */

/* To PCRE2 from 10.40 on \p{Han} is also what Han is written with, 。 for one; \p{sc:Han} is what Oniguruma takes it for. */
static bool
is_script(const char *name, size_t n)
{
    static const char *const scripts[] = {
        "Han",      "Hiragana", "Katakana", "Hangul",   "Bopomofo", "Latin",      "Greek",    "Cyrillic",
        "Armenian", "Hebrew",   "Arabic",   "Syriac",   "Thaana",   "Devanagari", "Bengali",  "Gurmukhi",
        "Gujarati", "Oriya",    "Tamil",    "Telugu",   "Kannada",  "Malayalam",  "Sinhala",  "Thai",
        "Lao",      "Tibetan",  "Myanmar",  "Georgian", "Ethiopic", "Khmer",      "Mongolian"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strlen(scripts[i]) == n && strncasecmp(name, scripts[i], n) == 0)
            return PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40;
    return false;
}

/* A backslash and what belongs to it. */
static bool
put_escape(struct translation *p, struct text *out)
{
    const size_t left = p->len - p->at;
    const char *at = left > 3 ? p->pattern + p->at + 3 : NULL, *end = at != NULL ? memchr(at, '}', left - 3) : NULL;
    const bool not = end != NULL && *at == '^';
    if ((ahead(p, 1) == 'p' || ahead(p, 1) == 'P') && ahead(p, 2) == '{' && end != NULL &&
        is_script(at + not, (size_t)(end - at) - not )) {
        const bool ok = put_bytes(out, p->pattern + p->at, (size_t)3 + not ) && put(out, "sc:") &&
                        put_bytes(out, at + not, (size_t)(end + 1 - at) - not );
        p->at = (size_t)(end + 1 - p->pattern);
        return ok;
    }
    p->at += 2;
    return put_bytes(out, p->pattern + p->at - 2, 2);
}

/* ---- classes ---- */

/* What stands between two &&: items as PCRE2 writes them, and beside them classes that aren't so simple. */
struct operand {
    struct text plain, others; /* others: each with a | in front */
    bool after_class;          /* a - here is itself */
};

static void
free_operand(struct operand *o)
{
    free(o->plain.at);
    free(o->others.at);
    *o = (struct operand){0};
}

/* One character of the operand. */
static bool
put_operand(struct text *out, const struct operand *o)
{
    if (o->others.len == 0)
        return put(out, "[") && put_text(out, &o->plain) && put(out, "]");
    if (!put(out, "(?>")) /* one character is one, whichever of them has it: nothing to come back to */
        return false;
    if (o->plain.len > 0)
        return put(out, "[") && put_text(out, &o->plain) && put(out, "]") && put_text(out, &o->others) && put(out, ")");
    return put_bytes(out, o->others.at + 1, o->others.len - 1) && put(out, ")");
}

/* A - at the end of what was read is no range: something else than a character follows. */
static bool
end_plain(struct text *plain)
{
    size_t n = plain->len, slashes = 0;
    if (n == 0 || plain->at[n - 1] != '-')
        return true;
    while (slashes + 1 < n && plain->at[n - 2 - slashes] == '\\')
        slashes++;
    if (slashes % 2 == 1)
        return true;
    plain->len--;
    return put(plain, "\\-");
}

static bool read_class(struct translation *, int depth, struct operand *simple, struct text *out, bool *is_simple);

static bool
read_nested(struct translation *p, int depth, struct operand *o)
{
    struct operand simple = {0};
    struct text written = {0};
    bool is_simple;
    p->at++;
    bool ok = end_plain(&o->plain) && read_class(p, depth + 1, &simple, &written, &is_simple);
    if (ok && is_simple)
        ok = end_plain(&simple.plain) && put_text(&o->plain, &simple.plain);
    else if (ok)
        ok = put(&o->others, "|") && put_text(&o->others, &written);
    o->after_class = true;
    free_operand(&simple);
    free(written.at);
    return ok;
}

/* [:alpha:] */
static bool
read_posix(struct translation *p, struct operand *o)
{
    size_t n = 2;
    while (p->at + n < p->len && p->pattern[p->at + n] != ']')
        n++;
    if (p->at + n == p->len)
        return refuse(p, "a character class does not end");
    const bool ok = put_bytes(&o->plain, p->pattern + p->at, n + 1);
    p->at += n + 1;
    return ok;
}

static bool
read_item(struct translation *p, struct operand *o)
{
    const char c = ahead(p, 0), next = ahead(p, 1);
    const bool after_class = o->after_class, first = o->plain.len == 0;
    o->after_class = false;
    if (c == '\\' && (next == 's' || next == 'w')) {
        p->at += 2;
        return put(&o->plain, next == 's' ? WHITE_SPACE : IN_WORDS);
    }
    if (c == '\\' && (next == 'S' || next == 'W')) {
        p->at += 2;
        o->after_class = true;
        return put(&o->others, next == 'S' ? "|[^" WHITE_SPACE "]" : "|[^" IN_WORDS "]");
    }
    if (c == '\\' && p->at + 1 < p->len)
        return put_escape(p, &o->plain);
    p->at++;
    if ((c == '-' && (first || after_class)) || (c == '^' && first) || c == ']' || c == '[')
        return put(&o->plain, "\\") && put_bytes(&o->plain, &c, 1);
    return put_bytes(&o->plain, &c, 1);
}

/* The operands up to the ] into *out, one assertion of a character for each but the first, which takes it. *last is the
 * only one, or the last. */
static bool
read_operands(struct translation *p, int depth, struct operand *last, struct text *out, size_t *n)
{
    struct text taken = {0}; /* the first operand's character */
    const size_t begin = p->at;
    bool ok = true;
    *n = 1;
    while (ok && (ahead(p, 0) != ']' || p->at == begin)) {
        if (p->at >= p->len) {
            ok = refuse(p, "a character class does not end");
        } else if (ahead(p, 0) == '[' && ahead(p, 1) == ':') {
            ok = read_posix(p, last);
        } else if (ahead(p, 0) == '[') {
            ok = read_nested(p, depth, last);
        } else if (ahead(p, 0) == '&' && ahead(p, 1) == '&') {
            p->at += 2;
            ok = end_plain(&last->plain) &&
                 (*n == 1 ? put_operand(&taken, last) : put(out, "(?=") && put_operand(out, last) && put(out, ")"));
            ++*n;
            free_operand(last);
        } else {
            ok = read_item(p, last);
        }
    }
    p->at++;
    if (ok && *n > 1)
        ok = put(out, "(?=") && put_operand(out, last) && put(out, ")") && put_text(out, &taken);
    free(taken.at);
    return ok;
}

/* From behind the [ to behind its ]. A simple one is left in *simple for whoever can use its items; any other is written. */
static bool
read_class(struct translation *p, int depth, struct operand *simple, struct text *out, bool *is_simple)
{
    struct text several = {0};
    size_t n;
    const bool negated = ahead(p, 0) == '^';
    if (depth == MOST_NESTED)
        return refuse(p, "classes within classes that go too deep");
    p->at += negated;
    bool ok = read_operands(p, depth, simple, &several, &n);
    *is_simple = ok && n == 1 && simple->others.len == 0 && !negated;
    if (ok && n == 1 && simple->others.len == 0 && simple->plain.len == 0)
        ok = refuse(p, "an empty character class");
    if (ok && n == 1 && simple->others.len == 0)
        ok = *is_simple || (put(out, "[^") && put_text(out, &simple->plain) && put(out, "]"));
    else if (ok && n == 1)
        ok = put(out, negated ? "(?:(?!" : "") && put_operand(out, simple) && put(out, negated ? ")(?s:.))" : "");
    else if (ok)
        ok = put(out, negated ? "(?:(?!" : "(?:") && put_text(out, &several) && put(out, negated ? ")(?s:.))" : ")");
    free(several.at);
    return ok;
}

/* ---- all of it ---- */

/* What a backslash and a letter mean outside of classes, where PCRE2 means something else; NULL: it doesn't. */
static const char *
meaning(char letter)
{
    switch (letter) {
    case 's': return "[" WHITE_SPACE "]";
    case 'S': return "[^" WHITE_SPACE "]";
    case 'w': return "[" WORD "]";
    case 'W': return "[^" WORD "]";
    case 'b': return "(?:" WORD_BEHIND NO_WORD "|" NONE_BEHIND WORD_AHEAD ")";
    case 'B': return "(?:" WORD_BEHIND WORD_AHEAD "|" NONE_BEHIND NO_WORD ")";
    default: return NULL;
    }
}

static bool
translate(struct translation *p, struct text *out)
{
    bool ok = true;
    while (ok && p->at < p->len) {
        const char c = ahead(p, 0), next = ahead(p, 1);
        if (c == '\\' && meaning(next) != NULL) {
            ok = put(out, meaning(next));
            p->at += 2;
        } else if (c == '\\' && p->at + 1 < p->len) {
            ok = put_escape(p, out);
        } else if (c == '[') {
            struct operand simple = {0};
            bool is_simple;
            p->at++;
            ok = read_class(p, 0, &simple, out, &is_simple) && (!is_simple || put_operand(out, &simple));
            free_operand(&simple);
        } else {
            ok = put_bytes(out, &c, 1);
            p->at++;
        }
    }
    return ok;
}

pcre2_code *
pretokenizer_compile(const char *pattern, size_t len, bool literal, struct err *err)
{
    char shown[120], message[160];
    struct text written = {0};
    struct translation p = {.pattern = pattern, .len = len};
    pcre2_code *code = NULL;
    int number;
    PCRE2_SIZE place;
    printable_line(shown, sizeof shown, pattern, len);
    if (len > LONGEST_PATTERN || len == 0) {
        err_set(err, ERR_WORK, "a pattern of %zu bytes is not supported", len);
        return NULL;
    }
    if (literal ? !put_bytes(&written, pattern, len) : !translate(&p, &written)) {
        if (p.why != NULL)
            err_set(err, ERR_WORK, "%s is not supported: '%s'", p.why, shown);
        else
            err_set(err, ERR_WORK, "out of memory for the pattern '%s'", shown);
        free(written.at);
        return NULL;
    }
    const uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    code = pcre2_compile((PCRE2_SPTR)written.at, written.len, options, &number, &place, NULL);
    if (code == NULL) {
        pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof message);
        err_set(err, ERR_WORK, "the pattern '%s' cannot be used: %s", shown, message);
    } else {
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it, it only takes longer */
    }
    free(written.at);
    return code;
}
