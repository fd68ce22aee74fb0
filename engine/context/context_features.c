/* Features: hidden states of committed rows that are copied for feature drafters. They are in a pool that grows by
 * chunks, and a row's place there is free again when no drafter needs it. */

#include "engine/context/context.h"
#include "engine/context/context_internal.h"

void
context_features_open(struct context *c)
{
    struct features *f = &c->features;
    if (c->limits.n_features == 0)
        return;
    f->chunk = blocks_take(&c->blocks, c->n_slots / FEATURES_CHUNK + 1, sizeof *f->chunk);
    f->free = blocks_take(&c->blocks, (size_t)c->n_slots + FEATURES_CHUNK, sizeof *f->free);
}

static float *
at(const struct context *c, uint32_t place)
{
    return c->features.chunk[place / FEATURES_CHUNK] +
           (size_t)(place % FEATURES_CHUNK) * c->limits.n_features * c->width;
}

/* Gives a row a place. There are never more places than slots, rounded up to chunks. */
static bool
take(struct context *c, struct slot *row)
{
    struct features *f = &c->features;
    if (f->n_free == 0) {
        float *more = blocks_take(&c->blocks, (size_t)FEATURES_CHUNK * c->limits.n_features * c->width, sizeof *more);
        if (more == NULL)
            return err_set(&c->err, ERR_WORK, "not enough memory for the features of %u rows",
                           (f->n_chunks + 1) * FEATURES_CHUNK);
        for (uint32_t i = FEATURES_CHUNK; i > 0; i--)
            f->free[f->n_free++] = f->n_chunks * FEATURES_CHUNK + i - 1;
        f->chunk[f->n_chunks++] = more;
    }
    row->features = f->free[--f->n_free];
    return true;
}

void
context_features_drop(struct context *c, struct slot *row)
{
    if (row->features != FEATURES_NONE)
        c->features.free[c->features.n_free++] = row->features;
    row->features = FEATURES_NONE;
}

bool
context_features_keep(struct context *c, const struct trunk *q, const slot_t *path, size_t n)
{
    const uint32_t each = c->limits.n_features;
    bool any = false;
    for (size_t i = 0; i < n && each > 0; i++) {
        struct slot *row = &c->slots[path[i]];
        if (row->pos < q->unneeded)
            continue;
        any = true;
        if (row->features == FEATURES_NONE && !take(c, row))
            return false;
        for (uint32_t k = 0; k < each; k++)
            if (!c->ops->read_hidden(c->kv_cache, row->ring, c->limits.features[k],
                                     at(c, row->features) + (size_t)k * c->width))
                return context_refused(c, "copy features");
    }
    return !any || context_wait(c);
}

const float *
context_features(const struct context *c, slot_t s)
{
    return c->slots[s].features == FEATURES_NONE ? NULL : at(c, c->slots[s].features);
}

void
context_features_need(struct context *c, seq_t seq, uint32_t pos)
{
    struct trunk *q = &c->sequences[seq];
    for (uint32_t i = q->unneeded; i < pos && i < q->len; i++)
        context_features_drop(c, &c->slots[q->trunk[i]]);
    q->unneeded = pos;
}
