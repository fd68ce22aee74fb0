/* Methods of a text that look into it, or cut it up. */
#include "engine/chat/evaluate.h"
#include "engine/chat/functions.h"
#include "engine/chat/text.h"
#include "engine/chat/walk.h"

static bool
add_piece(struct call *c, struct growing *g, size_t from, size_t to)
{
    return growing_add(c->r, g, value_text_like(c->self, (struct slice){c->self.text.data + from, to - from}));
}

/* At white space, of which any amount is one; none at the ends. */
static bool
split_space(struct call *c, int64_t most, struct growing *g)
{
    const struct slice all = c->self.text;
    struct slice s = text_strip(all, (struct slice){0}, TEXT_LEFT);
    while (s.len > 0) {
        const size_t begin = (size_t)(s.data - all.data);
        size_t end = begin;
        uint32_t code;
        if (most == 0) {
            s = text_strip(s, (struct slice){0}, TEXT_RIGHT);
            return add_piece(c, g, begin, begin + s.len);
        }
        while (end < all.len) {
            const size_t n = text_character((struct slice){all.data + end, all.len - end}, &code);
            if (text_is_space(code))
                break;
            end += n;
        }
        if (!add_piece(c, g, begin, end))
            return false;
        s = text_strip((struct slice){all.data + end, all.len - end}, (struct slice){0}, TEXT_LEFT);
        most -= most > 0;
    }
    return true;
}

static bool
split_arguments(struct call *c, struct slice *at, int64_t *most)
{
    *at = (struct slice){0};
    *most = -1;
    if (!call_text(c, 0, at) || !call_whole(c, 1, most))
        return false;
    return at->data == NULL || at->len > 0 || render_fail(c->r, "a text can't be split at an empty one");
}

static bool
split(struct call *c, struct value *out)
{
    const struct slice s = c->self.text;
    struct slice sign;
    int64_t most;
    struct growing g;
    if (!split_arguments(c, &sign, &most) || !growing_begin(c->r, &g, LIST_LIST))
        return false;
    *out = value_list(g.list);
    if (sign.data == NULL)
        return split_space(c, most, &g);
    size_t at = 0;
    for (size_t found; most != 0 && (found = text_find(s, sign, at)) != SIZE_MAX; most -= most > 0) {
        if (!add_piece(c, &g, at, found))
            return false;
        at = found + sign.len;
    }
    return add_piece(c, &g, at, s.len);
}

static void
turn(struct list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const struct value v = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = v;
    }
}

/* From the right; without a bound there is no difference. */
static bool
rsplit(struct call *c, struct value *out)
{
    const struct slice s = c->self.text;
    struct slice sign;
    int64_t most;
    struct growing g;
    if (!split_arguments(c, &sign, &most) || !growing_begin(c->r, &g, LIST_LIST))
        return false;
    if (most < 0)
        return split(c, out);
    if (!render_step(c->r, s.len / 64 * sign.len))
        return false;
    size_t end = s.len;
    if (sign.data == NULL) {
        for (end = text_strip(s, sign, TEXT_RIGHT).len; end > 0 && most > 0; most--) {
            size_t begin = end;
            while (begin > 0 && text_strip((struct slice){s.data, begin}, sign, TEXT_RIGHT).len == begin)
                begin -= begin >= 1 ? 1 : 0;
            if (!add_piece(c, &g, begin, end))
                return false;
            end = text_strip((struct slice){s.data, begin}, sign, TEXT_RIGHT).len;
        }
        const size_t begin = end - text_strip((struct slice){s.data, end}, sign, TEXT_LEFT).len;
        if (end > begin && !add_piece(c, &g, begin, end))
            return false;
    } else {
        for (size_t found; most > 0 && (found = text_find_last(s, sign, end)) != SIZE_MAX; most--) {
            if (!add_piece(c, &g, found + sign.len, end))
                return false;
            end = found;
        }
        if (!add_piece(c, &g, 0, end))
            return false;
    }
    turn(g.list);
    *out = value_list(g.list);
    return true;
}

static bool
splitlines(struct call *c, struct value *out)
{
    const struct slice s = c->self.text;
    struct growing g;
    struct slice line;
    if (!growing_begin(c->r, &g, LIST_LIST))
        return false;
    for (size_t at = 0, end; text_line(s, &at, &line, &end);)
        if (!growing_add(c->r, &g,
                         value_text_like(c->self, (struct slice){line.data, line.len + (call_truth(c, 0) ? end : 0)})))
            return false;
    *out = value_list(g.list);
    return true;
}

/* Before, at and behind the sign: the first one, or the last. */
static bool
part_at(struct call *c, bool last, struct value *out)
{
    const struct slice s = c->self.text;
    struct slice sign = {0};
    if (!call_text(c, 0, &sign))
        return false;
    if (sign.len == 0)
        return render_fail(c->r, "a text can't be split at an empty one");
    if (last && !render_step(c->r, s.len / 64 * sign.len))
        return false;
    const size_t found = last ? text_find_last(s, sign, s.len) : text_find(s, sign, 0);
    struct growing g;
    if (!growing_begin(c->r, &g, LIST_TUPLE))
        return false;
    *out = value_list(g.list);
    if (found == SIZE_MAX)
        return add_piece(c, &g, 0, last ? 0 : s.len) && add_piece(c, &g, 0, 0) && add_piece(c, &g, 0, last ? s.len : 0);
    return add_piece(c, &g, 0, found) && add_piece(c, &g, found, found + sign.len) &&
           add_piece(c, &g, found + sign.len, s.len);
}

