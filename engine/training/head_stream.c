#include "engine/training/head_stream.h"

#include <stdlib.h>
#include <string.h>

#include "engine/training/reader.h"

struct head_stream {
    struct reader reader;
    const token_t *tokens;
    size_t n;
    uint32_t window;
    token_t bos;
    token_t *text; /* (1 + window) what is read */
    uint32_t skip; /* of these, those without an answer: BOS */
    float *hidden; /* the caller's */
};

bool
head_stream_open(struct head_stream **out, const struct engine *engine, const token_t *tokens, size_t n,
                 uint32_t window, token_t bos, const atomic_bool *cancel, struct err *err)
{
    *out = NULL;
    struct head_stream *s = calloc(1, sizeof *s);
    token_t *text = malloc(((size_t)window + 1) * sizeof *text);
    if (s == NULL || text == NULL) {
        free(s);
        free(text);
        return err_set(err, ERR_WORK, "out of memory reading hidden states");
    }
    *s = (struct head_stream){.tokens = tokens, .n = n, .window = window, .bos = bos, .text = text};
    if (!reader_open(&s->reader, engine, READS_TARGET, window + 1, 1, cancel, err)) {
        head_stream_close(s);
        return false;
    }
    *out = s;
    return true;
}

void
head_stream_close(struct head_stream *s)
{
    if (s == NULL)
        return;
    reader_close(&s->reader);
    free(s->text);
    free(s);
}

size_t
head_stream_windows(const struct head_stream *s)
{
    return (s->n + s->window - 1) / s->window;
}

/* All depths of one row. */
static bool
take_row(void *user, struct reader *r, uint32_t at, slot_t slot)
{
    const struct head_stream *s = user;
    if (at < s->skip)
        return true;
    float *to = s->hidden + (size_t)(at - s->skip) * (r->layers + 1) * r->width;
    for (uint32_t l = 0; l <= r->layers; l++)
        if (!context_read_hidden(r->context, slot, l, to + (size_t)l * r->width))
            return false;
    return true;
}

bool
head_stream_window(struct head_stream *s, size_t index, float *hidden, size_t *rows, struct err *err)
{
    const size_t begin = index * s->window, left = s->n - begin, n = left < s->window ? left : s->window;
    s->skip = index > 0 && s->bos != TOKEN_NONE;
    s->hidden = hidden;
    s->text[0] = s->bos;
    memcpy(s->text + s->skip, s->tokens + begin, n * sizeof *s->text);
    reader_forget(&s->reader, 0, 0);
    const struct reader_text text = {.tokens = s->text, .to = s->skip + (uint32_t)n, .user = s};
    const bool ok = reader_read(&s->reader, &text, 1, take_row);
    *rows = ok ? n : 0;
    if (!ok)
        *err = *context_error(s->reader.context);
    return ok;
}
