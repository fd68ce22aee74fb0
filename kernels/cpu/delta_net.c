#include "kernels/cpu/delta_net.h"

#include <math.h>

#include "kernels/cpu/forward.h"

#define LENGTH_EPS 1e-6f /* added to the square of the length of q and k */

static size_t
padded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static const struct delta_form *
form_of(const struct kv_cache *s)
{
    return &s->weights->desc.form.delta;
}

/* ---- memory ---- */

static bool
take_tables(struct kv_cache *s)
{
    struct state_cache *c = &s->state;
    const struct kv_cache_desc *d = &s->desc;
    const size_t threads = s->weights->backend->threads, block = (size_t)c->key_dim * DELTA_COLS;
    c->levels = 2;
    while ((size_t)1 << (c->levels - 1) < d->ring)
        c->levels++;
    return (c->ring_of = blocks_take(&s->blocks, d->slots, sizeof *c->ring_of)) != NULL &&
           (c->length = blocks_take(&s->blocks, d->states, sizeof *c->length)) != NULL &&
           (c->pending = blocks_take(&s->blocks, (size_t)d->states * d->ring, sizeof *c->pending)) != NULL &&
           (c->n_pending = blocks_take(&s->blocks, d->states, sizeof *c->n_pending)) != NULL &&
           (c->applied = blocks_take(&s->blocks, (size_t)d->states * c->layers, sizeof *c->applied)) != NULL &&
           (c->copies = blocks_take(&s->blocks, threads * c->levels, block * sizeof *c->copies)) != NULL &&
           (c->nodes = blocks_take(&s->blocks, d->ring, sizeof *c->nodes)) != NULL &&
           (c->node_of = blocks_take(&s->blocks, d->ring, sizeof *c->node_of)) != NULL &&
           (c->steps = blocks_take(&s->blocks, d->ring, sizeof *c->steps)) != NULL &&
           (c->waiting = blocks_take(&s->blocks, d->ring, sizeof *c->waiting)) != NULL &&
           (c->groups = blocks_take(&s->blocks, d->max_rows, sizeof *c->groups)) != NULL;
}

static bool
take_numbers(struct kv_cache *s)
{
    struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    const size_t n = s->desc.max_rows, values = (size_t)f->value_heads * f->value_dim;
    c->states = blocks_take(&s->blocks, (size_t)s->desc.states * c->layers, c->state * sizeof *c->states);
    c->windows = blocks_take(&s->blocks, (size_t)s->desc.states * c->layers, c->window * sizeof *c->windows);
    c->inputs = blocks_take(&s->blocks, (size_t)s->desc.ring * c->layers, c->input * sizeof *c->inputs);
    c->x = blocks_take(&s->blocks, n * delta_channels(f), sizeof *c->x);
    c->z = blocks_take(&s->blocks, n * values, sizeof *c->z);
    c->ba = blocks_take(&s->blocks, n * 2 * f->value_heads, sizeof *c->ba);
    c->q = blocks_take(&s->blocks, n * f->key_heads * c->key_dim, sizeof *c->q);
    c->o = blocks_take(&s->blocks, n * f->value_heads * c->value_dim, sizeof *c->o);
    c->q_scale = blocks_take(&s->blocks, f->key_dim, sizeof *c->q_scale);
    c->k_scale = blocks_take(&s->blocks, f->key_dim, sizeof *c->k_scale);
    return c->states != NULL && c->windows != NULL && c->inputs != NULL && c->x != NULL && c->z != NULL &&
           c->ba != NULL && c->q != NULL && c->o != NULL && c->q_scale != NULL && c->k_scale != NULL;
}

