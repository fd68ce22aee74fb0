/* Iteration and comparison. */
#include "engine/chat/operators.h"
#include "engine/chat/text.h"

bool
value_length(struct value v, size_t *n)
{
    if (v.kind == VALUE_TEXT)
        *n = text_length(v.text);
    else if (v.kind == VALUE_LIST && v.list->kind != LIST_GENERATOR)
        *n = v.list->n;
    else if (v.kind == VALUE_DICT)
        *n = v.dict->n;
    else if (v.kind == VALUE_UNDEFINED)
        *n = 0;
    else
        return false;
    return true;
}

bool
walk_begin(struct render *r, struct value v, struct walk *s)
{
    *s = (struct walk){.whole = v};
    if (v.kind == VALUE_LOOP)
        return render_fail(r, "going through a loop's own `loop` is not supported");
    return v.kind == VALUE_TEXT || v.kind == VALUE_LIST || v.kind == VALUE_DICT || v.kind == VALUE_UNDEFINED ||
           render_fail(r, "a %s can't be gone through", value_type(v));
}

static bool
next_generated(struct render *r, struct list *g, struct value *out)
{
    if (g->taken == g->n && g->broken != NULL)
        return render_fail(r, "%s", g->broken);
    if (g->taken == g->n)
        return false;
    *out = g->at[g->taken++];
    return true;
}

bool
walk_next(struct render *r, struct walk *s, struct value *out)
{
    const struct value v = s->whole;
    if (r->failed != NULL || !render_step(r, 1))
        return false;
    if (value_is_list(v, LIST_GENERATOR))
        return next_generated(r, v.list, out);
    if (v.kind == VALUE_LIST && s->at < v.list->n)
        *out = v.list->at[s->at++];
    else if (v.kind == VALUE_DICT && s->at < v.dict->n)
        *out = v.dict->at[s->at++].key;
    else if (v.kind == VALUE_TEXT && s->at < v.text.len) {
        const struct slice rest = {v.text.data + s->at, v.text.len - s->at};
        const size_t n = text_character(rest, NULL);
        *out = value_text_like(v, (struct slice){rest.data, n});
        out->markup = false; /* Python's str has them */
        s->at += n;
    } else
        return false;
    return true;
}

bool
generator_put_off(struct render *r, struct list *generator)
{
    if (r->failed == NULL || r->stopped)
        return r->failed == NULL;
    generator->broken = r->failed;
    r->failed = NULL;
    return true;
}

struct list *
walk_list(struct render *r, struct value v, enum list_kind kind)
{
    struct walk s;
    struct value item;
    struct list *all = render_list(r, kind, 0);
    if (all == NULL || !walk_begin(r, v, &s))
        return NULL;
    while (walk_next(r, &s, &item))
        if (!list_add(r, all, item))
            return NULL;
    return r->failed == NULL ? all : NULL;
}

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
    default: return a.dict == b.dict; /* the same one: all others are pointers */
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
    } else if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
        return render_fail_undefined(r, a.kind == VALUE_UNDEFINED ? a : b);
    else
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
    if ((whole.kind == VALUE_DICT || value_is_list(whole, LIST_KEYS)) && !value_check_key(r, part))
        return false;
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
values_compare(struct render *r, unsigned sign, struct value a, struct value b, bool *out)
{
    const char name[3] = {(char)(sign > 0xff ? sign >> 8 : sign), (char)(sign > 0xff ? sign & 0xff : 0)};
    int order = 0;
    switch (sign) {
    case SIGN2('=', '='): *out = values_equal(r, a, b); return r->failed == NULL;
    case SIGN2('!', '='): *out = !values_equal(r, a, b); return r->failed == NULL;
    case SIGN_IN: return value_contains(r, b, a, out);
    case SIGN_NOT_IN:
        if (!value_contains(r, b, a, out))
            return false;
        *out = !*out;
        return true;
    default:
        if (!values_order(r, a, b, name, &order))
            return false;
        *out = (order == -1 && name[0] == '<') || (order == 1 && name[0] == '>') || (order == 0 && name[1] == '=');
        return true;
    }
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

bool
value_check_key(struct render *r, struct value v)
{
    return value_hashable(r, v) || render_fail(r, "a dict can't have a %s as a key", value_type(v));
}
