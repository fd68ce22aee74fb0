/* The event log and the names of the events' enumerations in a trace. */
#include "engine/events/event.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"

const char *const token_source_names[TOKEN_SOURCES] = {"prompt", "prefill", "draft", "correction", "bonus"};
const char *const probed_by_names[PROBED_BY] = {"policy", "verify", "scope"};
#define NAME(role, name) [MODEL_##role] = name,
const char *const layer_model_names[LAYER_MODELS] = {"", AUX_ROLES(NAME)};

const char *const recorded_names[RECORDED_KINDS] = {
    [RECORDED_KNOB] = "",
    [RECORDED_RUN] = "run",
    [RECORDED_PROMPT] = "prompt",
    [RECORDED_VERSUS] = "versus",
    [RECORDED_POLICY] = "policy",
    [RECORDED_STATE] = "state",
    [RECORDED_PROBE] = "probe",
    [RECORDED_HEAD] = "head",
    [RECORDED_BREAK] = "break",
    [RECORDED_UNTIL] = "until",
    [RECORDED_JOINED] = "joined",
    [RECORDED_LEFT] = "left",
    [RECORDED_BACK] = "back",
    [RECORDED_END] = "end",
    [RECORDED_PACE] = "pace",
    [RECORDED_BASELINE_SE] = "baseline_se",
    [RECORDED_BASELINE] = "baseline",
    [RECORDED_BASELINE_SLICE] = "baseline_slice",
    [RECORDED_LOSSLESS] = "lossless",
    [RECORDED_RACE] = "race",
    [RECORDED_NOTE] = "note",
    [RECORDED_DEVICE] = "device",
    [RECORDED_SERVER] = "server",
    [RECORDED_COST] = "cost",
    [RECORDED_CHOICE] = "choice",
};

bool
event_spurious(token_t token, float confidence, token_t final, float threshold)
{
    return final != TOKEN_NONE && token != final && confidence >= (isnan(threshold) ? 0.5f : threshold);
}

double
event_margin(const float top_p[PREDICTION_TOP])
{
    return top_p[1] > 0 ? log((double)top_p[0] / (double)top_p[1]) : (double)NAN;
}

const char *
control_event_name(const struct control_event *c)
{
    return c->kind == RECORDED_KNOB ? c->knob : recorded_names[c->kind];
}

void
control_event_set_name(struct control_event *c, const char *name)
{
    c->kind = RECORDED_KINDS - 1;
    while (c->kind > RECORDED_KNOB && strcmp(recorded_names[c->kind], name) != 0)
        c->kind--;
    snprintf(c->knob, sizeof c->knob, "%s", c->kind == RECORDED_KNOB ? name : "");
}

bool
committed_token(struct committed *c, const struct event *e, token_t *token, enum token_source *source)
{
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT) {
        if (e->token.candidate > 0 && e->token.candidate < VERIFY_NODES)
            c->drafts[e->token.candidate] = e->token.token;
    } else if (e->type == EVENT_TOKEN && e->token.source != SOURCE_PROMPT) {
        *token = e->token.token;
        *source = e->token.source;
        return true;
    } else if (e->type == EVENT_VERDICT && e->verdict.committed == 1 && e->verdict.candidate > 0 &&
               e->verdict.candidate < VERIFY_NODES) {
        *token = c->drafts[e->verdict.candidate];
        *source = SOURCE_DRAFT;
        return true;
    }
    return false;
}

/* The event log: a list of chunks, oldest first. The appender fills the last one, the tail. A reader reads its chunk
 * to the end and continues with the next. One lock guards all of it: an append or a read takes some 20 ns of a round's
 * millisecond.
 *
 * A chunk is never freed while a reader is in it (the event that the reader holds stays valid, and the reader reads
 * that chunk to its end). If the log is larger than its cap, such chunks are removed from the list. Their readers
 * continue with the oldest chunk in the list. Each chunk stores the number of events before it, from which the reader
 * computes how many it lost. */

#define DEFAULT_CAP  ((size_t)256 << 20)
#define CHUNK_EVENTS 1024u
#define CHUNK_TEXT   (16u << 10)
#define KEPT_FREE    2 /* chunks kept for the next reserve */

struct chunk {
    struct chunk *next;
    uint64_t first; /* events appended before the first one of this chunk */
    size_t count, max_events, max_text, used_text, bytes;
    size_t readers; /* number of readers in it */
    bool detached;  /* removed from the list because of the cap while a reader was in it */
    struct event *events;
    char *text;
};