static bool
partition(struct call *c, struct value *out)
{
    return part_at(c, false, out);
}

static bool
rpartition(struct call *c, struct value *out)
{
    return part_at(c, true, out);
}

/* [from, to) of the characters, as find() and its like take them; false in *there: beyond the end. */
static bool
window(struct call *c, struct slice *s, size_t *offset, bool *there)
{
    const struct slice all = c->self.text;
    const int64_t n = (int64_t)text_length(all);
    int64_t from = 0, to = n;
    if ((c->a[1].kind != VALUE_NONE && !call_whole(c, 1, &from)) ||
        (c->a[2].kind != VALUE_NONE && !call_whole(c, 2, &to)))
        return false;
    from = from < 0 ? (from < -n ? 0 : from + n) : from;
    to = to < 0 ? (to < -n ? 0 : to + n) : to > n ? n : to;
    *there = from <= n && from <= to;
    *offset = *there ? (size_t)from : 0;
    *s = *there ? text_part(all, (size_t)from, (size_t)to) : (struct slice){0};
    return true;
}

/* One text or a tuple of them. */
static bool
has_end(struct call *c, bool (*has)(struct slice, struct slice), struct value *out)
{
    struct slice s;
    size_t offset;
    bool there, is = false;
    const struct value *at = &c->a[0];
    size_t n = 1;
    if (!window(c, &s, &offset, &there))
        return false;
    if (value_is_list(c->a[0], LIST_TUPLE)) {
        at = c->a[0].list->at;
        n = c->a[0].list->n;
    }
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind == VALUE_UNDEFINED)
            return call_undefined(c, at[i]);
        if (!render_step(c->r, 1 + at[i].text.len / 64))
            return false;
        if (at[i].kind != VALUE_TEXT)
            return render_fail(c->r, "a text is needed, or a tuple of texts, not a %s", value_type(at[i]));
        if (!render_step(c->r, 1 + at[i].text.len / 64))
            return false;
        is = is || (there && has(s, at[i].text));
    }
    *out = value_bool(is);
    return true;
}

static bool
startswith(struct call *c, struct value *out)
{
    return has_end(c, text_begins, out);
}

static bool
endswith(struct call *c, struct value *out)
{
    return has_end(c, text_ends, out);
}

static bool
place_of(struct call *c, bool last, int64_t *place)
{
    struct slice s, what = {0};
    size_t offset;
    bool there;
    if (c->a[0].kind == VALUE_NONE)
        return render_fail(c->r, "a text is needed, not a NoneType");
    if (!call_text(c, 0, &what) || !window(c, &s, &offset, &there) ||
        (last && !render_step(c->r, s.len / 64 * what.len)))
        return false;
    const size_t found = !there ? SIZE_MAX : last ? text_find_last(s, what, s.len) : text_find(s, what, 0);
    *place = found == SIZE_MAX ? -1 : (int64_t)(offset + text_length((struct slice){s.data, found}));
    return true;
}

static bool
find(struct call *c, struct value *out)
{
    *out = value_int(0);
    return place_of(c, false, &out->whole);
}

static bool
rfind(struct call *c, struct value *out)
{
    *out = value_int(0);
    return place_of(c, true, &out->whole);
}

static bool
found(struct call *c, const struct value *place)
{
    return place->whole >= 0 || render_fail(c->r, "the text is not in there");
}

static bool
index_of(struct call *c, struct value *out)
{
    return find(c, out) && found(c, out);
}

static bool
rindex_of(struct call *c, struct value *out)
{
    return rfind(c, out) && found(c, out);
}

static bool
count(struct call *c, struct value *out)
{
    struct slice s, what = {0};
    size_t offset;
    bool there;
    int64_t n = 0;
    if (!call_text(c, 0, &what) || !window(c, &s, &offset, &there))
        return false;
    if (what.len == 0)
        n = there ? (int64_t)text_length(s) + 1 : 0;
    for (size_t at = 0; what.len > 0 && (at = text_find(s, what, at)) != SIZE_MAX; at += what.len)
        n++;
    *out = value_int(n);
    return true;
}

#define WINDOW                                                                                                         \
    {                                                                                                                  \
        "-what", "-from", "-to"                                                                                        \
    }
const struct builtin text_search_methods[] = {{"split", split, 0, {"sep", "maxsplit"}, false},
                                              {"rsplit", rsplit, 0, {"sep", "maxsplit"}, false},
                                              {"splitlines", splitlines, 0, {"keepends"}, false},
                                              {"partition", partition, 1, {"-sep"}, false},
                                              {"rpartition", rpartition, 1, {"-sep"}, false},
                                              {"startswith", startswith, 1, WINDOW, false},
                                              {"endswith", endswith, 1, WINDOW, false},
                                              {"find", find, 1, WINDOW, false},
                                              {"rfind", rfind, 1, WINDOW, false},
                                              {"index", index_of, 1, WINDOW, false},
                                              {"rindex", rindex_of, 1, WINDOW, false},
                                              {"count", count, 1, WINDOW, false},
                                              {0}};
