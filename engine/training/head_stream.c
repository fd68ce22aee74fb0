#include "engine/training/head_stream.h"

#include <stdlib.h>
#include <string.h>

#include "engine/context/context.h"

#define CHUNK 64 /* rows between two readings: the ring keeps twice as many */

struct head_stream {
    const struct engine *engine;
    const token_t *tokens;
    size_t n;
    uint32_t window;
    token_t bos;
    struct context *context;
    seq_t seq;
};

bool
head_stream_open(struct head_stream **out, const struct engine *engine, const token_t *tokens, size_t n,
                 uint32_t window, token_t bos, const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    struct head_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "out of memory reading hidden states");
    *s = (struct head_stream){.engine = engine, .tokens = tokens, .n = n, .window = window, .bos = bos};
    const struct context_options options = {
        .ctx = window + 1, .ring = 2 * CHUNK, .max_rows = CHUNK, .seqs = 1, .cancel = cancel};
    if (!context_open(&s->context, engine->ops, engine->backend, engine->weights, &engine->model->desc, &options,
                      err)) {
        free(s);
        return false;
    }
    s->seq = context_sequence(s->context);
    *out = s;
    return true;
}

void
head_stream_close(struct head_stream *s)
{
    if (s == NULL)
        return;
    context_close(s->context);
    free(s);
}

size_t
head_stream_windows(const struct head_stream *s)
{
    return (s->n + s->window - 1) / s->window;
}

static bool
read_chunk(struct head_stream *s, uint32_t first, size_t n, float *hidden)
{
    const uint32_t layers = s->engine->model->desc.n_layers, width = s->engine->model->desc.width;
    for (size_t i = 0; i < n; i++) {
        const slot_t slot = context_at(s->context, s->seq, first + (uint32_t)i);
        for (uint32_t l = 0; l <= layers; l++)
            if (!context_read_hidden(s->context, slot, l, hidden + (i * (layers + 1) + l) * width))
                return false;
    }
    return true;
}

bool
head_stream_window(struct head_stream *s, size_t index, float *hidden, size_t *rows, struct err *err)
{
    const size_t begin = index * s->window, left = s->n - begin, n = left < s->window ? left : s->window;
    const size_t row = ((size_t)s->engine->model->desc.n_layers + 1) * s->engine->model->desc.width;
    context_truncate(s->context, s->seq, 0);
    bool ok = true;
    if (index > 0 && s->bos != TOKEN_NONE)
        ok = context_prefill(s->context, s->seq, &s->bos, 1, NULL, NULL);
    for (size_t done = 0; done < n && ok; done += CHUNK) {
        const size_t part = n - done < CHUNK ? n - done : CHUNK;
        const uint32_t first = context_length(s->context, s->seq);
        ok = context_prefill(s->context, s->seq, s->tokens + begin + done, part, NULL, NULL) &&
             read_chunk(s, first, part, hidden + done * row);
    }
    *rows = ok ? n : 0;
    if (!ok)
        *err = *context_error(s->context);
    return ok;
}
