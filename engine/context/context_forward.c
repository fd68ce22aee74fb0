/* Requests of a context to the backend, part one: tables and embeddings that must be queued before a computation, and
 * forward passes. Checks every precondition before a forward pass is queued; depths and loads change after it is
 * done. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/context/context.h"
#include "engine/context/context_internal.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

/* Layers of experts: their loads, and the recorded routes. A layer read for one row is one load, as any layer is: its
 * weights outside the experts, and as many experts as a row is routed to. Other rows of the call may use further
 * experts, which are read, too. */

static double
bytes_of(const struct tensor *t)
{
    return tensor_present(t) ? (double)t->rows * (double)tensor_row_bytes(t->type, t->cols) : 0;
}

static double
expert_bytes(const struct expert_desc *e)
{
    double bytes = 0;
    for (enum expert_tensor i = 0; i < EXPERT_TENSORS; i++)
        bytes += bytes_of(&e->all[i]);
    return bytes;
}

/* Returns the size of an expert as a share of the bytes that one row reads of a layer. */
static double
share_of(const struct model_desc *d, const struct layer_desc *layer)
{
    const struct experts_form *f = &d->form.experts;
    if (layer->experts == NULL)
        return 0;
    const double one = expert_bytes(&layer->experts[0]);
    double rest = f->shared_ffn > 0 ? expert_bytes(&layer->experts[f->n]) : 0;
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        rest += bytes_of(&layer->all[i]);
    return one / (rest + f->used * one);
}

void
context_experts_open(struct context *c, const struct model_desc *model)
{
    if (model->form.experts.n == 0)
        return;
    const size_t each = (model->n_layers + 1u) * (size_t)model->form.experts.used;
    c->touched = blocks_take(&c->blocks, model->n_layers + 1u, sizeof *c->touched);
    c->expert_share = blocks_take(&c->blocks, model->n_layers + 1u, sizeof *c->expert_share);
    c->routes = blocks_take(&c->blocks, c->limits.max_rows * each, sizeof *c->routes);
    c->kept = blocks_take(&c->blocks, c->limits.ring * each, sizeof *c->kept);
    c->experts_used = model->form.experts.used;
    for (uint32_t l = 1; l <= model->n_layers && c->expert_share != NULL; l++)
        c->expert_share[l] = share_of(model, &model->layers[l - 1]);
}

/* Clears the counts of experts before a forward pass. */
static void
context_experts_begin(struct context *c)
{
    if (c->touched != NULL)
        memset(c->touched, 0, (c->n_layers + 1u) * sizeof *c->touched);
}

/* Returns the loads of the last forward pass's layer above 1, for the experts that it read in addition to those of one
 * row. */
static double
context_experts_load(const struct context *c, uint32_t layer)
{
    if (c->touched == NULL || c->touched[layer] == 0)
        return 0;
    return c->expert_share[layer] * ((double)c->touched[layer] - c->experts_used);
}

double
context_experts_touched(const struct context *c)
{
    uint64_t touched = 0;
    uint32_t layers = 0;
    for (uint32_t l = 1; c->touched != NULL && l <= c->n_layers; l++) {
        touched += c->touched[l];
        layers += c->touched[l] > 0;
    }
    return layers > 0 ? (double)touched / layers : NAN;
}

/* ---- routes ---- */

static size_t
entries(const struct context *c) /* routes of a row */
{
    return (c->n_layers + 1u) * (size_t)c->experts_used;
}

static void
forget(const struct context *c, struct route *routes, size_t rows)
{
    for (size_t i = 0; i < rows * entries(c); i++)
        routes[i] = (struct route){.expert = EXPERT_NONE};
}

void
context_follow_experts(struct context *c, bool follow)
{
    if (c->kept != NULL && follow && !c->follows_experts)
        forget(c, c->kept, c->limits.ring);
    c->follows_experts = c->kept != NULL && follow;
}

void
context_experts_forget(struct context *c, uint32_t place)
{
    if (c->follows_experts)
        forget(c, c->kept + place * entries(c), 1);
}

/* Lets a forward pass record routes, if they are followed. context_experts_keep() copies them when the rows have
 * reached the new depth. */
