/* Filters that take lists, and give lists or one value of them. */
#include "engine/chat/compare.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/functions.h"
#include "engine/chat/text.h"
#include "engine/chat/text_case.h"
#include "engine/chat/walk.h"

/* What a value is sorted by: itself or its attribute, in lower case unless case counts. */
static bool
key_of(struct render *r, struct value item, struct value attribute, bool cased, struct value *key)
{
    if (!attribute_path(r, item, attribute, NULL, key))
        return false;
    return cased || key->kind != VALUE_TEXT || text_to_case(r, key->text, CASE_LOWER, &key->text);
}

/* Stable; by keys of the same number. */
static bool
sort_by(struct render *r, struct list *values, struct list *keys, bool reverse)
{
    for (size_t i = 1; i < values->n; i++) {
        const struct value v = values->at[i], key = keys->at[i];
        size_t at = i;
        for (; at > 0; at--) {
            int order;
            const struct value other = keys->at[at - 1];
            if (!render_step(r, 1) || !values_order(r, reverse ? other : key, reverse ? key : other, "<", &order))
                return false;
            if (order != -1)
                break;
            values->at[at] = values->at[at - 1];
            keys->at[at] = keys->at[at - 1];
        }
        values->at[at] = v;
        keys->at[at] = key;
    }
    return true;
}

static bool
sort(struct call *c, struct value *out)
{
    struct list *values = walk_list(c->r, c->self, LIST_LIST);
    struct list *keys = values == NULL ? NULL : render_list(c->r, LIST_LIST, values->n);
    if (keys == NULL)
        return false;
    if (c->a[2].kind == VALUE_TEXT && text_find(c->a[2].text, slice_of(","), 0) != SIZE_MAX)
        return render_fail(c->r, "sorting by several attributes is not supported");
    for (size_t i = 0; i < values->n; i++)
        if (!key_of(c->r, values->at[i], c->a[2], call_truth(c, 1), &keys->at[i]))
            return false;
    *out = value_list(values);
    return sort_by(c->r, values, keys, call_truth(c, 0));
}

/* With no third argument, None: the attribute itself. */
static bool
group_key(struct call *c, struct value item, bool cased, struct value *key)
{
    return attribute_path(c->r, item, c->a[0], &c->a[1], key) &&
           (cased || key->kind != VALUE_TEXT || text_to_case(c->r, key->text, CASE_LOWER, &key->text));
}

static bool
add_group(struct call *c, struct growing *groups, struct value first, struct growing *values)
{
    struct list *group = render_list(c->r, LIST_TUPLE, 2);
    if (group == NULL || !growing_begin(c->r, values, LIST_LIST) || !group_key(c, first, true, &group->at[0]))
        return false;
    group->group = true;
    group->at[1] = value_list(values->list);
    return growing_add(c->r, groups, value_list(group));
}

/* Pairs of a value that an attribute has and those that have it, sorted by it. */
static bool
groupby(struct call *c, struct value *out)
{
    const bool cased = call_truth(c, 2);
    struct list *all = walk_list(c->r, c->self, LIST_LIST);
    struct list *keys = all == NULL ? NULL : render_list(c->r, LIST_LIST, all->n);
    struct growing groups, values = {0};
    if (keys == NULL || !growing_begin(c->r, &groups, LIST_LIST))
        return false;
    for (size_t i = 0; i < all->n; i++)
        if (!group_key(c, all->at[i], cased, &keys->at[i]))
            return false;
    if (!sort_by(c->r, all, keys, false))
        return false;
    for (size_t i = 0; i < all->n; i++) {
        const bool same = i > 0 && values_equal(c->r, keys->at[i - 1], keys->at[i]);
        if (c->r->failed != NULL || (!same && !add_group(c, &groups, all->at[i], &values)) ||
            !growing_add(c->r, &values, all->at[i]))
            return false;
    }
    *out = value_list(groups.list);
    return true;
}

static bool
pairs(struct call *c, enum list_kind kind, struct list **out)
{
    *out = render_list(c->r, kind, c->self.dict->n);
    for (size_t i = 0; *out != NULL && i < (*out)->n; i++)
        if (!render_pair(c->r, c->self.dict->at[i].key, c->self.dict->at[i].value, &(*out)->at[i]))
            return false;
    return *out != NULL;
}

