#include "engine/training/reader.h"

#define CHUNK 64 /* rows whose hidden states are there at a time: the ring has twice as many */

/* self:E needs no deeper layers: a load of the first E reads for a part of the price, and the same bits. */
static bool
load_layers(struct reader *r, struct model_desc *d, uint32_t layers, uint32_t ctx, struct err *err)
{
    d->n_layers = layers;
    d->ctx = ctx;
    return r->engine->ops->load(r->engine->backend, d, NULL, NULL, &r->own, err);
}

bool
reader_open(struct reader *r, const struct engine *e, enum reads who, uint32_t ctx, const atomic_bool *cancel,
            struct err *err)
{
    static const struct helper_model nobody;
    const struct helper_model *h = who == READS_TARGET ? &nobody : &e->helpers[who - READS_DRAFT];
    *r = (struct reader){.engine = e, .model = h->model != NULL ? h->model : e->model};
    struct model_desc d = r->model->desc;
    if (h->exit_layer > 0 && !load_layers(r, &d, h->exit_layer, ctx, err)) {
        r->own = NULL;
        return false;
    }
    struct weights *weights = r->own != NULL ? r->own : h->model != NULL ? h->weights : e->weights;
    const struct context_options options = {
        .ctx = ctx, .ring = 2 * CHUNK, .max_rows = CHUNK, .seqs = 1, .cancel = cancel};
    r->vocab = d.vocab;
    r->layers = d.n_layers;
    r->width = d.width;
    if (!context_open(&r->context, e->ops, e->backend, weights, &d, &options, err))
        return false;
    r->seq = context_sequence(r->context);
    return true;
}

void
reader_close(struct reader *r)
{
    context_close(r->context);
    if (r->own != NULL)
        r->engine->ops->unload(r->own);
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
