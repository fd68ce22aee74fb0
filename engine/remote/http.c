#include "engine/remote/http.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array_grow.h"
#include "base/clock.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/remote/curl/transfer.h"
#include "engine/remote/sse.h"

#define CANNOT   "servers cannot be reached"
#define URL_MOST 512
#define KEY_MOST 2048

struct http {
    const struct transfer_ops *ops;
    void *connection;
    char url[URL_MOST], key[KEY_MOST];
    const atomic_bool *cancel;
    double stall_s;
    /* the request */
    bool (*event)(void *user, const char *data, size_t n); /* NULL: a call */
    void *user;
    struct sse sse;
    char *answer;
    size_t n, room;
    uint64_t begun, progress; /* us */
    double limit_s;           /* 0: none */
    bool ended;               /* by event() or the flag */
    const char *why;          /* the reason for which this file ended the request; NULL: none */
};

/* ---- the plug-in ---- */

#ifdef SPECSCOPE_STATIC
static const struct transfer_ops *
load(struct err *err)
{
    err_set(err, ERR_WORK, CANNOT ": this program is a static one, which loads no plug-ins; install the other one");
    return NULL;
}

#else
#include <dlfcn.h>
#include <limits.h>

#include "kernels/plugin.h"

static const struct transfer_ops *
load(struct err *err)
{
    char path[PATH_MAX];
    const struct transfer_ops *(*table)(void) = NULL;
    if (!plugin_find(TRANSFER_PLUGIN, path, sizeof path)) {
        err_set(err, ERR_WORK,
                CANNOT ": there is no " TRANSFER_PLUGIN
                       " beside the program; build it with `make`, which needs libcurl");
        return NULL;
    }
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL),
         *symbol = plugin != NULL ? dlsym(plugin, TRANSFER_SYMBOL) : NULL;
    if (symbol == NULL) {
        err_set(err, ERR_WORK, CANNOT ": %.280s; install libcurl", dlerror());
        return NULL;
    }
    memcpy(&table, &symbol, sizeof table); /* ISO C has no cast for it */
    signal(SIGPIPE, SIG_IGN);              /* a closed connection is an error of the request */
    return table();
}
#endif

static const struct transfer_ops *
operations(struct err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct transfer_ops *ops;
    pthread_mutex_lock(&lock);
    ops = ops != NULL ? ops : load(err);
    pthread_mutex_unlock(&lock);
    return ops;
}

const char *
http_library(struct err *err)
{
    const struct transfer_ops *ops = operations(err);
    return ops != NULL ? ops->version() : NULL;
}

/* ---- opening ---- */

/* The message does not contain the URL, which may contain a password. */
static bool
url_is_fine(const char *url, struct err *err)
{
    const size_t scheme = strncasecmp(url, "http://", 7) == 0 ? 7 : strncasecmp(url, "https://", 8) == 0 ? 8 : 0;
    const char *wrong = NULL;
    if (scheme == 0)
        wrong = "it does not begin with http:// or https://";
    else if (strchr(url, '@') != NULL)
        wrong = "it contains a user or a password";
    else if (strchr("/:?#", url[scheme]) != NULL)
        wrong = "it has no host";
    for (const char *c = url; *c != '\0' && wrong == NULL; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || strchr("\\\"<>^`{|}?#", *c) != NULL)
            wrong = "it contains a character that the address of a server cannot have";
    if (wrong == NULL && strlen(url) >= URL_MOST - 1)
        wrong = "it is too long";
    return wrong == NULL ||
           err_set(err, ERR_USAGE, "wrong URL of a server: %s; give an address such as http://127.0.0.1:8080", wrong);
}

static bool
key_is_fine(const char *key, struct err *err)
{
    bool fine = key[0] != '\0' && strlen(key) < KEY_MOST;
    for (const char *c = key; *c != '\0'; c++)
        fine = fine && (unsigned char)*c > ' ' && (unsigned char)*c < 0x7f;
    return fine || err_set(err, ERR_USAGE,
                           "wrong key of a server: it is empty, too long, or has a character that is not printable "
                           "ASCII; check its variable or file");
}

bool
http_open(struct http **out, const struct http_options *o, struct err *err)
{
    *out = NULL;
    if (!url_is_fine(o->url, err) || (o->key != NULL && !key_is_fine(o->key, err)))
        return false;
    const struct transfer_ops *ops = operations(err);
    struct http *h = ops != NULL ? calloc(1, sizeof *h) : NULL;
    if (h == NULL || (h->connection = ops->open()) == NULL) {
        free(h);
        return ops != NULL && err_set(err, ERR_WORK, CANNOT ": out of memory");
    }
    h->ops = ops;
    snprintf(h->url, sizeof h->url, "%s", o->url);
    size_t n = strlen(h->url);
    while (h->url[n - 1] == '/')
        h->url[--n] = '\0';
    if (strcmp(h->url + n - 3, "/v1") == 0 &&
        h->url[n - 4] != '/') /* clients of one API want it; these need all paths */
        h->url[n - 3] = '\0';
    snprintf(h->key, sizeof h->key, "%s", o->key != NULL ? o->key : "");
    h->cancel = o->cancel;
    h->stall_s = o->stall_s > 0 ? o->stall_s : HTTP_STALL_S;
    *out = h;
    return true;
}

void
http_close(struct http *h)
{
    if (h == NULL)
        return;
    h->ops->close(h->connection);
    free(h);
}

/* ---- requests ---- */

/* A server that repeats the key brings it neither to the screen nor into a trace. */
static void
mask_key(const struct http *h, char *text, size_t n)
{
    const size_t len = strlen(h->key);
    char *at = text;
    while (text != NULL && len >= HTTP_KEY_MASKED && (at = memmem(at, n - (size_t)(at - text), h->key, len)) != NULL)
        memset(at, '*', len);
}

