#include "kernels/cpu/recurrent.h"

#include <math.h>

#include "kernels/cpu/forward.h"

#define LENGTH_EPS 1e-6f /* added to the square of the length of q and k */

static size_t
padded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static const struct recurrent_form *
form_of(const struct kv_cache *s)
{
    return &s->weights->desc.form.recurrent;
}

/* ---- memory ---- */

static void
take_tables(struct kv_cache *s)
{
    struct state_cache *c = &s->state;
    const struct kv_cache_desc *d = &s->desc;
    const size_t threads = s->weights->backend->threads, block = (size_t)c->key_dim * STATE_COLS;
    c->levels = 2;
    while ((size_t)1 << (c->levels - 1) < d->ring)
        c->levels++;
    c->ring_of = blocks_take(&s->blocks, d->slots, sizeof *c->ring_of);
    c->length = blocks_take(&s->blocks, d->states, sizeof *c->length);
    c->pending = blocks_take(&s->blocks, (size_t)d->states * d->ring, sizeof *c->pending);
    c->n_pending = blocks_take(&s->blocks, d->states, sizeof *c->n_pending);
    c->applied = blocks_take(&s->blocks, (size_t)d->states * c->layers, sizeof *c->applied);
    c->copies = blocks_take(&s->blocks, threads * c->levels, block * sizeof *c->copies);
    c->nodes = blocks_take(&s->blocks, d->ring, sizeof *c->nodes);
    c->node_of = blocks_take(&s->blocks, d->ring, sizeof *c->node_of);
    c->steps = blocks_take(&s->blocks, d->ring, sizeof *c->steps);
    c->waiting = blocks_take(&s->blocks, d->ring, sizeof *c->waiting);
    c->taps = blocks_take(&s->blocks, d->max_rows, sizeof *c->taps);
    c->groups = blocks_take(&s->blocks, d->max_rows, sizeof *c->groups);
}

static void
take_numbers(struct kv_cache *s)
{
    struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const size_t n = s->desc.max_rows, values = recurrent_values(f);
    c->states = blocks_take(&s->blocks, (size_t)s->desc.states * c->layers, c->state * sizeof *c->states);
    c->windows = blocks_take(&s->blocks, (size_t)s->desc.states * c->layers, c->window * sizeof *c->windows);
    c->inputs = blocks_take(&s->blocks, (size_t)s->desc.ring * c->layers, c->input * sizeof *c->inputs);
    c->x = blocks_take(&s->blocks, n * recurrent_channels(f), sizeof *c->x);
    c->z = blocks_take(&s->blocks, n * values, sizeof *c->z);
    c->a = blocks_take(&s->blocks, n * f->value_heads, sizeof *c->a);
    c->b = blocks_take(&s->blocks, n * LAYER_RB(&s->weights->desc), sizeof *c->b);
    c->q = blocks_take(&s->blocks, n * f->key_heads * c->key_dim, sizeof *c->q);
    c->o = blocks_take(&s->blocks, n * f->value_heads * c->value_dim, sizeof *c->o);
    c->q_scale = blocks_take(&s->blocks, f->key_dim, sizeof *c->q_scale);
    c->k_scale = blocks_take(&s->blocks, f->key_dim, sizeof *c->k_scale);
}

bool
recurrent_open(struct kv_cache *s)
{
    struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    if (f->value_heads == 0)
        return true;
    c->index = blocks_take(&s->blocks, s->weights->desc.n_layers + 1u, sizeof *c->index);
    if (c->index == NULL)
        return false;
    for (uint32_t l = 1; l <= request_depth(&s->weights->desc, &s->desc); l++)
        if (s->weights->layer_forms[l].kind == LAYER_RECURRENT)
            c->index[l] = c->layers++;
    c->key_dim = (uint32_t)padded(f->key_dim, STATE_ROWS);
    c->value_dim = (uint32_t)padded(f->value_dim, STATE_COLS);
    c->state = (size_t)f->value_heads * c->key_dim * c->value_dim;
    c->window = (size_t)(f->taps - 1) * recurrent_channels(f);
    c->input = recurrent_channels(f);
    if (c->state > 0)
        c->input += (size_t)f->key_heads * c->key_dim + (size_t)f->value_heads * (c->value_dim + 2);
    take_tables(s);
    take_numbers(s);
    if (s->blocks.starved)
        return false;
    for (uint32_t i = 0; i < f->key_dim; i++) {
        c->k_scale[i] = 1 / sqrtf((float)f->key_dim);
        c->q_scale[i] = 1 / (float)f->key_dim;
    }
    for (uint32_t i = 0; i < s->desc.ring; i++)
        c->node_of[i] = -1;
    return true;
}

