/* A text that grows, in a rendering's memory. */
#ifndef ENGINE_CHAT_BUFFER_H
#define ENGINE_CHAT_BUFFER_H

#include "engine/chat/render.h"

struct buffer { /* begins as {0} */
    char *at;
    size_t len, room;
};

bool buffer_add(struct render *, struct buffer *, struct slice);
bool buffer_add_words(struct render *, struct buffer *, const char *);
bool buffer_add_code(struct render *, struct buffer *, uint32_t code); /* a code point */
bool buffer_print(struct render *, struct buffer *, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* So often. */
bool buffer_fill(struct render *, struct buffer *, struct slice, size_t times);

static inline struct slice
buffer_text(const struct buffer *b)
{
    return (struct slice){b->len == 0 ? "" : b->at, b->len};
}

#endif