/* Notes the reason for which the request ends. */
static bool
end(struct http *h, const char *why)
{
    h->why = why;
    return false;
}

static bool
cancelled(const struct http *h)
{
    return h->cancel != NULL && atomic_load(h->cancel);
}

static bool
on_event(void *http, char *data, size_t n)
{
    struct http *h = http;
    mask_key(h, data, n);
    h->ended = cancelled(h) || !h->event(h->user, data, n);
    h->progress = clock_us(); /* the event may have waited */
    return !h->ended;
}

static bool
receive_stream(struct http *h, const char *type, const char *bytes, size_t n)
{
    static const char *const why[] = {
        [SSE_TOO_LONG] = "it sends more than 4 MB without an event", [SSE_NO_MEMORY] = "out of memory"};
    if (strncasecmp(type, "text/event-stream", 17) != 0)
        return end(h, "its answer is no stream of events");
    const enum sse_result result = sse_feed(&h->sse, bytes, n, on_event, h);
    return result == SSE_MORE || (result != SSE_ENDED && end(h, why[result]));
}

static bool
receive(void *http, int status, const char *type, const char *bytes, size_t n)
{
    struct http *h = http;
    if (h->event != NULL && status == 200)
        return receive_stream(h, type, bytes, n);
    if (h->n + n > HTTP_ANSWER_MOST)
        return end(h, "its answer is longer than 64 MB");
    if (!array_grow(&h->answer, &h->room, h->n + n + 1, 1))
        return end(h, "out of memory");
    memcpy(h->answer + h->n, bytes, n);
    h->answer[h->n += n] = '\0';
    h->progress = clock_us();
    return true;
}

static bool
stop(void *http)
{
    struct http *h = http;
    const double now = (double)clock_us();
    if (cancelled(h))
        h->ended = true;
    else if (h->limit_s > 0 && now - (double)h->begun > h->limit_s * 1e6)
        end(h, "its answer takes too long");
    else if (now - (double)h->progress > h->stall_s * 1e6)
        end(h, "it sends nothing any more");
    return h->ended || h->why != NULL;
}

/* Returns true for an answer, or if event() or the flag ended the request. */
static bool
transfer(struct http *h, const char *path, const char *json, int *status, struct err *err)
{
    char url[URL_MOST + 256], why[200];
    struct transfer t = {.url = url,
                         .key = h->key[0] != '\0' ? h->key : NULL,
                         .json = json,
                         .receive = receive,
                         .stop = stop,
                         .user = h};
    snprintf(url, sizeof url, "%s%s", h->url, path);
    h->begun = h->progress = clock_us();
    h->sse = (struct sse){.most = HTTP_EVENT_MOST};
    h->answer = NULL;
    h->n = h->room = 0;
    h->ended = false;
    h->why = NULL;
    const bool ok = h->ops->run(h->connection, &t);
    sse_close(&h->sse);
    *status = t.status;
    if (ok || h->ended)
        return true;
    mask_key(h, t.why, strlen(t.why));
    printable_line(why, sizeof why, t.why, strlen(t.why));
    return err_set(err, ERR_WORK, "no answer from %.120s: %s%s", url, h->why != NULL ? h->why : why,
                   t.status == 0 ? "; is the server running, and is this its address?" : "");
}

bool
http_call(struct http *h, const char *path, const char *json, double limit_s, int *status, char **answer, size_t *n,
          struct err *err)
{
    h->event = NULL;
    h->limit_s = limit_s;
    *answer = NULL;
    bool ok = transfer(h, path, json, status, err);
    if (ok && h->ended)
        ok = err_set(err, ERR_CANCELLED, "cancelled");
    if (ok && !array_grow(&h->answer, &h->room, h->n + 1, 1))
        ok = err_set(err, ERR_WORK, CANNOT ": out of memory");
    if (!ok) {
        free(h->answer);
        return false;
    }
    h->answer[h->n] = '\0';
    mask_key(h, h->answer, h->n);
    *answer = h->answer;
    *n = h->n;
    return true;
}

bool
http_stream(struct http *h, const char *path, const char *json, bool (*event)(void *user, const char *data, size_t n),
            void *user, struct err *err)
{
    int status;
    h->event = event;
    h->user = user;
    h->limit_s = 0;
    bool ok = transfer(h, path, json, &status, err);
    if (ok && !h->ended && status != 200)
        ok = http_refused(h, path, status, h->answer, h->n, err);
    free(h->answer);
    return ok;
}

/* ---- errors of servers ---- */

/* Returns the text of a JSON error: {"error": {"message": TEXT}}, and the same without one or the other object. */
static char *
message_of(const cJSON *json)
{
    static const char *const names[] = {"error", "message", "detail"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cJSON *const item = cJSON_GetObjectItemCaseSensitive(json, names[i]);
        if (cJSON_IsString(item))
            return item->valuestring;
        if (cJSON_IsObject(item))
            return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "message"));
    }
    return NULL;
}

bool
http_refused(const struct http *h, const char *path, int status, const char *answer, size_t n, struct err *err)
{
    char said[200];
    cJSON *json = NULL;
    if (answer != NULL)
        json_read(&json, answer, n);
    char *const message = message_of(json);
    mask_key(h, message, message != NULL ? strlen(message) : 0); /* JSON may have escaped it */
    printable_line(said, sizeof said, message != NULL ? message : "", message != NULL ? strlen(message) : 0);
    cJSON_Delete(json);
    return err_set(err, ERR_WORK, "%.120s%s failed: status %d%s%s%s", h->url, path, status, said[0] != '\0' ? ": " : "",
                   said, status == 401 || status == 403 ? "; give the server's key with --key-env or --key-file" : "");
}