/* ---- places ---- */

/* The inputs of an update: channels before the convolution, and if there is a state k (key_heads, key_dim), v
 * (value_heads, value_dim), and a decay and a beta for each value head. */
struct update {
    float *x, *k, *v, *decay, *beta;
};

static struct update
update_at(const struct kv_cache *s, uint32_t ring, uint32_t layer)
{
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    float *x = c->inputs + ((size_t)ring * c->layers + layer) * c->input, *k = x + recurrent_channels(f);
    if (c->state == 0)
        return (struct update){.x = x};
    float *v = k + (size_t)f->key_heads * c->key_dim, *decay = v + (size_t)f->value_heads * c->value_dim;
    return (struct update){x, k, v, decay, decay + f->value_heads};
}

static float *
state_at(const struct state_cache *c, uint32_t state, uint32_t layer)
{
    return c->states + ((size_t)state * c->layers + layer) * c->state;
}

/* Returns the inputs of the convolution at a committed position. */
static float *
window_at(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t position)
{
    const struct recurrent_form *f = form_of(s);
    const struct state_cache *c = &s->state;
    return c->windows + ((size_t)state * c->layers + layer) * c->window +
           (size_t)(position % (f->taps - 1)) * recurrent_channels(f);
}

/* The heads of a layer: key heads, then value heads. */
static uint32_t
heads_of(const struct recurrent_form *f)
{
    return f->key_heads + f->value_heads;
}

/* Finds a head's channels: n from `first`, those of q and k or those of v. Returns the number of the parts. */
static size_t
channels_of(const struct recurrent_form *f, uint32_t head, size_t first[2], size_t *n)
{
    const bool keys = head < f->key_heads;
    *n = keys ? f->key_dim : f->value_dim;
    for (uint32_t part = 0; part < 2; part++)
        first[part] = recurrent_channel(f, keys ? part : 2) + (keys ? head : head - f->key_heads) * *n;
    return keys ? 2 : 1;
}

/* ---- committed rows ---- */

/* Applies the pending updates of a state to the window of a head's channels. */
static void
apply_to_window(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t head)
{
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const uint32_t *places = c->pending + (size_t)state * s->desc.ring, n = c->n_pending[state];
    const uint32_t done = c->applied[(size_t)state * c->layers + layer];
    size_t first[2], dim;
    const size_t parts = channels_of(f, head, first, &dim);
    for (uint32_t i = n - done < f->taps - 1 ? done : n - (f->taps - 1); i < n; i++) {
        const float *x = update_at(s, places[i], layer).x;
        float *to = window_at(s, state, layer, c->length[state] - n + i);
        for (size_t part = 0; part < parts; part++)
            memcpy(to + first[part], x + first[part], dim * sizeof *to);
    }
}

/* Applies an update to sixteen columns of a value head, at `at`. With q, writes their outputs. */
static void
update_columns(const struct kv_cache *s, const struct update *u, uint32_t value_head, size_t column, float *at,
               const float *q, float *out)
{
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    s->isa->delta_rule(at, c->key_dim, u->k + (size_t)recurrent_key_head(f, value_head) * c->key_dim, q,
                       u->v + (size_t)value_head * c->value_dim + column, u->decay[value_head], u->beta[value_head],
                       f->kind == RECURRENCE_DELTA, out);
}

