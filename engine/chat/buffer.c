#include "engine/chat/buffer.h"

#include <stdio.h>

#include "engine/base/utf8.h"

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
