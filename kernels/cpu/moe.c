#include "kernels/cpu/forward.h"

#include <math.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/weights.h"

#define GATHERED 64 /* rows that are gathered at a time */
#define UNIT     32 /* hidden units per worker: whole blocks of activations */
#define READING  4  /* number of rows whose products take as long as reading the weights */

bool
moe_open(struct kv_cache *s, size_t rows)
{
    const struct model_desc *d = &s->weights->desc;
    const struct experts_form *f = &d->form.experts;
    struct moe_table *t = &s->moe;
    const size_t expert_rows = rows * (f->used + 1), shared = f->shared_ffn;
    const size_t hidden = f->used * (size_t)f->ffn + shared;
    const size_t blocks = f->used * (size_t)acts_stride(f->ffn) + acts_stride(shared);
    if (f->n == 0)
        return true;
    t->logits = blocks_take(&s->blocks, rows * f->n, sizeof *t->logits);
    t->routes = blocks_take(&s->blocks, expert_rows, sizeof *t->routes);
    t->gate = blocks_take(&s->blocks, rows * hidden, sizeof *t->gate);
    t->up = blocks_take(&s->blocks, rows * hidden, sizeof *t->up);
    t->q = blocks_take(&s->blocks, rows * blocks, sizeof *t->q);
    t->y = blocks_take(&s->blocks, rows * d->width, sizeof *t->y);
    t->touched = blocks_take(&s->blocks, d->n_layers + 1u, sizeof *t->touched);
    t->routes_out = blocks_take(&s->blocks, rows * (d->n_layers + 1u) * f->used, sizeof *t->routes_out);
    t->starts = blocks_take(&s->blocks, f->n + 3, sizeof *t->starts);
    t->expert_rows = blocks_take(&s->blocks, expert_rows, sizeof *t->expert_rows);
    for (uint32_t i = 0; i < s->weights->backend->threads; i++)
        cpu_kv_cache_acts(s, &s->workers[i].gathered, GATHERED, d->width);
    return !s->blocks.starved;
}

/* The state of a layer with experts. */
struct mixing {
    const struct layer *layer;
    uint32_t l;
    const struct experts_form *form;
    size_t n;       /* rows */
    uint32_t each;  /* experts per row, including the shared expert */
    uint32_t count; /* number of experts in the list */
};

/* ---- who goes where ---- */

/* sigmoid(mix x), or 1 */
static float
shared_weight(const struct worker *w, const struct mixing *m, size_t row)
{
    const struct acts *all = worker_acts(w);
    const struct matrix mix = {.type = WEIGHT_F32, .rows = 1, .cols = all->cols, .data = m->layer->shared_mix};
    const struct acts x = {.x = all->x + row * all->cols, .cols = all->cols};
    float z;
    if (mix.data == NULL)
        return 1;
    multiply(w->kv_cache->isa, &mix, &x, 1, 0, 1, &z, 1);
    return 1 / (1 + expf(-z));
}

static void
router_outputs(const struct worker *w, const void *mixing, struct range part)
{
    const struct mixing *m = mixing;
    struct kv_cache *s = w->kv_cache;
    worker_multiply(w, s->layer_use, &m->layer->router, worker_acts(w), m->n, part, s->moe.logits, m->form->n);
}

static void
route_rows(const struct worker *w, const void *mixing, struct range rows)
{
    const struct mixing *m = mixing;
    struct moe_table *t = &w->kv_cache->moe;
    for (size_t i = rows.first; i < rows.last; i++) {
        struct route *routes = t->routes + i * m->each;
        route(m->form, t->logits + i * m->form->n, m->layer->brouter, m->layer->correction, routes);
        for (uint32_t k = 0; m->layer->expert_scale != NULL && k < m->form->used; k++)
            routes[k].weight *= m->layer->expert_scale[routes[k].expert];
        if (m->count > m->form->n)
            routes[m->form->used] = (struct route){m->form->n, shared_weight(w, m, i)};
    }
}

/* Writes forward.routes. `rows`: indices in the pass of the rows of the call. */
static void
write_routes(struct kv_cache *s, const struct mixing *m, const uint32_t *rows)
{
    const struct route *routes = s->moe.routes;
    const size_t bytes = m->form->used * sizeof *routes;
    for (size_t i = 0; i < m->n; i++)
        memcpy(routes_at(s->moe.routes_out, &s->weights->desc, rows[i], m->l), routes + i * m->each, bytes);
}

