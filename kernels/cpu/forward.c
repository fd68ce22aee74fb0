#include "kernels/cpu/forward.h"

#include <math.h>

#include "base/clock.h"
#include "base/platform.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/weights.h"
#include "kernels/team_sizing.h"
#include "kernels/tensor.h"

/* ---- a layer ---- */

/* The end of a sublayer: hidden[l] = (from + W x) * scale, with a bias and a norm of the summand if the model has them.
 * Experts beside an MLP have norms of their own: the summand is then norm(experts) + kv_cache.beside. */
struct ending {
    const struct matrix *m;
    const float *bias, *post, *experts_post;
    const float *scale; /* the layer's factor, if the sublayer is the last of it; or NULL */
};

/* The rows of a forward pass that take part in layer l, and the parameters of the current step. */
struct pass {
    const struct forward_pass *forward;
    const struct layer *layer;
    uint32_t l;
    struct layer_sizes sizes;
    size_t n;
    const uint32_t *active; /* (n) indices into forward->rows */
    struct ending end;      /* of the current sublayer */
    uint32_t from;          /* depth of the hidden state that the sublayer adds to */
    size_t heads_of_q;      /* number of heads whose queries are computed */
    size_t heads, rows;     /* attention: number of heads and rows computed together */
    float *g;               /* (n, width) input of k and v of rows that are fed to a block drafter, or NULL */
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
    const struct weights *w = s->weights;
    if (w->layer_forms[p->l].rope == LAYER_ROPE_LOCAL)
        return s->rotations + (size_t)s->desc.max_rows * w->desc.rope_dims + (size_t)p->active[i] * w->local_dims;
    return s->rotations + (size_t)p->active[i] * w->desc.rope_dims;
}

/* Finishes a head's outputs for attention: adds the bias, normalises, rotates. Norm and rotation may be absent or in
 * reverse order. */
static void
normalise_head(const struct kv_cache *s, const struct pass *p, const float *rotations, const float *norm, float *head)
{
    const struct model_desc *d = &s->weights->desc;
    const struct norm of_head = {.weight = norm};
    const enum layer_rope kind = s->weights->layer_forms[p->l].rope;
    const uint32_t dims = kind == LAYER_ROPE_LOCAL ? s->weights->local_dims : d->rope_dims;
    const bool rotated = kind != LAYER_ROPE_NONE;
    if (rotated && d->form.late_norms)
        rope(d->rope, dims, rotations, head);
    if (norm != NULL && !d->form.whole_norms)
        form_norm(s->weights, &of_head, head, p->sizes.head_dim, head);
    if (rotated && !d->form.late_norms)
        rope(d->rope, dims, rotations, head);
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

/* Units are the layer's heads of q, of k and of v; those of k and v are absent if the layer reads another one's. */
static struct heads
heads_in(const struct kv_cache *s, const struct pass *p, struct range part)
{
    const size_t q = p->heads_of_q, kv = s->weights->layer_forms[p->l].kv_layer > 0 ? 0 : p->sizes.kv_heads;
    return (struct heads){range_overlap(part, 0, q), range_overlap(part, q, kv), range_overlap(part, q + kv, kv)};
}

static void
project_heads(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const struct layer *m = p->layer;
    const struct heads h = heads_in(s, p, part);
    const size_t dim = p->sizes.head_dim;
    const bool own = m->wv.rows > 0; /* otherwise the keys are the values */
    if (s->weights->desc.form.output_gate)
        multiply_biased(w, p, &m->wq, NULL, range_times(h.q, 2 * dim), s->gated);
    else
        multiply_biased(w, p, &m->wq, m->bq, range_times(h.q, dim), s->q);
    multiply_biased(w, p, &m->wk, m->bk, range_times(h.k, dim), s->k);
    multiply_biased(w, p, own ? &m->wv : &m->wk, own ? m->bv : m->bk, range_times(h.v, dim), s->v);
}

/* Copies the queries of these heads, without their gates. */
static void
part_from_gates(const struct kv_cache *s, size_t n, struct range heads)
{
    const struct model_desc *d = &s->weights->desc;
    for (size_t i = 0; i < n && d->form.output_gate; i++)
        for (size_t h = heads.first; h < heads.last; h++)
            memcpy(s->q + (i * d->heads + h) * d->head_dim, s->gated + (i * d->heads + h) * 2 * d->head_dim,
                   d->head_dim * sizeof *s->q);
}

/* Multiplies the outputs of n rows' heads by the sigmoids of their gates. */
static void
apply_gates(const struct kv_cache *s, struct range rows, struct range heads)
{
    const struct model_desc *d = &s->weights->desc;
    for (size_t i = rows.first; i < rows.last && d->form.output_gate; i++)
        for (size_t h = heads.first; h < heads.last; h++) {
            const float *gate = s->gated + ((i * d->heads + h) * 2 + 1) * d->head_dim;
            float *out = s->attended + (i * d->heads + h) * d->head_dim;
            for (size_t k = 0; k < d->head_dim; k++)
                out[k] /= 1 + expf(-gate[k]);
        }
}

/* Norms over all heads together. */
static void
norm_whole_rows(const struct worker *w, const void *pass, struct range rows)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const size_t q_width = p->sizes.q, kv_width = p->sizes.kv;
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
    const size_t dim = p->sizes.head_dim, q_width = p->sizes.q, kv_width = p->sizes.kv;
    const struct heads of = heads_in(s, p, part);
    const struct norm of_value = {.weight = s->weights->ones};
    part_from_gates(s, p->n, of.q);
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
        for (size_t h = of.v.first; h < of.v.last; h++) {
            float *head = s->v + i * kv_width + h * dim;
            if (of_value.weight != NULL)
                form_norm(s->weights, &of_value, head, dim, head);
            remember(s, p->l, (uint32_t)h, row->slot, s->values, head);
        }
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
        drafter_pair(s, row_at(p, i)->token, hidden_before(s, p, i), s->weights->desc.drafter->input_normed,
                     s->pairs + 2 * i * s->weights->desc.width);
}

