#include "engine/remote/sse.h"

#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"

/* Appends the value of a "data" line to the event's data, which ends where the line begins, and drops other lines. */
static void
end_line(struct sse *s)
{
    const char *line = s->text + s->data;
    size_t len = s->n - s->data;
    s->n = s->data;
    if (len < 4 || memcmp(line, "data", 4) != 0 || (len > 4 && line[4] != ':'))
        return;
    line += len > 4 ? 5 : 4;
    len -= len > 4 ? 5 : 4;
    if (len > 0 && *line == ' ')
        line++, len--;
    if (s->has_data)
        s->text[s->data++] = '\n'; /* in the room of the line's name */
    memmove(s->text + s->data, line, len);
    s->n = s->data += len;
    s->has_data = true;
}

enum sse_result
sse_feed(struct sse *s, const char *bytes, size_t n, bool (*event)(void *user, char *data, size_t n_data), void *user)
{
    if (!array_grow(&s->text, &s->room, s->n + n + 1, 1))
        return SSE_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const bool end = bytes[i] == '\n' || bytes[i] == '\r', second = bytes[i] == '\n' && s->after_cr;
        s->after_cr = bytes[i] == '\r';
        if (second)
            continue;
        if (++s->seen > s->most)
            return SSE_TOO_LONG;
        if (!end) {
            s->text[s->n++] = bytes[i];
        } else if (s->n > s->data) {
            end_line(s);
        } else {
            const bool complete = s->has_data;
            const size_t len = s->data;
            s->n = s->data = 0;
            s->has_data = false;
            if (!complete)
                continue;
            s->seen = 0;
            s->text[len] = '\0';
            if (!event(user, s->text, len))
                return SSE_ENDED;
        }
    }
    return SSE_MORE;
}

void
sse_close(struct sse *s)
{
    free(s->text);
    *s = (struct sse){.most = s->most};
}
