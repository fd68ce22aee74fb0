/* The event log: a list of chunks, oldest first. The appender fills the last one, the tail, and publishes each event by
 * raising the chunk's count; a reader walks its chunk up to that count. Neither takes a lock for that. The lock guards
 * the list itself: who is in which chunk, linking a new tail, letting old chunks go.
 *
 * A chunk is never taken from under a reader that stands in it (the event it holds stays valid, and it reads that chunk
 * to its end). Over the cap, chunks leave the list anyway; the reader finds out at the end of its chunk and goes on with
 * the oldest one still there. Each chunk knows how many events came before it, so the reader can tell what it missed. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/events/event.h"

#define DEFAULT_CAP  ((size_t)256 << 20)
#define CHUNK_EVENTS 1024u
#define CHUNK_TEXT   (16u << 10)
#define KEPT_FREE    2 /* chunks kept for the next reserve */

struct chunk {
    _Atomic(struct chunk *) next; /* set when the chunk is full, and then for good */
    _Atomic size_t count;         /* events that may be read */
    uint64_t first;               /* events appended before this chunk's first */
    size_t max_events, max_text, used_text, bytes;
    size_t readers; /* standing in it */
    bool detached;  /* dropped over the cap while somebody stood in it */
    struct event *events;
    char *text;
};

struct event_log {
    pthread_mutex_t lock; /* the list, readers' places, the free chunks */
    pthread_cond_t news;
    atomic_int waiting;
    atomic_bool finished;
    _Atomic uint64_t last; /* number of the newest event */

    struct chunk *head, *tail;
    struct chunk *spare; /* holds everything that was reserved, once the tail is full; the appender's */
    struct chunk *free;  /* through next */
    size_t n_free;
    size_t bytes, cap;
    size_t detached_readers, n_readers;

    uint64_t appended; /* ever; the appender's */
    bool tail_closed;  /* an event was lost for want of memory: the next one needs a new chunk */
};

struct event_reader {
    struct event_log *log;
    struct chunk *chunk;
    size_t at;
    uint64_t lost;
};

/* ---- chunks ---- */

static struct chunk *
chunk_new(size_t n, size_t text)
{
    if (n > SIZE_MAX / 4 / sizeof(struct event) || text > SIZE_MAX / 4)
        return NULL;
    size_t bytes = sizeof(struct chunk) + n * sizeof(struct event) + text;
    struct chunk *c = malloc(bytes);
    if (c == NULL)
        return NULL;
    memset(c, 0, sizeof *c);
    atomic_init(&c->next, NULL);
    atomic_init(&c->count, 0);
    c->events = (struct event *)(void *)(c + 1);
    c->text = (char *)(c->events + n);
    c->max_events = n;
    c->max_text = text;
    c->bytes = bytes;
    return c;
}

static bool
chunk_fits(const struct chunk *c, size_t n, size_t text)
{
    size_t count = atomic_load_explicit(&c->count, memory_order_relaxed);
    return c->max_events - count >= n && c->max_text - c->used_text >= text;
}

static void
recycle(struct event_log *log, struct chunk *c)
{
    if (log->n_free >= KEPT_FREE) {
        free(c);
        return;
    }
    atomic_store_explicit(&c->next, log->free, memory_order_relaxed);
    log->free = c;
    log->n_free++;
}

/* An empty chunk with room for n events and their text: a free one, or a new one. */
static struct chunk *
chunk_get(struct event_log *log, size_t n, size_t text)
{
    struct chunk *before = NULL;
    for (struct chunk *c = log->free; c != NULL; before = c, c = atomic_load_explicit(&c->next, memory_order_relaxed)) {
        if (c->max_events < n || c->max_text < text)
            continue;
        struct chunk *next = atomic_load_explicit(&c->next, memory_order_relaxed);
        if (before == NULL)
            log->free = next;
        else
            atomic_store_explicit(&before->next, next, memory_order_relaxed);
        log->n_free--;
        atomic_store_explicit(&c->next, NULL, memory_order_relaxed);
        atomic_store_explicit(&c->count, 0, memory_order_relaxed);
        c->used_text = 0;
        c->detached = false;
        return c;
    }
    size_t usual = log->cap / 8 / sizeof(struct event); /* so that a small cap still holds several chunks */
    usual = usual < 16 ? 16 : usual > CHUNK_EVENTS ? CHUNK_EVENTS : usual;
    return chunk_new(n > usual ? n : usual, text > CHUNK_TEXT ? text : CHUNK_TEXT);
}

/* ---- the list ---- */