static void
context_experts_ask(struct context *c, struct forward_pass *w)
{
    if (!c->follows_experts)
        return;
    forget(c, c->routes, w->n); /* an entry that the backend does not write remains EXPERT_NONE */
    w->routes = c->routes;
}

static void
context_experts_keep(struct context *c, const struct forward_pass *w, uint32_t depth)
{
    for (size_t i = 0; w->routes != NULL && i < w->n; i++) {
        const struct row *row = &w->rows[i];
        if (row->from >= depth)
            continue;
        const size_t first = (row->from + 1) * (size_t)c->experts_used, n = (depth - row->from) * c->experts_used;
        memcpy(c->kept + row->ring * entries(c) + first, w->routes + i * entries(c) + first, n * sizeof *c->kept);
    }
}

static int
by_weight(const void *a, const void *b)
{
    const struct route *x = a, *y = b;
    if (x->weight > y->weight || x->weight < y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->expert < y->expert ? -1 : x->expert > y->expert;
}

uint32_t
context_experts(const struct context *c, slot_t slot, uint32_t layer, struct route *out, uint32_t n)
{
    struct route all[EXPERTS_USED_MOST];
    const struct slot *row = slot < c->n_slots ? &c->slots[slot] : NULL;
    if (!c->follows_experts || row == NULL || row->refs == 0 || row->ring == RING_NONE || layer < 1 ||
        layer > row->depth)
        return 0;
    memcpy(all, c->kept + row->ring * entries(c) + layer * (size_t)c->experts_used, c->experts_used * sizeof *all);
    if (all[0].expert == EXPERT_NONE)
        return 0;
    qsort(all, c->experts_used, sizeof *all, by_weight);
    n = n < c->experts_used ? n : c->experts_used;
    memcpy(out, all, n * sizeof *out);
    return n;
}

/* ---- the queue ---- */

bool
context_wait(struct context *c)
{
    const bool ok = c->ops->wait(c->kv_cache, &c->err);
    if (!ok && c->err.kind == ERR_NONE)
        err_set(&c->err, ERR_WORK, "the %s backend failed and did not say why", c->ops->name);
    c->making = false;
    if (!ok)
        for (seq_t i = 0; i < c->limits.seqs; i++)
            c->sequences[i].sent = 0;
    for (uint32_t i = 0; i < c->n_open; i++) {
        struct slot *row = &c->slots[c->open[i]];
        if (row->embedding == EMBED_QUEUED)
            row->embedding = ok ? EMBED_DONE : EMBED_NO;
    }
    return ok;
}

bool
context_refused(struct context *c, const char *what)
{
    (void)context_wait(c); /* parts of the request may be queued, with pointers into the caller's memory */
    return err_set(&c->err, ERR_WORK, "the %s backend refused to %s: a limit of this context is too small for it",
                   c->ops->name, what);
}

/* Returns the ring entry of the row before an uncommitted one, if that has run; else RING_NONE. */
static uint32_t
ring_before(const struct context *c, const struct slot *row)
{
    const struct trunk *q = &c->sequences[row->seq];
    if (row->parent == SLOT_NONE && q->len == 0)
        return RING_NONE;
    const struct slot *before = &c->slots[row->parent != SLOT_NONE ? row->parent : q->trunk[q->len - 1]];
    return before->depth == c->depth ? before->ring : RING_NONE;
}

/* Rows of a drafter continue the rows before them, unless it is a block drafter. */
static bool
embed(struct context *c, size_t n)
{
    if (n > 0 && !(c->continues ? c->ops->feed(c->kv_cache, c->rows, n, NULL, c->before)
                                : c->ops->embed(c->kv_cache, c->rows, n)))
        return context_refused(c, "embed new rows");
    c->loads.layers += n > 0 && c->continues ? c->limits.refeed_load : 0;
    for (size_t i = 0; i < n; i++)
        c->slots[c->rows[i].slot].embedding = EMBED_QUEUED;
    return true;
}

bool
context_flush(struct context *c)
{
    for (seq_t i = 0; i < c->limits.seqs; i++) {
        struct trunk *q = &c->sequences[i];
        if (!q->used || q->sent >= q->len)
            continue;
        if (!c->ops->trunk(c->kv_cache, i, q->sent, q->trunk + q->sent, q->len - q->sent))
            return context_refused(c, "take a trunk table");
        q->sent = q->len;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < c->n_open; i++) {
        const struct slot *row = &c->slots[c->open[i]];
        const uint32_t before = c->continues && row->embedding == EMBED_NO ? ring_before(c, row) : RING_NONE;
        if (row->embedding != EMBED_NO || (c->continues && before == RING_NONE))
            continue;
        if (n == c->limits.max_rows) {
            if (!embed(c, n))
                return false;
            n = 0;
        }
        if (c->continues)
            c->before[n] = before;
        c->rows[n++] = (struct row){
            .token = row->token, .slot = c->open[i], .ring = row->ring, .seq = row->seq, .n_trunk = row->pos + 1};
    }
    return embed(c, n);
}

/* ---- drafters ---- */

/* Checks a row that is to be fed. In a block drafter it reaches the full depth, so its parent must have done so, or be
 * before it in the call, where rows are marked. */
static bool
check_fed(struct context *c, slot_t s, const struct slot *row)
{
    if (row == NULL)
        return false;
    if (row->depth > 0 || row->ring == RING_NONE || row->marked)
        return err_set(&c->err, ERR_WORK, "slot %" PRIu32 " can't be fed: it has run already", s);
    return !c->drafts_blocks || row->parent == SLOT_NONE || c->slots[row->parent].marked ||
           c->slots[row->parent].depth == c->depth ||
           err_set(&c->err, ERR_WORK, "slot %" PRIu32 " can't be fed: its parent %" PRIu32 " is not complete", s,
                   row->parent);
}

bool
context_feed(struct context *c, const slot_t *slots, size_t n, const float *features)
{
    bool ok = true;
    size_t n_rows = 0;
    context_clear_error(c);
    if (!c->feeds || n > c->limits.max_rows)
        return err_set(&c->err, ERR_WORK, "%zu rows cannot be fed at a time, or this model takes no features", n);
    for (; n_rows < n && ok; n_rows += ok) {
        struct slot *row = context_row(c, slots[n_rows]);
        ok = check_fed(c, slots[n_rows], row);
        if (ok) {
            row->marked = true;
            c->rows[n_rows] = (struct row){.token = row->token,
                                           .slot = slots[n_rows],
                                           .ring = row->ring,
                                           .seq = row->seq,
                                           .n_trunk = row->pos + 1};
        }
    }
    for (size_t i = 0; i < n_rows; i++)
        c->slots[slots[i]].marked = false;
    if (!ok)
        return false;
    if (!c->ops->feed(c->kv_cache, c->rows, n, features, NULL))
        return context_refused(c, "feed rows");
    if (!context_wait(c))
        return false;
    for (size_t i = 0; i < n; i++) {
        c->slots[slots[i]].embedding = c->drafts_blocks ? EMBED_NONE : EMBED_DONE;
        c->slots[slots[i]].depth = c->drafts_blocks ? c->depth : 0;
    }
    c->loads.layers += c->limits.feed_load;
    return true;
}

/* ---- forward passes ---- */

/* Adds an uncommitted row to the forward pass. A row directly after its parent extends the parent's tail in place, so
 * a chain of n rows needs n entries and not n²/2. */
static void
add_row(struct context *c, struct forward_pass *w, slot_t s)
{
    const struct slot *row = &c->slots[s];
    const uint32_t n_trunk = c->sequences[row->seq].len, n_tail = row->pos + 1 - n_trunk;
    const struct row *last = w->n > 0 ? &c->rows[w->n - 1] : NULL;
    uint32_t tail = (uint32_t)w->n_tails;
    if (last != NULL && last->slot == row->parent) {
        tail = last->tail;
        c->tails[w->n_tails++] = s;
    } else {
        slot_t up = s;
        for (uint32_t i = n_tail; i-- > 0; up = c->slots[up].parent)
            c->tails[tail + i] = up;
        w->n_tails += n_tail;
    }
    c->rows[w->n++] = (struct row){.token = row->token,
                                   .slot = s,
                                   .ring = row->ring,
                                   .seq = row->seq,
                                   .n_trunk = n_trunk,
                                   .tail = tail,
                                   .n_tail = n_tail,
                                   .from = row->depth,
                                   .state = c->states != NULL ? c->sequences[row->seq].state : 0};
}

/* Checks that the row, next in the call, may advance to layer `to`. Rows already in the forward pass are marked.
 * Checking the parent is enough: a parent is never shallower than its children. */
static bool
check_row(struct context *c, const struct forward_pass *w, slot_t s, const struct slot *row)
{
    if (row->marked)
        return err_set(&c->err, ERR_WORK, "slot %" PRIu32 " is listed twice in one forward pass", s);
    const uint32_t most = c->limits.max_rows;
    if (w->n == most)
        return err_set(&c->err, ERR_WORK,
                       "one forward pass takes %" PRIu32 " rows at most: advance the rest in another", most);
    if (row->parent != SLOT_NONE && c->slots[row->parent].depth < w->to && !c->slots[row->parent].marked)
        return err_set(&c->err, ERR_WORK,
                       "slot %" PRIu32 " can't go to layer %" PRIu32 ": its parent %" PRIu32 " is at %" PRIu32
                       " and not before it in the call",
                       s, w->to, row->parent, c->slots[row->parent].depth);
    return true;
}

/* Fills the forward pass with the slots whose depth is below `to`. */
static bool
gather(struct context *c, const slot_t *slots, size_t n, uint32_t to, struct forward_pass *w)
{
    *w = (struct forward_pass){.rows = c->rows, .tails = c->tails, .to = to, .touched = c->touched};
    context_experts_begin(c);
    if (to > c->depth)
        return err_set(&c->err, ERR_WORK, "there is no layer %" PRIu32 ": the model has %" PRIu32, to, c->depth);
    bool ok = true;
    for (size_t i = 0; i < n && ok && c->states != NULL; i++) {
        const struct slot *row = context_row(c, slots[i]);
        ok = row != NULL && (row->depth >= to || context_state_settle(c, row->seq));
    }
    for (size_t i = 0; i < n && ok; i++) {
        struct slot *row = context_row(c, slots[i]);
        if (row == NULL) {
            ok = false;
        } else if (c->feeds && row->embedding == EMBED_NO) {
            ok = err_set(&c->err, ERR_WORK, "slot %" PRIu32 " can't be advanced: it was not fed", slots[i]);
        } else if (row->depth < to) { /* committed rows are at the full depth, so this row is uncommitted */
            ok = check_row(c, w, slots[i], row);
            if (ok) {
                add_row(c, w, slots[i]);
                row->marked = true;
            }
        }
    }
    for (size_t i = 0; i < w->n; i++)
        c->slots[c->rows[i].slot].marked = false;
    for (size_t i = w->n; c->attends_after && i-- > 1;) /* rows of a chain share its tail */
        if (c->rows[i - 1].tail == c->rows[i].tail)
            c->rows[i - 1].n_after = c->rows[i].n_after + 1;
    return ok;
}

/* Adds the loads of layers from+1..to, each read once, with the experts that rows used. A skipped sublayer counts half
 * a layer less. */
static void
count_layers(struct context *c, const struct forward_pass *w, uint32_t to)
{
    uint32_t from = to;
    for (size_t i = 0; i < w->n; i++)
        if (w->rows[i].from < from)
            from = w->rows[i].from;
    for (uint32_t l = from + 1; l <= to; l++) {
        c->loads.layers += 1 + context_experts_load(c, l);
        if (w->skip_attention != NULL && w->skip_attention[l])
            c->loads.layers -= 0.5;
        if (w->skip_mlp != NULL && w->skip_mlp[l])
            c->loads.layers -= 0.5;
    }
}

static void
set_depths(struct context *c, const struct forward_pass *w, uint32_t depth)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->rows[i].from < depth)
            c->slots[w->rows[i].slot].depth = depth;
}