struct event_log {
    pthread_mutex_t lock; /* guards all that follows, the readers' positions, and the chunks of the list */
    pthread_cond_t news;
    bool finished;
    uint64_t last;     /* number of the newest event */
    uint64_t appended; /* since the log was opened */
    struct chunk *head, *tail;
    struct chunk *spare; /* room for all reserved events, used when the tail is full */
    struct chunk *free;  /* a list linked by `next` */
    size_t n_free, bytes, cap, detached_readers;
    bool tail_closed; /* an event was lost because memory ran out: the next one needs a new chunk */
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
    *c = (struct chunk){.max_events = n, .max_text = text, .bytes = bytes, .events = (struct event *)(void *)(c + 1)};
    c->text = (char *)(c->events + n);
    return c;
}

static bool
chunk_fits(const struct chunk *c, size_t n, size_t text)
{
    return c->max_events - c->count >= n && c->max_text - c->used_text >= text;
}

static void
recycle(struct event_log *log, struct chunk *c)
{
    if (log->n_free >= KEPT_FREE) {
        free(c);
        return;
    }
    c->next = log->free;
    log->free = c;
    log->n_free++;
}

/* Returns an empty chunk with room for n events and their text: a free one, or a new one. */
static struct chunk *
chunk_get(struct event_log *log, size_t n, size_t text)
{
    for (struct chunk **at = &log->free; *at != NULL; at = &(*at)->next) {
        struct chunk *c = *at;
        if (c->max_events < n || c->max_text < text)
            continue;
        *at = c->next;
        log->n_free--;
        c->next = NULL;
        c->count = c->used_text = 0;
        c->detached = false;
        return c;
    }
    size_t usual = log->cap / 8 / sizeof(struct event); /* a small cap must allow several chunks */
    usual = usual < 16 ? 16 : usual > CHUNK_EVENTS ? CHUNK_EVENTS : usual;
    return chunk_new(n > usual ? n : usual, text > CHUNK_TEXT ? text : CHUNK_TEXT);
}

/* ---- the list ---- */

static void
unlink_head(struct event_log *log)
{
    struct chunk *c = log->head;
    log->head = c->next;
    log->bytes -= c->bytes;
    if (c->readers == 0) {
        recycle(log, c);
    } else {
        c->detached = true;
        log->detached_readers += c->readers;
    }
}

/* Frees the chunks that all readers have passed. A reader in a detached chunk has the whole list before it. */
static void
trim(struct event_log *log)
{
    while (log->head != log->tail && log->head->readers == 0 && log->detached_readers == 0)
        unlink_head(log);
}

/* Drops the oldest events of the slowest readers while the list, with `coming` more bytes, is larger than the cap. */
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
    log->tail->next = c;
    log->tail = c;
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
    struct event_log *log = *out = calloc(1, sizeof *log);
    if (log != NULL) {
        log->cap = cap_bytes == 0 ? DEFAULT_CAP : cap_bytes;
        log->head = log->tail = chunk_get(log, 1, 0);
    }
    if (log == NULL || log->head == NULL) {
        free(log);
        *out = NULL;
        return err_set(err, ERR_WORK, "out of memory for the event log");
    }
    log->bytes = log->head->bytes;
    platform_condition_open(&log->news);
    pthread_mutex_init(&log->lock, NULL);
    return true;
}

static void
free_chunks(struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;
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
    /* An event has at most two texts, each with a terminator. Events that do not fit into the tail go into the spare
     * chunk, so one chunk with room for the whole request is enough for any order of events. */
    size_t text = n > SIZE_MAX / 4 || text_bytes > SIZE_MAX / 4 ? SIZE_MAX / 4 : text_bytes + 2 * n;
    struct chunk *c = NULL;
    pthread_mutex_lock(&log->lock);
    const bool fits = (!log->tail_closed && chunk_fits(log->tail, n, text)) ||
                      (log->spare != NULL && chunk_fits(log->spare, n, text));
    if (!fits && (c = chunk_get(log, n, text)) != NULL) {
        if (log->spare != NULL)
            recycle(log, log->spare);
        log->spare = c;
    }
    enforce_cap(log, log->spare != NULL ? log->spare->bytes : 0);
    pthread_mutex_unlock(&log->lock);
    return fits || c != NULL || err_set(err, ERR_WORK, "out of memory for %zu events of the log", n);
}

