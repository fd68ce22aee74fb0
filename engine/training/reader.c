#include "engine/training/reader.h"

#define CHUNK 64 /* rows whose hidden states are there at a time: the ring has twice as many */

bool
reader_open(struct reader *r, const struct engine *e, enum reads who, uint32_t ctx, uint32_t sequences,
            const atomic_bool *cancel, struct err *err)
{
    static const struct aux_model nobody;
    const struct aux_model *h = who == READS_TARGET ? &nobody : &e->aux[who - READS_DRAFT];
    *r = (struct reader){.engine = e, .model = h->model != NULL ? h->model : e->model};
    const struct model_desc *d = &r->model->desc;
    const struct context_options options = {.ctx = ctx,
                                            .spare = (sequences - 1) * ctx + CHUNK,
                                            .ring = 2 * CHUNK,
                                            .max_rows = CHUNK,
                                            .seqs = sequences,
                                            .depth = h->exit_layer,
                                            .cancel = cancel};
    r->vocab = d->vocab;
    r->layers = h->exit_layer > 0 ? h->exit_layer : d->n_layers;
    r->width = d->width;
    if (!context_open(&r->context, e->ops, e->backend, h->model != NULL ? h->weights : e->weights, d, &options, err))
        return false;
    for (uint32_t i = 0; i < sequences; i++)
        r->seq[i] = context_sequence(r->context);
    return true;
}

void
reader_close(struct reader *r)
{
    context_close(r->context);
    *r = (struct reader){0};
}

/* tokens read */
static uint32_t
reader_length(const struct reader *r, uint32_t sequence)
{
    return context_length(r->context, r->seq[sequence]);
}

void
reader_forget(struct reader *r, uint32_t sequence, uint32_t length)
{
    if (length < reader_length(r, sequence))
        context_truncate(r->context, r->seq[sequence], length);
}

/* Appends a row for each of the next n tokens of a text. */
static bool
append(struct reader *r, const struct reader_text *t, uint32_t n, slot_t *rows)
{
    const uint32_t from = reader_length(r, t->sequence);
    for (uint32_t i = 0; i < n; i++)
        if ((rows[i] = context_append(r->context, r->seq[t->sequence], i > 0 ? rows[i - 1] : SLOT_NONE,
                                      t->tokens[from + i])) == SLOT_NONE)
            return false;
    return true;
}

/* Calls the callback for each row that was read. */
static bool
take(struct reader *r, const struct reader_text *t, const slot_t *rows, uint32_t n, reader_fn each)
{
    const uint32_t from = reader_length(r, t->sequence);
    if (!context_keep(r->context, r->seq[t->sequence], rows, n))
        return false;
    for (uint32_t i = 0; i < n && each != NULL; i++)
        if (!each(t->user, r, from + i, rows[i]))
            return false;
    return true;
}

bool
reader_read(struct reader *r, const struct reader_text *texts, size_t n, reader_fn each)
{
    for (;;) { /* a forward pass takes what fits of the first text, then of the next */
        slot_t rows[CHUNK];
        uint32_t n_rows = 0, first = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t from = reader_length(r, texts[i].sequence),
                           left = texts[i].to > from ? texts[i].to - from : 0,
                           more = left < CHUNK - n_rows ? left : CHUNK - n_rows;
            if (!append(r, &texts[i], more, rows + n_rows))
                return false;
            n_rows += more;
        }
        if (n_rows == 0)
            return true;
        if (!context_advance(r->context, rows, n_rows, r->layers, NULL))
            return false;
        for (size_t i = 0; i < n && first < n_rows; i++) {
            const uint32_t from = reader_length(r, texts[i].sequence),
                           left = texts[i].to > from ? texts[i].to - from : 0,
                           more = left < n_rows - first ? left : n_rows - first;
            if (more > 0 && !take(r, &texts[i], rows + first, more, each))
                return false;
            first += more;
        }
    }
}

bool
reader_logits(struct reader *r, slot_t slot, float *z)
{
    return context_read_logits(r->context, slot, r->layers, z);
}