static bool
dictsort(struct call *c, struct value *out)
{
    struct slice by = {"key", 3};
    struct list *all, *keys;
    if (c->self.kind != VALUE_DICT)
        return c->self.kind == VALUE_UNDEFINED
                   ? call_undefined(c, c->self)
                   : render_fail(c->r, "a %s can't be sorted as a dict", value_type(c->self));
    if (!call_text(c, 1, &by) || !pairs(c, LIST_LIST, &all) || (keys = render_list(c->r, LIST_LIST, all->n)) == NULL)
        return false;
    if (!slice_is(by, "key") && !slice_is(by, "value"))
        return render_fail(c->r, "the filter 'dictsort' sorts by 'key' or by 'value'");
    for (size_t i = 0; i < all->n; i++)
        if (!key_of(c->r, all->at[i].list->at[by.len == 5], value_none(), call_truth(c, 0), &keys->at[i]))
            return false;
    *out = value_list(all);
    return sort_by(c->r, all, keys, call_truth(c, 2));
}

static bool
items(struct call *c, struct value *out)
{
    struct list *all;
    if (c->self.kind == VALUE_DICT ? !pairs(c, LIST_GENERATOR, &all)
                                   : (all = render_list(c->r, LIST_GENERATOR, 0)) == NULL)
        return false;
    if (c->self.kind != VALUE_DICT && c->self.kind != VALUE_UNDEFINED)
        all->broken = "only a dict has items";
    *out = value_list(all);
    return true;
}

static bool
list(struct call *c, struct value *out)
{
    struct list *all = walk_list(c->r, c->self, LIST_LIST);
    *out = value_list(all);
    return all != NULL;
}

static bool
first(struct call *c, struct value *out)
{
    struct walk s;
    if (!walk_begin(c->r, c->self, &s))
        return false;
    return walk_next(c->r, &s, out) || (c->r->failed == NULL && value_undefined(c->r, out, "there is no first item"));
}

static bool
last(struct call *c, struct value *out)
{
    struct list *all;
    if (value_is_list(c->self, LIST_GENERATOR))
        return render_fail(c->r, "a generator has no last item; `| list` makes a list");
    if ((all = walk_list(c->r, c->self, LIST_LIST)) == NULL)
        return false;
    if (all->n == 0)
        return value_undefined(c->r, out, "there is no last item");
    *out = all->at[all->n - 1];
    return true;
}

static bool
best(struct call *c, int wanted, struct value *out)
{
    struct walk s;
    struct value item, key, best_key = {0};
    if (!walk_begin(c->r, c->self, &s))
        return false;
    while (walk_next(c->r, &s, &item)) {
        int order = wanted;
        if (!key_of(c->r, item, c->a[1], call_truth(c, 0), &key) ||
            (best_key.kind != VALUE_MISSING && !values_order(c->r, key, best_key, wanted < 0 ? "<" : ">", &order)))
            return false;
        if (order == wanted) {
            *out = item;
            best_key = key;
        }
    }
    if (best_key.kind == VALUE_MISSING && c->r->failed == NULL)
        return value_undefined(c->r, out, "there is no item to take");
    return c->r->failed == NULL;
}

static bool
min(struct call *c, struct value *out)
{
    return best(c, -1, out);
}

static bool
max(struct call *c, struct value *out)
{
    return best(c, 1, out);
}

static bool
keep_unique(struct call *c, struct growing *kept)
{
    struct walk s;
    struct value item, key;
    struct growing seen;
    if (!walk_begin(c->r, c->self, &s) || !growing_begin(c->r, &seen, LIST_LIST))
        return false;
    while (walk_next(c->r, &s, &item)) {
        bool there = false;
        if (!key_of(c->r, item, c->a[1], call_truth(c, 0), &key))
            return false;
        if (!value_hashable(c->r, key))
            return c->r->failed == NULL && render_fail(c->r, "the filter 'unique' can't compare a %s", value_type(key));
        if (!value_contains(c->r, value_list(seen.list), key, &there) ||
            (!there && (!growing_add(c->r, kept, item) || !growing_add(c->r, &seen, key))))
            return false;
    }
    return c->r->failed == NULL;
}