/* Applies the pending updates to these columns. */
static void
apply_to_columns(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t value_head, size_t column,
                 float *at)
{
    const struct state_cache *c = &s->state;
    const uint32_t *places = c->pending + (size_t)state * s->desc.ring;
    for (uint32_t i = c->applied[(size_t)state * c->layers + layer]; i < c->n_pending[state]; i++) {
        const struct update u = update_at(s, places[i], layer);
        update_columns(s, &u, value_head, column, at, NULL, NULL);
    }
}

/* Returns sixteen columns of a value head: (key_dim, STATE_COLS). */
static float *
columns_at(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t value_head, size_t column)
{
    const struct state_cache *c = &s->state;
    return state_at(c, state, layer) + ((size_t)value_head * c->value_dim + column) * c->key_dim;
}

/* A unit of work is a head of a layer. */
static void
settle_units(const struct worker *w, const void *which, struct range units)
{
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const uint32_t state = *(const uint32_t *)which;
    for (size_t u = units.first; u < units.last; u++) {
        const uint32_t layer = (uint32_t)(u / heads_of(f)), head = (uint32_t)(u % heads_of(f));
        apply_to_window(s, state, layer, head);
        for (size_t column = 0; head >= f->key_heads && c->state > 0 && column < c->value_dim; column += STATE_COLS)
            apply_to_columns(s, state, layer, head - f->key_heads, column,
                             columns_at(s, state, layer, head - f->key_heads, column));
    }
}

/* Forgets pending rows that all layers have applied. Returns whether none is left. */
static bool
forget_applied(struct state_cache *c, uint32_t state)
{
    uint32_t *applied = c->applied + (size_t)state * c->layers;
    for (uint32_t layer = 0; layer < c->layers; layer++)
        if (applied[layer] < c->n_pending[state])
            return false;
    c->n_pending[state] = 0;
    memset(applied, 0, c->layers * sizeof *applied);
    return true;
}

/* Applies a state's pending rows in all layers. */
static void
settle(struct kv_cache *s, uint32_t state)
{
    struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    if (forget_applied(c, state))
        return;
    const size_t cost = (4 * c->state + c->window) / heads_of(f) * c->n_pending[state];
    worker_for(s, (struct work){(size_t)c->layers * heads_of(f), 1, cost}, settle_units, &state);
    for (uint32_t layer = 0; layer < c->layers; layer++)
        c->applied[(size_t)state * c->layers + layer] = c->n_pending[state];
    (void)forget_applied(c, state);
}

bool
cpu_state_advance(struct kv_cache *s, uint32_t to, uint32_t from, const slot_t *slots, size_t n)
{
    struct state_cache *c = &s->state;
    if (!request_advance(s->limits, to, from, slots, n))
        return false;
    if (from == STATE_NONE) {
        memset(state_at(c, to, 0), 0, c->layers * c->state * sizeof *c->states);
        c->length[to] = c->n_pending[to] = 0;
    } else if (from != to) {
        settle(s, from);
        memcpy(state_at(c, to, 0), state_at(c, from, 0), c->layers * c->state * sizeof *c->states);
        memcpy(window_at(s, to, 0, 0), window_at(s, from, 0, 0), c->layers * c->window * sizeof *c->windows);
        c->length[to] = c->length[from];
        c->n_pending[to] = 0;
    }
    (void)forget_applied(c, to);
    if (c->n_pending[to] + n > s->desc.ring)
        settle(s, to);
    for (size_t i = 0; i < n; i++)
        c->pending[(size_t)to * s->desc.ring + c->n_pending[to]++] = c->ring_of[slots[i]];
    c->length[to] += (uint32_t)n;
    return true;
}

void
recurrent_place(struct kv_cache *s, slot_t slot, uint32_t ring)
{
    struct state_cache *c = &s->state;
    for (uint32_t state = 0; c->layers > 0 && state < s->desc.states; state++)
        for (uint32_t i = 0; i < c->n_pending[state]; i++)
            if (c->pending[(size_t)state * s->desc.ring + i] == ring)
                settle(s, state);
    if (c->layers > 0)
        c->ring_of[slot] = ring;
}

