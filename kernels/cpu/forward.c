#include "kernels/cpu/forward.h"

#include <math.h>

#include "kernels/base/clock.h"
#include "kernels/base/platform.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/weights.h"
#include "kernels/team_sizing.h"
#include "kernels/tensor.h"

#define CHUNKS 2     /* per thread in a step: a thread that does not run delays the step by one of them */
#define LEAST  16384 /* least number of multiplications in a chunk */

/* ---- steps ---- */

struct step {
    struct kv_cache *kv_cache;
    worker_fn fn;
    const void *arg;
    size_t units, grain, grains, chunks;
};

static void
carry_out(void *arg, uint32_t rank, size_t chunk)
{
    const struct step *s = arg;
    const struct worker w = {s->kv_cache, &s->kv_cache->workers[rank]};
    struct range part = range_times(team_share(s->grains, chunk, s->chunks), s->grain);
    part.last = part.last < s->units ? part.last : s->units;
    s->fn(&w, s->arg, part);
}

void
worker_for(struct kv_cache *kv_cache, struct work work, worker_fn fn, const void *arg)
{
    struct team *team = kv_cache->weights->backend->team;
    const size_t most = team_most(team), now = team_size(team),
                 size = now > 1 || most == 1 ? now : 2; /* the team may grow */
    const size_t each = 1 + work.units * work.cost / LEAST / size;
    struct step s = {kv_cache, fn, arg, work.units, work.grain, (work.units + work.grain - 1) / work.grain, 1};
    if (each > 1 && size > 1)
        s.chunks = size * (each < CHUNKS ? each : CHUNKS);
    if (s.chunks > s.grains)
        s.chunks = s.grains;
    team_for(team, s.chunks, carry_out, &s);
}

/* ---- weights ---- */

void
worker_begin(struct kv_cache *s)
{
    s->not_repacked = !repacked(s->weights);
    s->layer_use = s->head_use = USE_MEMORY;
}

void
worker_unit(struct kv_cache *s, uint32_t unit, enum use *use)
{
    if (!s->not_repacked)
        return;
    *use = repack_use(s->weights, unit);
    if (*use == USE_REPACK)
        repack_unit(s->weights, unit);
}

void
worker_multiply(const struct worker *w, enum use use, const struct matrix *m, const struct acts *x, size_t n,
                struct range part, float *y, size_t ld)
{
    const struct cpu_isa *isa = w->kv_cache->isa;
    if (use == USE_FILE && m->q != NULL && m->data != NULL)
        multiply_from_file(isa, m, x, n, part.first, part.last, y, ld, w->own->group);
    else
        multiply(isa, m, x, n, part.first, part.last, y, ld);
}

/* ---- activations ---- */

static void
prepare_rows(const struct kv_cache *s, const struct acts *to, struct range rows)
{
    const struct preparation *p = &s->preparation;
    for (size_t r = rows.first; r < rows.last; r++) {
        float *x = to->x + r * to->cols;
        if (p->norm.weight != NULL)
            form_norm(s->weights, &p->norm, p->row(s, p->user, r), to->cols, x);
        else if (p->row != NULL)
            memcpy(x, p->row(s, p->user, r), to->cols * sizeof *x);
        if (p->in_int8)
            s->isa->quantise(x, to->cols, to->q + r * to->stride);
    }
}

static void
prepare_share(const struct worker *w, const void *unused, struct range rows)
{
    (void)unused;
    prepare_rows(w->kv_cache, &w->kv_cache->preparation.to, rows);
}

void
worker_prepare(struct kv_cache *s, size_t n, uint32_t cols, bool in_int8, struct norm norm, acts_row_fn row,
               const void *user, float *x)
{
    s->preparation = (struct preparation){{row != NULL ? s->acts.x : x, s->acts.q, cols, acts_stride(cols)},
                                          n,
                                          in_int8,
                                          norm,
                                          row,
                                          user,
                                          s->preparation.number + 1};
    if (n > FEW_ROWS)
        worker_for(s, work_of_rows(n, 8 * cols), prepare_share, NULL);
}

