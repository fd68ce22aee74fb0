/* libcurl as a plug-in (engine/remote/curl/transfer.h). It follows no redirect, so a key reaches no other host, and
 * reads no .netrc. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/remote/curl/transfer.h"

#define CONNECT_S    20L
#define HEADERS_MOST (256L << 10) /* bytes of an answer's header; libcurl stores it */

struct connection {
    CURLM *multi;
    CURL *easy;
    char reason[CURL_ERROR_SIZE];
    struct transfer *now;
};

static size_t
on_bytes(char *bytes, size_t size, size_t n, void *connection)
{
    struct connection *c = connection;
    long status = 0;
    char *type = NULL;
    (void)size; /* 1 */
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type);
    return c->now->receive(c->now->user, (int)status, type != NULL ? type : "", bytes, n) ? n : 0;
}

static void
close_connection(void *connection)
{
    struct connection *c = connection;
    if (c == NULL)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    free(c);
}

static void *
open_connection(void)
{
    struct connection *c = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? calloc(1, sizeof *c) : NULL;
    if (c == NULL)
        return NULL;
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (c->multi != NULL && c->easy != NULL)
        return c;
    close_connection(c);
    return NULL;
}

/* Returns what of these lines there is memory for; an answer then says what is missing. */
static struct curl_slist *
headers_of(const struct transfer *t)
{
    char key[4096];
    struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
    snprintf(key, sizeof key, "Authorization: Bearer %s", t->key != NULL ? t->key : "");
    if (list != NULL && t->key != NULL)
        curl_slist_append(list, key);
    if (list != NULL)
        curl_slist_append(list, "Expect:"); /* no pause before a long prompt */
    return list;
}

/* Every option is set for each request, so none of an earlier one remains. */
static bool
prepare(struct connection *c, const struct transfer *t, const struct curl_slist *headers)
{
    CURL *e = c->easy;
    curl_easy_reset(e);
#if LIBCURL_VERSION_NUM >= 0x075500
    bool ok = curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
#else
    bool ok = curl_easy_setopt(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) == CURLE_OK;
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    ok = ok && curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK; /* ends without waiting for a name server */
#endif
    ok = ok && curl_easy_setopt(e, CURLOPT_URL, t->url) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK && /* also none of the environment */
         curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, CONNECT_S) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->reason) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_WRITEDATA, c) == CURLE_OK;
    if (t->json != NULL)
        ok = ok && curl_easy_setopt(e, CURLOPT_POSTFIELDS, t->json) == CURLE_OK; /* a POST */
    return ok;
}

/* Waits until the request has ended; returns its result. */
static CURLcode
wait_for_end(struct connection *c)
{
    CURLMcode code = CURLM_OK;
    int running = 1, left;
    long header = 0;
    while (code == CURLM_OK && running > 0) {
        code = curl_multi_perform(c->multi, &running);
        if (running > 0 && c->now->stop(c->now->user))
            return CURLE_ABORTED_BY_CALLBACK;
        curl_easy_getinfo(c->easy, CURLINFO_HEADER_SIZE, &header);
        if (header > HEADERS_MOST) {
            snprintf(c->reason, sizeof c->reason, "the header of its answer has no end");
            return CURLE_ABORTED_BY_CALLBACK;
        }
        if (code == CURLM_OK && running > 0)
            code = curl_multi_poll(c->multi, NULL, 0, 100, NULL);
    }
    const CURLMsg *message = code == CURLM_OK ? curl_multi_info_read(c->multi, &left) : NULL;
    return message != NULL ? message->data.result : CURLE_OUT_OF_MEMORY;
}

static bool
run(void *connection, struct transfer *t)
{
    struct connection *c = connection;
    struct curl_slist *headers = headers_of(t);
    CURLcode result = CURLE_OUT_OF_MEMORY;
    const char *elsewhere = NULL;
    long status = 0;
    c->now = t;
    c->reason[0] = '\0';
    if (headers != NULL && prepare(c, t, headers) && curl_multi_add_handle(c->multi, c->easy) == CURLM_OK) {
        result = wait_for_end(c);
        curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(c->easy, CURLINFO_REDIRECT_URL, &elsewhere);
        t->status = (int)status;
    }
    if (elsewhere != NULL)
        snprintf(t->why, sizeof t->why, "it redirects to %s, which is not followed", elsewhere);
    else if (result != CURLE_OK)
        snprintf(t->why, sizeof t->why, "%s", c->reason[0] != '\0' ? c->reason : curl_easy_strerror(result));
    curl_multi_remove_handle(c->multi, c->easy);
    curl_easy_reset(c->easy); /* forgets the key */
    curl_slist_free_all(headers);
    return result == CURLE_OK && elsewhere == NULL;
}

extern const struct transfer_ops *specscope_transfer(void);

const struct transfer_ops *
specscope_transfer(void)
{
    static const struct transfer_ops ops = {open_connection, close_connection, run, curl_version};
    return &ops;
}
