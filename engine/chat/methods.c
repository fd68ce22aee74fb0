/* What values have behind a dot, but texts: of dicts, lists, loops. Those that would change a value are refused, as in
 * jinja2's immutable sandbox. */
#include "engine/chat/compare.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/functions.h"
#include "engine/chat/walk.h"

static bool
items(struct call *c, struct value *out)
{
    const struct dict *d = c->self.dict;
    struct list *list = render_list(c->r, LIST_ITEMS, d->n);
    if (list == NULL || !render_step(c->r, d->n))
        return false;
    for (size_t i = 0; i < d->n; i++)
        if (!render_pair(c->r, d->at[i].key, d->at[i].value, &list->at[i]))
            return false;
    *out = value_list(list);
    return true;
}

static bool
one_side(struct call *c, enum list_kind kind, struct value *out)
{
    const struct dict *d = c->self.dict;
    struct list *list = render_list(c->r, kind, d->n);
    if (list == NULL || !render_step(c->r, d->n))
        return false;
    for (size_t i = 0; i < d->n; i++)
        list->at[i] = kind == LIST_KEYS ? d->at[i].key : d->at[i].value;
    *out = value_list(list);
    return true;
}

static bool
keys(struct call *c, struct value *out)
{
    return one_side(c, LIST_KEYS, out);
}

static bool
values(struct call *c, struct value *out)
{
    return one_side(c, LIST_VALUES, out);
}

static bool
get(struct call *c, struct value *out)
{
    if (!value_hashable(c->r, c->a[0]))
        return c->r->failed == NULL && render_fail(c->r, "a dict can't have a %s as a key", value_type(c->a[0]));
    const struct value *there = dict_find(c->r, c->self.dict, c->a[0]);
    *out = there != NULL ? *there : c->a[1].kind != VALUE_MISSING ? c->a[1] : value_none();
    return c->r->failed == NULL;
}

static bool
copy(struct call *c, struct value *out)
{
    *out = c->self; /* nobody can change either of them */
    return true;
}

const struct builtin dict_methods[] = {{"items", items, 0, {0}, false},   {"keys", keys, 0, {0}, false},
                                       {"values", values, 0, {0}, false}, {"get", get, 1, {"-key", "-default"}, false},
                                       {"copy", copy, 0, {0}, false},     {0}};

static bool
count(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    int64_t n = 0;
    if (!walk_begin(c->r, c->self, &s))
        return false;
    while (walk_next(c->r, &s, &item))
        n += values_equal(c->r, item, c->a[0]);
    *out = value_int(n);
    return c->r->failed == NULL;
}

static bool
index_of(struct call *c, struct value *out)
{
    const struct list *l = c->self.list;
    for (size_t i = 0; i < l->n && c->r->failed == NULL; i++)
        if (values_equal(c->r, l->at[i], c->a[0])) {
            *out = value_int((int64_t)i);
            return true;
        }
    return render_fail(c->r, "the value is not in the %s", value_type(c->self));
}

const struct builtin list_methods[] = {{"count", count, 1, {"-value"}, false},
                                       {"index", index_of, 1, {"-value"}, false},
                                       {"copy", copy, 0, {0}, false}, /* the last: a tuple has none */
                                       {0}};

static bool
cycle(struct call *c, struct value *out)
{
    if (c->given.n == 0)
        return render_fail(c->r, "loop.cycle() needs values");
    *out = c->given.at[(size_t)loop_index(c->self.loop) % c->given.n];
    return true;
}

static bool
changed(struct call *c, struct value *out)
{
    return loop_changed(c->r, c->self.loop, &c->given, out);
}

const struct builtin loop_methods[] = {{"cycle", cycle, 0, {0}, true}, {"changed", changed, 0, {0}, true}, {0}};

static bool
refuse(struct call *c, struct value *out)
{
    (void)out;
    return render_fail(c->r, "a %s can't be changed by a template; make another one", value_type(c->self));
}

#define CHANGES(name)                                                                                                  \
    {                                                                                                                  \
        name, refuse, 0, {0}, true                                                                                     \
    }
static const struct builtin list_changes[] = {CHANGES("append"),  CHANGES("clear"), CHANGES("extend"),
                                              CHANGES("insert"),  CHANGES("pop"),   CHANGES("remove"),
                                              CHANGES("reverse"), CHANGES("sort"),  {0}};
static const struct builtin dict_changes[] = {CHANGES("clear"),      CHANGES("pop"),    CHANGES("popitem"),
                                              CHANGES("setdefault"), CHANGES("update"), {0}};

/* What Python has besides: a name out of a list with spaces around each. */
static bool
is_one_of(const char *list, struct slice name)
{
    char padded[40];
    const int n = snprintf(padded, sizeof padded, " %.*s ", (int)name.len, name.data);
    return name.len > 0 && n > 0 && (size_t)n < sizeof padded && strstr(list, padded) != NULL;
}

static const struct builtin *
find_text(struct slice name, bool *refused)
{
    const struct builtin *b = builtin_find(text_methods, name);
    if (b == NULL)
        b = builtin_find(text_search_methods, name);
    if (b == NULL)
        b = builtin_find(text_kind_methods, name);
    *refused = b == NULL && is_one_of(" casefold encode isnumeric isprintable isascii expandtabs format_map maketrans "
                                      "translate isidentifier istitle striptags "
                                      "unescape escape ",
                                      name);
    return b;
}

static const struct builtin *
find_list(const struct list *l, struct slice name, bool *refused)
{
    if (l->kind == LIST_LIST || l->kind == LIST_TUPLE) {
        const struct builtin *b = builtin_find(list_methods, name);
        if (b == NULL && l->kind == LIST_LIST)
            b = builtin_find(list_changes, name);
        return l->kind == LIST_TUPLE && b != NULL && slice_is(name, "copy") ? NULL : b;
    }
    *refused = is_one_of(l->kind == LIST_GENERATOR ? " close send throw gi_code gi_frame gi_running gi_yieldfrom "
                         : l->kind == LIST_RANGE   ? " count index start step stop "
                                                   : " isdisjoint mapping ",
                         name);
    return NULL;
}

const struct builtin *
method_find(struct value v, struct slice name, bool *refused)
{
    const struct builtin *b = NULL;
    *refused = false;
    switch (v.kind) {
    case VALUE_TEXT: return find_text(name, refused);
    case VALUE_LIST: return find_list(v.list, name, refused);
    case VALUE_DICT:
        if ((b = builtin_find(dict_methods, name)) == NULL && (b = builtin_find(dict_changes, name)) == NULL)
            *refused = slice_is(name, "fromkeys");
        return b;
    case VALUE_LOOP: return builtin_find(loop_methods, name);
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT:
        *refused = is_one_of(" real imag numerator denominator conjugate bit_length bit_count to_bytes from_bytes "
                             "as_integer_ratio is_integer hex fromhex ",
                             name);
        return NULL;
    default: return NULL;
    }
}