/* Computes q, k, v of all rows; only k and v if attention is skipped, for the layers that read them. */
static void
project(struct kv_cache *s, struct pass *p, bool skipped)
{
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const bool in_int8 = quantised(&m->wq) || quantised(&m->wk) || quantised(&m->wv);
    const struct norm norm = {m->attn_norm, m->attn_norm_b};
    p->heads_of_q = skipped ? 0 : d->heads;
    const size_t kv = s->weights->layer_forms[p->l].kv_layer > 0 ? 0 : p->sizes.kv_heads;
    const struct work heads = {p->heads_of_q + 2 * kv, 1, p->n * d->width * p->sizes.head_dim};
    if (p->g != NULL) {
        worker_prepare(s, p->n, d->width, in_int8, (struct norm){0}, NULL, NULL, p->g);
    } else if (model_pairs(d)) {
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
    const struct layer_form *form = &s->weights->layer_forms[l];
    return (struct path){.trunk = s->trunk + (size_t)row->seq * s->desc.trunk,
                         .tail = forward->tails + row->tail,
                         .n_trunk = row->n_trunk,
                         .n = (size_t)row->n_trunk + row->n_tail + (form->causal ? 0 : row->n_after),
                         .own = position_of(row),
                         .first = first_seen(s->weights, l, row)};
}

/* A unit of work is several rows' heads on one key-value head. */
static void
attend_units(const struct worker *w, const void *pass, struct range units)
{
    const struct pass *p = pass;
    struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    const size_t group = d->heads / p->sizes.kv_heads, ld = p->sizes.q;
    const size_t parts = (p->n + p->rows - 1) / p->rows;
    const struct widened widened = {w->own->keys, w->own->values};
    for (size_t u = units.first; u < units.last; u++) {
        const size_t head = u / parts * p->heads, first = u % parts * p->rows;
        const size_t n = p->n - first < p->rows ? p->n - first : p->rows, at = first * ld + head * p->sizes.head_dim;
        struct path paths[ATTEND_ROWS];
        for (size_t i = 0; i < n; i++)
            paths[i] = path_of(s, p->forward, p->l, row_at(p, first + i));
        const struct of_heads own = {p->layer->sinks != NULL ? p->layer->sinks + head : NULL,
                                     s->weights->slopes != NULL ? s->weights->slopes + head : NULL};
        attend(s, widened, p->l, (uint32_t)(head / group), paths, n, p->heads, s->q + at, own, s->attended + at, ld);
        apply_gates(s, (struct range){first, first + n}, (struct range){head, head + p->heads});
    }
}

/* Uses single heads, and fewer rows per unit, if there are too few units for all threads. */
static void
attention(struct kv_cache *s, struct pass *p)
{
    const struct model_desc *d = &s->weights->desc;
    const size_t size = team_size(s->weights->backend->team);
    p->heads = p->n * p->sizes.kv_heads >= size ? d->heads / p->sizes.kv_heads : 1;
    const size_t columns = d->heads / p->heads, parts = (size + columns - 1) / columns; /* number of units per row */
    p->rows = (p->n + parts - 1) / parts;
    p->rows = p->rows < ATTEND_ROWS ? p->rows : ATTEND_ROWS;
    const struct row *row = row_at(p, p->n - 1);
    const size_t seen = (size_t)row->n_trunk + row->n_tail - first_seen(s->weights, p->l, row);
    const size_t cost = 2 * seen * p->rows * p->heads * p->sizes.head_dim;
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
    for (size_t o = part.first; o < part.last && p->end.scale != NULL; o++)
        after[o] *= p->end.scale[0];
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
    const struct norm post = {.weight = p->end.post}, experts = {.weight = p->end.experts_post};
    for (size_t i = rows.first; i < rows.last; i++) {
        float *y = s->y + i * width;
        if (experts.weight != NULL) {
            form_norm(s->weights, &experts, y, width, y);
            for (size_t o = 0; o < width; o++)
                y[o] += s->beside[i * width + o];
        }
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
    const size_t ffn = p->sizes.ffn;
    const bool gated = m->gate.rows > 0;
    multiply_biased(w, p, &m->up, m->bup, part, gated ? s->up : s->gate);
    if (gated)
        multiply_biased(w, p, &m->gate, m->bgate, part, s->gate);
    for (size_t i = 0; i < p->n; i++)
        form_activate(s->weights, p->l, s->gate + i * ffn + part.first, gated ? s->up + i * ffn + part.first : NULL,
                      part.last - part.first);
}

/* Computes the hidden units of the MLP, and prepares them as the input of the last matrix. */
static void
mlp_hidden(struct kv_cache *s, struct pass *p)
{
    const struct layer *m = p->layer;
    const size_t ffn = p->sizes.ffn;
    prepare_mlp(s, p, quantised(&m->gate) || quantised(&m->up));
    worker_for(s, work_of_outputs(ffn, p->n, (m->gate.rows > 0 ? 2 : 1) * (size_t)s->weights->desc.width), hidden_units,
               p);
    worker_prepare(s, p->n, (uint32_t)ffn, quantised(&m->down), (struct norm){0}, NULL, NULL, s->gate);
}

static void
down_outputs(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    multiply_biased(w, p, &p->layer->down, p->layer->bdown, part, w->kv_cache->y);
}

static void
norm_beside(const struct worker *w, const void *pass, struct range rows)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const size_t width = s->weights->desc.width;
    const struct norm post = {.weight = p->layer->mlp_post};
    for (size_t i = rows.first; i < rows.last; i++)
        form_norm(s->weights, &post, s->y + i * width, width, s->beside + i * width);
}

/* An MLP beside experts: its output after its own norm is added to that of the experts (add_normed_rows()). */
static void
mlp_beside(struct kv_cache *s, struct pass *p)
{
    const struct layer *m = p->layer;
    const uint32_t width = s->weights->desc.width;
    mlp_hidden(s, p);
    worker_for(s, work_of_outputs(width, p->n, m->down.cols), down_outputs, p);
    worker_for(s, work_of_rows(p->n, 8 * (size_t)width), norm_beside, p);
    worker_prepare(s, p->n, width, false, (struct norm){.weight = m->router_norm}, hidden_between, p, NULL);
    moe_route(s, p->l, p->n, p->active);
    worker_prepare(s, p->n, width, m->experts_in_int8, (struct norm){.weight = m->experts_norm}, hidden_between, p,
                   NULL);
    p->end.experts_post = m->experts_post;
}

static void
mlp(struct kv_cache *s, struct pass *p)
{
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const float *scale = d->form.per_layer > 0 ? NULL : m->out_scale; /* after the per-layer inputs */
    if (m->experts == NULL) {
        mlp_hidden(s, p);
        p->end = (struct ending){.m = &m->down, .bias = m->bdown, .post = m->ffn_post, .scale = scale};
        add_to_stream(s, p, p->l);
        return;
    }
    p->end = (struct ending){.post = m->ffn_post, .scale = scale};
    if (m->up.rows > 0) {
        mlp_beside(s, p);
    } else {
        prepare_mlp(s, p, m->experts_in_int8);
        moe_route(s, p->l, p->n, p->active);
    }
    moe(s, p->l, p->n);
    p->from = p->l;
    if (p->end.post != NULL)
        worker_for(s, work_of_rows(p->n, 8 * (size_t)d->width), add_normed_rows, p);
    else
        worker_for(s, work_of_outputs(d->width, p->n, 1), add_outputs, p);
}

/* ---- per-layer inputs ---- */

static const float *
embedding_of(const struct kv_cache *s, const void *pass, size_t i)
{
    const struct pass *p = pass;
    return cpu_kv_cache_hidden(s, row_at(p, i)->ring, 0);
}

static void
project_inputs(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    multiply_biased(w, p, &p->layer->input, NULL, part, w->kv_cache->inputs);
}

/* inputs = (norm(projection of the embedding / sqrt(width)) + the token's embedding for this layer) / sqrt(2) */
static void
finish_inputs(const struct worker *w, const void *pass, struct range rows)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    const struct tensor *t = &d->input_embedding;
    const size_t n = d->form.per_layer, bytes = tensor_row_bytes(t->type, n);
    const float narrow = 1 / sqrtf((float)d->width), wide = sqrtf((float)n);
    const struct norm norm = {.weight = s->weights->input_norm};
    float *embedded = w->own->input;
    for (size_t i = rows.first; i < rows.last; i++) {
        float *x = s->inputs + i * n;
        const size_t at = (size_t)row_at(p, i)->token * d->n_layers + p->l - 1;
        tensor_blocks(t->type, (const unsigned char *)t->data + at * bytes, n, embedded);
        for (size_t k = 0; k < n; k++)
            x[k] *= narrow;
        form_norm(s->weights, &norm, x, n, x);
        for (size_t k = 0; k < n; k++)
            x[k] = (x[k] + wide * embedded[k]) * 0.70710678118654752f;
    }
}