static bool
advance(struct context *c, const slot_t *slots, size_t n, uint32_t to, const struct plan *plan, bool reads_text)
{
    context_clear_error(c);
    struct forward_pass w;
    if (!context_flush(c) || !gather(c, slots, n, to, &w))
        return false;
    if (w.n == 0)
        return true;
    if (!reads_text)
        context_experts_ask(c, &w);
    if (plan != NULL) {
        w.skip_attention = plan->skip_attention;
        w.skip_mlp = plan->skip_mlp;
        for (size_t i = 0; i < w.n; i++)
            c->slots[c->rows[i].slot].planned |= plan->skip_attention != NULL || plan->skip_mlp != NULL;
    }
    if (!c->ops->step(c->kv_cache, &w))
        return context_refused(c, "advance rows");
    if (!context_wait(c))
        return false;
    set_depths(c, &w, to);
    context_experts_keep(c, &w, to);
    count_layers(c, &w, to);
    return true;
}

bool
context_advance(struct context *c, const slot_t *slots, size_t n, uint32_t to, const struct plan *plan)
{
    return advance(c, slots, n, to, plan, false);
}

bool
context_advance_until(struct context *c, const slot_t *slots, size_t n, uint32_t to, const struct exit_rule *rule,
                      struct exit_result *result)
{
    context_clear_error(c);
    struct forward_pass w;
    if (!context_flush(c) || !gather(c, slots, n, to, &w))
        return false;
    if (w.n == 0 || c->rows[w.n - 1].slot != slots[n - 1])
        return err_set(&c->err, ERR_WORK, "the deciding row, the last one, is already at layer %" PRIu32, to);
    for (size_t i = 0; i + 1 < w.n; i++)
        if (c->rows[i].from < c->rows[w.n - 1].from)
            return err_set(&c->err, ERR_WORK,
                           "slot %" PRIu32 " at depth %" PRIu32 " can't be carried along: the deciding row is deeper",
                           c->rows[i].slot, c->rows[i].from);
    context_experts_ask(c, &w);
    if (!c->ops->until(c->kv_cache, &w, rule, result))
        return context_refused(c, "advance rows until they exit");
    if (!context_wait(c))
        return false;
    set_depths(c, &w, result->depth);
    context_experts_keep(c, &w, result->depth);
    count_layers(c, &w, result->depth);
    for (uint32_t l = w.rows[w.n - 1].from + 1; l <= result->depth; l++)
        if (rule->threshold[l] <= 1)
            context_count_probe(c, l, rule);
    return true;
}

