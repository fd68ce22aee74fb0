/* Server-sent events from bytes that arrive in pieces: lines end with LF, CR LF or CR, "data:" lines are joined with
 * newlines, and an empty line ends an event. Comments and other fields are skipped. An event that the end of the bytes
 * cuts is none. */
#ifndef ENGINE_REMOTE_SSE_H
#define ENGINE_REMOTE_SSE_H

#include <stdbool.h>
#include <stddef.h>

struct sse {     /* begins with {0} and the limit */
    size_t most; /* bytes between the ends of two events */
    char *text;  /* the event's data, then the line that has begun */
    size_t n, room, data, seen;
    bool has_data, after_cr;
};

enum sse_result { SSE_MORE, SSE_ENDED, SSE_TOO_LONG, SSE_NO_MEMORY };

/* Passes the data of each event that ends in these n bytes to event(), NUL-terminated. SSE_ENDED: event() returned
 * false. After another result than SSE_MORE only sse_close() may follow. */
enum sse_result sse_feed(struct sse *, const char *bytes, size_t n,
                         bool (*event)(void *user, char *data, size_t n_data), void *user);
void sse_close(struct sse *);

#endif
