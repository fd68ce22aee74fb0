/* Python's operations on values: a.b, a[b], a[b:c], iteration, comparison and arithmetic. */
#include "engine/jinja/template.h"

/* Returns whether the value can be a key of a dict. Unlike in Python, a tuple cannot. */
static bool
value_hashable(struct value v)
{
    return v.kind != VALUE_DICT && (v.kind != VALUE_LIST || v.list->kind == LIST_GENERATOR);
}

bool
value_undefined(struct render *r, struct value *out, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *out = (struct value){.kind = VALUE_UNDEFINED};
    return render_copy(r, text, strlen(text), &out->text);
}

/* Finds a method, or an attribute of a loop. */
static bool
find_known(struct render *r, struct value of, struct slice name, struct value *out, bool *known)
{
    *known = false;
    if (of.kind == VALUE_LOOP)
        return loop_attribute(r, of.loop, name, out, known);
    const struct builtin *b = method_find(of, name);
    if (b == NULL)
        return true;
    struct method *m = render_memory(r, sizeof *m);
    if (m == NULL)
        return false;
    *known = true;
    *m = (struct method){b, of};
    *out = (struct value){.kind = VALUE_METHOD, .method = m};
    return true;
}

static bool
no_such(struct render *r, struct value of, struct slice name, struct value *out)
{
    return value_undefined(r, out, "the %s has no '%.*s'", value_type(of), (int)(name.len < 80 ? name.len : 80),
                           name.data);
}

bool
attribute_of(struct render *r, struct value of, struct slice name, struct value *out)
{
    bool known = false;
    if (of.kind == VALUE_UNDEFINED)
        return render_fail_undefined(r, of);
    if (of.kind != VALUE_NAMESPACE && (!find_known(r, of, name, out, &known) || known))
        return known && r->failed == NULL;
    const struct value *there =
        of.kind == VALUE_DICT || of.kind == VALUE_NAMESPACE ? dict_find_name(r, of.dict, name) : NULL;
    if (r->failed != NULL)
        return false;
    if (there == NULL)
        return no_such(r, of, name, out);
    *out = *there;
    return true;
}

/* Converts an index, negative from the end, to an offset; returns false if it is out of range. */
static bool
place(int64_t index, size_t n, size_t *at)
{
    if (index < 0)
        index += (int64_t)n;
    *at = (size_t)index;
    return index >= 0 && (size_t)index < n;
}

bool
item_of(struct render *r, struct value of, struct value index, struct value *out)
{
    int64_t whole;
    size_t at, n;
    bool known = false;
    if (of.kind == VALUE_UNDEFINED)
        return render_fail_undefined(r, of);
    if (of.kind == VALUE_DICT) {
        const struct value *there = value_hashable(index) ? dict_find(r, of.dict, index) : NULL;
        if (there != NULL)
            *out = *there;
        if (there != NULL || r->failed != NULL)
            return there != NULL;
    }
    if (of.kind == VALUE_TEXT && !render_read(r, of.text))
        return false;
    if (of.kind == VALUE_LIST && of.list->kind != LIST_GENERATOR && value_is_whole(index, &whole) &&
        place(whole, of.list->n, &at)) {
        *out = of.list->at[at];
        return true;
    }
    if (of.kind == VALUE_TEXT && value_is_whole(index, &whole) && value_length(of, &n) && place(whole, n, &at)) {
        *out = value_text(text_part(of.text, at, at + 1));
        return true;
    }
    if (index.kind != VALUE_TEXT)
        return value_undefined(r, out, "the %s has no such item", value_type(of));
    if (of.kind == VALUE_NAMESPACE) /* a namespace has attributes only */
        return attribute_of(r, of, index.text, out);
    if (!find_known(r, of, index.text, out, &known) || known)
        return known && r->failed == NULL;
    return no_such(r, of, index.text, out);
}

bool
attribute_path(struct render *r, struct value item, struct value path, struct value otherwise, struct value *out)
{
    *out = item;
    if (path.kind == VALUE_NONE || path.kind == VALUE_MISSING)
        return true;
    if (path.kind != VALUE_TEXT)
        return item_of(r, item, path, out);
    if (!render_read(r, path.text))
        return false;
    struct slice rest = path.text;
    for (bool more = true; more;) {
        const size_t dot = text_find(rest, slice_of("."), 0);
        more = dot != SIZE_MAX;
        const struct slice part = {rest.data, more ? dot : rest.len};
        if (!item_of(r, *out, value_text(part), out))
            return false;
        if (out->kind == VALUE_UNDEFINED && otherwise.kind != VALUE_NONE && otherwise.kind != VALUE_MISSING)
            *out = otherwise;
        rest = (struct slice){rest.data + part.len + more, rest.len - part.len - more};
    }
    return true;
}

/* ---- slices ---- */

