#include "engine/chat/text_case.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "engine/chat/buffer.h"
#include "engine/chat/text.h"

#define CAPITAL_SIGMA     0x3a3
#define SMALL_FINAL_SIGMA 0x3c2
#define SMALL_IOTA        0x3b9
#define IOTA_BELOW        0x345

static bool
is_cased(uint32_t code)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

/* What a word's end is looked for behind: marks, apostrophes, full stops. */
static bool
is_passed_over(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return code == '\'' || code == '.' || code == ':' || code == 0xb7 || code == 0x2019;
    }
}

/* Whether no letter follows the Σ at `at`; what is passed over ends at the next Σ, so a whole text takes linear time. */
static bool
ends_word(struct slice s, size_t at)
{
    uint32_t code;
    for (size_t i = at + 2; i < s.len;) {
        i += text_character((struct slice){s.data + i, s.len - i}, &code);
        if (!is_passed_over(code))
            return !is_cased(code);
    }
    return true;
}

/* What it is folded to where that is several characters, as ß is to ss; 0: it isn't. */
static size_t
unfold(uint32_t code, utf8proc_int32_t parts[4])
{
    int last = 0;
    if (code == 0x130 || code == 0x1e9e) /* capitals that stay what they are */
        return 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, parts, 4, UTF8PROC_CASEFOLD, &last);
    return n > 1 && n <= 4 ? (size_t)n : 0;
}

static bool
add_upper(struct render *r, struct buffer *b, uint32_t code)
{
    utf8proc_int32_t parts[4];
    const size_t n = unfold(code, parts);
    for (size_t i = 0; i < n; i++)
        if (!buffer_add_code(r, b, (uint32_t)utf8proc_toupper(parts[i])))
            return false;
    return n > 0 || buffer_add_code(r, b, (uint32_t)utf8proc_toupper((utf8proc_int32_t)code));
}

static bool
add_title(struct render *r, struct buffer *b, uint32_t code)
{
    utf8proc_int32_t parts[4];
    const utf8proc_int32_t title = code == 0xdf ? 0xdf : utf8proc_totitle((utf8proc_int32_t)code); /* ß: Ss */
    size_t n = title != (utf8proc_int32_t)code ? 0 : unfold(code, parts);
    if (n == 0 || utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_LT)
        return buffer_add_code(r, b, (uint32_t)title);
    utf8proc_int32_t first = utf8proc_toupper(parts[0]);
    if (n == 3 && parts[2] == SMALL_IOTA) { /* ᾷ, ῇ, ῷ */
        first = parts[0] == 0x3b1 ? 0x1fbc : parts[0] == 0x3b7 ? 0x1fcc : 0x1ffc;
        n = 2;
    }
    bool ok = buffer_add_code(r, b, (uint32_t)first);
    for (size_t i = 1; i < n && ok; i++)
        ok = buffer_add_code(r, b, parts[i] == SMALL_IOTA ? IOTA_BELOW : (uint32_t)parts[i]);
    return ok;
}

/* `letter`: the character before, marks aside, is one. */
static bool
add_lower(struct render *r, struct buffer *b, struct slice s, size_t at, bool letter, uint32_t code)
{
    if (code == CAPITAL_SIGMA && letter && ends_word(s, at))
        return buffer_add_code(r, b, SMALL_FINAL_SIGMA);
    return code == 0x130 ? buffer_add_words(r, b, "i\xcc\x87")
                         : buffer_add_code(r, b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}

bool
text_to_case(struct render *r, struct slice s, enum text_case to, struct slice *out)
{
    struct buffer b = {0};
    bool in_word = false, letter = false;
    if (!render_step(r, s.len / 2))
        return false;
    for (size_t at = 0, n; at < s.len; at += n) {
        uint32_t code;
        n = text_character((struct slice){s.data + at, s.len - at}, &code);
        const bool cased = is_cased(code);
        const bool lower = utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_LL;
        enum text_case one = to;
        if (to == CASE_TITLE)
            one = in_word ? CASE_LOWER : CASE_TITLE;
        else if (to == CASE_CAPITAL)
            one = at > 0 ? CASE_LOWER : CASE_TITLE;
        else if (to == CASE_SWAPPED)
            one = lower ? CASE_UPPER : CASE_LOWER;
        const bool ok = one == CASE_UPPER   ? add_upper(r, &b, code)
                        : one == CASE_TITLE ? add_title(r, &b, code)
                                            : add_lower(r, &b, s, at, letter, code);
        if (!ok)
            return false;
        letter = is_passed_over(code) ? letter : cased;
        in_word = cased;
    }
    *out = buffer_text(&b);
    return true;
}

/* Whether it has letters of one case, and none of the other. */
static bool
is_all(struct slice s, utf8proc_category_t wanted)
{
    bool some = false;
    for (size_t at = 0; at < s.len;) {
        uint32_t code;
        at += text_character((struct slice){s.data + at, s.len - at}, &code);
        const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
        if (is_cased(code) && c != wanted)
            return false;
        some = some || c == wanted;
    }
    return some;
}

bool
text_is_upper(struct slice s)
{
    return is_all(s, UTF8PROC_CATEGORY_LU);
}

bool
text_is_lower(struct slice s)
{
    return is_all(s, UTF8PROC_CATEGORY_LL);
}