bool
recurrent_continues(const struct kv_cache *s, const struct row *rows, size_t n)
{
    const struct state_cache *c = &s->state;
    for (size_t i = 0; c->layers > 0 && i < n; i++)
        if (rows[i].state >= s->desc.states || c->length[rows[i].state] != rows[i].n_trunk)
            return false;
    return true;
}

/* ---- the tree of a pass's rows ---- */

struct net {
    const struct forward_pass *forward;
    const struct layer *weights;
    const float *conv; /* (taps, channels) */
    uint32_t layer;    /* number among the recurrent layers */
    size_t n;
    const uint32_t *active;
};

static const struct row *
row_at(const struct net *p, size_t i)
{
    return &p->forward->rows[p->active[i]];
}

/* Adds the nodes of a row's path after the trunk that are not there yet. */
static size_t
add_path(struct state_cache *c, const struct net *p, size_t i, size_t n)
{
    const struct row *row = row_at(p, i);
    const slot_t *tail = p->forward->tails + row->tail;
    uint32_t at = row->n_tail;
    while (at > 0 && c->node_of[c->ring_of[tail[at - 1]]] < 0)
        at--;
    int32_t parent = at > 0 ? c->node_of[c->ring_of[tail[at - 1]]] : -1;
    for (; at < row->n_tail; at++) {
        const uint32_t ring = c->ring_of[tail[at]];
        c->nodes[n] =
            (struct recurrent_node){.ring = ring, .row = -1, .parent = parent, .child = -1, .next = -1, .heavy = -1};
        c->node_of[ring] = parent = (int32_t)n++;
    }
    c->nodes[parent].row = (int32_t)i;
    return n;
}

/* Links each node to its parent, from the last on, and counts subtrees. Returns the first child of the trunk. */
static int32_t
link_nodes(struct state_cache *c, size_t n)
{
    int32_t first = -1;
    for (size_t i = n; i-- > 0;) {
        struct recurrent_node *node = &c->nodes[i], *parent = node->parent >= 0 ? &c->nodes[node->parent] : NULL;
        node->size++;
        node->next = parent != NULL ? parent->child : first;
        if (parent == NULL) {
            first = (int32_t)i;
            continue;
        }
        parent->child = (int32_t)i;
        parent->size += node->size;
        if (parent->heavy < 0 || c->nodes[parent->heavy].size <= node->size)
            parent->heavy = (int32_t)i;
    }
    return first;
}

/* Walks the tree depth first. The largest subtree of a node comes last and takes over the node's copy of the state, so
 * that the number of copies is at most logarithmic in the number of rows. */
static size_t
walk(struct state_cache *c, int32_t first, struct recurrent_step *steps)
{
    size_t waiting = 0, n = 0;
    for (int32_t i = first; i >= 0; i = c->nodes[i].next)
        c->waiting[waiting++] = (struct recurrent_step){.row = i, .from = -1, .to = 0};
    while (waiting > 0) {
        const struct recurrent_step now = c->waiting[--waiting];
        const struct recurrent_node *node = &c->nodes[now.row];
        steps[n++] = (struct recurrent_step){node->ring, node->row, now.from, now.to};
        if (node->heavy >= 0)
            c->waiting[waiting++] = (struct recurrent_step){.row = node->heavy, .from = now.to, .to = now.to};
        for (int32_t i = node->child; i >= 0; i = c->nodes[i].next)
            if (i != node->heavy)
                c->waiting[waiting++] = (struct recurrent_step){.row = i, .from = now.to, .to = now.to + 1};
    }
    return n;
}

