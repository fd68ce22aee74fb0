/* The interface of specscope-curl.so, the plug-in that is linked with libcurl: one request at a time on a connection.
 * Bounds of times and sizes are the caller's (engine/remote/http.c), which the plug-in asks while it waits. */
#ifndef ENGINE_REMOTE_CURL_TRANSFER_H
#define ENGINE_REMOTE_CURL_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>

#define TRANSFER_PLUGIN "specscope-curl.so"
#define TRANSFER_SYMBOL "specscope_transfer" /* const struct transfer_ops *(void) */

struct transfer {
    const char *url;
    const char *key;  /* NULL: none */
    const char *json; /* the body of a POST; NULL: GET */
    /* Receives the next bytes of the answer; false ends the request. `type`: its Content-Type, or "". */
    bool (*receive)(void *user, int status, const char *type, const char *bytes, size_t n);
    bool (*stop)(void *user); /* asked at least every 0.1 s; true ends the request */
    void *user;
    /* the result */
    int status;
    char why[400]; /* the reason of a failure: bytes of the server */
};

struct transfer_ops {
    void *(*open)(void); /* NULL: out of memory */
    void (*close)(void *connection);
    bool (*run)(void *connection, struct transfer *); /* returns true for a complete answer */
    char *(*version)(void);
};

#endif
