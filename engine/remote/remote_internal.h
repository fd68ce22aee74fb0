/* The state of a server as a live source: remote.c opens it and takes controls from any thread, remote_run.c is its
 * thread. */
#ifndef ENGINE_REMOTE_REMOTE_INTERNAL_H
#define ENGINE_REMOTE_REMOTE_INTERNAL_H

#include <pthread.h>

#include "engine/remote/launch.h"
#include "engine/remote/server_kind.h"

struct remote_mail {
    struct remote_mail *next;
    struct control c; /* its texts are owned */
    uint32_t asked;   /* the round in which it was posted */
};

struct remote {
    struct live live;
    struct run_info info;
    struct event_log *log;
    struct server_facts facts;
    const struct server_kind *kind;
    struct http *http;
    struct launch *launch;
    struct remote_launch launcher;
    char *key, *prompt, *before, url[512];
    bool chat, stay, watched, ignore_eos, started, polls;
    pthread_t thread, poller;

    pthread_mutex_t lock; /* guards the following members */
    pthread_cond_t wake;
    struct remote_mail *first, *last;
    struct settings requested;
    uint32_t interrupts, steering; /* in the mail */
    bool moves, rests;
    struct err failure;
    char counters[1024];       /* to be appended; "": none */
    atomic_bool cancel, quits; /* a request ends; the thread and the start of a server, too */
    const atomic_bool *opens;  /* the flag that ends remote_open(); NULL: it is over */

    /* of the thread */
    struct settings current, launched;
    uint32_t run, round, wanted, steps, break_at;
    const char *cause;
    uint64_t start_us, round_us; /* when the last round, or the request, began */
    bool paused, new_run, again, extended;
    token_t *ids; /* (n_ids) prompt and text */
    size_t n_ids, room, prompt_ids;
    uint64_t *words; /* a bit for each token whose bytes were emitted */
    bool prefilled;
};

bool control_interrupts(const struct control *);
bool control_steers(const struct control *);
void remote_mail_free(struct remote_mail *);
/* Changes a setting; returns its name, or NULL, and writes its new value. */
const char *remote_change(const struct remote *, struct settings *, const struct control *, char *out, size_t n);
/* Opens a connection, whose requests the flag ends. */
bool remote_connect(const struct remote *, struct http **, const atomic_bool *cancel, struct err *);
/* Connects to the server of `kind` (NULL: any); a launched one is started, or started again if its speculation
 * changes. */
bool remote_reach(struct remote *, const char *kind, struct err *);
void *remote_thread(void *remote);

#endif