/* gate (n, per_layer) = act(W x) * inputs */
static void
gate_inputs(const struct worker *w, const void *pass, struct range part)
{
    const struct pass *p = pass;
    const struct kv_cache *s = w->kv_cache;
    const size_t n = s->weights->desc.form.per_layer;
    multiply_biased(w, p, &p->layer->input_gate, NULL, part, s->gate);
    for (size_t i = 0; i < p->n; i++)
        form_activate(s->weights, p->l, s->gate + i * n + part.first, s->inputs + i * n + part.first,
                      part.last - part.first);
}

static void
add_inputs(struct kv_cache *s, struct pass *p)
{
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const uint32_t n = d->form.per_layer;
    worker_prepare(s, p->n, d->width, quantised(&m->input), (struct norm){0}, embedding_of, p, NULL);
    worker_for(s, work_of_outputs(n, p->n, d->width), project_inputs, p);
    worker_for(s, work_of_rows(p->n, 16 * (size_t)n), finish_inputs, p);
    worker_prepare(s, p->n, d->width, quantised(&m->input_gate), (struct norm){0}, hidden_between, p, NULL);
    worker_for(s, work_of_outputs(n, p->n, d->width), gate_inputs, p);
    worker_prepare(s, p->n, n, quantised(&m->input_out), (struct norm){0}, NULL, NULL, s->gate);
    p->end = (struct ending){.m = &m->input_out, .post = m->input_post, .scale = m->out_scale};
    add_to_stream(s, p, p->l);
}