/* Plans the updates of all rows, state by state. */
static void
plan(struct state_cache *c, const struct net *p)
{
    size_t steps = 0;
    c->n_groups = 0;
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t state = row_at(p, i)->state;
        bool known = false;
        for (size_t g = 0; g < c->n_groups && !known; g++)
            known = c->groups[g].state == state;
        if (known)
            continue;
        size_t n = 0;
        for (size_t k = i; k < p->n; k++)
            if (row_at(p, k)->state == state)
                n = add_path(c, p, k, n);
        const size_t count = walk(c, link_nodes(c, n), c->steps + steps);
        c->groups[c->n_groups++] = (struct recurrent_group){state, (uint32_t)count, c->steps + steps};
        steps += count;
        for (size_t k = 0; k < n; k++)
            c->node_of[c->nodes[k].ring] = -1;
    }
    c->planned = p->n;
}

/* ---- a layer ---- */

/* The outputs of the input matrices, one after the other, each in whole groups of Q8_GROUP. */
static void
project_part(const struct worker *w, const struct net *p, const struct matrix *m, struct range part, size_t *before,
             float *y)
{
    const struct range own = range_overlap(part, *before, m->rows);
    *before += padded(m->rows, Q8_GROUP);
    if (own.first < own.last)
        worker_multiply(w, w->kv_cache->layer_use, m, worker_acts(w), p->n, own, y, m->rows);
}

static void
project(const struct worker *w, const void *net, struct range part)
{
    const struct net *p = net;
    const struct state_cache *c = &w->kv_cache->state;
    const struct layer *m = p->weights;
    size_t before = 0;
    project_part(w, p, &m->recurrent_qkv, part, &before, c->x);
    project_part(w, p, &m->recurrent_z, part, &before, c->z);
    project_part(w, p, &m->recurrent_b, part, &before, c->b);
    project_part(w, p, &m->recurrent_a, part, &before, c->a);
}

/* Finds the inputs of the convolution of a row: its own last, NULL before the first position. */
static void
find_taps(const struct kv_cache *s, const struct net *p, const struct row *row, const float **x)
{
    const uint32_t taps = form_of(s)->taps, own = row->n_trunk + row->n_tail - 1;
    for (uint32_t j = 0; j < taps; j++) {
        const uint32_t back = taps - 1 - j, at = own - back;
        x[j] = back > own ? NULL
               : at >= row->n_trunk
                   ? update_at(s, s->state.ring_of[p->forward->tails[row->tail + at - row->n_trunk]], p->layer).x
                   : window_at(s, row->state, p->layer, at);
    }
}

/* Writes part of the convolution's output of row i: n channels from `first` on. */
static void
convolve(const struct kv_cache *s, const struct net *p, size_t i, size_t first, size_t n, float *y)
{
    const struct recurrent_form *f = form_of(s);
    const float *from[RECURRENT_TAPS_MOST], *const *x = s->state.taps[i], *bias = p->weights->recurrent_conv_b;
    for (uint32_t j = 0; j < f->taps; j++)
        from[j] = x[j] != NULL ? x[j] + first : NULL;
    s->isa->convolve(from, f->taps, p->conv + first, recurrent_channels(f), bias != NULL ? bias + first : NULL,
                     f->kind != RECURRENCE_CONV, n, y);
}

/* Copies a row's inputs of the convolution of a head to its update. */
static void
copy_inputs(const struct kv_cache *s, const struct net *p, size_t i, uint32_t head)
{
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const size_t channels = recurrent_channels(f);
    float *to = update_at(s, row_at(p, i)->ring, p->layer).x;
    size_t first[2], n;
    const size_t parts = channels_of(f, head, first, &n);
    for (size_t part = 0; part < parts; part++)
        memcpy(to + first[part], c->x + i * channels + first[part], n * sizeof *to);
    for (size_t k = first[0]; f->kind == RECURRENCE_CONV && k < first[0] + n; k++)
        to[k] *= c->b[i * channels + k];
}

static float
softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}

