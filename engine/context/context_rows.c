/* Slots, the hidden-state ring and the pool of distributions: allocates and frees them. */
#include <inttypes.h>
#include <stdlib.h>

#include "engine/context/context.h"
#include "engine/context/context_internal.h"

/* ---- the ring ---- */

static void
unlink_place(struct context *c, uint32_t i)
{
    struct place *p = &c->places[i];
    c->places[p->prev].next = p->next;
    c->places[p->next].prev = p->prev;
}

static void
link_place(struct context *c, uint32_t i, uint32_t prev, uint32_t next)
{
    c->places[i].prev = prev;
    c->places[i].next = next;
    c->places[prev].next = i;
    c->places[next].prev = i;
}

/* The two ends of the circle of ring places. */
static void
context_place_first(struct context *c, uint32_t i)
{
    link_place(c, i, c->limits.ring, c->places[c->limits.ring].next);
}

void
context_place_last(struct context *c, uint32_t i)
{
    link_place(c, i, c->places[c->limits.ring].prev, c->limits.ring);
}

/* Takes the first place of the circle from the row that has it. Returns RING_NONE if all rows with a place are
 * uncommitted. */
static uint32_t
take_place(struct context *c)
{
    const uint32_t i = c->places[c->limits.ring].next;
    if (i == c->limits.ring)
        return RING_NONE;
    if (c->places[i].slot != SLOT_NONE)
        c->slots[c->places[i].slot].ring = RING_NONE;
    unlink_place(c, i);
    return i;
}

uint32_t
context_place_take(struct context *c)
{
    return take_place(c);
}

void
context_place_return(struct context *c, uint32_t i)
{
    c->places[i].slot = SLOT_NONE;
    context_place_first(c, i);
}

uint32_t
context_places(const struct context *c)
{
    uint32_t n = 0;
    for (uint32_t i = c->places[c->limits.ring].next; i != c->limits.ring; i = c->places[i].next)
        n++;
    return n;
}

/* ---- slots ---- */

struct slot *
context_row(struct context *c, slot_t s)
{
    if (s < c->n_slots && c->slots[s].refs > 0)
        return &c->slots[s];
    err_set(&c->err, ERR_WORK, "slot %" PRIu32 " holds no row", s);
    return NULL;
}

void
context_release(struct context *c, slot_t s)
{
    struct slot *row = &c->slots[s];
    if (--row->refs > 0)
        return;
    context_checkpoint_drop(c, s);
    context_features_drop(c, row);
    if (row->ring != RING_NONE) {
        if (row->seq == SEQ_NONE)
            unlink_place(c, row->ring);
        c->places[row->ring].slot = SLOT_NONE;
        context_place_first(c, row->ring);
    }
    c->free[c->n_free++] = s;
}

void
context_discard_unmarked(struct context *c, seq_t seq)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n_open; i++) {
        const slot_t s = c->open[i];
        if (c->slots[s].seq == seq && !c->slots[s].marked)
            context_release(c, s);
        else
            c->open[kept++] = s;
        c->slots[s].marked = false;
    }
    c->n_open = kept;
}