static void
unlink_head(struct event_log *log)
{
    struct chunk *c = log->head;
    log->head = atomic_load_explicit(&c->next, memory_order_relaxed);
    log->bytes -= c->bytes;
    if (c->readers == 0) {
        recycle(log, c);
    } else {
        c->detached = true;
        log->detached_readers += c->readers;
    }
}

/* Lets go what everybody has passed; a reader in a detached chunk still has the whole list before it. */
static void
trim(struct event_log *log)
{
    while (log->head != log->tail && log->head->readers == 0 && log->detached_readers == 0)
        unlink_head(log);
}

/* More than the cap waits, or would with `coming` more bytes: the slowest readers lose the oldest. */
static void
enforce_cap(struct event_log *log, size_t coming)
{
    while (log->head != log->tail && log->bytes + coming > log->cap)
        unlink_head(log);
}

static void
link_tail(struct event_log *log, struct chunk *c)
{
    c->first = log->appended;
    log->bytes += c->bytes;
    struct chunk *before = log->tail;
    log->tail = c;
    atomic_store_explicit(&before->next, c, memory_order_release);
    enforce_cap(log, 0);
    trim(log);
}

static void
leave_chunk(struct event_log *log, struct chunk *c)
{
    c->readers--;
    if (c->detached) {
        log->detached_readers--;
        if (c->readers == 0)
            recycle(log, c);
    }
}

bool
event_log_open(struct event_log **out, size_t cap_bytes, struct err *err)
{
    *out = NULL;
    struct event_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return err_set(err, ERR_WORK, "out of memory for the event log");
    log->cap = cap_bytes == 0 ? DEFAULT_CAP : cap_bytes;
    log->head = log->tail = chunk_get(log, 1, 0);
    if (log->head == NULL) {
        free(log);
        return err_set(err, ERR_WORK, "out of memory for the event log");
    }
    log->bytes = log->head->bytes;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&log->news, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&log->lock, NULL);
    *out = log;
    return true;
}

static void
free_chunks(struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = atomic_load_explicit(&c->next, memory_order_relaxed);
        free(c);
        c = next;
    }
}