/* Visitors (n, each) in order of their experts, rows ascending; those of expert e from starts[e] on. */
static void
sort_by_expert(struct moe_table *own, const struct mixing *m)
{
    const struct route *routes = own->routes;
    uint32_t *next = own->starts + 1; /* will be the starts of later experts */
    memset(own->starts, 0, (m->count + 2) * sizeof *own->starts);
    for (size_t i = 0; i < m->n * m->each; i++)
        next[routes[i].expert + 1]++;
    for (uint32_t e = 0; e < m->count; e++)
        next[e + 1] += next[e];
    for (size_t i = 0; i < m->n * m->each; i++)
        own->expert_rows[next[routes[i].expert]++] = (struct expert_row){(uint32_t)(i / m->each), routes[i].weight};
}

/* ---- an expert and its rows ---- */

struct expert_batch {
    const struct expert *expert;
    const struct expert_row *expert_rows;
    size_t n, ffn;
    size_t at, q_at; /* offsets of its hidden units in the buffers */
};

static struct expert_batch
batch_of(const struct kv_cache *s, const struct mixing *m, uint32_t e)
{
    const struct moe_table *own = &s->moe;
    const size_t first = own->starts[e]; /* all experts before it have the size of routed experts */
    return (struct expert_batch){.expert = &m->layer->experts[e],
                                 .expert_rows = own->expert_rows + first,
                                 .n = own->starts[e + 1] - first,
                                 .ffn = e < m->form->n ? m->form->ffn : m->form->shared_ffn,
                                 .at = first * m->form->ffn,
                                 .q_at = first * acts_stride(m->form->ffn)};
}

/* Returns the activations of rows [first, first + n), n at most GATHERED, as consecutive rows; copies them if they
 * are not consecutive already. */
static struct acts
gather(const struct worker *w, const struct acts *x, const struct expert_row *expert_rows, size_t n, bool in_int8)
{
    struct acts a = *x;
    if (expert_rows[n - 1].row - expert_rows[0].row + 1 == n) {
        a.x += (size_t)expert_rows[0].row * x->cols;
        a.q += (size_t)expert_rows[0].row * x->stride;
        return a;
    }
    a.x = w->own->gathered.x;
    a.q = w->own->gathered.q;
    for (size_t i = 0; i < n; i++) {
        memcpy(a.x + i * x->cols, x->x + (size_t)expert_rows[i].row * x->cols, x->cols * sizeof *a.x);
        if (in_int8)
            memcpy(a.q + i * x->stride, x->q + (size_t)expert_rows[i].row * x->stride,
                   x->cols / Q8_BLOCK * sizeof *a.q);
    }
    return a;
}

static void
add_bias(const float *bias, struct range part, float *y)
{
    for (size_t o = part.first; bias != NULL && o < part.last; o++)
        y[o] += bias[o];
}

/* Computes act(gate x) * up x for these hidden units of all rows, also in int8 if the down matrix reads int8. */
static void
hidden_units(const struct worker *w, const struct mixing *m, const struct expert_batch *v, struct range part)
{
    struct kv_cache *s = w->kv_cache;
    const struct expert *e = v->expert;
    const bool gated = e->gate.rows > 0, in_int8 = e->gate.q != NULL || e->up.q != NULL;
    const size_t stride = acts_stride(v->ffn);
    float *gate = s->moe.gate + v->at, *up = gated ? s->moe.up + v->at : gate;
    for (size_t first = 0; first < v->n; first += GATHERED) {
        const size_t n = v->n - first < GATHERED ? v->n - first : GATHERED;
        const struct acts x = gather(w, worker_acts(w), v->expert_rows + first, n, in_int8);
        worker_multiply(w, s->layer_use, &e->up, &x, n, part, up + first * v->ffn, v->ffn);
        if (gated)
            worker_multiply(w, s->layer_use, &e->gate, &x, n, part, gate + first * v->ffn, v->ffn);
    }
    for (size_t i = 0; i < v->n; i++) {
        float *g = gate + i * v->ffn, *u = up + i * v->ffn;
        add_bias(e->bup, part, u);
        if (gated)
            add_bias(e->bgate, part, g);
        form_activate(s->weights, m->l, g + part.first, gated ? u + part.first : NULL, part.last - part.first);
        if (e->down.q != NULL)
            s->isa->quantise(g + part.first, part.last - part.first,
                             s->moe.q + v->q_at + i * stride + part.first / Q8_BLOCK);
    }
}

/* Returns the units of UNIT hidden units in a worker's share of the work, for a given cost per unit, with `before`
 * units preceding them. */
static struct range
units_of(struct range share, size_t before, size_t units, size_t each)
{
    const size_t first = share.first > before ? (share.first - before + each - 1) / each : 0;
    const size_t last = share.last > before ? (share.last - before + each - 1) / each : 0;
    return (struct range){first < units ? first : units, last < units ? last : units};
}

