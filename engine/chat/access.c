/* a.b, a[b] and a[b:c]. */
#include "engine/chat/call.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/text.h"

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

/* A method, or an attribute of a loop. */
static bool
find_known(struct render *r, struct value of, struct slice name, struct value *out, bool *known)
{
    bool refused = false;
    *known = false;
    if (of.kind == VALUE_LOOP)
        return loop_attribute(r, of.loop, name, out, known);
    const struct builtin *b = method_find(of, name, &refused);
    if (refused)
        return render_fail(r, "a %s's '%.*s' is not supported", value_type(of), (int)name.len, name.data);
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

/* An index from either end; false: there is no such item. */
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
        const struct value *there = value_hashable(r, index) ? dict_find(r, of.dict, index) : NULL;
        if (there != NULL)
            *out = *there;
        if (there != NULL || r->failed != NULL)
            return there != NULL;
    }
    if (of.kind == VALUE_TEXT && !render_read(r, of.text))
        return false;
    if (of.kind == VALUE_LIST && (of.list->kind <= LIST_RANGE) && value_is_whole(index, &whole) &&
        place(whole, of.list->n, &at)) {
        *out = of.list->at[at];
        return true;
    }
    if (of.kind == VALUE_TEXT && value_is_whole(index, &whole) && value_length(of, &n) && place(whole, n, &at)) {
        *out = value_text_like(of, text_part(of.text, at, at + 1));
        return true;
    }
    if (index.kind != VALUE_TEXT)
        return value_undefined(r, out, "the %s has no such item", value_type(of));
    if (of.kind == VALUE_NAMESPACE) /* which has attributes, and no items */
        return attribute_of(r, of, index.text, out);
    if (!find_known(r, of, index.text, out, &known) || known)
        return known && r->failed == NULL;
    return no_such(r, of, index.text, out);
}

static bool
is_number(struct slice part, int64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < part.len; i++) {
        if (part.data[i] < '0' || part.data[i] > '9' || i > 17)
            return false;
        *number = *number * 10 + part.data[i] - '0';
    }
    return part.len > 0;
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
        int64_t number;
        if (!item_of(r, *out, is_number(part, &number) ? value_int(number) : value_text(part), out))
            return false;
        if (out->kind == VALUE_UNDEFINED && otherwise.kind != VALUE_NONE && otherwise.kind != VALUE_MISSING)
            *out = otherwise;
        rest = (struct slice){rest.data + part.len + more, rest.len - part.len - more};
    }
    return true;
}

/* ---- slices ---- */

/* Python's slice.indices(): where to begin, where to end, of n. */
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
    if (*step > n) /* no further than once */
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
    if (of.kind != VALUE_TEXT && (of.kind != VALUE_LIST || of.list->kind > LIST_RANGE))
        return render_fail(r, "slicing a %s is not supported", value_type(of));
    if (of.kind == VALUE_TEXT && !render_read(r, of.text))
        return false;
    value_length(of, &n);
    if (!bounds(r, parts, (int64_t)n, &from, &to, &step) || !render_step(r, n / 16))
        return false;
    if (of.kind == VALUE_TEXT && step == 1) {
        *out = value_text_like(of, text_part(of.text, (size_t)from, (size_t)(to > from ? to : from)));
        return true;
    }
    if (value_is_list(of, LIST_RANGE))
        return render_fail(r, "a slice of a range is not supported");
    const struct list *all = of.kind == VALUE_LIST ? of.list : NULL;
    struct list *made =
        all == NULL && (all = walk_list(r, of, LIST_LIST)) == NULL ? NULL : render_list(r, all->kind, 0);
    for (int64_t i = from; made != NULL && (step > 0 ? i < to : i > to); i += step)
        if (!list_add(r, made, all->at[i]))
            return false;
    if (made == NULL || of.kind == VALUE_LIST) {
        *out = value_list(made);
        return made != NULL;
    }
    struct buffer b = {0};
    for (size_t i = 0; i < made->n; i++)
        if (!buffer_add(r, &b, made->at[i].text))
            return false;
    *out = value_text_like(of, buffer_text(&b));
    return true;
}
