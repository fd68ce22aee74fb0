/* Memory of one template, or of one rendering: taken piece by piece, given back at once. Nothing in it is freed alone, so
 * values may share their parts freely. */
#ifndef ENGINE_CHAT_ARENA_H
#define ENGINE_CHAT_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena { /* begins as {.most = bytes} */
    struct arena_chunk *chunks;
    size_t used, most; /* bytes */
};

/* n bytes that are zero, aligned for anything; NULL when memory or the bound is at its end. */
void *arena_get(struct arena *, size_t n);
void arena_free(struct arena *); /* all that came from it */

#endif