static size_t
units_in(const struct expert_batch *v)
{
    return (v->ffn + UNIT - 1) / UNIT;
}

/* The cost of a unit includes reading its weights and the products of its rows. */
static size_t
cost_of_hidden_units(const struct kv_cache *s, const struct mixing *m)
{
    size_t all = 0;
    for (uint32_t e = 0; e < m->count; e++) {
        const struct expert_batch v = batch_of(s, m, e);
        all += v.n > 0 ? units_in(&v) * (v.n + READING) : 0;
    }
    return all;
}

/* Computes a worker's share of the hidden units. */
static void
share_hidden_units(const struct worker *w, const void *mixing, struct range share)
{
    const struct mixing *m = mixing;
    size_t before = 0;
    for (uint32_t e = 0; e < m->count; e++) {
        const struct expert_batch v = batch_of(w->kv_cache, m, e);
        if (v.n == 0)
            continue;
        const struct range units = units_of(share, before, units_in(&v), v.n + READING);
        const size_t last = units.last * UNIT < v.ffn ? units.last * UNIT : v.ffn;
        if (units.first < units.last)
            hidden_units(w, m, &v, (struct range){units.first * UNIT, last});
        before += units_in(&v) * (v.n + READING);
    }
}

/* y += weight * (down hidden + bias) for these outputs of all rows. */
static void
add_outputs(const struct worker *w, const struct expert_batch *v, struct range part)
{
    struct kv_cache *s = w->kv_cache;
    const struct expert *e = v->expert;
    const size_t width = e->down.rows;
    const struct acts hidden = {
        .x = s->moe.gate + v->at, .q = s->moe.q + v->q_at, .cols = (uint32_t)v->ffn, .stride = acts_stride(v->ffn)};
    worker_multiply(w, s->layer_use, &e->down, &hidden, v->n, part, s->moe.y, width);
    for (size_t i = 0; i < v->n; i++) {
        const float weight = v->expert_rows[i].weight;
        float *from = s->moe.y + i * width, *to = s->y + v->expert_rows[i].row * width;
        add_bias(e->bdown, part, from);
        for (size_t o = part.first; o < part.last; o++)
            to[o] += weight * from[o];
    }
}

/* Computes these outputs of the sum of all experts. */
static void
sum_outputs(const struct worker *w, const void *mixing, struct range part)
{
    const struct mixing *m = mixing;
    const struct kv_cache *s = w->kv_cache;
    const size_t width = s->weights->desc.width;
    for (size_t i = 0; i < m->n; i++)
        memset(s->y + i * width + part.first, 0, (part.last - part.first) * sizeof *s->y);
    for (uint32_t e = 0; e < m->count; e++) {
        const struct expert_batch v = batch_of(s, m, e);
        if (v.n > 0)
            add_outputs(w, &v, part);
    }
}

static struct mixing
mixing_of(const struct kv_cache *s, uint32_t l, size_t n)
{
    const struct model_desc *d = &s->weights->desc;
    const struct experts_form *f = &d->form.experts;
    const uint32_t count = experts_listed(d);
    return (struct mixing){
        .layer = &s->weights->layers[l], .l = l, .form = f, .n = n, .each = f->used + (count - f->n), .count = count};
}

void
moe_route(struct kv_cache *s, uint32_t l, size_t n, const uint32_t *rows)
{
    const struct model_desc *d = &s->weights->desc;
    const struct experts_form *f = &d->form.experts;
    const struct mixing m = mixing_of(s, l, n);
    worker_for(s, work_of_outputs(f->n, n, d->width), router_outputs, &m);
    worker_for(s, work_of_rows(n, 16 * f->n), route_rows, &m);
    if (s->moe.wants_routes)
        write_routes(s, &m, rows);
    sort_by_expert(&s->moe, &m);
    for (uint32_t e = 0; e < f->n; e++)
        s->moe.touched[l] += s->moe.starts[e + 1] > s->moe.starts[e];
}

void
moe(struct kv_cache *s, uint32_t l, size_t n)
{
    const struct model_desc *d = &s->weights->desc;
    const struct mixing m = mixing_of(s, l, n);
    const struct work hidden = {cost_of_hidden_units(s, &m), 1, 2 * (size_t)UNIT * d->width};
    worker_for(s, hidden, share_hidden_units, &m);
    worker_for(s, work_of_outputs(d->width, n, m.each * (size_t)m.form->ffn), sum_outputs, &m);
}