/* Appends, advances and commits the next rows of a trunk. */
static bool
read_chunk(struct context *c, seq_t seq, const token_t *tokens, size_t n)
{
    slot_t *const path = c->prefill;
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        path[i] = context_append(c, seq, i > 0 ? path[i - 1] : SLOT_NONE, tokens[i]);
        ok = path[i] != SLOT_NONE;
    }
    return ok && advance(c, path, n, c->depth, NULL, true) && context_keep(c, seq, path, n);
}

static bool
read_chunks(struct context *c, seq_t seq, const token_t *tokens, size_t n, progress_fn done, void *user)
{
    const size_t most = c->limits.max_rows;
    const struct trunk *q = context_trunk(c, seq);
    if (q == NULL)
        return false;
    if (n > c->limits.ctx - q->len)
        return err_set(&c->err, ERR_WORK,
                       "%zu tokens do not fit behind %" PRIu32 " in a context of %" PRIu32 ": use a larger -c", n,
                       q->len, c->limits.ctx);
    context_truncate(c, seq, q->len);
    for (size_t at = 0; at < n;) {
        const size_t chunk = n - at < most ? n - at : most;
        if (!read_chunk(c, seq, tokens + at, chunk)) {
            const struct err why = c->err;
            context_truncate(c, seq, q->len);
            c->err = why;
            return false;
        }
        at += chunk;
        if (done != NULL && !done(user, (double)at / (double)n) && at < n)
            return err_set(&c->err, ERR_CANCELLED, "cancelled after %zu of %zu tokens", at, n);
    }
    return true;
}

bool
context_prefill(struct context *c, seq_t seq, const token_t *tokens, size_t n, progress_fn done, void *user)
{
    context_clear_error(c);
    return read_chunks(c, seq, tokens, n, done, user);
}

bool
context_prompt(struct context *c, seq_t seq, const token_t *tokens, size_t n, progress_fn done, void *user)
{
    context_truncate(c, seq, 0);
    if (c->err.kind != ERR_NONE)
        return false;
    if (!context_wait(c)) { /* a cancelled run may have left requests in the queue that were not waited for */
        if (c->err.kind != ERR_CANCELLED)
            return false;
        context_clear_error(c);
    }
    if (!read_chunks(c, seq, tokens, n, done, user))
        return false;
    context_checkpoint(c, seq, true);
    return true;
}