const struct acts *
worker_acts(const struct worker *w)
{
    const struct preparation *p = &w->kv_cache->preparation;
    struct worker_buffers *own = w->own;
    if (p->n > FEW_ROWS)
        return &p->to;
    if (own->prepared != p->number) {
        own->prepared = p->number;
        own->now = (struct acts){p->row != NULL ? own->acts.x : p->to.x, own->acts.q, p->to.cols, p->to.stride};
        prepare_rows(w->kv_cache, &own->now, (struct range){0, p->n});
    }
    return &own->now;
}

/* ---- a drafter's input ---- */

void
embed_token(const struct kv_cache *s, token_t token, float *e)
{
    const struct model_desc *d = &s->weights->desc;
    const float scale = form_factor(d->form.embedding_scale);
    tensor_row(&d->embedding, (size_t)token, e);
    for (uint32_t k = 0; (scale < 1 || scale > 1) && k < d->width; k++)
        e[k] *= scale;
}

/* pair (2 width) = [norm(e); norm(g)] */
static void
pair_of(const struct kv_cache *s, token_t token, const float *g, bool normed, float *pair)
{
    const uint32_t width = s->weights->desc.width;
    embed_token(s, token, pair);
    form_norm(s->weights, &s->weights->drafter.token_norm, pair, width, pair);
    if (normed)
        memcpy(pair + width, g, width * sizeof *pair);
    else
        form_norm(s->weights, &s->weights->drafter.feature_norm, g, width, pair + width);
}

/* Rows of a drafter, and the step's product. */
struct feeding {
    const struct row *rows;
    size_t n;
    const float *features;  /* or */
    const uint32_t *before; /* ring entries */
    const struct matrix *m;
};

/* Writes the rows' normed features, or g, to s->pairs, or to s->y if there is no product. */
static void
take_features(const struct worker *w, const void *arg, struct range rows)
{
    const struct feeding *f = arg;
    const struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    const struct drafter_desc *form = d->drafter;
    for (size_t i = rows.first; i < rows.last; i++) {
        const size_t n = f->features != NULL ? form->features : d->width,
                     part = n / (form->parts > 0 ? form->parts : 1);
        const float *from = f->features != NULL ? f->features + i * n : cpu_kv_cache_hidden(s, f->before[i], 1);
        float *to = f->m != NULL ? s->pairs + i * n : s->y + i * n;
        memcpy(to, from, n * sizeof *to);
        if (f->features == NULL && form->output_normed)
            form_norm(s->weights, &s->weights->final_norm, to, n, to);
        for (size_t at = 0; f->features != NULL && s->weights->drafter.norm.weight != NULL && at < n; at += part) {
            const struct norm norm = {.weight = s->weights->drafter.norm.weight + at};
            form_norm(s->weights, &norm, to + at, part, to + at);
        }
    }
}

static void
feed_outputs(const struct worker *w, const void *arg, struct range part)
{
    const struct feeding *f = arg;
    worker_multiply(w, w->kv_cache->layer_use, f->m, worker_acts(w), f->n, part, w->kv_cache->y, f->m->rows);
}

/* y (n, width) = m x, for x (n, m.cols) in s->pairs */
static void
feed_product(struct kv_cache *s, struct feeding *f)
{
    worker_prepare(s, f->n, f->m->cols, f->m->q != NULL, (struct norm){0}, NULL, NULL, s->pairs);
    worker_for(s, work_of_outputs(f->m->rows, f->n, f->m->cols), feed_outputs, f);
}

/* From g in s->y: the pairs that are joined, or the layer's input. */
static void
begin_rows(const struct worker *w, const void *arg, struct range rows)
{
    const struct feeding *f = arg;
    const struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    for (size_t i = rows.first; i < rows.last; i++) {
        const float *g = s->y + i * d->width;
        float *input = cpu_kv_cache_hidden(s, f->rows[i].ring, 0);
        if (f->m != NULL)
            pair_of(s, f->rows[i].token, g, false, s->pairs + 2 * i * d->width);
        else if (d->drafter->input_normed)
            form_norm(s->weights, &s->weights->drafter.feature_norm, g, d->width, input);
        else
            memcpy(input, g, d->width * sizeof *input);
    }
}

