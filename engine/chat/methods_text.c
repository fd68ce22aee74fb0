/* Methods of a text that make texts of it. Markup stays Markup, and escapes what it takes in. */
#include "engine/chat/evaluate.h"
#include "engine/chat/format.h"
#include "engine/chat/functions.h"
#include "engine/chat/text.h"
#include "engine/chat/text_case.h"
#include "engine/chat/walk.h"
#include "engine/chat/write.h"

static bool
give(const struct call *c, struct slice text, struct value *out)
{
    *out = value_text_like(c->self, text);
    return true;
}

static bool
strip_side(struct call *c, enum text_side side, struct value *out)
{
    struct slice what = {0};
    return call_text(c, 0, &what) && render_step(c->r, c->self.text.len / 64 * what.len) &&
           give(c, text_strip(c->self.text, what, side), out);
}

static bool
strip(struct call *c, struct value *out)
{
    return strip_side(c, TEXT_BOTH, out);
}

static bool
lstrip(struct call *c, struct value *out)
{
    return strip_side(c, TEXT_LEFT, out);
}

static bool
rstrip(struct call *c, struct value *out)
{
    return strip_side(c, TEXT_RIGHT, out);
}

static bool
to_case(struct call *c, enum text_case to, struct value *out)
{
    struct slice text;
    return text_to_case(c->r, c->self.text, to, &text) && give(c, text, out);
}

static bool
upper(struct call *c, struct value *out)
{
    return to_case(c, CASE_UPPER, out);
}

static bool
lower(struct call *c, struct value *out)
{
    return to_case(c, CASE_LOWER, out);
}

static bool
title(struct call *c, struct value *out)
{
    return to_case(c, CASE_TITLE, out);
}

static bool
capitalize(struct call *c, struct value *out)
{
    return to_case(c, CASE_CAPITAL, out);
}

static bool
swapcase(struct call *c, struct value *out)
{
    return to_case(c, CASE_SWAPPED, out);
}

/* A text that must be given. */
static bool
needed_text(struct call *c, size_t i, struct slice *text)
{
    return c->a[i].kind == VALUE_NONE ? render_fail(c->r, "a text is needed, not a NoneType") : call_text(c, i, text);
}

static bool
replace(struct call *c, struct value *out)
{
    const struct slice s = c->self.text;
    struct slice from = {0}, to = {0};
    int64_t most = -1;
    if (!needed_text(c, 0, &from) || !needed_text(c, 1, &to) || !call_whole(c, 2, &most))
        return false;
    if (c->self.markup) {
        struct value safe;
        if (!value_escape(c->r, c->a[1], &safe))
            return false;
        to = safe.text;
    }
    struct buffer b = {0};
    size_t at = 0;
    while (most != 0 && at <= s.len) {
        const size_t found = text_find(s, from, at);
        if (found == SIZE_MAX)
            break;
        size_t next = found + from.len;
        if (!buffer_add(c->r, &b, (struct slice){s.data + at, found - at}) || !buffer_add(c->r, &b, to) ||
            !render_step(c->r, 1))
            return false;
        if (from.len == 0) { /* between all characters */
            const size_t n = found < s.len ? text_character((struct slice){s.data + found, s.len - found}, NULL) : 1;
            if (found < s.len && !buffer_add(c->r, &b, (struct slice){s.data + found, n}))
                return false;
            next = found + n;
        }
        at = next;
        most -= most > 0;
    }
    return (at >= s.len || buffer_add(c->r, &b, (struct slice){s.data + at, s.len - at})) &&
           give(c, buffer_text(&b), out);
}

static bool
format(struct call *c, struct value *out)
{
    return format_braces(c->r, c->self, &c->given, out);
}