static void
recurrent(struct kv_cache *s, struct pass *p)
{
    const struct layer *m = p->layer;
    const bool in_int8 = quantised(&m->recurrent_qkv) || quantised(&m->recurrent_z) || quantised(&m->recurrent_b) ||
                         quantised(&m->recurrent_a);
    worker_prepare(s, p->n, s->weights->desc.width, in_int8, (struct norm){m->attn_norm, m->attn_norm_b}, hidden_before,
                   p, NULL);
    float *out = recurrent_layer(s, p->forward, p->l, p->n, p->active);
    worker_prepare(s, p->n, m->recurrent_out.cols, quantised(&m->recurrent_out), (struct norm){0}, NULL, NULL, out);
    p->end = (struct ending){.m = &m->recurrent_out, .post = m->attn_post};
    add_to_stream(s, p, p->l - 1);
}

/* ---- the whole layer ---- */

/* Returns whether a later layer reads this layer's keys and values. */
static bool
is_read(const struct weights *w, uint32_t l)
{
    bool read = false;
    for (uint32_t after = l + 1; after <= w->desc.n_layers; after++)
        read = read || w->layer_forms[after].kv_layer == l;
    return read;
}

/* A skipped sublayer leaves the stream unchanged. */
static void
skip_attention(struct kv_cache *s, struct pass *p)
{
    for (size_t i = 0; i < p->n; i++)
        memcpy(cpu_kv_cache_hidden(s, row_at(p, i)->ring, p->l), hidden_before(s, p, i),
               s->weights->desc.width * sizeof(float));
    if (is_read(s->weights, p->l))
        project(s, p, true);
}