/* Python's slice.indices() for a sequence of n values. */
static bool
bounds(struct render *r, const struct value parts[3], int64_t n, int64_t *from, int64_t *to, int64_t *step)
{
    int64_t *const into[3] = {from, to, step};
    *step = 1;
    for (int i = 2; i >= 0; i--) {
        if (parts[i].kind != VALUE_NONE && !value_is_whole(parts[i], into[i]))
            return render_fail(r, "a slice needs whole numbers, not a %s", value_type(parts[i]));
        if (i == 2 && *step == 0)
            return render_fail(r, "a slice's step is zero");
        if (i == 2)
            continue;
        const int64_t least = *step > 0 ? 0 : -1, most = *step > 0 ? n : n - 1;
        int64_t at = *into[i];
        if (parts[i].kind == VALUE_NONE)
            at = (i == 0) == (*step > 0) ? least : most;
        else if (at < 0)
            at = at < -n ? least : at + n;
        *into[i] = at < least ? least : at > most ? most : at;
    }
    if (*step > n) /* prevents overflow; a step larger than n has the same result */
        *step = n + 1;
    if (*step < -n)
        *step = -n - 1;
    return true;
}

bool
slice_of_value(struct render *r, struct value of, const struct value parts[3], struct value *out)
{
    int64_t from, to, step;
    size_t n;
    if (of.kind == VALUE_UNDEFINED)
        return render_fail_undefined(r, of);
    if (of.kind != VALUE_TEXT && (of.kind != VALUE_LIST || of.list->kind == LIST_GENERATOR))
        return render_fail(r, "slicing a %s is not supported", value_type(of));
    if (of.kind == VALUE_TEXT && !render_read(r, of.text))
        return false;
    value_length(of, &n);
    if (!bounds(r, parts, (int64_t)n, &from, &to, &step) || !render_step(r, n / 16))
        return false;
    if (of.kind == VALUE_TEXT && step == 1) {
        *out = value_text(text_part(of.text, (size_t)from, (size_t)(to > from ? to : from)));
        return true;
    }
    if (of.kind == VALUE_TEXT)
        return render_fail(r, "a slice of a text with a step is not supported");
    struct list *made = render_list(r, of.list->kind, 0);
    for (int64_t i = from; made != NULL && (step > 0 ? i < to : i > to); i += step)
        if (!list_add(r, made, of.list->at[i]))
            return false;
    *out = value_list(made);
    return made != NULL;
}

/* Iteration and comparison. */

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

bool
walk_next(struct render *r, struct walk *s, struct value *out)
{
    const struct value v = s->whole;
    if (r->failed != NULL || !render_step(r, 1))
        return false;
    if (value_is_list(v, LIST_GENERATOR)) {
        if (v.list->taken == v.list->n)
            return false;
        *out = v.list->at[v.list->taken++];
    } else if (v.kind == VALUE_LIST && s->at < v.list->n)
        *out = v.list->at[s->at++];
    else if (v.kind == VALUE_DICT && s->at < v.dict->n)
        *out = v.dict->at[s->at++].key;
    else if (v.kind == VALUE_TEXT && s->at < v.text.len) {
        const struct slice rest = {v.text.data + s->at, v.text.len - s->at};
        const size_t n = text_character(rest, NULL);
        *out = value_text((struct slice){rest.data, n});
        s->at += n;
    } else
        return false;
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
    if (a->kind != b->kind || a->n != b->n || a->kind == LIST_GENERATOR)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!values_equal(r, a->at[i], b->at[i]))
            return false;
    return true;
}

/* The order of the entries is ignored. */
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
    default: return a.dict == b.dict; /* identity: all remaining kinds are pointers */
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
        const int bytes = slice_compare(a.text, b.text); /* byte order of UTF-8 is code point order */
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
    if (whole.kind == VALUE_DICT && !value_check_key(r, part))
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
value_check_key(struct render *r, struct value v)
{
    return value_hashable(v) || render_fail(r, "a dict can't have a %s as a key", value_type(v));
}

/* Python's + - * / // %. */

static bool
too_large(struct render *r)
{
    return render_fail(r, "a number gets too large");
}

static bool
unfit(struct render *r, const char *sign, struct value a, struct value b)
{
    if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
        return render_fail_undefined(r, a.kind == VALUE_UNDEFINED ? a : b);
    return render_fail(r, "a %s %s a %s makes no sense", value_type(a), sign, value_type(b));
}

/* Python's // and %, which round down. */
static int64_t
floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool
whole_result(struct render *r, unsigned sign, int64_t a, int64_t b, struct value *out)
{
    int64_t result = 0;
    bool over = false;
    switch (sign) {
    case SIGN('+'): over = __builtin_add_overflow(a, b, &result); break;
    case SIGN('-'): over = __builtin_sub_overflow(a, b, &result); break;
    case SIGN('*'): over = __builtin_mul_overflow(a, b, &result); break;
    default:
        if (b == 0)
            return render_fail(r, "a division by zero");
        over = b == -1 && a == INT64_MIN;
        if (sign == SIGN('/')) {
            *out = value_float((double)((long double)a / (long double)b));
            return true;
        }
        if (!over)
            result = sign == SIGN('%') ? a - floor_divide(a, b) * b : floor_divide(a, b);
    }
    *out = value_int(result);
    return !over || too_large(r);
}