void
forward_feed(struct kv_cache *s, const struct row *rows, size_t n, const float *features, const uint32_t *before)
{
    const struct model_desc *d = &s->weights->desc;
    const bool projects = features != NULL && tensor_present(&d->drafter->projection);
    struct feeding f = {rows, n, features, before, projects ? &s->weights->drafter.projection : NULL};
    worker_begin(s);
    worker_unit(s, 1, &s->layer_use);
    worker_for(s, work_of_rows(n, 8 * (size_t)d->drafter->features), take_features, &f);
    if (projects)
        feed_product(s, &f);
    f.m = tensor_present(&d->drafter->join) ? &s->weights->drafter.join : NULL;
    worker_for(s, work_of_rows(n, 16 * (size_t)d->width), begin_rows, &f);
    if (f.m == NULL)
        return;
    feed_product(s, &f);
    for (size_t i = 0; i < n; i++)
        memcpy(cpu_kv_cache_hidden(s, rows[i].ring, 0), s->y + i * d->width, d->width * sizeof *s->y);
}

/* ---- a layer ---- */

/* The end of a sublayer: hidden[l] = from + W x, with a bias and a norm of the summand if the model has them. */
struct ending {
    const struct matrix *m;
    const float *bias, *post;
};

/* The rows of a forward pass that take part in layer l, and the parameters of the current step. */
struct pass {
    const struct forward_pass *forward;
    const struct layer *layer;
    uint32_t l;
    size_t n;
    const uint32_t *active; /* (n) indices into forward->rows */
    struct ending end;      /* of the current sublayer */
    uint32_t from;          /* depth of the hidden state that the sublayer adds to */
    size_t heads, rows;     /* attention: number of heads and rows computed together */
};

static const struct row *
row_at(const struct pass *p, size_t i)
{
    return &p->forward->rows[p->active[i]];
}

static uint32_t
position_of(const struct row *row)
{
    return row->n_trunk + row->n_tail - 1;
}

static const float *
hidden_before(const struct kv_cache *s, const void *pass, size_t i)
{
    const struct pass *p = pass;
    return cpu_kv_cache_hidden(s, row_at(p, i)->ring, p->l - 1);
}

static const float *
hidden_between(const struct kv_cache *s, const void *pass, size_t i)
{
    const struct pass *p = pass;
    return cpu_kv_cache_hidden(s, row_at(p, i)->ring, p->l);
}

static bool
quantised(const struct matrix *m)
{
    return m->q != NULL;
}

static const float *
rotations_at(const struct kv_cache *s, const struct pass *p, size_t i)
{
    const size_t local = s->weights->layer_forms[p->l].rope == LAYER_ROPE_LOCAL ? s->desc.max_rows : 0;
    return s->rotations + (local + p->active[i]) * s->weights->desc.rope_dims;
}

/* Finishes a head's outputs for attention: adds the bias, normalises, rotates. Norm and rotation may be absent or in
 * reverse order. */
static void
normalise_head(const struct kv_cache *s, const struct pass *p, const float *rotations, const float *norm, float *head)
{
    const struct model_desc *d = &s->weights->desc;
    const struct norm of_head = {.weight = norm};
    const bool rotated = s->weights->layer_forms[p->l].rope != LAYER_ROPE_NONE;
    if (rotated && d->form.late_norms)
        rope(d, rotations, head);
    if (norm != NULL && !d->form.whole_norms)
        form_norm(s->weights, &of_head, head, d->head_dim, head);
    if (rotated && !d->form.late_norms)
        rope(d, rotations, head);
}

/* y (n, rows) = W x + bias for all rows and a range of outputs. */
static void
multiply_biased(const struct worker *w, const struct pass *p, const struct matrix *m, const float *bias,
                struct range part, float *y)
{
    worker_multiply(w, w->kv_cache->layer_use, m, worker_acts(w), p->n, part, y, m->rows);
    for (size_t i = 0; i < p->n && bias != NULL; i++)
        for (size_t o = part.first; o < part.last; o++)
            y[i * m->rows + o] += bias[o];
}

/* Ranges of the heads of q, of k and of v. */
struct heads {
    struct range q, k, v;
};

