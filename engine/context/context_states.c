/* States of recurrent layers: which entry of the backend's state cache a sequence continues, and checkpoints to go back
 * to. A state is shared by all sequences and checkpoints that need it; a sequence that commits rows gets an own one. */
#include <inttypes.h>

#include "engine/context/context.h"
#include "engine/context/context_internal.h"

#define EVERY 256 /* rows between two checkpoints */

void
context_states_open(struct context *c, const struct model_desc *model)
{
    if (model->form.recurrent.value_heads == 0)
        return;
    c->n_states = c->limits.seqs + CONTEXT_CHECKPOINTS;
    c->states = blocks_take(&c->blocks, c->n_states, sizeof *c->states);
}

/* ---- references ---- */

static void
drop(struct context *c, uint32_t state)
{
    if (state != STATE_NONE)
        c->states[state]--;
}

void
context_checkpoint_drop(struct context *c, slot_t s)
{
    for (uint32_t i = 0; i < c->n_checkpoints; i++)
        if (c->checkpoints[i].slot == s) {
            drop(c, c->checkpoints[i].state);
            c->checkpoints[i] = c->checkpoints[--c->n_checkpoints];
            return;
        }
}

/* Drops the oldest checkpoint, one within a text if there is one. Their number never reaches that of the spare states,
 * so there is always one to drop. */
static void
drop_oldest(struct context *c)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < c->n_checkpoints; i++) {
        const struct checkpoint *a = &c->checkpoints[i], *b = &c->checkpoints[worst];
        if (a->lasting != b->lasting ? b->lasting : a->number < b->number)
            worst = i;
    }
    context_checkpoint_drop(c, c->checkpoints[worst].slot);
}

static uint32_t
take(struct context *c)
{
    uint32_t state = 0;
    while (state < c->n_states && c->states[state] > 0)
        state++;
    c->states[state]++;
    return state;
}

void
context_checkpoint(struct context *c, seq_t seq, bool lasting)
{
    const struct trunk *q = &c->sequences[seq];
    if (c->states == NULL || q->len == 0 || q->in_state != q->len)
        return;
    const slot_t s = q->trunk[q->len - 1];
    context_checkpoint_drop(c, s);
    if (c->n_checkpoints == CONTEXT_CHECKPOINTS)
        drop_oldest(c);
    c->states[q->state]++;
    c->checkpoints[c->n_checkpoints++] =
        (struct checkpoint){.slot = s, .state = q->state, .lasting = lasting, .number = c->n_made++};
}

/* ---- states of sequences ---- */

void
context_state_release(struct context *c, struct trunk *q)
{
    if (c->states == NULL)
        return;
    drop(c, q->state);
    q->state = STATE_NONE;
    q->in_state = 0;
}

/* The state after the last checkpoint of the trunk, or the one before the first row. */
void
context_state_rewind(struct context *c, struct trunk *q)
{
    const struct checkpoint *best = NULL;
    if (c->states == NULL)
        return;
    context_state_release(c, q);
    for (uint32_t i = 0; i < c->n_checkpoints; i++) {
        const uint32_t len = c->slots[c->checkpoints[i].slot].pos + 1;
        if (len <= q->len && len > q->in_state && q->trunk[len - 1] == c->checkpoints[i].slot) {
            best = &c->checkpoints[i];
            q->in_state = len;
        }
    }
    if (best == NULL)
        return;
    q->state = best->state;
    c->states[q->state]++;
}

bool
context_state_share(struct context *c, struct trunk *fork, const struct trunk *from)
{
    if (c->states == NULL || from->in_state != from->len || from->len != fork->len)
        return false;
    fork->state = from->state;
    fork->in_state = from->len;
    if (fork->state != STATE_NONE)
        c->states[fork->state]++;
    return true;
}

bool
context_state_advance(struct context *c, struct trunk *q, const slot_t *rows, size_t n)
{
    if (c->states == NULL || n == 0)
        return true;
    const uint32_t from = q->state;
    if (from == STATE_NONE || c->states[from] > 1)
        q->state = take(c);
    if (!c->ops->advance(c->kv_cache, q->state, from, rows, n))
        return context_refused(c, "advance a state");
    if (q->state != from)
        drop(c, from);
    q->in_state += (uint32_t)n;
    return true;
}

/* An empty state, for rows at the start of a sequence. */
static bool
begin(struct context *c, struct trunk *q)
{
    if (q->state != STATE_NONE)
        return true;
    q->state = take(c);
    return c->ops->advance(c->kv_cache, q->state, STATE_NONE, NULL, 0) || context_refused(c, "begin a state");
}

/* Runs the next rows of the trunk again, in places of the ring that are returned afterwards, and advances the state. */
static bool
run_again(struct context *c, seq_t seq, size_t n)
{
    struct trunk *q = &c->sequences[seq];
    const slot_t *slots = q->trunk + q->in_state;
    for (size_t i = 0; i < n; i++)
        c->rows[i] = (struct row){.token = c->slots[slots[i]].token,
                                  .slot = slots[i],
                                  .ring = context_place_take(c),
                                  .seq = seq,
                                  .n_trunk = q->in_state,
                                  .n_tail = (uint32_t)i + 1,
                                  .state = q->state};
    const struct forward_pass w = {.rows = c->rows, .n = n, .tails = slots, .n_tails = n, .to = c->depth};
    const bool ok = (c->ops->embed(c->kv_cache, c->rows, n) && c->ops->step(c->kv_cache, &w)) ||
                    context_refused(c, "run rows again");
    const bool done = ok && context_wait(c) && context_state_advance(c, q, slots, n);
    for (size_t i = 0; i < n; i++)
        context_place_return(c, c->rows[i].ring);
    return done;
}

bool
context_state_settle(struct context *c, seq_t seq)
{
    struct trunk *q = &c->sequences[seq];
    if (c->states == NULL)
        return true;
    if (!begin(c, q))
        return false;
    while (q->in_state < q->len) {
        const uint32_t left = q->len - q->in_state, most = context_places(c);
        const uint32_t n = left < c->limits.max_rows ? left : c->limits.max_rows;
        if (most == 0)
            return err_set(&c->err, ERR_WORK,
                           "all %" PRIu32 " rows of the hidden-state ring are uncommitted: keep or discard some first",
                           c->limits.ring);
        if (!run_again(c, seq, n < most ? n : most))
            return false;
    }
    return true;
}

void
context_state_committed(struct context *c, seq_t seq, uint32_t before)
{
    if (c->sequences[seq].len / EVERY > before / EVERY)
        context_checkpoint(c, seq, false);
}