/* Computes q and k of a key head. */
static void
make_keys(const struct kv_cache *s, const struct net *p, size_t i, uint32_t head)
{
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const size_t dim = f->key_dim;
    const float eps = LENGTH_EPS / (float)dim;
    float *q = c->q + (i * f->key_heads + head) * c->key_dim;
    float *k = update_at(s, row_at(p, i)->ring, p->layer).k + (size_t)head * c->key_dim;
    convolve(s, p, i, recurrent_channel(f, 0) + head * dim, dim, q);
    convolve(s, p, i, recurrent_channel(f, 1) + head * dim, dim, k);
    if (f->kind == RECURRENCE_DELTA) { /* lengths are norms without their factor sqrt(dim) */
        s->isa->rms_norm(q, c->q_scale, dim, eps, q);
        s->isa->rms_norm(k, c->k_scale, dim, eps, k);
    }
}

/* Computes v, decay and beta of a value head, or the output of a short convolution. */
static void
make_values(const struct kv_cache *s, const struct net *p, size_t i, uint32_t head)
{
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const struct layer *m = p->weights;
    const struct update u = update_at(s, row_at(p, i)->ring, p->layer);
    const size_t first = recurrent_channel(f, 2) + (size_t)head * f->value_dim, at = i * f->value_heads + head;
    if (f->kind == RECURRENCE_CONV) {
        float *z = c->z + at * f->value_dim, *o = c->o + at * c->value_dim;
        convolve(s, p, i, first, f->value_dim, o);
        for (uint32_t k = 0; k < f->value_dim; k++)
            z[k] *= o[k];
        return;
    }
    convolve(s, p, i, first, f->value_dim, u.v + (size_t)head * c->value_dim);
    float step = softplus(c->a[at] + m->recurrent_step[head]);
    if (f->step_most > 0)
        step = fminf(fmaxf(step, f->step_least), f->step_most);
    u.decay[head] = expf(m->recurrent_decay[head] * step);
    u.beta[head] = f->kind == RECURRENCE_MAMBA ? step : form_factor(f->beta) / (1 + expf(-c->b[at]));
}

/* A unit of work is a head, of all rows that continue a state. */
static void
make_units(const struct worker *w, const void *net, struct range units)
{
    const struct net *p = net;
    const struct kv_cache *s = w->kv_cache;
    const struct recurrent_form *f = form_of(s);
    for (size_t u = units.first; u < units.last; u++) {
        const uint32_t state = s->state.groups[u / heads_of(f)].state, head = (uint32_t)(u % heads_of(f));
        apply_to_window(s, state, p->layer, head);
        for (size_t i = 0; i < p->n; i++)
            if (row_at(p, i)->state == state)
                copy_inputs(s, p, i, head);
        for (size_t i = 0; i < p->n; i++) {
            if (row_at(p, i)->state != state)
                continue;
            if (head < f->key_heads)
                make_keys(s, p, i, head);
            else
                make_values(s, p, i, head - f->key_heads);
        }
    }
}

/* Computes o of all rows of a state, for a value head: column by column, along the planned steps. */
static void
read_state(const struct worker *w, const struct net *p, const struct recurrent_group *g, uint32_t value_head)
{
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const size_t block = (size_t)c->key_dim * STATE_COLS, rank = (size_t)(w->own - s->workers);
    const uint32_t head = recurrent_key_head(f, value_head);
    float *copies = c->copies + rank * c->levels * block;
    for (size_t column = 0; column < c->value_dim; column += STATE_COLS) {
        float *state = columns_at(s, g->state, p->layer, value_head, column);
        apply_to_columns(s, g->state, p->layer, value_head, column, state);
        for (uint32_t k = 0; k < g->n_steps; k++) {
            const struct recurrent_step *step = &g->steps[k];
            const struct update u = update_at(s, step->ring, p->layer);
            const size_t row = step->row < 0 ? 0 : (size_t)step->row;
            float *to = copies + (size_t)step->to * block;
            if (step->from != step->to)
                memcpy(to, step->from < 0 ? state : copies + (size_t)step->from * block, block * sizeof *to);
            update_columns(s, &u, value_head, column, to,
                           step->row < 0 ? NULL : c->q + (row * f->key_heads + head) * c->key_dim,
                           c->o + (row * f->value_heads + value_head) * c->value_dim + column);
        }
    }
}

