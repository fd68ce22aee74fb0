/* The state of a rendering: arena, bounds and errors, lists and dicts, text buffers, and scopes of names. */
#include "engine/jinja/template.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* ---- memory ---- */

#define CHUNK ((size_t)64 << 10) /* bytes; a larger allocation gets its own chunk */

struct arena_chunk {
    struct arena_chunk *before;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

static struct arena_chunk *
add_chunk(struct arena *a, size_t size)
{
    struct arena_chunk *c = calloc(1, sizeof *c + size);
    if (c == NULL)
        return NULL;
    c->size = size;
    a->used += sizeof *c + size;
    if (size > CHUNK && a->chunks != NULL) { /* keep the chunk that has room left first */
        c->before = a->chunks->before;
        a->chunks->before = c;
    } else {
        c->before = a->chunks;
        a->chunks = c;
    }
    return c;
}

static void *
arena_get(struct arena *a, size_t n)
{
    const size_t unit = alignof(max_align_t);
    if (n > a->most)
        return NULL;
    n = n == 0 ? unit : (n + unit - 1) / unit * unit;
    struct arena_chunk *c = a->chunks;
    if (c == NULL || c->size - c->used < n) {
        const size_t size = n > CHUNK / 4 ? n : CHUNK;
        if (a->used > a->most || size > a->most - a->used || (c = add_chunk(a, size)) == NULL)
            return NULL;
    }
    void *at = c->bytes + c->used;
    c->used += n;
    return at;
}

void
arena_free(struct arena *a)
{
    while (a->chunks != NULL) {
        struct arena_chunk *before = a->chunks->before;
        free(a->chunks);
        a->chunks = before;
    }
    a->used = 0;
}

/* ---- bounds ---- */

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
render_fail_undefined(struct render *r, struct value v)
{
    return render_fail(r, "%.*s", (int)v.text.len, v.text.data);
}

/* Fails because a bound is exceeded. */
static bool
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

struct list *
render_list(struct render *r, enum list_kind kind, size_t n)
{
    struct list *list = NULL;
    if (n > SIZE_MAX / sizeof *list->at)
        render_stop(r, "it needs more memory than there is for it");
    else if ((list = render_memory(r, sizeof *list)) != NULL)
        *list = (struct list){.kind = kind, .n = n, .room = n, .at = render_memory(r, n * sizeof *list->at)};
    return list != NULL && list->at != NULL ? list : NULL;
}

void *
render_grow(struct render *r, void *at, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return at;
    *room = *room == 0 ? 8 : 2 * *room;
    void *larger = render_memory(r, *room * size);
    if (larger != NULL && n > 0)
        memcpy(larger, at, n * size);
    return larger;
}

bool
list_add(struct render *r, struct list *l, struct value v)
{
    struct value *at = render_grow(r, l->at, l->n, &l->room, sizeof *at);
    if (at == NULL)
        return false;
    l->at = at;
    l->at[l->n++] = v;
    return true;
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
    if (!value_check_key(r, key))
        return false;
    struct value *there = dict_find(r, d, key);
    if (r->failed != NULL)
        return false;
    if (there != NULL) {
        *there = value;
        return true;
    }
    struct entry *at = render_grow(r, d->at, d->n, &d->room, sizeof *at);
    if (at == NULL)
        return false;
    d->at = at;
    d->at[d->n++] = (struct entry){key, value};
    return true;
}

/* ---- text buffers ---- */

static bool
make_room(struct render *r, struct buffer *b, size_t n)
{
    if (n > r->output || b->len > r->output - n)
        return render_stop(r, "it writes more than there is room for");
    if (b->len + n <= b->room)
        return true;
    const size_t room = (b->len + n) * 2 > 64 ? (b->len + n) * 2 : 64;
    char *at = render_memory(r, room);
    if (at == NULL)
        return false;
    if (b->len > 0)
        memcpy(at, b->at, b->len);
    b->at = at;
    b->room = room;
    return true;
}

bool
buffer_add(struct render *r, struct buffer *b, struct slice s)
{
    if (!render_step(r, s.len / 64) || !make_room(r, b, s.len))
        return false;
    if (s.len > 0)
        memcpy(b->at + b->len, s.data, s.len);
    b->len += s.len;
    return true;
}

bool
buffer_add_words(struct render *r, struct buffer *b, const char *words)
{
    return buffer_add(r, b, slice_of(words));
}

bool
buffer_add_code(struct render *r, struct buffer *b, uint32_t code)
{
    char bytes[4];
    return buffer_add(r, b, (struct slice){bytes, utf8_put(bytes, code)});
}

bool
buffer_print(struct render *r, struct buffer *b, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return buffer_add(r, b, (struct slice){text, n > 0 && (size_t)n < sizeof text ? (size_t)n : 0});
}

bool
buffer_fill(struct render *r, struct buffer *b, struct slice s, size_t times)
{
    if (s.len > 0 && times > SIZE_MAX / s.len)
        return render_stop(r, "it writes more than there is room for");
    if (!render_step(r, s.len * times / 64) || !make_room(r, b, s.len * times))
        return false;
    for (size_t i = 0; i < times && s.len > 0; i++, b->len += s.len)
        memcpy(b->at + b->len, s.data, s.len);
    return true;
}

/* ---- names ---- */

struct scope *
render_scope(struct render *r, struct scope *outer)
{
    struct scope *s = render_memory(r, sizeof *s);
    if (s != NULL)
        *s = (struct scope){.outer = outer};
    return s;
}

/* Finds a binding in a scope; adds the work to *visited, where long names count more. */
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

bool
render_find(struct render *r, struct slice name, const struct value **out)
{
    size_t visited = 0;
    *out = NULL;
    for (const struct scope *s = r->scope; s != NULL && *out == NULL; s = s->outer) {
        const struct binding *b = find_binding(s, name, &visited);
        if (b != NULL)
            *out = &b->value;
    }
    if (*out == NULL && r->given != NULL)
        *out = dict_find_name(r, r->given, name);
    return r->failed == NULL && render_step(r, visited / 8);
}
