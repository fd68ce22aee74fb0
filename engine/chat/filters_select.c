/* map, select and their like. They give generators. */
#include "engine/chat/functions.h"
#include "engine/chat/walk.h"

static const struct value *
keyword(const struct call *c, const char *name)
{
    for (size_t k = 0; k < c->given.n_keywords; k++)
        if (slice_is(c->given.keywords[k].name, name))
            return &c->given.keywords[k].value;
    return NULL;
}

/* One value through the filter, or its attribute. */
static bool
map_one(struct call *c, struct value item, struct value *out)
{
    const struct value *attribute = keyword(c, "attribute");
    struct arguments rest = c->given;
    if (c->given.n == 0 && attribute != NULL) {
        if (c->given.n_keywords > (keyword(c, "default") != NULL ? 2u : 1u))
            return render_fail(c->r, "the filter 'map' takes an attribute and a default");
        return attribute_path(c->r, item, *attribute, keyword(c, "default"), out);
    }
    if (c->given.n == 0 || c->given.at[0].kind != VALUE_TEXT)
        return render_fail(c->r, "the filter 'map' needs a filter's name");
    rest.at++;
    rest.n--;
    return filter_call(c->r, c->given.at[0].text, item, &rest, out);
}

static bool
map(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    struct growing all;
    if (!growing_begin(c->r, &all, LIST_GENERATOR))
        return false;
    *out = value_list(all.list);
    if (!value_truth(c->self))
        return true;
    if (walk_begin(c->r, c->self, &s))
        while (walk_next(c->r, &s, &item) && map_one(c, item, &item))
            if (!growing_add(c->r, &all, item))
                return false;
    return generator_put_off(c->r, all.list);
}

/* Whether the test that is named holds for a value, or for its attribute; the value's own truth where none is named. */
static bool
select_one(struct call *c, struct value item, bool attributes, bool *holds)
{
    struct arguments rest = c->given;
    if (attributes) {
        if (rest.n == 0)
            return render_fail(c->r, "an attribute's name is missing");
        if (!attribute_path(c->r, item, rest.at[0], NULL, &item))
            return false;
        rest.at++;
        rest.n--;
    }
    if (rest.n == 0) {
        *holds = value_truth(item);
        return true;
    }
    if (rest.at[0].kind != VALUE_TEXT)
        return render_fail(c->r, "a test's name is missing");
    const struct slice name = rest.at[0].text;
    rest.at++;
    rest.n--;
    return test_call(c->r, name, item, &rest, holds);
}

static bool
choose(struct call *c, bool attributes, bool wanted, struct value *out)
{
    struct walk s;
    struct value item;
    struct growing kept;
    bool holds;
    if (!growing_begin(c->r, &kept, LIST_GENERATOR))
        return false;
    *out = value_list(kept.list);
    if (!value_truth(c->self))
        return true;
    if (walk_begin(c->r, c->self, &s))
        while (walk_next(c->r, &s, &item) && select_one(c, item, attributes, &holds))
            if (holds == wanted && !growing_add(c->r, &kept, item))
                return false;
    return generator_put_off(c->r, kept.list);
}

static bool
select_(struct call *c, struct value *out)
{
    return choose(c, false, true, out);
}

static bool
reject(struct call *c, struct value *out)
{
    return choose(c, false, false, out);
}

static bool
selectattr(struct call *c, struct value *out)
{
    return choose(c, true, true, out);
}

static bool
rejectattr(struct call *c, struct value *out)
{
    return choose(c, true, false, out);
}

const struct builtin select_filters[] = {{"map", map, 0, {0}, true},
                                         {"select", select_, 0, {0}, true},
                                         {"reject", reject, 0, {0}, true},
                                         {"selectattr", selectattr, 0, {0}, true},
                                         {"rejectattr", rejectattr, 0, {0}, true},
                                         {0}};