static struct heads
heads_in(const struct model_desc *d, struct range part)
{
    return (struct heads){range_overlap(part, 0, d->heads), range_overlap(part, d->heads, d->kv_heads),
                          range_overlap(part, d->heads + d->kv_heads, d->kv_heads)};
}

static void
project_heads(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const struct layer *m = p->layer;
    const struct heads h = heads_in(&s->weights->desc, part);
    const size_t dim = s->weights->desc.head_dim;
    multiply_biased(w, p, &m->wq, m->bq, range_times(h.q, dim), s->q);
    multiply_biased(w, p, &m->wk, m->bk, range_times(h.k, dim), s->k);
    multiply_biased(w, p, &m->wv, m->bv, range_times(h.v, dim), s->v);
}

/* Norms over all heads together. */
static void
norm_whole_rows(const struct worker *w, const void *pass, struct range rows)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    const size_t q_width = (size_t)d->heads * d->head_dim, kv_width = (size_t)d->kv_heads * d->head_dim;
    const struct norm q = {.weight = p->layer->q_norm}, k = {.weight = p->layer->k_norm};
    for (size_t i = rows.first; i < rows.last; i++) {
        if (q.weight != NULL)
            form_norm(s->weights, &q, s->q + i * q_width, q_width, s->q + i * q_width);
        if (k.weight != NULL)
            form_norm(s->weights, &k, s->k + i * kv_width, kv_width, s->k + i * kv_width);
    }
}

/* Clips, normalises and rotates queries and keys; stores keys and values. */
static void
normalise_heads(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const size_t dim = d->head_dim, q_width = d->heads * dim, kv_width = d->kv_heads * dim;
    const struct heads of = heads_in(d, part);
    form_clip(d->form.clip, s->q, p->n, q_width, range_times(of.q, dim));
    form_clip(d->form.clip, s->k, p->n, kv_width, range_times(of.k, dim));
    form_clip(d->form.clip, s->v, p->n, kv_width, range_times(of.v, dim));
    const float scale = d->form.attention_scale > 0 ? d->form.attention_scale : 1.0f / sqrtf((float)dim);
    for (size_t i = 0; i < p->n; i++) {
        const struct row *row = row_at(p, i);
        const float *rotations = rotations_at(s, p, i), grown = scale * form_growth(&d->form, position_of(row));
        for (size_t h = of.q.first; h < of.q.last; h++) {
            float *head = s->q + i * q_width + h * dim;
            normalise_head(s, p, rotations, m->q_norm, head);
            for (size_t j = 0; j < dim; j++)
                head[j] *= grown;
        }
        for (size_t h = of.k.first; h < of.k.last; h++) {
            float *head = s->k + i * kv_width + h * dim;
            normalise_head(s, p, rotations, m->k_norm, head);
            remember(s, p->l, (uint32_t)h, row->slot, s->keys, head);
        }
        for (size_t h = of.v.first; h < of.v.last; h++)
            remember(s, p->l, (uint32_t)h, row->slot, s->values, s->v + i * kv_width + h * dim);
    }
}

static void
project_and_finish(const struct worker *w, const void *pass, struct range part)
{
    project_heads(w, pass, part);
    normalise_heads(w, pass, part);
}

/* Writes the pairs [norm(e); norm(g)] that a drafter's q, k and v read. */
static void
pair_rows(const struct worker *w, const void *pass, struct range rows)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    for (size_t i = rows.first; i < rows.last; i++)
        pair_of(s, row_at(p, i)->token, hidden_before(s, p, i), s->weights->desc.drafter->input_normed,
                s->pairs + 2 * i * s->weights->desc.width);
}

/* Computes q, k, v of all rows. */
static void
project(struct kv_cache *s, struct pass *p)
{
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const bool in_int8 = quantised(&m->wq) || quantised(&m->wk) || quantised(&m->wv);
    const struct norm norm = {m->attn_norm, m->attn_norm_b};
    const struct work heads = {(size_t)d->heads + 2 * d->kv_heads, 1, p->n * d->width * d->head_dim};
    if (model_pairs(d)) {
        worker_for(s, work_of_rows(p->n, 16 * (size_t)d->width), pair_rows, p);
        worker_prepare(s, p->n, 2 * d->width, in_int8, (struct norm){0}, NULL, NULL, s->pairs);
    } else {
        worker_prepare(s, p->n, d->width, in_int8, norm, hidden_before, p, NULL);
    }
    if (d->form.whole_norms) {
        worker_for(s, heads, project_heads, p);
        worker_for(s, work_of_rows(p->n, 8 * d->width), norm_whole_rows, p);
        worker_for(s, heads, normalise_heads, p);
    } else {
        worker_for(s, heads, project_and_finish, p);
    }
}

