/* Properties of values, and operations on texts that count characters as Python's str does. */
#include "engine/jinja/template.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

bool
value_is_whole(struct value v, int64_t *whole)
{
    if (v.kind == VALUE_INT)
        *whole = v.whole;
    else if (v.kind == VALUE_BOOL)
        *whole = v.truth;
    else
        return false;
    return true;
}

bool
value_is_number(struct value v, double *real)
{
    int64_t whole;
    if (v.kind == VALUE_FLOAT)
        *real = v.real;
    else if (value_is_whole(v, &whole))
        *real = (double)whole;
    else
        return false;
    return true;
}

bool
value_truth(struct value v)
{
    switch (v.kind) {
    case VALUE_MISSING:
    case VALUE_UNDEFINED:
    case VALUE_NONE: return false;
    case VALUE_BOOL: return v.truth;
    case VALUE_INT: return v.whole != 0;
    case VALUE_FLOAT: return v.real < 0 || v.real > 0 || v.real != v.real;
    case VALUE_TEXT: return v.text.len > 0;
    case VALUE_LIST: return v.list->kind == LIST_GENERATOR || v.list->n > 0;
    case VALUE_DICT: return v.dict->n > 0;
    default: return true;
    }
}

const char *
value_type(struct value v)
{
    static const char *const lists[] = {[LIST_LIST] = "list", [LIST_TUPLE] = "tuple", [LIST_GENERATOR] = "generator"};
    static const char *const types[] = {[VALUE_MISSING] = "Undefined",
                                        [VALUE_UNDEFINED] = "Undefined",
                                        [VALUE_NONE] = "NoneType",
                                        [VALUE_BOOL] = "bool",
                                        [VALUE_INT] = "int",
                                        [VALUE_FLOAT] = "float",
                                        [VALUE_TEXT] = "str",
                                        [VALUE_DICT] = "dict",
                                        [VALUE_NAMESPACE] = "Namespace",
                                        [VALUE_MACRO] = "Macro",
                                        [VALUE_METHOD] = "function",
                                        [VALUE_FUNCTION] = "function",
                                        [VALUE_LOOP] = "LoopContext"};
    return v.kind == VALUE_LIST ? lists[v.list->kind] : types[v.kind];
}

size_t
text_character(struct slice s, uint32_t *code)
{
    const unsigned char first = (unsigned char)s.data[0];
    if (first < 0x80) {
        if (code != NULL)
            *code = first;
        return 1;
    }
    size_t n = utf8_character(s.data, s.len, code);
    if (n == 0) {
        n = 1;
        if (code != NULL)
            *code = 0xfffd;
    }
    return n;
}

/* Returns the byte offset of character i; the text's length if the text is shorter. */
static size_t
text_offset(struct slice s, size_t i)
{
    size_t at = 0;
    for (; i > 0 && at < s.len; i--)
        at += text_character((struct slice){s.data + at, s.len - at}, NULL);
    return at;
}

size_t
text_length(struct slice s)
{
    size_t n = 0;
    for (size_t at = 0; at < s.len; n++)
        at += text_character((struct slice){s.data + at, s.len - at}, NULL);
    return n;
}

struct slice
text_part(struct slice s, size_t from, size_t to)
{
    const size_t begin = text_offset(s, from);
    const struct slice rest = {s.data + begin, s.len - begin};
    return (struct slice){rest.data, to > from ? text_offset(rest, to - from) : 0};
}

bool
text_is_space(uint32_t code)
{
    return utf8_is_space(code) || (code >= 0x1c && code <= 0x1f);
}

static bool
is_stripped(uint32_t code, struct slice character, struct slice what)
{
    return what.data == NULL ? text_is_space(code) : text_find(what, character, 0) != SIZE_MAX;
}

/* Returns the length of the last character in bytes. */
static size_t
last_character(struct slice s, uint32_t *code)
{
    for (size_t n = 1; n <= 4 && n <= s.len; n++) {
        const struct slice end = {s.data + s.len - n, n};
        if (text_character(end, code) == n && (n > 1 || *code < 0x80))
            return n;
    }
    *code = 0xfffd;
    return 1;
}

struct slice
text_strip(struct slice s, struct slice what, enum text_side side)
{
    uint32_t code;
    while ((side & TEXT_LEFT) != 0 && s.len > 0) {
        const size_t n = text_character(s, &code);
        if (!is_stripped(code, (struct slice){s.data, n}, what))
            break;
        s = (struct slice){s.data + n, s.len - n};
    }
    while ((side & TEXT_RIGHT) != 0 && s.len > 0) {
        const size_t n = last_character(s, &code);
        if (!is_stripped(code, (struct slice){s.data + s.len - n, n}, what))
            break;
        s.len -= n;
    }
    return s;
}

size_t
text_find(struct slice s, struct slice what, size_t from)
{
    if (from > s.len || what.len > s.len - from)
        return SIZE_MAX;
    if (what.len == 0)
        return from;
    const char *at = memmem(s.data + from, s.len - from, what.data, what.len);
    return at == NULL ? SIZE_MAX : (size_t)(at - s.data);
}

bool
text_begins(struct slice s, struct slice with)
{
    return with.len == 0 || (with.len <= s.len && memcmp(s.data, with.data, with.len) == 0);
}

bool
text_ends(struct slice s, struct slice with)
{
    return with.len == 0 || (with.len <= s.len && memcmp(s.data + s.len - with.len, with.data, with.len) == 0);
}

/* ---- case ---- */

#define CAPITAL_SIGMA 0x3a3 /* its lower case differs at the end of a word */
#define CAPITAL_I_DOT 0x130 /* its lower case has two characters */

static bool
add_in_case(struct render *r, struct buffer *b, struct slice character, uint32_t code, enum text_case to)
{
    const utf8proc_int32_t c = (utf8proc_int32_t)code;
    utf8proc_int32_t folded[8];
    int last = 0;
    const bool special = to == CASE_LOWER ? code == CAPITAL_SIGMA || code == CAPITAL_I_DOT
                                          : utf8proc_decompose_char(c, folded, 8, UTF8PROC_CASEFOLD, &last) != 1;
    if (special)
        return render_fail(r, "'%.*s' in %s case is not supported", (int)character.len, character.data,
                           to == CASE_LOWER ? "lower" : "upper");
    return buffer_add_code(r, b,
                           (uint32_t)(to == CASE_UPPER   ? utf8proc_toupper(c)
                                      : to == CASE_TITLE ? utf8proc_totitle(c)
                                                         : utf8proc_tolower(c)));
}

static bool
is_cased(uint32_t code)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

bool
text_to_case(struct render *r, struct slice s, enum text_case to, struct slice *out)
{
    struct buffer b = {0};
    bool in_word = false;
    if (!render_step(r, s.len / 2))
        return false;
    for (size_t at = 0, n; at < s.len; at += n) {
        uint32_t code;
        n = text_character((struct slice){s.data + at, s.len - at}, &code);
        enum text_case one = to;
        if (to == CASE_TITLE)
            one = in_word ? CASE_LOWER : CASE_TITLE;
        else if (to == CASE_CAPITAL)
            one = at > 0 ? CASE_LOWER : CASE_TITLE;
        else if (to == CASE_WORDS)
            one = in_word ? CASE_LOWER : CASE_UPPER;
        if (!add_in_case(r, &b, (struct slice){s.data + at, n}, code, one))
            return false;
        const bool parts = text_is_space(code) || (code < 0x80 && memchr("-({[<", (int)code, 5) != NULL);
        in_word = to == CASE_WORDS ? !parts : is_cased(code);
    }
    *out = buffer_text(&b);
    return true;
}
