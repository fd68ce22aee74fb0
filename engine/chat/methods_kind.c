/* Methods of a text that say what its characters are. */
#include <utf8proc.h>

#include "engine/chat/functions.h"
#include "engine/chat/text.h"
#include "engine/chat/text_case.h"

/* Whether all characters are of a kind, and there are some. */
static bool
all_are(struct call *c, bool (*is)(uint32_t), struct value *out)
{
    const struct slice s = c->self.text;
    bool all = s.len > 0;
    for (size_t at = 0; at < s.len && all;) {
        uint32_t code;
        at += text_character((struct slice){s.data + at, s.len - at}, &code);
        all = is(code);
    }
    *out = value_bool(all);
    return true;
}

static bool
is_alpha(uint32_t code)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)code);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

static bool
is_decimal(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_ND;
}

static bool
is_digit(uint32_t code)
{
    return is_decimal(code) || code == 0xb2 || code == 0xb3 || code == 0xb9 || (code >= 0x2070 && code <= 0x2089);
}

static bool
is_alnum(uint32_t code)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)code);
    return is_alpha(code) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

static bool
isalpha_(struct call *c, struct value *out)
{
    return all_are(c, is_alpha, out);
}

static bool
isdecimal_(struct call *c, struct value *out)
{
    return all_are(c, is_decimal, out);
}

static bool
isdigit_(struct call *c, struct value *out)
{
    return all_are(c, is_digit, out);
}

static bool
isalnum_(struct call *c, struct value *out)
{
    return all_are(c, is_alnum, out);
}

static bool
isspace_(struct call *c, struct value *out)
{
    return all_are(c, text_is_space, out);
}

static bool
isupper_(struct call *c, struct value *out)
{
    *out = value_bool(text_is_upper(c->self.text));
    return true;
}

static bool
islower_(struct call *c, struct value *out)
{
    *out = value_bool(text_is_lower(c->self.text));
    return true;
}

const struct builtin text_kind_methods[] = {
    {"isalpha", isalpha_, 0, {0}, false}, {"isdecimal", isdecimal_, 0, {0}, false},
    {"isdigit", isdigit_, 0, {0}, false}, {"isalnum", isalnum_, 0, {0}, false},
    {"isspace", isspace_, 0, {0}, false}, {"isupper", isupper_, 0, {0}, false},
    {"islower", islower_, 0, {0}, false}, {0}};