static const char *
keep_text(struct chunk *c, const char *bytes, size_t n)
{
    if (n == 0)
        return ""; /* needs no room */
    char *at = c->text + c->used_text;
    memcpy(at, bytes, n);
    at[n] = '\0';
    c->used_text += n + 1;
    return at;
}

/* Returns the room that an event's texts need, at most two, and sets their pointers and lengths. */
static size_t
event_texts(struct event *e, const char **text[2], size_t n[2])
{
    text[0] = text[1] = NULL;
    n[0] = n[1] = 0;
    if (e->type == EVENT_VOCAB) {
        text[0] = &e->vocab.bytes;
        n[0] = e->vocab.n_bytes;
    } else if (e->type == EVENT_CONTROL) {
        text[0] = &e->control.old_text;
        text[1] = &e->control.new_text;
        for (int i = 0; i < 2; i++)
            n[i] = *text[i] == NULL ? 0 : strlen(*text[i]);
    }
    return (n[0] > 0 ? n[0] + 1 : 0) + (n[1] > 0 ? n[1] + 1 : 0);
}

/* Returns the chunk for an event with this many bytes of text; NULL: out of memory. */
static struct chunk *
room_for(struct event_log *log, size_t text)
{
    if (!log->tail_closed && chunk_fits(log->tail, 1, text))
        return log->tail;
    struct chunk *c = log->spare;
    if (c != NULL && chunk_fits(c, 1, text))
        log->spare = NULL;
    else
        c = chunk_get(log, 1, text); /* more was appended than reserved */
    log->tail_closed = c == NULL;
    if (c != NULL)
        link_tail(log, c);
    return c;
}

uint64_t
event_log_append(struct event_log *log, const struct event *e)
{
    struct event own = *e;
    const char **text[2];
    size_t n_text[2];
    const size_t need = event_texts(&own, text, n_text);
    pthread_mutex_lock(&log->lock);
    struct chunk *c = room_for(log, need);
    if (c != NULL) {
        for (int i = 0; i < 2; i++)
            if (text[i] != NULL)
                *text[i] = keep_text(c, *text[i], n_text[i]);
        if (own.number == 0)
            own.number = log->last + 1;
        log->last = own.number;
        c->events[c->count++] = own;
    }
    log->appended++;
    pthread_mutex_unlock(&log->lock);
    if (e->type == EVENT_ROUND || e->type == EVENT_CONTROL)
        pthread_cond_broadcast(&log->news);
    return c != NULL ? own.number : 0;
}

uint64_t
event_log_last(struct event_log *log)
{
    pthread_mutex_lock(&log->lock);
    const uint64_t last = log->last;
    pthread_mutex_unlock(&log->lock);
    return last;
}

void
event_log_finish(struct event_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->finished = true;
    pthread_mutex_unlock(&log->lock);
    pthread_cond_broadcast(&log->news);
}

bool
event_log_finished(struct event_log *log)
{
    pthread_mutex_lock(&log->lock);
    const bool finished = log->finished;
    pthread_mutex_unlock(&log->lock);
    return finished;
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
    trim(log);
    pthread_mutex_unlock(&log->lock);
    free(r);
}

/* Moves the reader to the next chunk. Call it, as has_news(), with the lock held. */
static void
cross(struct event_reader *r)
{
    struct chunk *from = r->chunk;
    struct chunk *to = from->detached ? r->log->head : from->next;
    r->lost += to->first - (from->first + r->at);
    to->readers++;
    r->chunk = to;
    r->at = 0;
    leave_chunk(r->log, from);
    trim(r->log);
}

const struct event *
event_reader_next(struct event_reader *r)
{
    const struct event *e = NULL;
    pthread_mutex_lock(&r->log->lock);
    while (r->at == r->chunk->count && r->chunk != r->log->tail)
        cross(r);
    if (r->at < r->chunk->count)
        e = &r->chunk->events[r->at++];
    pthread_mutex_unlock(&r->log->lock);
    return e;
}

static bool
has_news(const struct event_reader *r)
{
    return r->at < r->chunk->count || r->chunk != r->log->tail || r->log->finished;
}

bool
event_reader_wait(struct event_reader *r, int timeout_ms)
{
    const uint64_t until_us = clock_us() + (uint64_t)timeout_ms * 1000;
    pthread_mutex_lock(&r->log->lock);
    while (!has_news(r) && platform_condition_wait(&r->log->news, &r->log->lock, until_us))
        ;
    const bool news = has_news(r);
    pthread_mutex_unlock(&r->log->lock);
    return news;
}

uint64_t
event_reader_lost(const struct event_reader *r)
{
    return r->lost;
}