static void
skip_mlp(struct kv_cache *s, const struct pass *p)
{
    const float *scale = p->layer->out_scale;
    for (size_t i = 0; i < p->n && scale != NULL; i++) {
        float *h = cpu_kv_cache_hidden(s, row_at(p, i)->ring, p->l);
        for (uint32_t o = 0; o < s->weights->desc.width; o++)
            h[o] *= scale[0];
    }
}

/* Runs layer l on the rows that need it. */
static void
run_layer(struct kv_cache *s, const struct forward_pass *forward, uint32_t l)
{
    struct pass p = {.forward = forward,
                     .layer = &s->weights->layers[l],
                     .l = l,
                     .sizes = cpu_layer_sizes(s, l),
                     .active = s->active};
    worker_unit(s, l, &s->layer_use);
    for (size_t i = 0; i < forward->n; i++)
        if (forward->rows[i].from < l)
            s->active[p.n++] = (uint32_t)i;
    if (forward->skip_attention != NULL && forward->skip_attention[l]) {
        skip_attention(s, &p);
    } else if (s->weights->layer_forms[l].kind == LAYER_RECURRENT) {
        recurrent(s, &p);
    } else {
        const struct layer *m = p.layer;
        project(s, &p, false);
        attention(s, &p);
        worker_prepare(s, p.n, m->wo.cols, quantised(&m->wo), (struct norm){0}, NULL, NULL, s->attended);
        p.end = (struct ending){.m = &m->wo, .bias = m->bo, .post = m->attn_post};
        add_to_stream(s, &p, l - 1);
    }
    if (forward->skip_mlp != NULL && forward->skip_mlp[l]) {
        skip_mlp(s, &p);
    } else {
        mlp(s, &p);
        if (s->weights->desc.form.per_layer > 0)
            add_inputs(s, &p);
    }
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
                                        .set = watch->rule->set,
                                        .head = watch->rule->head,
                                        .temperature = watch->rule->temperature[l],
                                        .final = -1,
                                        .request = -1};
    if (watch->rule->set > 0) { /* the few logits of a set cost less than another step */
        head_stream(s);
    } else {
        head_logits(s);
        head_pieces(s);
    }
    struct prediction prediction;
    double max, sum;
    head_combine(s, 0, &prediction, &max, &sum);
    prediction = head_named(s, watch->rule->set, &prediction);
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
        rope_rotations(s->weights->rope, d->rope_dims, form_factor(d->form.rope_gain), position,
                       s->rotations + i * d->rope_dims);
        if (d->form.local_base > 0)
            rope_rotations(s->weights->rope_local, s->weights->local_dims, 1, position,
                           s->rotations + (size_t)s->desc.max_rows * d->rope_dims + i * s->weights->local_dims);
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

void
forward_keys(struct kv_cache *s, const struct row *rows, size_t n, float *g)
{
    const struct forward_pass forward = {.rows = rows, .n = n, .to = request_depth(&s->weights->desc, &s->desc)};
    worker_for(s, work_of_rows(n, 64 * (size_t)s->weights->desc.rope_dims), rotate_rows, &forward);
    for (size_t i = 0; i < n; i++)
        s->active[i] = (uint32_t)i;
    for (uint32_t l = 1; l <= forward.to && !cpu_kv_cache_stopped(s); l++) {
        struct pass p = {.forward = &forward,
                         .layer = &s->weights->layers[l],
                         .l = l,
                         .sizes = cpu_layer_sizes(s, l),
                         .n = n,
                         .active = s->active,
                         .g = g};
        if (l > 1) /* the first layer's unit contains the projection of the features, and is in use */
            worker_unit(s, l, &s->layer_use);
        project(s, &p, true);
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
    s->state.planned = 0;
    worker_for(s, work_of_rows(forward->n, 64 * (size_t)s->weights->desc.rope_dims), rotate_rows, forward);
    const uint32_t last = run_layers(s, forward, first, watch);
    report(s, forward->n, last - first + 1, clock_ns() - start, platform_thread_ns() - ran);
}
