#include "traces/text_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array_grow.h"
#include "traces/reader.h"

struct traced { /* a sequence of a run */
    uint32_t run, seq;
    struct exchange of;
    size_t room; /* of its tokens */
    struct committed committed;
};

struct source {
    struct texts *t;
    struct traced *traced; /* (n) */
    size_t n, room;
};

/* Makes room for an element after n of an array. */
static bool
grow(struct source *s, void *array, size_t *room, size_t n, size_t size)
{
    bool *starved = &s->t->blocks.starved;
    *starved = *starved || !array_grow(array, room, n + 1, size);
    return !*starved;
}

static void *
copy(struct source *s, const void *bytes, size_t n)
{
    void *made = blocks_take(&s->t->blocks, n + 1, 1);
    return made != NULL ? memcpy(made, bytes, n) : NULL;
}

/* Returns the sequence of an event; NULL: memory ran out. */
static struct traced *
sequence_of(struct source *s, const struct event *e)
{
    for (size_t i = s->n; i > 0; i--)
        if (s->traced[i - 1].run == e->run && s->traced[i - 1].seq == e->seq)
            return &s->traced[i - 1];
    if (!grow(s, &s->traced, &s->room, s->n, sizeof *s->traced))
        return NULL;
    s->traced[s->n] = (struct traced){.run = e->run, .seq = e->seq};
    return &s->traced[s->n++];
}

static void
take_token(struct source *s, const struct event *e)
{
    struct traced *of = sequence_of(s, e);
    const bool prompt = e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT;
    token_t token = e->token.token;
    enum token_source source;
    if (of == NULL || (!prompt && !committed_token(&of->committed, e, &token, &source)) ||
        !grow(s, &of->of.ids, &of->room, of->of.n_ids, sizeof token))
        return;
    of->of.ids[of->of.n_ids++] = token;
    of->of.n_prompt += prompt;
}

/* Adds a sequence that has an answer, if no other one has the same tokens. */
static void
add_sequence(struct source *s, struct exchange e)
{
    const size_t bytes = e.n_ids * sizeof *e.ids;
    token_t *ids = e.ids;
    bool new = e.n_prompt > 0 && e.n_ids > e.n_prompt;
    for (size_t i = 0; i < s->t->n && new; i++) {
        const struct exchange *o = s->t->at[i].exchange;
        new = o->n_ids != e.n_ids || memcmp(o->ids, ids, bytes) != 0;
    }
    e.ids = new ? copy(s, ids, bytes) : NULL;
    texts_add(s->t, &(struct conversation){.exchange = new ? copy(s, &e, sizeof e) : NULL, .n = new});
    free(ids);
}

static bool
read_trace(struct texts *t, const char *path, struct err *err)
{
    struct trace_reader *reader;
    struct source s = {.t = t};
    struct event e;
    struct err why = {0};
    if (!trace_reader_open(&reader, path, false, err))
        return false;
    t->vocab = trace_reader_info(reader)->vocab;
    t->piece = blocks_take(&t->blocks, t->vocab, sizeof *t->piece);
    bool ok = t->piece != NULL && trace_reader_rewind(reader, true, &why);
    while (ok && !t->blocks.starved && trace_reader_next(reader, &e, &why)) {
        if (e.type == EVENT_VOCAB && t->piece[e.vocab.token].data == NULL)
            t->piece[e.vocab.token] = (struct slice){copy(&s, e.vocab.bytes, e.vocab.n_bytes), e.vocab.n_bytes};
        if (e.type == EVENT_TOKEN || e.type == EVENT_VERDICT)
            take_token(&s, &e);
    }
    for (size_t i = 0; i < s.n; i++)
        add_sequence(&s, s.traced[i].of);
    free(s.traced);
    trace_reader_close(reader);
    return why.kind == ERR_NONE || err_copy(err, &why);
}

bool
text_source_read(struct texts *t, const char *path, struct err *err)
{
    struct stat about;
    if (strcmp(path, "-") == 0 || stat(path, &about) != 0 || !S_ISDIR(about.st_mode))
        return texts_read(t, path, err);
    *t = (struct texts){0};
    return texts_finish(t, read_trace(t, path, err), path, err);
}
