#include "engine/chat/compare.h"

#include "engine/chat/text.h"
#include "engine/chat/walk.h"

static bool
texts_equal(struct render *r, struct slice a, struct slice b)
{
    return a.len == b.len && render_step(r, a.len / 64) && slice_compare(a, b) == 0;
}

static bool
lists_equal(struct render *r, const struct list *a, const struct list *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->n != b->n || a->kind == LIST_GENERATOR || a->kind == LIST_VALUES)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!values_equal(r, a->at[i], b->at[i]))
            return false;
    return true;
}

/* In whatever order. */
static bool
dicts_equal(struct render *r, const struct dict *a, const struct dict *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct value *there = dict_find(r, b, a->at[i].key);
        if (there == NULL || !values_equal(r, a->at[i].value, *there))
            return false;
    }
    return true;
}

static bool
equal_within(struct render *r, struct value a, struct value b)
{
    int64_t whole, other;
    double x, y;
    if (value_is_whole(a, &whole) && value_is_whole(b, &other))
        return whole == other;
    if (value_is_number(a, &x) && value_is_number(b, &y))
        return !(x < y) && !(x > y) && x == x && y == y;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE: return true;
    case VALUE_TEXT: return texts_equal(r, a.text, b.text);
    case VALUE_LIST: return lists_equal(r, a.list, b.list);
    case VALUE_DICT: return dicts_equal(r, a.dict, b.dict);
    case VALUE_NAMESPACE: return a.dict == b.dict;
    case VALUE_MACRO: return a.macro == b.macro;
    case VALUE_METHOD: return a.method == b.method;
    case VALUE_FUNCTION: return a.function == b.function;
    case VALUE_LOOP: return a.loop == b.loop;
    default: return false;
    }
}

bool
values_equal(struct render *r, struct value a, struct value b)
{
    if (!render_enter(r))
        return false;
    const bool equal = equal_within(r, a, b);
    r->depth--;
    return equal;
}

static int
sign_of(double x, double y)
{
    return x < y ? -1 : x > y ? 1 : x == x && y == y ? 0 : 2; /* NOLINT: NaN */
}

static bool
lists_order(struct render *r, const struct list *a, const struct list *b, const char *sign, int *order)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (!values_equal(r, a->at[i], b->at[i])) {
            if (r->failed != NULL || !render_enter(r))
                return false;
            const bool ok = values_order(r, a->at[i], b->at[i], sign, order);
            r->depth--;
            return ok;
        }
    *order = (a->n > b->n) - (a->n < b->n);
    return r->failed == NULL;
}

bool
values_order(struct render *r, struct value a, struct value b, const char *sign, int *order)
{
    int64_t whole, other;
    double x, y;
    if (value_is_whole(a, &whole) && value_is_whole(b, &other))
        *order = (whole > other) - (whole < other);
    else if (value_is_number(a, &x) && value_is_number(b, &y))
        *order = sign_of(x, y);
    else if (a.kind == VALUE_TEXT && b.kind == VALUE_TEXT) {
        if (!render_step(r, (a.text.len < b.text.len ? a.text.len : b.text.len) / 64))
            return false;
        const int bytes = slice_compare(a.text, b.text); /* UTF-8 is in the order of code points */
        *order = (bytes > 0) - (bytes < 0);
    } else if (a.kind == VALUE_LIST && b.kind == VALUE_LIST && a.list->kind == b.list->kind &&
               a.list->kind <= LIST_TUPLE)
        return lists_order(r, a.list, b.list, sign, order);
    else if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED) {
        const struct slice why = a.kind == VALUE_UNDEFINED ? a.text : b.text;
        return render_fail(r, "%.*s", (int)why.len, why.data);
    } else
        return render_fail(r, "'%s' is not supported between a %s and a %s", sign, value_type(a), value_type(b));
    return true;
}

bool
value_contains(struct render *r, struct value whole, struct value part, bool *contains)
{
    *contains = false;
    if (whole.kind == VALUE_TEXT) {
        if (part.kind != VALUE_TEXT)
            return render_fail(r, "'in' a text looks for a text, not for a %s", value_type(part));
        if (!render_step(r, whole.text.len / 64))
            return false;
        *contains = text_find(whole.text, part.text, 0) != SIZE_MAX;
        return true;
    }
    if (whole.kind == VALUE_DICT || value_is_list(whole, LIST_KEYS)) {
        if (!value_hashable(r, part))
            return r->failed == NULL && render_fail(r, "a dict can't have a %s as a key", value_type(part));
    }
    if (whole.kind == VALUE_DICT) {
        *contains = dict_find(r, whole.dict, part) != NULL;
        return r->failed == NULL;
    }
    struct walk s;
    struct value item;
    if (!walk_begin(r, whole, &s))
        return false;
    while (!*contains && walk_next(r, &s, &item))
        *contains = values_equal(r, item, part);
    return r->failed == NULL;
}

bool
value_hashable(struct render *r, struct value v)
{
    if (v.kind == VALUE_DICT || value_is_list(v, LIST_LIST) || value_is_list(v, LIST_KEYS) ||
        value_is_list(v, LIST_ITEMS))
        return false;
    if (!value_is_list(v, LIST_TUPLE))
        return true;
    if (!render_enter(r))
        return false;
    bool hashable = true;
    for (size_t i = 0; hashable && i < v.list->n; i++)
        hashable = value_hashable(r, v.list->at[i]);
    r->depth--;
    return hashable;
}