/* A unit of work is a value head, of all rows that continue a state. */
static void
read_units(const struct worker *w, const void *net, struct range units)
{
    const struct net *p = net;
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const struct layer *m = p->weights;
    const float eps = f->norm_eps > 0 ? f->norm_eps : s->weights->desc.rms_eps;
    for (size_t u = units.first; u < units.last; u++) {
        const struct recurrent_group *g = &c->groups[u / f->value_heads];
        const uint32_t v = (uint32_t)(u % f->value_heads);
        read_state(w, p, g, v);
        for (size_t i = 0; i < p->n; i++) {
            float *o = c->o + (i * f->value_heads + v) * c->value_dim;
            if (row_at(p, i)->state != g->state)
                continue;
            const float *x = update_at(s, row_at(p, i)->ring, p->layer).v + (size_t)v * c->value_dim;
            for (uint32_t k = 0; f->kind == RECURRENCE_MAMBA && k < f->value_dim; k++)
                o[k] += m->recurrent_skip[v] * x[k];
            if (f->kind == RECURRENCE_DELTA)
                s->isa->rms_norm(o, m->recurrent_norm, f->value_dim, eps, o);
            s->isa->swiglu(c->z + (i * f->value_heads + v) * f->value_dim, o, f->value_dim);
        }
    }
}

/* Mamba-2's norm comes after its gate. A unit of work is a row and a key head: the value heads that read it. */
static void
norm_units(const struct worker *w, const void *net, struct range units)
{
    const struct net *p = net;
    const struct kv_cache *s = w->kv_cache;
    const struct recurrent_form *f = form_of(s);
    const size_t dim = recurrent_values(f) / f->key_heads;
    for (size_t u = units.first; u < units.last; u++) {
        float *z = s->state.z + u * dim;
        s->isa->rms_norm(z, p->weights->recurrent_norm + u % f->key_heads * dim, dim, s->weights->desc.rms_eps, z);
    }
}

float *
recurrent_layer(struct kv_cache *s, const struct forward_pass *forward, uint32_t l, size_t n, const uint32_t *active)
{
    struct state_cache *c = &s->state;
    const struct recurrent_form *f = form_of(s);
    const struct layer *m = &s->weights->layers[l];
    const struct net p = {
        .forward = forward, .weights = m, .conv = m->recurrent_conv, .layer = c->index[l], .n = n, .active = active};
    const size_t outputs = padded(m->recurrent_qkv.rows, Q8_GROUP) + padded(m->recurrent_z.rows, Q8_GROUP) +
                           padded(m->recurrent_b.rows, Q8_GROUP) + padded(m->recurrent_a.rows, Q8_GROUP);
    worker_for(s, work_of_outputs(outputs, n, m->recurrent_qkv.cols), project, &p);
    if (c->planned != n) /* a later layer of a pass has the same rows or more */
        plan(c, &p);
    for (size_t i = 0; i < n; i++)
        find_taps(s, &p, row_at(&p, i), c->taps[i]);
    const size_t made = 4 * (c->window + recurrent_channels(f)) / heads_of(f) * n;
    worker_for(s, (struct work){c->n_groups * heads_of(f), 1, made}, make_units, &p);
    const size_t read = 4 * c->state / f->value_heads * (n + 1);
    if (c->state > 0)
        worker_for(s, (struct work){c->n_groups * f->value_heads, 1, read}, read_units, &p);
    if (f->kind == RECURRENCE_MAMBA)
        worker_for(s, work_of_rows(n * f->key_heads, recurrent_values(f) / f->key_heads), norm_units, &p);
    for (size_t g = 0; g < c->n_groups; g++)
        c->applied[(size_t)c->groups[g].state * c->layers + p.layer] = c->n_pending[c->groups[g].state];
    return c->z;
}
