/* Opens and closes a context, and manages its sequences. Rows are in context_rows.c, requests to the backend in
 * context_forward.c and context_decide.c. */
#include "engine/context/context.h"

#include <inttypes.h>
#include <stdlib.h>

#include "engine/context/context_internal.h"
#include "kernels/request.h"

/* ---- opening ---- */

static uint32_t
or_default(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static bool
fill_limits(struct context_options *o, const struct context_options *asked, uint32_t prompt_rows, struct err *err)
{
    const struct kv_cache_desc usual = kv_cache_defaults(asked->ctx);
    *o = *asked;
    o->spare = or_default(o->spare, KV_CACHE_SPARE);
    o->ring = or_default(o->ring, usual.ring);
    o->seqs = or_default(o->seqs, usual.seqs);
    o->max_rows = or_default(o->max_rows, usual.max_rows);
    o->max_probes = or_default(o->max_probes, usual.max_probes);
    o->layer_load = o->layer_load > 0 ? o->layer_load : 1;
    o->head_load = o->head_load > 0 ? o->head_load : 1;
    if (o->ctx == 0)
        return err_set(err, ERR_USAGE, "a context needs room for at least one position: use -c N with N > 0");
    if ((uint64_t)o->ctx + o->spare >= SLOT_NONE)
        return err_set(err, ERR_USAGE, "a context of %" PRIu32 " positions is too large: use a smaller -c", o->ctx);
    if (o->ring < 2)
        return err_set(err, ERR_USAGE, "the ring of hidden states needs at least two rows, not %" PRIu32, o->ring);
    prompt_rows = prompt_rows < o->ctx ? prompt_rows : o->ctx;
    if (asked->max_rows == 0 && prompt_rows > o->max_rows) {
        o->ring += 2 * (prompt_rows - o->max_rows);
        o->max_rows = prompt_rows;
    }
    if (o->max_rows > o->ring / 2)
        o->max_rows = o->ring / 2; /* a chunk of a prompt must fit while the chunk before it is still in the ring */
    o->n_features = o->depth > 0 ? 0 : o->n_features;
    return true;
}

static bool
allocate(struct context *c, const struct model_desc *model)
{
    const struct context_options *o = &c->limits;
    struct blocks *b = &c->blocks;
    c->slots = blocks_take(b, c->n_slots, sizeof *c->slots);
    c->free = blocks_take(b, c->n_slots, sizeof *c->free);
    c->places = blocks_take(b, (size_t)o->ring + 1, sizeof *c->places);
    c->open = blocks_take(b, o->ring, sizeof *c->open);
    c->sequences = blocks_take(b, o->seqs, sizeof *c->sequences);
    c->trunks = blocks_take(b, (size_t)o->seqs * o->ctx, sizeof *c->trunks);
    c->rows = blocks_take(b, o->max_rows, sizeof *c->rows);
    c->tails = blocks_take(b, (size_t)o->max_rows * o->ring, sizeof *c->tails);
    c->prefill = blocks_take(b, o->max_rows, sizeof *c->prefill);
    c->probes = blocks_take(b, o->max_probes, sizeof *c->probes);
    c->nodes = blocks_take(b, (size_t)o->seqs * VERIFY_NODES, sizeof *c->nodes);
    c->rounds = blocks_take(b, o->seqs, sizeof *c->rounds);
    c->counted = blocks_take(b, c->n_layers + 1u, sizeof *c->counted);
    c->sets = blocks_take(b, (size_t)o->sets + 1, sizeof *c->sets);
    c->before = c->continues ? blocks_take(b, o->max_rows, sizeof *c->before) : NULL;
    context_features_open(c);
    context_experts_open(c, model);
    context_states_open(c, model);
    if (b->starved)
        return false;
    for (uint32_t i = 0; i < c->n_slots; i++)
        c->free[i] = c->n_slots - 1 - i; /* low slots first: the keys of a prompt are adjacent */
    c->n_free = c->n_slots;
    for (uint32_t i = 0; i <= o->ring; i++)
        c->places[i] = (struct place){SLOT_NONE, i, i};
    for (uint32_t i = 0; i < o->ring; i++)
        context_place_last(c, i);
    for (uint32_t i = 0; i < o->seqs; i++)
        c->sequences[i].trunk = c->trunks + (size_t)i * o->ctx;
    return true;
}

bool
context_open(struct context **out, const struct backend_ops *ops, struct backend *backend, struct weights *weights,
             const struct model_desc *model, const struct context_options *options, struct err *err)
{
    *out = NULL;
    struct context_options limits;
    if (!fill_limits(&limits, options, ops->prompt_rows, err))
        return false;
    if (limits.sets > 0 && ops->draft_set == NULL)
        return err_set(err, ERR_USAGE, "the %s backend has no draft vocabulary: set draft_vocab to 0", ops->name);
    if (limits.depth > model->n_layers)
        return err_set(err, ERR_USAGE, "there is no layer %" PRIu32 ": the model has %" PRIu32, limits.depth,
                       model->n_layers);
    struct context *c = calloc(1, sizeof *c);
    if (c == NULL)
        return err_set(err, ERR_WORK, "not enough memory to open a context: use a smaller -c");
    c->ops = ops;
    c->limits = limits;
    c->n_layers = model->n_layers;
    c->depth = limits.depth > 0 ? limits.depth : model->n_layers;
    c->vocab = model->vocab;
    c->width = model->width;
    c->feeds = model->drafter != NULL;
    c->drafts_blocks = c->feeds && model->drafter->block > 0;
    c->continues = c->feeds && !c->drafts_blocks;
    c->attends_after = c->drafts_blocks && !model->drafter->causal;
    c->markov_load = c->drafts_blocks ? (double)model->drafter->markov_w2.cols / model->width : 0;
    c->trained_load = limits.heads == HEAD_FULL ? 1 : (double)model->width / model->vocab;
    c->n_slots = limits.ctx + limits.spare;
    atomic_init(&c->never, false);
    if (!allocate(c, model)) {
        context_close(c);
        return err_set(err, ERR_WORK,
                       "not enough memory for the row tables of a context of %" PRIu32 " positions: use a smaller -c",
                       limits.ctx);
    }
    c->own_pool = limits.dists == NULL;
    if (c->own_pool && !dist_pool_open(&c->limits.dists, ops, backend, model->vocab, KV_CACHE_DISTS, err)) {
        context_close(c);
        return false;
    }
    c->pool = c->limits.dists;
    const struct kv_cache_desc desc = {.slots = c->n_slots,
                                       .ring = limits.ring,
                                       .seqs = limits.seqs,
                                       .trunk = limits.ctx,
                                       .max_rows = limits.max_rows,
                                       .max_probes = limits.max_probes,
                                       .states = c->n_states,
                                       .depth = limits.depth,
                                       .dists = c->pool->dists,
                                       .sets = limits.sets,
                                       .rank = limits.rank,
                                       .cancel = limits.cancel != NULL ? limits.cancel : &c->never};
    if (!ops->kv_cache(weights, &desc, &c->kv_cache, err)) {
        c->kv_cache = NULL;
        context_close(c);
        return false;
    }
    *out = c;
    return true;
}

void
context_close(struct context *c)
{
    if (c == NULL)
        return;
    if (c->kv_cache != NULL)
        c->ops->drop(c->kv_cache);
    if (c->own_pool)
        dist_pool_close(c->pool);
    else if (c->pool != NULL)
        dist_pool_forget(c->pool, c);
    blocks_free(&c->blocks);
    free(c);
}

const struct err *
context_error(const struct context *c)
{
    return &c->err;
}

void
context_clear_error(struct context *c)
{
    c->err.kind = ERR_NONE;
    c->err.text[0] = '\0';
}

const struct context_options *
context_limits(const struct context *c)
{
    return &c->limits;
}

/* ---- sequences ---- */

struct trunk *
context_trunk(struct context *c, seq_t seq)
{
    if (seq < c->limits.seqs && c->sequences[seq].used)
        return &c->sequences[seq];
    err_set(&c->err, ERR_WORK, "there is no sequence %" PRIu32, seq);
    return NULL;
}

/* Sets trunk[first..first+n) and lowers `sent` to the first changed entry. */
static void
context_write_trunk(struct trunk *q, uint32_t first, const slot_t *slots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (q->trunk[first + i] != slots[i]) {
            q->trunk[first + i] = slots[i];
            if (q->sent > first + i)
                q->sent = first + (uint32_t)i;
        }
}

seq_t
context_sequence(struct context *c)
{
    context_clear_error(c);
    for (seq_t i = 0; i < c->limits.seqs; i++)
        if (!c->sequences[i].used) {
            c->sequences[i].used = true;
            c->sequences[i].len = c->sequences[i].in_state = c->sequences[i].unneeded = 0;
            c->sequences[i].state = STATE_NONE;
            return i;
        }
    err_set(&c->err, ERR_WORK, "all %" PRIu32 " sequences are in use: drop one first", c->limits.seqs);
    return SEQ_NONE;
}

seq_t
context_fork(struct context *c, seq_t from, uint32_t len)
{
    context_clear_error(c);
    const struct trunk *old = context_trunk(c, from);
    if (old == NULL)
        return SEQ_NONE;
    if (len > old->len) {
        err_set(&c->err, ERR_WORK, "sequence %" PRIu32 " has %" PRIu32 " rows, a fork can't share %" PRIu32, from,
                old->len, len);
        return SEQ_NONE;
    }
    const seq_t fork = context_sequence(c);
    if (fork == SEQ_NONE)
        return SEQ_NONE;
    struct trunk *q = &c->sequences[fork];
    context_write_trunk(q, 0, old->trunk, len);
    q->len = len;
    q->unneeded = old->unneeded;
    for (uint32_t i = 0; i < len; i++)
        c->slots[q->trunk[i]].refs++;
    if (!context_state_share(c, q, old))
        context_state_rewind(c, q);
    if (q->in_state < len && !(context_flush(c) && context_state_settle(c, fork))) {
        context_drop(c, fork);
        return SEQ_NONE;
    }
    return fork;
}

void
context_truncate(struct context *c, seq_t seq, uint32_t len)
{
    context_clear_error(c);
    struct trunk *q = context_trunk(c, seq);
    if (q == NULL)
        return;
    if (len > q->len) {
        err_set(&c->err, ERR_WORK, "sequence %" PRIu32 " has %" PRIu32 " rows, it can't be cut to %" PRIu32, seq,
                q->len, len);
        return;
    }
    context_discard_unmarked(c, seq);
    if (q->len == len)
        return;
    while (q->len > len)
        context_release(c, q->trunk[--q->len]);
    context_state_rewind(c, q); /* the rows after the checkpoint run again when a row of the sequence does */
}

void
context_drop(struct context *c, seq_t seq)
{
    const struct err before = c->err;
    context_truncate(c, seq, 0);
    if (c->err.kind != ERR_NONE)
        return;
    context_state_release(c, &c->sequences[seq]);
    c->sequences[seq].used = false;
    c->err = before;
}

/* Does path lead from the trunk's end through rows of depth L? */
static bool
check_path(struct context *c, seq_t seq, const slot_t *path, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct slot *row = context_row(c, path[i]);
        if (row == NULL)
            return false;
        if (row->seq != seq || row->parent != (i == 0 ? SLOT_NONE : path[i - 1]))
            return err_set(&c->err, ERR_WORK,
                           "slot %" PRIu32
                           " can't be kept at place %zu: it is not an uncommitted child of the row before",
                           path[i], i);
        if (row->depth != c->depth)
            return err_set(&c->err, ERR_WORK,
                           "slot %" PRIu32 " can't be kept at depth %" PRIu32 ": advance it to %" PRIu32 " first",
                           path[i], row->depth, c->depth);
        if (row->planned && c->states != NULL)
            return err_set(&c->err, ERR_WORK,
                           "slot %" PRIu32 " can't be kept: it skipped sublayers, so its states are missing", path[i]);
    }
    return true;
}