static bool
real_result(struct render *r, unsigned sign, double a, double b, struct value *out)
{
    double result = 0;
    switch (sign) {
    case SIGN('+'): result = a + b; break;
    case SIGN('-'): result = a - b; break;
    case SIGN('*'): result = a * b; break;
    case SIGN('/'):
        if (b == 0) /* NOLINT */
            return render_fail(r, "a division by zero");
        result = a / b;
        break;
    default: return render_fail(r, "'//' and '%%' of a float are not supported");
    }
    *out = value_float(result);
    return true;
}

static bool
repeat(struct render *r, struct value v, int64_t times, struct value *out)
{
    struct buffer b = {0};
    if (v.kind != VALUE_TEXT)
        return render_fail(r, "repeating a %s by '*' is not supported", value_type(v));
    if (!buffer_fill(r, &b, v.text, times > 0 ? (size_t)times : 0))
        return false;
    *out = value_text(buffer_text(&b));
    return true;
}

/* Replaces <, >, &, " and ' by HTML entities, except in Markup. */
static bool
add_escaped(struct render *r, struct buffer *b, struct value v)
{
    if (v.markup)
        return buffer_add(r, b, v.text);
    bool ok = render_read(r, v.text);
    for (size_t i = 0; i < v.text.len && ok; i++) {
        const char c = v.text.data[i];
        const char *as = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&#34;" : "&#39;";
        ok = memchr("&<>\"'", c, 5) != NULL ? buffer_add_words(r, b, as)
                                            : buffer_add(r, b, (struct slice){&v.text.data[i], 1});
    }
    return ok;
}

/* Joins two texts or two lists. */
static bool
join(struct render *r, struct value a, struct value b, struct value *out)
{
    if (a.kind == VALUE_TEXT) {
        struct buffer both = {0};
        const bool markup = a.markup || b.markup;
        if (markup ? !add_escaped(r, &both, a) || !add_escaped(r, &both, b)
                   : !buffer_add(r, &both, a.text) || !buffer_add(r, &both, b.text))
            return false;
        *out = value_text(buffer_text(&both));
        out->markup = markup;
        return true;
    }
    struct list *list = render_list(r, a.list->kind, a.list->n + b.list->n);
    if (list == NULL || !render_step(r, list->n))
        return false;
    if (a.list->n > 0)
        memcpy(list->at, a.list->at, a.list->n * sizeof *list->at);
    if (b.list->n > 0)
        memcpy(list->at + a.list->n, b.list->at, b.list->n * sizeof *list->at);
    *out = value_list(list);
    return true;
}

static bool
repeats(struct value v)
{
    return v.kind == VALUE_TEXT || (v.kind == VALUE_LIST && v.list->kind <= LIST_TUPLE);
}

bool
operate(struct render *r, unsigned sign, struct value a, struct value b, struct value *out)
{
    const char name[3] = {(char)(sign > 0xff ? sign >> 8 : sign), (char)(sign > 0xff ? sign & 0xff : 0)};
    int64_t whole, other;
    double x, y;
    if (value_is_whole(a, &whole) && value_is_whole(b, &other))
        return whole_result(r, sign, whole, other, out);
    if (value_is_number(a, &x) && value_is_number(b, &y))
        return real_result(r, sign, x, y, out);
    if (sign == SIGN('%') && a.kind == VALUE_TEXT)
        return render_fail(r, "formatting a text by '%%' is not supported");
    if (sign == SIGN('*') && repeats(a) && value_is_whole(b, &other))
        return repeat(r, a, other, out);
    if (sign == SIGN('*') && repeats(b) && value_is_whole(a, &whole))
        return repeat(r, b, whole, out);
    if (sign == SIGN('+') && repeats(a) && a.kind == b.kind && repeats(b) &&
        (a.kind == VALUE_TEXT || a.list->kind == b.list->kind))
        return join(r, a, b, out);
    return unfit(r, name, a, b);
}

bool
negate(struct render *r, struct value v, struct value *out)
{
    int64_t whole;
    if (value_is_whole(v, &whole)) {
        *out = value_int(whole == INT64_MIN ? whole : -whole);
        return whole != INT64_MIN || too_large(r);
    }
    if (v.kind == VALUE_FLOAT) {
        *out = value_float(-v.real);
        return true;
    }
    return v.kind == VALUE_UNDEFINED ? render_fail_undefined(r, v) : render_fail(r, "a %s has no sign", value_type(v));
}
