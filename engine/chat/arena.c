#include "engine/chat/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#define CHUNK ((size_t)64 << 10) /* bytes; what is larger gets a chunk of its own */

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
    if (size > CHUNK && a->chunks != NULL) { /* the one that has room left stays in front */
        c->before = a->chunks->before;
        a->chunks->before = c;
    } else {
        c->before = a->chunks;
        a->chunks = c;
    }
    return c;
}

void *
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
