/* HTTP for servers: http and https only, certificates are checked, a redirect to another host is refused, and sizes and
 * times have bounds. Errors are one line and contain no key and no byte of an answer that is not printable. libcurl is
 * in a plug-in, which http_open() loads. A connection belongs to one thread; http_open() is cheap, so that another
 * thread opens its own. */
#ifndef ENGINE_REMOTE_HTTP_H
#define ENGINE_REMOTE_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HTTP_ANSWER_MOST (64u << 20) /* bytes */
#define HTTP_EVENT_MOST  (4u << 20)  /* bytes of a server-sent event */
#define HTTP_STALL_S     300         /* without a byte: a long prompt is silent */

struct http;

struct http_options {
    const char *url;           /* "https://host:port/path": requests append their own path */
    const char *key;           /* sent as "Authorization: Bearer KEY"; NULL: none */
    const atomic_bool *cancel; /* ends a request within 0.2 s; NULL: nothing does */
};

/* Fails with ERR_USAGE if the URL is no http or https URL or contains a user or a password; with ERR_WORK if the plug-in
 * is missing. Copies the options' texts. */
bool http_open(struct http **, const struct http_options *, struct err *);
void http_close(struct http *); /* NULL does nothing */
/* Gets a path (json: NULL), or posts JSON to it. Returns true for every complete answer; *status is 200, 404, ...; the
 * answer ends with a NUL and belongs to the caller, also if it is an error's. limit_s: of the whole request. */
bool http_call(struct http *, const char *path, const char *json, double limit_s, int *status, char **answer, size_t *n,
               struct err *);
/* Posts JSON and passes the data of each server-sent event (NUL-terminated) to event(), which returns false to end the
 * stream; "[DONE]" is an event. Fails if the status is not 200, with the server's message if it is a JSON error; a
 * stream that event() or the flag ended did not fail. */
bool http_stream(struct http *, const char *path, const char *json,
                 bool (*event)(void *user, const char *data, size_t n), void *user, struct err *);

#endif