static bool
unique(struct call *c, struct value *out)
{
    struct growing kept;
    if (!growing_begin(c->r, &kept, LIST_GENERATOR))
        return false;
    *out = value_list(kept.list);
    return keep_unique(c, &kept) || generator_put_off(c->r, kept.list);
}

static bool
reverse(struct call *c, struct value *out)
{
    struct list *all;
    struct buffer b = {0};
    if ((all = walk_list(c->r, c->self, LIST_LIST)) == NULL)
        return false;
    for (size_t i = 0; i < all->n / 2; i++) {
        const struct value v = all->at[i];
        all->at[i] = all->at[all->n - 1 - i];
        all->at[all->n - 1 - i] = v;
    }
    all->kind = value_is_list(c->self, LIST_GENERATOR) ? LIST_LIST : LIST_GENERATOR;
    *out = value_list(all);
    for (size_t i = 0; c->self.kind == VALUE_TEXT && i < all->n; i++)
        if (!buffer_add(c->r, &b, all->at[i].text))
            return false;
    if (c->self.kind == VALUE_TEXT)
        *out = value_text_like(c->self, buffer_text(&b));
    return true;
}

static bool
batch(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    struct growing all, one = {0};
    int64_t size = 0;
    if (!call_whole(c, 0, &size) || !growing_begin(c->r, &all, LIST_GENERATOR))
        return false;
    *out = value_list(all.list);
    if (size < 1)
        return render_fail(c->r, "the filter 'batch' with a size below 1 is not supported");
    if (!walk_begin(c->r, c->self, &s))
        return generator_put_off(c->r, all.list);
    while (walk_next(c->r, &s, &item)) {
        if (one.list == NULL || one.list->n == (size_t)size)
            if (!growing_begin(c->r, &one, LIST_LIST) || !growing_add(c->r, &all, value_list(one.list)))
                return false;
        if (!growing_add(c->r, &one, item))
            return false;
    }
    if (c->r->failed != NULL) {
        all.list->n -= one.list != NULL && one.list->n < (size_t)size;
        return generator_put_off(c->r, all.list);
    }
    const bool fill = c->a[1].kind != VALUE_MISSING && c->a[1].kind != VALUE_NONE;
    while (fill && one.list != NULL && one.list->n < (size_t)size)
        if (!render_step(c->r, 1) || !growing_add(c->r, &one, c->a[1]))
            return false;
    return true;
}

static bool
default_(struct call *c, struct value *out)
{
    const bool needed = c->self.kind == VALUE_UNDEFINED || (call_truth(c, 1) && !value_truth(c->self));
    *out = !needed ? c->self : c->a[0].kind != VALUE_MISSING ? c->a[0] : value_words("");
    return true;
}

static bool
attr(struct call *c, struct value *out)
{
    if (c->a[0].kind != VALUE_TEXT)
        return render_fail(c->r, "the filter 'attr' needs a name");
    if (c->self.kind == VALUE_DICT && dict_find_name(c->r, c->self.dict, c->a[0].text) != NULL)
        return value_undefined(c->r, out, "a dict's item is no attribute");
    return attribute_of(c->r, c->self, c->a[0].text, out);
}

const struct builtin list_filters[] = {{"sort", sort, 0, {"reverse", "case_sensitive", "attribute"}, false},
                                       {"groupby", groupby, 1, {"attribute", "default", "case_sensitive"}, false},
                                       {"dictsort", dictsort, 0, {"case_sensitive", "by", "reverse"}, false},
                                       {"items", items, 0, {0}, false},
                                       {"list", list, 0, {0}, false},
                                       {"first", first, 0, {0}, false},
                                       {"last", last, 0, {0}, false},
                                       {"min", min, 0, {"case_sensitive", "attribute"}, false},
                                       {"max", max, 0, {"case_sensitive", "attribute"}, false},
                                       {"unique", unique, 0, {"case_sensitive", "attribute"}, false},
                                       {"reverse", reverse, 0, {0}, false},
                                       {"batch", batch, 1, {"linecount", "fill_with"}, false},
                                       {"default", default_, 0, {"default_value", "boolean"}, false},
                                       {"d", default_, 0, {"default_value", "boolean"}, false},
                                       {"attr", attr, 1, {"name"}, false},
                                       {0}};