/* Returns the first position that a row attends to. */
static size_t
first_seen(const struct weights *w, uint32_t l, const struct row *row)
{
    const size_t n = (size_t)row->n_trunk + row->n_tail, window = w->layer_forms[l].sees_all ? 0 : w->desc.window;
    return window > 0 && n > window ? n - window : 0;
}

static struct path
path_of(const struct kv_cache *s, const struct forward_pass *forward, uint32_t l, const struct row *row)
{
    return (struct path){.trunk = s->trunk + (size_t)row->seq * s->desc.trunk,
                         .tail = forward->tails + row->tail,
                         .n_trunk = row->n_trunk,
                         .n = (size_t)row->n_trunk + row->n_tail,
                         .first = first_seen(s->weights, l, row)};
}

/* A unit of work is several rows' heads on one key-value head. */
static void
attend_units(const struct worker *w, const void *pass, struct range units)
{
    const struct pass *p = pass;
    struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    const size_t group = d->heads / d->kv_heads, ld = (size_t)d->heads * d->head_dim;
    const size_t parts = (p->n + p->rows - 1) / p->rows;
    const struct widened widened = {w->own->keys, w->own->values};
    for (size_t u = units.first; u < units.last; u++) {
        const size_t head = u / parts * p->heads, first = u % parts * p->rows;
        const size_t n = p->n - first < p->rows ? p->n - first : p->rows, at = first * ld + head * d->head_dim;
        struct path paths[ATTEND_ROWS];
        for (size_t i = 0; i < n; i++)
            paths[i] = path_of(s, p->forward, p->l, row_at(p, first + i));
        const struct of_heads own = {p->layer->sinks != NULL ? p->layer->sinks + head : NULL,
                                     s->weights->slopes != NULL ? s->weights->slopes + head : NULL};
        attend(s, widened, p->l, (uint32_t)(head / group), paths, n, p->heads, s->q + at, own, s->attended + at, ld);
    }
}

/* Uses single heads, and fewer rows per unit, if there are too few units for all threads. */
static void
attention(struct kv_cache *s, struct pass *p)
{
    const struct model_desc *d = &s->weights->desc;
    const size_t size = team_size(s->weights->backend->team);
    p->heads = p->n * d->kv_heads >= size ? d->heads / d->kv_heads : 1;
    const size_t columns = d->heads / p->heads, parts = (size + columns - 1) / columns; /* number of units per row */
    p->rows = (p->n + parts - 1) / parts;
    p->rows = p->rows < ATTEND_ROWS ? p->rows : ATTEND_ROWS;
    const struct row *row = row_at(p, p->n - 1);
    const size_t seen = (size_t)row->n_trunk + row->n_tail - first_seen(s->weights, p->l, row);
    const size_t cost = 2 * seen * p->rows * p->heads * d->head_dim;
    worker_for(s, (struct work){columns * ((p->n + p->rows - 1) / p->rows), 1, cost}, attend_units, p);
}

/* Adds the numbers `part` of a sublayer's output to the stream: after = before + output. */
static void
add_numbers(const struct kv_cache *s, const struct pass *p, size_t i, uint32_t from, struct range part, const float *y)
{
    const float *before = cpu_kv_cache_hidden(s, row_at(p, i)->ring, from);
    const float scale = form_factor(s->weights->desc.form.residual_scale);
    float *after = cpu_kv_cache_hidden(s, row_at(p, i)->ring, p->l);
    if (scale < 1 || scale > 1)
        for (size_t o = part.first; o < part.last; o++)
            after[o] = before[o] + scale * y[o];
    else
        for (size_t o = part.first; o < part.last; o++)
            after[o] = before[o] + y[o];
}

