#include "engine/training/reader.h"

#define CHUNK 64 /* rows whose hidden states are there at a time: the ring has twice as many */

bool
reader_open(struct reader *r, const struct engine *engine, uint32_t ctx, const atomic_bool *cancel, struct err *err)
{
    const struct model_desc *d = &engine->model->desc;
    const struct context_options options = {
        .ctx = ctx, .ring = 2 * CHUNK, .max_rows = CHUNK, .seqs = 1, .cancel = cancel};
    *r = (struct reader){.engine = engine, .vocab = d->vocab, .layers = d->n_layers, .width = d->width};
    if (!context_open(&r->context, engine->ops, engine->backend, engine->weights, d, &options, err))
        return false;
    r->seq = context_sequence(r->context);
    return true;
}

void
reader_close(struct reader *r)
{
    context_close(r->context);
    *r = (struct reader){0};
}

uint32_t
reader_length(const struct reader *r)
{
    return context_length(r->context, r->seq);
}

void
reader_forget(struct reader *r, uint32_t length)
{
    if (length < reader_length(r))
        context_truncate(r->context, r->seq, length);
}

bool
reader_read(struct reader *r, const token_t *text, uint32_t to, reader_fn told, void *user)
{
    for (uint32_t from; (from = reader_length(r)) < to;) {
        const uint32_t n = to - from < CHUNK ? to - from : CHUNK;
        if (!context_prefill(r->context, r->seq, text + from, n, NULL, NULL))
            return false;
        for (uint32_t i = from; i < from + n && told != NULL; i++)
            if (!told(user, r, i, context_at(r->context, r->seq, i)))
                return false;
    }
    return true;
}

bool
reader_logits(struct reader *r, slot_t slot, float *z)
{
    return context_read_logits(r->context, slot, r->layers, z);
}