void
event_log_close(struct event_log *log)
{
    if (log == NULL)
        return;
    free_chunks(log->head);
    free_chunks(log->free);
    free(log->spare);
    pthread_cond_destroy(&log->news);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

/* ---- appending ---- */

bool
event_log_reserve(struct event_log *log, size_t n, size_t text_bytes, struct err *err)
{
    /* A terminator for each of an event's texts, of which it has two at most. Whatever does not fit into the tail goes
     * into the spare chunk, so that one chunk holding the whole request is enough for any order of events. */
    size_t text = n > SIZE_MAX / 4 || text_bytes > SIZE_MAX / 4 ? SIZE_MAX / 4 : text_bytes + 2 * n;
    bool ok = true;
    pthread_mutex_lock(&log->lock);
    if ((log->tail_closed || !chunk_fits(log->tail, n, text)) &&
        (log->spare == NULL || !chunk_fits(log->spare, n, text))) {
        struct chunk *c = chunk_get(log, n, text);
        if (c == NULL) {
            ok = false;
        } else {
            if (log->spare != NULL)
                recycle(log, log->spare);
            log->spare = c;
        }
    }
    enforce_cap(log, log->spare != NULL ? log->spare->bytes : 0);
    pthread_mutex_unlock(&log->lock);
    return ok || err_set(err, ERR_WORK, "out of memory for %zu events of the log", n);
}

static const char *
keep_text(struct chunk *c, const char *bytes, size_t n)
{
    char *at = c->text + c->used_text;
    if (n > 0)
        memcpy(at, bytes, n);
    at[n] = '\0';
    c->used_text += n + 1;
    return at;
}

/* The texts of an event; the same two places for both kinds that have any. */
static size_t
event_texts(const struct event *e, const char *text[2], size_t n[2])
{
    text[0] = text[1] = NULL;
    n[0] = n[1] = 0;
    if (e->type == EVENT_VOCAB) {
        text[0] = e->vocab.bytes;
        n[0] = e->vocab.n_bytes;
    } else if (e->type == EVENT_CONTROL) {
        text[0] = e->control.old_text;
        text[1] = e->control.new_text;
        for (int i = 0; i < 2; i++)
            n[i] = text[i] == NULL ? 0 : strlen(text[i]);
    }
    return (n[0] > 0 ? n[0] + 1 : 0) + (n[1] > 0 ? n[1] + 1 : 0);
}

uint64_t
event_log_append(struct event_log *log, const struct event *e)
{
    const char *text[2];
    size_t n_text[2];
    size_t need = event_texts(e, text, n_text);
    if (log->tail_closed || !chunk_fits(log->tail, 1, need)) {
        pthread_mutex_lock(&log->lock);
        struct chunk *c = log->spare;
        if (c != NULL && chunk_fits(c, 1, need))
            log->spare = NULL;
        else
            c = chunk_get(log, 1, need); /* more was appended than reserved */
        if (c == NULL) {
            log->tail_closed = true;
            log->appended++;
            pthread_mutex_unlock(&log->lock);
            return 0;
        }
        log->tail_closed = false;
        link_tail(log, c);
        pthread_mutex_unlock(&log->lock);
    }
    struct chunk *c = log->tail;
    size_t count = atomic_load_explicit(&c->count, memory_order_relaxed);
    struct event *to = &c->events[count];
    *to = *e;
    for (int i = 0; i < 2; i++) /* constant "" takes no room */
        text[i] = n_text[i] > 0 ? keep_text(c, text[i], n_text[i]) : "";
    if (e->type == EVENT_VOCAB) {
        to->vocab.bytes = text[0];
    } else if (e->type == EVENT_CONTROL) {
        to->control.old_text = text[0];
        to->control.new_text = text[1];
    }
    if (to->number == 0)
        to->number = atomic_load_explicit(&log->last, memory_order_relaxed) + 1;
    uint64_t number = to->number;
    log->appended++;
    atomic_store_explicit(&log->last, number, memory_order_release);
    /* Sequentially consistent, as is the load of `waiting` and their counterparts in event_reader_wait(): either we see
     * the waiter or it sees the event. */
    atomic_store(&c->count, count + 1);
    if (atomic_load(&log->waiting) > 0) {
        pthread_mutex_lock(&log->lock);
        pthread_cond_broadcast(&log->news);
        pthread_mutex_unlock(&log->lock);
    }
    return number;
}

uint64_t
event_log_last(const struct event_log *log)
{
    return atomic_load_explicit(&log->last, memory_order_acquire);
}

void
event_log_finish(struct event_log *log)
{
    atomic_store(&log->finished, true);
    pthread_mutex_lock(&log->lock);
    pthread_cond_broadcast(&log->news);
    pthread_mutex_unlock(&log->lock);
}

bool
event_log_finished(const struct event_log *log)
{
    return atomic_load(&log->finished);
}

/* ---- reading ---- */

struct event_reader *
event_reader_open(struct event_log *log)
{
    struct event_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->log = log;
    pthread_mutex_lock(&log->lock);
    r->chunk = log->head;
    r->chunk->readers++;
    log->n_readers++;
    pthread_mutex_unlock(&log->lock);
    return r;
}

void
event_reader_close(struct event_reader *r)
{
    if (r == NULL)
        return;
    struct event_log *log = r->log;
    pthread_mutex_lock(&log->lock);
    leave_chunk(log, r->chunk);
    log->n_readers--;
    trim(log);
    pthread_mutex_unlock(&log->lock);
    free(r);
}

static void
cross(struct event_reader *r)
{
    struct event_log *log = r->log;
    pthread_mutex_lock(&log->lock);
    struct chunk *from = r->chunk;
    struct chunk *to = from->detached ? log->head : atomic_load_explicit(&from->next, memory_order_relaxed);
    r->lost += to->first - (from->first + r->at);
    to->readers++;
    r->chunk = to;
    r->at = 0;
    leave_chunk(log, from);
    trim(log);
    pthread_mutex_unlock(&log->lock);
}

const struct event *
event_reader_next(struct event_reader *r)
{
    for (;;) {
        struct chunk *c = r->chunk;
        bool full =
            atomic_load_explicit(&c->next, memory_order_acquire) != NULL; /* looked at first: then count is final */
        if (r->at < atomic_load_explicit(&c->count, memory_order_acquire))
            return &c->events[r->at++];
        if (!full)
            return NULL;
        cross(r);
    }
}

static bool
has_news(const struct event_reader *r)
{
    return r->at < atomic_load(&r->chunk->count) || atomic_load(&r->chunk->next) != NULL ||
           atomic_load(&r->log->finished);
}

bool
event_reader_wait(struct event_reader *r, int timeout_ms)
{
    if (has_news(r))
        return true;
    struct event_log *log = r->log;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ns = until.tv_nsec + (long)(timeout_ms % 1000) * 1000000L;
    until.tv_sec += timeout_ms / 1000 + ns / 1000000000L;
    until.tv_nsec = ns % 1000000000L;
    pthread_mutex_lock(&log->lock);
    atomic_fetch_add(&log->waiting, 1);
    int rc = 0;
    while (!has_news(r) && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&log->news, &log->lock, &until);
    atomic_fetch_sub(&log->waiting, 1);
    pthread_mutex_unlock(&log->lock);
    return has_news(r);
}

uint64_t
event_reader_lost(const struct event_reader *r)
{
    return r->lost;
}