static void
add_outputs(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    for (size_t i = 0; i < p->n; i++)
        add_numbers(w->kv_cache, p, i, p->from, part, w->kv_cache->y + i * w->kv_cache->weights->desc.width);
}

static void
add_normed_rows(const struct worker *w, const void *pass, struct range rows)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const size_t width = s->weights->desc.width;
    const struct norm post = {.weight = p->end.post};
    for (size_t i = rows.first; i < rows.last; i++) {
        float *y = s->y + i * width;
        form_norm(s->weights, &post, y, width, y);
        add_numbers(s, p, i, p->from, (struct range){0, width}, y);
    }
}

static void
end_outputs(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    multiply_biased(w, p, p->end.m, p->end.bias, part, w->kv_cache->y);
    if (p->end.post == NULL)
        add_outputs(w, pass, part);
}

/* Adds W x to the stream, after its norm if there is one; that norm needs whole rows. */
static void
add_to_stream(struct kv_cache *s, struct pass *p, uint32_t from)
{
    p->from = from;
    worker_for(s, work_of_outputs(p->end.m->rows, p->n, p->end.m->cols), end_outputs, p);
    if (p->end.post != NULL)
        worker_for(s, work_of_rows(p->n, 8 * s->weights->desc.width), add_normed_rows, p);
}

/* Prepares the input of the MLP: its own norm of the stream, or of the layer's input in a parallel form. In a parallel
 * form without an MLP norm it is attention's input. */
static void
prepare_mlp(struct kv_cache *s, const struct pass *p, bool in_int8)
{
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const bool own = m->ffn_norm != NULL || !d->form.parallel;
    const struct norm norm = {own ? m->ffn_norm : m->attn_norm, own ? m->ffn_norm_b : m->attn_norm_b};
    worker_prepare(s, p->n, d->width, in_int8, norm, d->form.parallel ? hidden_before : hidden_between, p, NULL);
}

static void
hidden_units(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const struct layer *m = p->layer;
    const size_t ffn = s->weights->desc.ffn;
    const bool gated = m->gate.rows > 0;
    multiply_biased(w, p, &m->up, m->bup, part, gated ? s->up : s->gate);
    if (gated)
        multiply_biased(w, p, &m->gate, m->bgate, part, s->gate);
    for (size_t i = 0; i < p->n; i++)
        form_activate(s->weights, p->l, s->gate + i * ffn + part.first, gated ? s->up + i * ffn + part.first : NULL,
                      part.last - part.first);
}

static void
mlp(struct kv_cache *s, struct pass *p)
{
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    if (m->experts != NULL) {
        prepare_mlp(s, p, m->experts_in_int8);
        moe(s, p->l, p->n, p->active);
        p->end.post = m->ffn_post;
        p->from = p->l;
        if (p->end.post != NULL)
            worker_for(s, work_of_rows(p->n, 8 * d->width), add_normed_rows, p);
        else
            worker_for(s, work_of_outputs(d->width, p->n, 1), add_outputs, p);
        return;
    }
    prepare_mlp(s, p, quantised(&m->gate) || quantised(&m->up));
    worker_for(s, work_of_outputs(d->ffn, p->n, (m->gate.rows > 0 ? 2 : 1) * (size_t)d->width), hidden_units, p);
    worker_prepare(s, p->n, d->ffn, quantised(&m->down), (struct norm){0}, NULL, NULL, s->gate);
    p->end = (struct ending){&m->down, m->bdown, m->ffn_post};
    add_to_stream(s, p, p->l);
}

/* Runs layer l on the rows that need it. */
static void
run_layer(struct kv_cache *s, const struct forward_pass *forward, uint32_t l)
{
    const struct model_desc *d = &s->weights->desc;
    struct pass p = {.forward = forward, .layer = &s->weights->layers[l], .l = l, .active = s->active};
    worker_unit(s, l, &s->layer_use);
    for (size_t i = 0; i < forward->n; i++)
        if (forward->rows[i].from < l)
            s->active[p.n++] = (uint32_t)i;
    if (forward->skip_attention != NULL && forward->skip_attention[l]) {
        for (size_t i = 0; i < p.n; i++)
            memcpy(cpu_kv_cache_hidden(s, row_at(&p, i)->ring, l), hidden_before(s, &p, i), d->width * sizeof(float));
    } else {
        const struct layer *m = p.layer;
        project(s, &p);
        attention(s, &p);
        worker_prepare(s, p.n, m->wo.cols, quantised(&m->wo), (struct norm){0}, NULL, NULL, s->attended);
        p.end = (struct ending){&m->wo, m->bo, m->attn_post};
        add_to_stream(s, &p, l - 1);
    }
    if (forward->skip_mlp == NULL || !forward->skip_mlp[l])
        mlp(s, &p);
}