bool
context_keep(struct context *c, seq_t seq, const slot_t *path, size_t n)
{
    context_clear_error(c);
    struct trunk *q = context_trunk(c, seq);
    if (q == NULL || !check_path(c, seq, path, n) || !context_features_keep(c, q, path, n))
        return false;
    const uint32_t before = q->len;
    if (!context_state_advance(c, q, path, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct slot *row = &c->slots[path[i]];
        context_place_last(c, row->ring);
        row->seq = SEQ_NONE;
        row->parent = SLOT_NONE;
    }
    context_write_trunk(q, q->len, path, n); /* fits: context_append() checked the positions against ctx */
    q->len += (uint32_t)n;
    uint32_t open = 0;
    for (uint32_t i = 0; i < c->n_open; i++)
        if (c->slots[c->open[i]].seq != SEQ_NONE)
            c->open[open++] = c->open[i];
    c->n_open = open;
    context_discard_unmarked(c, seq);
    context_state_committed(c, seq, before);
    return true;
}

uint32_t
context_length(const struct context *c, seq_t seq)
{
    return seq < c->limits.seqs && c->sequences[seq].used ? c->sequences[seq].len : 0;
}

slot_t
context_at(const struct context *c, seq_t seq, uint32_t pos)
{
    return pos < context_length(c, seq) ? c->sequences[seq].trunk[pos] : SLOT_NONE;
}