slot_t
context_append(struct context *c, seq_t seq, slot_t parent, token_t token)
{
    context_clear_error(c);
    const struct trunk *q = context_trunk(c, seq);
    if (q == NULL)
        return SLOT_NONE;
    uint32_t pos = q->len;
    if (parent != SLOT_NONE && pos > 0 && parent == q->trunk[pos - 1])
        parent = SLOT_NONE;
    if (parent != SLOT_NONE) {
        const struct slot *up = context_row(c, parent);
        if (up == NULL)
            return SLOT_NONE;
        if (up->seq != seq) {
            err_set(&c->err, ERR_WORK,
                    "slot %" PRIu32 " can't be a parent in sequence %" PRIu32
                    ": it is neither the end of its trunk nor one of its uncommitted rows",
                    parent, seq);
            return SLOT_NONE;
        }
        pos = up->pos + 1;
    }
    if (token < 0 || (uint32_t)token >= c->vocab) {
        err_set(&c->err, ERR_WORK, "token %" PRId32 " is not in the vocabulary of %" PRIu32, token, c->vocab);
        return SLOT_NONE;
    }
    if (pos >= c->limits.ctx) {
        err_set(&c->err, ERR_WORK, "the context of %" PRIu32 " positions is full: use a larger -c", c->limits.ctx);
        return SLOT_NONE;
    }
    if (c->n_free == 0) {
        err_set(&c->err, ERR_WORK, "all %" PRIu32 " slots are in use: drop a sequence or use a larger -c", c->n_slots);
        return SLOT_NONE;
    }
    const uint32_t place = take_place(c);
    if (place == RING_NONE) {
        err_set(&c->err, ERR_WORK,
                "all %" PRIu32 " rows of the hidden-state ring are uncommitted: keep or discard some first",
                c->limits.ring);
        return SLOT_NONE;
    }
    const slot_t s = c->free[--c->n_free];
    c->slots[s] = (struct slot){.refs = 1,
                                .token = token,
                                .pos = pos,
                                .ring = place,
                                .seq = seq,
                                .parent = parent,
                                .embedding = EMBED_NO,
                                .features = FEATURES_NONE};
    c->places[place].slot = s;
    context_experts_forget(c, place);
    c->open[c->n_open++] = s;
    return s;
}

void
context_discard(struct context *c, slot_t s)
{
    context_clear_error(c);
    const struct slot *row = context_row(c, s);
    if (row == NULL)
        return;
    const seq_t seq = row->seq;
    if (seq == SEQ_NONE) {
        err_set(&c->err, ERR_WORK, "slot %" PRIu32 " is committed: truncate its sequence instead", s);
        return;
    }
    /* Mark the rows that remain. A parent comes before its children, so an unmarked parent is discarded. */
    for (uint32_t i = 0; i < c->n_open; i++) {
        struct slot *o = &c->slots[c->open[i]];
        o->marked = c->open[i] != s && (o->parent == SLOT_NONE || c->slots[o->parent].marked);
    }
    context_discard_unmarked(c, seq);
}

uint32_t
context_depth(const struct context *c, slot_t s)
{
    return s < c->n_slots && c->slots[s].refs > 0 ? c->slots[s].depth : 0;
}

uint32_t
context_position(const struct context *c, slot_t s)
{
    return s < c->n_slots && c->slots[s].refs > 0 ? c->slots[s].pos : 0;
}

token_t
context_token(const struct context *c, slot_t s)
{
    return s < c->n_slots && c->slots[s].refs > 0 ? c->slots[s].token : TOKEN_NONE;
}

bool
context_hidden_kept(const struct context *c, slot_t s)
{
    return s < c->n_slots && c->slots[s].refs > 0 && c->slots[s].ring != RING_NONE;
}

bool
dist_pool_open(struct dist_pool **out, const struct backend_ops *ops, struct backend *backend, uint32_t vocab,
               uint32_t n, struct err *err)
{
    *out = NULL;
    struct dist_pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    *p = (struct dist_pool){.ops = ops, .vocab = vocab, .n = n};
    p->maker = calloc(n, sizeof *p->maker);
    if (p->maker == NULL)
        err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    if (p->maker == NULL || !ops->dists(backend, vocab, n, &p->dists, err)) {
        p->dists = NULL;
        dist_pool_close(p);
        return false;
    }
    *out = p;
    return true;
}

void
dist_pool_close(struct dist_pool *p)
{
    if (p == NULL)
        return;
    if (p->dists != NULL)
        p->ops->drop_dists(p->dists);
    free(p->maker);
    free(p);
}

void
dist_pool_release(struct dist_pool *p)
{
    p->used = 0;
}

void
dist_pool_forget(struct dist_pool *p, const struct context *c)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->maker[i] == c)
            p->maker[i] = NULL;
}
