#include "engine/chat/walk.h"

#include "engine/chat/text.h"

bool
value_iterable(struct value v)
{
    return v.kind == VALUE_TEXT || v.kind == VALUE_LIST || v.kind == VALUE_DICT || v.kind == VALUE_UNDEFINED ||
           v.kind == VALUE_LOOP;
}

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
    return value_iterable(v) || render_fail(r, "a %s can't be gone through", value_type(v));
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

bool
growing_begin(struct render *r, struct growing *g, enum list_kind kind)
{
    *g = (struct growing){.list = render_list(r, kind, 0)};
    return g->list != NULL;
}

bool
growing_add(struct render *r, struct growing *g, struct value v)
{
    if (g->list->n == g->room) {
        const size_t room = g->room == 0 ? 8 : 2 * g->room;
        struct value *at = render_memory(r, room * sizeof *at);
        if (at == NULL)
            return false;
        if (g->list->n > 0)
            memcpy(at, g->list->at, g->list->n * sizeof *at);
        g->list->at = at;
        g->room = room;
    }
    g->list->at[g->list->n++] = v;
    return true;
}

struct list *
walk_list(struct render *r, struct value v, enum list_kind kind)
{
    struct walk s;
    struct growing all;
    struct value item;
    if (!walk_begin(r, v, &s) || !growing_begin(r, &all, kind))
        return NULL;
    while (walk_next(r, &s, &item))
        if (!growing_add(r, &all, item))
            return NULL;
    return r->failed == NULL ? all.list : NULL;
}