/* ---- the forward pass ---- */

/* Returns whether the last row exits after layer l. */
static bool
leaves(struct kv_cache *s, const struct forward_pass *forward, const struct exit_watch *watch, uint32_t l)
{
    const uint64_t start = clock_ns();
    s->head.n = 1;
    s->head.ready = 0;
    s->head.rows[0] = (struct head_row){.ring = forward->rows[forward->n - 1].ring,
                                        .layer = l,
                                        .head = watch->rule->head,
                                        .temperature = watch->rule->temperature[l],
                                        .final = -1,
                                        .request = -1};
    head_logits(s);
    head_pieces(s);
    struct prediction prediction;
    double max, sum;
    head_combine(s, 0, &prediction, &max, &sum);
    prediction = head_named(s, &prediction);
    watch->out->prediction = prediction;
    watch->out->probes++;
    watch->out->exited = prediction.annealed >= watch->rule->threshold[l];
    if (watch->probed != NULL)
        watch->probed[l] = prediction;
    if (!isfinite(prediction.confidence))
        head_broken(s, l);
    watch->out->probe_ns += clock_ns() - start;
    return watch->out->exited;
}

static void
rotate_rows(const struct worker *w, const void *arg, struct range rows)
{
    const struct forward_pass *forward = arg;
    const struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    for (size_t i = rows.first; i < rows.last; i++) {
        const uint32_t position = position_of(&forward->rows[i]);
        rope_rotations(s->weights, s->weights->rope, form_factor(d->form.rope_gain), position,
                       s->rotations + i * d->rope_dims);
        if (d->form.local_base > 0)
            rope_rotations(s->weights, s->weights->rope_local, 1, position,
                           s->rotations + (s->desc.max_rows + i) * d->rope_dims);
    }
}

/* Returns the last layer that was run. */
static uint32_t
run_layers(struct kv_cache *s, const struct forward_pass *forward, uint32_t l, const struct exit_watch *watch)
{
    for (;; l++) {
        run_layer(s, forward, l);
        if (watch != NULL) {
            watch->out->depth = l;
            if (watch->rule->threshold[l] <= 1 && leaves(s, forward, watch, l))
                return l;
        }
        if (l == forward->to || cpu_kv_cache_stopped(s))
            return l;
    }
}

/* Reports the pass to the team. Short passes whose numbers of rows are equal up to a factor of two take the same time
 * per weight of their layers; long ones take the same time per weight and row. Models of different sizes share the
 * team. */
static void
report(struct kv_cache *s, size_t rows, uint32_t layers, uint64_t took_ns, uint64_t ran_ns)
{
    const struct model_desc *d = &s->weights->desc;
    const double weights = (double)layers * d->width * ((double)d->width + d->ffn);
    uint32_t kind = 0;
    while (kind + 1 < TEAM_PASS_KINDS && (size_t)1 << kind < rows)
        kind++;
    team_pass(s->weights->backend->team, kind, kind + 1 < TEAM_PASS_KINDS ? weights : weights * (double)rows, took_ns,
              ran_ns);
}

void
forward_run(struct kv_cache *s, const struct forward_pass *forward, const struct exit_watch *watch)
{
    const uint32_t first = request_first_layer(forward);
    if (first > forward->to || cpu_kv_cache_stopped(s))
        return;
    const uint64_t start = clock_ns(), ran = platform_thread_ns();
    worker_begin(s);
    worker_for(s, work_of_rows(forward->n, 64 * (size_t)s->weights->desc.rope_dims), rotate_rows, forward);
    const uint32_t last = run_layers(s, forward, first, watch);
    report(s, forward->n, last - first + 1, clock_ns() - start, platform_thread_ns() - ran);
}