static bool
join(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    struct buffer b = {0};
    if (!walk_begin(c->r, c->a[0], &s))
        return false;
    for (size_t i = 0; walk_next(c->r, &s, &item); i++) {
        if (c->self.markup && !value_escape(c->r, item, &item))
            return false;
        if (item.kind != VALUE_TEXT)
            return render_fail(c->r, "join() needs texts, not a %s", value_type(item));
        if ((i > 0 && !buffer_add(c->r, &b, c->self.text)) || !buffer_add(c->r, &b, item.text))
            return false;
    }
    return c->r->failed == NULL && give(c, buffer_text(&b), out);
}

static bool
pad(struct call *c, int left_of_two, struct value *out)
{
    int64_t width = 0;
    struct slice fill = {" ", 1};
    struct buffer b = {0};
    if (!call_whole(c, 0, &width) || (c->a[1].kind != VALUE_MISSING && !needed_text(c, 1, &fill)))
        return false;
    if (text_length(fill) != 1)
        return render_fail(c->r, "a text is filled up with one character");
    const int64_t n = (int64_t)text_length(c->self.text), missing = width > n ? width - n : 0;
    /* str.center() has its odd one left where the width is odd */
    const int64_t left = left_of_two == 1 ? missing / 2 + (missing & width & 1) : left_of_two == 2 ? missing : 0;
    return buffer_fill(c->r, &b, fill, (size_t)left) && buffer_add(c->r, &b, c->self.text) &&
           buffer_fill(c->r, &b, fill, (size_t)(missing - left)) && give(c, buffer_text(&b), out);
}

static bool
ljust(struct call *c, struct value *out)
{
    return pad(c, 0, out);
}

static bool
center(struct call *c, struct value *out)
{
    return pad(c, 1, out);
}

static bool
rjust(struct call *c, struct value *out)
{
    return pad(c, 2, out);
}

static bool
zfill(struct call *c, struct value *out)
{
    int64_t width = 0;
    struct buffer b = {0};
    const struct slice s = c->self.text;
    if (!call_whole(c, 0, &width))
        return false;
    const size_t sign = s.len > 0 && (s.data[0] == '+' || s.data[0] == '-'), n = text_length(s);
    return buffer_add(c->r, &b, (struct slice){s.data, sign}) &&
           buffer_fill(c->r, &b, slice_of("0"), width > (int64_t)n ? (size_t)width - n : 0) &&
           buffer_add(c->r, &b, (struct slice){s.data + sign, s.len - sign}) && give(c, buffer_text(&b), out);
}

static bool
removeprefix(struct call *c, struct value *out)
{
    struct slice what = {0}, s = c->self.text;
    if (!needed_text(c, 0, &what))
        return false;
    const size_t n = text_begins(s, what) ? what.len : 0;
    return give(c, (struct slice){s.data + n, s.len - n}, out);
}

static bool
removesuffix(struct call *c, struct value *out)
{
    struct slice what = {0}, s = c->self.text;
    return needed_text(c, 0, &what) &&
           give(c, (struct slice){s.data, s.len - (text_ends(s, what) ? what.len : 0)}, out);
}

const struct builtin text_methods[] = {{"strip", strip, 0, {"-characters"}, false},
                                       {"lstrip", lstrip, 0, {"-characters"}, false},
                                       {"rstrip", rstrip, 0, {"-characters"}, false},
                                       {"upper", upper, 0, {0}, false},
                                       {"lower", lower, 0, {0}, false},
                                       {"title", title, 0, {0}, false},
                                       {"capitalize", capitalize, 0, {0}, false},
                                       {"swapcase", swapcase, 0, {0}, false},
                                       {"replace", replace, 2, {"-old", "-new", "-count"}, false},
                                       {"format", format, 0, {0}, true},
                                       {"join", join, 1, {"-values"}, false},
                                       {"ljust", ljust, 1, {"-width", "-fill"}, false},
                                       {"center", center, 1, {"-width", "-fill"}, false},
                                       {"rjust", rjust, 1, {"-width", "-fill"}, false},
                                       {"zfill", zfill, 1, {"-width"}, false},
                                       {"removeprefix", removeprefix, 1, {"-prefix"}, false},
                                       {"removesuffix", removesuffix, 1, {"-suffix"}, false},
                                       {0}};
