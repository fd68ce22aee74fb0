#include "engine/chat/render.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/chat/compare.h"

bool
render_fail(struct render *r, const char *format, ...)
{
    if (r->failed != NULL)
        return false;
    char text[sizeof((struct err *)0)->text];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *kept = arena_get(&r->arena, sizeof text);
    r->failed = "out of memory";
    r->failed_line = r->line;
    if (kept != NULL && n >= 0)
        r->failed = printable_line(kept, sizeof text, text, strlen(text));
    return false;
}

bool
render_stop(struct render *r, const char *why)
{
    r->stopped = true;
    r->failed = why;
    r->failed_line = r->line;
    return false;
}

#define STEPS_BETWEEN_LOOKS 4096

bool
render_step(struct render *r, size_t n)
{
    if (r->steps < n)
        return render_stop(r, "it takes too many steps; it may never end");
    if (r->cancelled != NULL && (r->steps - n) / STEPS_BETWEEN_LOOKS != r->steps / STEPS_BETWEEN_LOOKS &&
        r->cancelled())
        return render_stop(r, "it was interrupted");
    r->steps -= n;
    return true;
}

bool
render_read(struct render *r, struct slice s)
{
    return render_step(r, s.len / 16);
}

bool
render_enter(struct render *r)
{
    if (r->depth >= r->most_depth)
        return render_stop(r, "its calls and expressions are nested too deeply");
    r->depth++;
    return render_step(r, 1);
}

void *
render_memory(struct render *r, size_t n)
{
    void *at = arena_get(&r->arena, n);
    if (at == NULL)
        render_stop(r, "it needs more memory than there is for it");
    return at;
}

bool
render_copy(struct render *r, const char *bytes, size_t n, struct slice *out)
{
    char *at = render_memory(r, n);
    if (at == NULL)
        return false;
    if (n > 0)
        memcpy(at, bytes, n);
    *out = (struct slice){at, n};
    return true;
}

bool
render_print(struct render *r, struct slice *out, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *at = n < 0 ? NULL : render_memory(r, (size_t)n + 1);
    if (at != NULL)
        vsnprintf(at, (size_t)n + 1, format, again);
    va_end(again);
    *out = (struct slice){at, at == NULL ? 0 : (size_t)n};
    return at != NULL;
}

struct list *
render_list(struct render *r, enum list_kind kind, size_t n)
{
    struct list *list = NULL;
    if (n > SIZE_MAX / sizeof *list->at)
        render_stop(r, "it needs more memory than there is for it");
    else if ((list = render_memory(r, sizeof *list)) != NULL)
        *list = (struct list){.kind = kind, .n = n, .at = render_memory(r, n * sizeof *list->at)};
    return list != NULL && list->at != NULL ? list : NULL;
}

bool
render_pair(struct render *r, struct value a, struct value b, struct value *out)
{
    struct list *pair = render_list(r, LIST_TUPLE, 2);
    if (pair == NULL)
        return false;
    pair->at[0] = a;
    pair->at[1] = b;
    *out = value_list(pair);
    return true;
}

struct dict *
render_dict(struct render *r)
{
    return render_memory(r, sizeof(struct dict));
}

struct value *
dict_find_name(struct render *r, const struct dict *d, struct slice name)
{
    size_t work = d->n / 16, i = 0;
    for (; i < d->n; i++)
        if (d->at[i].key.kind == VALUE_TEXT && d->at[i].key.text.len == name.len) {
            work += name.len / 64;
            if (name.len == 0 || memcmp(d->at[i].key.text.data, name.data, name.len) == 0)
                break;
        }
    return render_step(r, work) && i < d->n ? &d->at[i].value : NULL;
}

struct value *
dict_find(struct render *r, const struct dict *d, struct value key)
{
    if (key.kind == VALUE_TEXT)
        return dict_find_name(r, d, key.text);
    for (size_t i = 0; i < d->n; i++)
        if (values_equal(r, d->at[i].key, key))
            return &d->at[i].value;
    return NULL;
}

bool
dict_put(struct render *r, struct dict *d, struct value key, struct value value)
{
    if (!value_hashable(r, key))
        return r->failed == NULL && render_fail(r, "a dict can't have a %s as a key", value_type(key));
    struct value *there = dict_find(r, d, key);
    if (r->failed != NULL)
        return false;
    if (there != NULL) {
        *there = value;
        return true;
    }
    if (d->n == d->room) {
        const size_t room = d->room == 0 ? 8 : 2 * d->room;
        struct entry *at = render_memory(r, room * sizeof *at);
        if (at == NULL)
            return false;
        if (d->n > 0)
            memcpy(at, d->at, d->n * sizeof *at);
        d->at = at;
        d->room = room;
    }
    d->at[d->n++] = (struct entry){key, value};
    return true;
}

/* ---- names ---- */

struct scope *
render_scope(struct render *r, struct scope *outer, const struct name *unset)
{
    struct scope *s = render_memory(r, sizeof *s);
    if (s != NULL)
        *s = (struct scope){.outer = outer, .unset = unset};
    return s;
}

/* Names are short, or else compared in steps of their own: *visited is the work. */
static struct binding *
find_binding(const struct scope *s, struct slice name, size_t *visited)
{
    struct binding *b = s->first;
    while (b != NULL && slice_compare(b->name, name) != 0) {
        b = b->next;
        *visited += 1 + name.len / 64;
    }
    return b;
}

bool
render_bind(struct render *r, struct slice name, struct value value)
{
    size_t visited = 0;
    struct binding *b = find_binding(r->scope, name, &visited);
    if (!render_step(r, visited / 8))
        return false;
    if (b == NULL) {
        if ((b = render_memory(r, sizeof *b)) == NULL)
            return false;
        *b = (struct binding){.name = name, .next = r->scope->first};
        r->scope->first = b;
    }
    b->value = value;
    return true;
}

static const struct value not_yet = {.kind = VALUE_MISSING};

bool
render_find(struct render *r, struct slice name, const struct value **out)
{
    size_t visited = 0;
    *out = NULL;
    for (const struct scope *s = r->scope; s != NULL && *out == NULL; s = s->outer) {
        const struct binding *b = find_binding(s, name, &visited);
        if (b != NULL)
            *out = &b->value;
        for (const struct name *n = s->unset; n != NULL && *out == NULL; n = n->next, visited += 1 + name.len / 64)
            if (slice_compare(n->name, name) == 0)
                *out = &not_yet;
    }
    if (*out == NULL && r->given != NULL)
        *out = dict_find_name(r, r->given, name);
    return r->failed == NULL && render_step(r, visited / 8);
}
