/* HTTP for servers: http and https only, certificates are checked, redirects are not followed, proxies of the environment
 * are not used, and sizes and times have bounds. Errors are one line and contain no key and no byte of an answer that is not printable. libcurl is in a
 * plug-in, which http_open() loads. A connection belongs to one thread; http_open() is cheap, so that another thread
 * opens its own. */
#ifndef ENGINE_REMOTE_HTTP_H
#define ENGINE_REMOTE_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HTTP_ANSWER_MOST (64u << 20) /* bytes */
#define HTTP_EVENT_MOST  (4u << 20)  /* bytes of a server-sent event, or without one */
#define HTTP_STALL_S     300         /* without a byte of an answer, or without an event: a long prompt is silent */
#define HTTP_KEY_MASKED  8 /* characters: a key of this length is replaced by asterisks in what a server sends */

struct http;

struct http_options {
    const char *url; /* "https://host:port/path": requests append their own path; a "/v1" at the end is left out */
    const char *key; /* sent as "Authorization: Bearer KEY"; NULL: none */
    const atomic_bool *cancel; /* ends a request within 0.2 s; NULL: nothing does */
    double stall_s;            /* 0: HTTP_STALL_S */
};

/* Returns libcurl's description, "libcurl/8.5.0 OpenSSL/3.0.13 ..."; NULL, with the reason, if the plug-in or libcurl is missing. */
const char *http_library(struct err *);

/* Fails with ERR_USAGE if the URL is no http or https URL or contains a user or a password, or if the key cannot be a
 * line of a header; with ERR_WORK if the plug-in is missing. Copies the options' texts. */
bool http_open(struct http **, const struct http_options *, struct err *);
void http_close(struct http *); /* NULL does nothing */
/* Gets a path (json: NULL), or posts JSON to it. Returns true for every complete answer; *status is 200, 404, ...; the
 * answer ends with a NUL and belongs to the caller, also if it is an error's. A failure leaves *answer NULL. limit_s:
 * of the whole request. ERR_CANCELLED: the flag was set. */
bool http_call(struct http *, const char *path, const char *json, double limit_s, int *status, char **answer, size_t *n,
               struct err *);
/* Posts JSON and passes the data of each server-sent event (NUL-terminated) to event(), which returns false to end the
 * stream; "[DONE]" is an event. Fails if the status is not 200, as http_refused() does. A stream that event() or the
 * flag ended did not fail. Not every cut stream can be noticed here: the caller knows its last event. */
bool http_stream(struct http *, const char *path, const char *json,
                 bool (*event)(void *user, const char *data, size_t n), void *user, struct err *);
/* Sets the error for an answer whose status is not 200, with the server's message if it is a JSON error; returns
 * false. */
bool http_refused(const struct http *, const char *path, int status, const char *answer, size_t n, struct err *);

#endif