bool
delta_open(struct kv_cache *s)
{
    struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    if (f->value_heads == 0)
        return true;
    c->index = blocks_take(&s->blocks, s->weights->desc.n_layers + 1u, sizeof *c->index);
    if (c->index == NULL)
        return false;
    for (uint32_t l = 1; l <= request_depth(&s->weights->desc, &s->desc); l++)
        if (s->weights->layer_forms[l].kind == LAYER_DELTA_NET)
            c->index[l] = c->layers++;
    c->key_dim = (uint32_t)padded(f->key_dim, DELTA_ROWS);
    c->value_dim = (uint32_t)padded(f->value_dim, DELTA_COLS);
    c->state = (size_t)f->value_heads * c->key_dim * c->value_dim;
    c->window = (size_t)(f->taps - 1) * delta_channels(f);
    c->input = delta_channels(f) + (size_t)f->key_heads * c->key_dim + (size_t)f->value_heads * (c->value_dim + 2);
    if (!take_tables(s) || !take_numbers(s))
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

/* The inputs of an update: channels before the convolution, k (key_heads, key_dim), v (value_heads, value_dim), and a
 * decay and a beta for each value head. */
struct update {
    float *x, *k, *v, *decay, *beta;
};

static struct update
update_at(const struct kv_cache *s, uint32_t ring, uint32_t layer)
{
    const struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    float *x = c->inputs + ((size_t)ring * c->layers + layer) * c->input, *k = x + delta_channels(f);
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
    const struct delta_form *f = form_of(s);
    const struct state_cache *c = &s->state;
    return c->windows + ((size_t)state * c->layers + layer) * c->window +
           (size_t)(position % (f->taps - 1)) * delta_channels(f);
}

/* The channels of a key head and its value heads: of q, of k, and of a value head. */
static size_t
channels_of_v(const struct delta_form *f, uint32_t value_head)
{
    return 2 * (size_t)f->key_heads * f->key_dim + (size_t)value_head * f->value_dim;
}

/* ---- committed rows ---- */

/* Applies the pending updates of a state to a key head's part of a layer. */
static void
apply_to_head(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t key_head)
{
    const struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    const uint32_t *places = c->pending + (size_t)state * s->desc.ring, n = c->n_pending[state];
    const uint32_t first = c->applied[(size_t)state * c->layers + layer];
    for (uint32_t i = n - first < f->taps - 1 ? first : n - (f->taps - 1); i < n; i++) {
        const float *x = update_at(s, places[i], layer).x;
        float *to = window_at(s, state, layer, c->length[state] - n + i);
        for (size_t part = 0; part < 2; part++) {
            const size_t at = (part * f->key_heads + key_head) * f->key_dim;
            memcpy(to + at, x + at, f->key_dim * sizeof *to);
        }
        for (uint32_t j = 0; j < f->value_heads / f->key_heads; j++) {
            const size_t at = channels_of_v(f, delta_value_head(f, key_head, j));
            memcpy(to + at, x + at, f->value_dim * sizeof *to);
        }
    }
}

/* Applies them to sixteen columns of a value head, at `at`. */
static void
apply_to_columns(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t key_head, uint32_t value_head,
                 size_t column, float *at)
{
    const struct state_cache *c = &s->state;
    const uint32_t *places = c->pending + (size_t)state * s->desc.ring;
    for (uint32_t i = c->applied[(size_t)state * c->layers + layer]; i < c->n_pending[state]; i++) {
        const struct update u = update_at(s, places[i], layer);
        s->isa->delta_rule(at, c->key_dim, u.k + (size_t)key_head * c->key_dim, NULL,
                           u.v + (size_t)value_head * c->value_dim + column, u.decay[value_head], u.beta[value_head],
                           NULL);
    }
}

/* Returns sixteen columns of a value head: (key_dim, DELTA_COLS). */
static float *
columns_at(const struct kv_cache *s, uint32_t state, uint32_t layer, uint32_t value_head, size_t column)
{
    const struct state_cache *c = &s->state;
    return state_at(c, state, layer) + ((size_t)value_head * c->value_dim + column) * c->key_dim;
}

/* A unit of work is a key head of a layer. */
static void
settle_units(const struct worker *w, const void *which, struct range units)
{
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    const uint32_t state = *(const uint32_t *)which;
    for (size_t u = units.first; u < units.last; u++) {
        const uint32_t layer = (uint32_t)(u / f->key_heads), head = (uint32_t)(u % f->key_heads);
        apply_to_head(s, state, layer, head);
        for (uint32_t j = 0; j < f->value_heads / f->key_heads; j++)
            for (size_t column = 0; column < c->value_dim; column += DELTA_COLS) {
                const uint32_t v = delta_value_head(f, head, j);
                apply_to_columns(s, state, layer, head, v, column, columns_at(s, state, layer, v, column));
            }
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
    const struct delta_form *f = form_of(s);
    if (forget_applied(c, state))
        return;
    const size_t cost = 4 * c->state / f->key_heads * c->n_pending[state];
    worker_for(s, (struct work){(size_t)c->layers * f->key_heads, 1, cost}, settle_units, &state);
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
delta_place(struct kv_cache *s, slot_t slot, uint32_t ring)
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
delta_continues(const struct kv_cache *s, const struct row *rows, size_t n)
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
    size_t n, n_groups;
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
            (struct delta_node){.ring = ring, .row = -1, .parent = parent, .child = -1, .next = -1, .heavy = -1};
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
        struct delta_node *node = &c->nodes[i], *parent = node->parent >= 0 ? &c->nodes[node->parent] : NULL;
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
walk(struct state_cache *c, int32_t first, struct delta_step *steps)
{
    size_t waiting = 0, n = 0;
    for (int32_t i = first; i >= 0; i = c->nodes[i].next)
        c->waiting[waiting++] = (struct delta_step){.row = i, .from = -1, .to = 0};
    while (waiting > 0) {
        const struct delta_step now = c->waiting[--waiting];
        const struct delta_node *node = &c->nodes[now.row];
        steps[n++] = (struct delta_step){node->ring, node->row, now.from, now.to};
        if (node->heavy >= 0)
            c->waiting[waiting++] = (struct delta_step){.row = node->heavy, .from = now.to, .to = now.to};
        for (int32_t i = node->child; i >= 0; i = c->nodes[i].next)
            if (i != node->heavy)
                c->waiting[waiting++] = (struct delta_step){.row = i, .from = now.to, .to = now.to + 1};
    }
    return n;
}

/* Plans the updates of all rows, state by state. Returns the number of states. */
static size_t
plan(struct state_cache *c, const struct net *p)
{
    size_t groups = 0, steps = 0;
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t state = row_at(p, i)->state;
        bool known = false;
        for (size_t g = 0; g < groups && !known; g++)
            known = c->groups[g].state == state;
        if (known)
            continue;
        size_t n = 0;
        for (size_t k = i; k < p->n; k++)
            if (row_at(p, k)->state == state)
                n = add_path(c, p, k, n);
        const size_t count = walk(c, link_nodes(c, n), c->steps + steps);
        c->groups[groups++] = (struct delta_group){state, (uint32_t)count, c->steps + steps};
        steps += count;
        for (size_t k = 0; k < n; k++)
            c->node_of[c->nodes[k].ring] = -1;
    }
    return groups;
}

/* ---- a layer ---- */

/* The outputs of the input matrices, one after the other, each in whole groups of Q8_GROUP. */
static void
project_part(const struct worker *w, const struct net *p, const struct matrix *m, struct range part, size_t *before,
             float *y, size_t ld)
{
    const struct range own = range_overlap(part, *before, m->rows);
    *before += padded(m->rows, Q8_GROUP);
    if (own.first < own.last)
        worker_multiply(w, w->kv_cache->layer_use, m, worker_acts(w), p->n, own, y, ld);
}

static void
project(const struct worker *w, const void *net, struct range part)
{
    const struct net *p = net;
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct layer *m = p->weights;
    const struct range x = range_overlap(part, 0, m->delta_qkv.rows);
    size_t before = 0;
    project_part(w, p, &m->delta_qkv, part, &before, c->x, m->delta_qkv.rows);
    project_part(w, p, &m->delta_z, part, &before, c->z, m->delta_z.rows);
    project_part(w, p, &m->delta_b, part, &before, c->ba, 2 * (size_t)m->delta_b.rows);
    project_part(w, p, &m->delta_a, part, &before, c->ba + m->delta_b.rows, 2 * (size_t)m->delta_b.rows);
    for (size_t i = 0; i < p->n && x.first < x.last; i++)
        memcpy(update_at(s, row_at(p, i)->ring, p->layer).x + x.first, c->x + i * m->delta_qkv.rows + x.first,
               (x.last - x.first) * sizeof *c->x);
}

/* Finds the inputs of the convolution of a row: its own last, NULL before the first position. */
static void
taps_of(const struct kv_cache *s, const struct net *p, const struct row *row, const float *x[DELTA_TAPS_MOST])
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

/* Writes part of the convolution's output: n channels from `first` on. */
static void
convolve(const struct kv_cache *s, const struct net *p, const float *const *x, size_t first, size_t n, float *y)
{
    const struct delta_form *f = form_of(s);
    const float *from[DELTA_TAPS_MOST];
    for (uint32_t j = 0; j < f->taps; j++)
        from[j] = x[j] != NULL ? x[j] + first : NULL;
    s->isa->convolve(from, f->taps, p->conv + first, delta_channels(f), n, y);
}

static float
softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}

/* Computes q and the inputs of the row's own update, for a key head and its value heads. */
static void
make_update(const struct kv_cache *s, const struct net *p, size_t i, uint32_t head)
{
    const struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    const struct row *row = row_at(p, i);
    const struct update u = update_at(s, row->ring, p->layer);
    const size_t dim = f->key_dim, keys = (size_t)f->key_heads * dim;
    const float eps = LENGTH_EPS / (float)dim, *b = c->ba + i * 2 * f->value_heads, *a = b + f->value_heads;
    const float *x[DELTA_TAPS_MOST];
    float *q = c->q + (i * f->key_heads + head) * c->key_dim, *k = u.k + (size_t)head * c->key_dim;
    taps_of(s, p, row, x);
    convolve(s, p, x, head * dim, dim, q);
    convolve(s, p, x, keys + head * dim, dim, k);
    s->isa->rms_norm(q, c->q_scale, dim, eps, q); /* lengths are norms without their factor sqrt(dim) */
    s->isa->rms_norm(k, c->k_scale, dim, eps, k);
    for (uint32_t j = 0; j < f->value_heads / f->key_heads; j++) {
        const uint32_t v = delta_value_head(f, head, j);
        convolve(s, p, x, channels_of_v(f, v), f->value_dim, u.v + (size_t)v * c->value_dim);
        u.beta[v] = 1 / (1 + expf(-b[v]));
        u.decay[v] = expf(p->weights->delta_decay[v] * softplus(a[v] + p->weights->delta_step[v]));
    }
}

/* Computes o of all rows of a state, for a value head: column by column, along the planned steps. */
static void
read_state(const struct worker *w, const struct net *p, const struct delta_group *g, uint32_t head, uint32_t value_head)
{
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    const size_t block = (size_t)c->key_dim * DELTA_COLS, rank = (size_t)(w->own - s->workers);
    float *copies = c->copies + rank * c->levels * block;
    for (size_t column = 0; column < c->value_dim; column += DELTA_COLS) {
        float *state = columns_at(s, g->state, p->layer, value_head, column);
        apply_to_columns(s, g->state, p->layer, head, value_head, column, state);
        for (uint32_t k = 0; k < g->n_steps; k++) {
            const struct delta_step *step = &g->steps[k];
            const struct update u = update_at(s, step->ring, p->layer);
            const size_t row = step->row < 0 ? 0 : (size_t)step->row;
            float *to = copies + (size_t)step->to * block;
            if (step->from != step->to)
                memcpy(to, step->from < 0 ? state : copies + (size_t)step->from * block, block * sizeof *to);
            s->isa->delta_rule(to, c->key_dim, u.k + (size_t)head * c->key_dim,
                               step->row < 0 ? NULL : c->q + (row * f->key_heads + head) * c->key_dim,
                               u.v + (size_t)value_head * c->value_dim + column, u.decay[value_head],
                               u.beta[value_head], c->o + (row * f->value_heads + value_head) * c->value_dim + column);
        }
    }
}

/* A unit of work is a key head, with its value heads, of all rows that continue a state. */
static void
run_units(const struct worker *w, const void *net, struct range units)
{
    const struct net *p = net;
    const struct kv_cache *s = w->kv_cache;
    const struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    for (size_t u = units.first; u < units.last; u++) {
        const struct delta_group *g = &c->groups[u / f->key_heads];
        const uint32_t head = (uint32_t)(u % f->key_heads);
        apply_to_head(s, g->state, p->layer, head);
        for (size_t i = 0; i < p->n; i++)
            if (row_at(p, i)->state == g->state)
                make_update(s, p, i, head);
        for (uint32_t j = 0; j < f->value_heads / f->key_heads; j++) {
            const uint32_t v = delta_value_head(f, head, j);
            read_state(w, p, g, head, v);
            for (size_t i = 0; i < p->n; i++) {
                float *o = c->o + (i * f->value_heads + v) * c->value_dim;
                if (row_at(p, i)->state != g->state)
                    continue;
                s->isa->rms_norm(o, p->weights->delta_norm, f->value_dim, s->weights->desc.rms_eps, o);
                s->isa->swiglu(c->z + (i * f->value_heads + v) * f->value_dim, o, f->value_dim);
            }
        }
    }
}

float *
delta_net(struct kv_cache *s, const struct forward_pass *forward, uint32_t l, size_t n, const uint32_t *active)
{
    struct state_cache *c = &s->state;
    const struct delta_form *f = form_of(s);
    const struct layer *m = &s->weights->layers[l];
    struct net p = {
        .forward = forward, .weights = m, .conv = m->delta_conv, .layer = c->index[l], .n = n, .active = active};
    const size_t outputs =
        padded(m->delta_qkv.rows, Q8_GROUP) + padded(m->delta_z.rows, Q8_GROUP) + 2 * padded(m->delta_b.rows, Q8_GROUP);
    worker_for(s, work_of_outputs(outputs, n, m->delta_qkv.cols), project, &p);
    p.n_groups = plan(c, &p);
    const size_t cost = 4 * c->state / f->key_heads * (n + 1);
    worker_for(s, (struct work){p.n_groups * f->key_heads, 1, cost}, run_units, &p);
    for (size_t g = 0; g < p.n_groups; g++)
        c->applied[(size_t)c->groups[g].state * c->layers + p.layer] = c->n_pending[c->groups[g].state];
    return c->z;
}
