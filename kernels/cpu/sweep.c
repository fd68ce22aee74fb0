#include "kernels/cpu/sweep.h"

#include <math.h>

#include "kernels/clock.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/forms.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/mixture.h"

/* ---- a layer ---- */

/* The rows of a sweep that take part in layer l. */
struct pass {
    const struct sweep *sweep;
    const struct layer *layer;
    uint32_t l;
    size_t n;
    const uint32_t *active; /* (n) indices into sweep->rows */
};

static const struct row *
row_at(const struct pass *p, size_t i)
{
    return &p->sweep->rows[p->active[i]];
}

static uint32_t
position_of(const struct row *row)
{
    return row->n_trunk + row->n_tail - 1;
}

static const float *
hidden_before(const struct worker *w, const void *pass, size_t i)
{
    const struct pass *p = pass;
    return cpu_store_hidden(w->store, row_at(p, i)->ring, p->l - 1);
}

static const float *
hidden_between(const struct worker *w, const void *pass, size_t i)
{
    const struct pass *p = pass;
    return cpu_store_hidden(w->store, row_at(p, i)->ring, p->l);
}

static void
matmul(const struct worker *w, const struct matrix *m, const struct acts *x, size_t n, struct range part, float *y)
{
    worker_multiply(w, w->store->layer_use, m, x, n, part, y, m->rows);
}

static bool
quantised(const struct matrix *m)
{
    return m->q != NULL;
}

static const float *
turns_of(const struct store *s, const struct pass *p, size_t i)
{
    const size_t local = s->weights->layer_forms[p->l].rope == LAYER_ROPE_LOCAL ? s->desc.max_rows : 0;
    return s->turns + (local + p->active[i]) * s->weights->desc.rope_dims;
}

/* What a head's outputs are in attention: with their bias, normed, rotated. Norm and rotation may be absent, or in the other
 * order. */
static void
finish_head(const struct store *s, const struct pass *p, const float *turns, const float *norm, float *head)
{
    const struct model_desc *d = &s->weights->desc;
    const struct norm of_head = {.weight = norm};
    const bool turned = s->weights->layer_forms[p->l].rope != LAYER_ROPE_NONE;
    if (turned && d->form.late_norms)
        rope(d, turns, head);
    if (norm != NULL && !d->form.whole_norms)
        form_norm(s->weights, &of_head, head, d->head_dim, head);
    if (turned && !d->form.late_norms)
        rope(d, turns, head);
}

/* y (n, rows) = W x of all rows, for this worker's share of the outputs, with their bias. */
static void
multiply_biased(const struct worker *w, const struct matrix *m, const float *bias, const struct acts *x, size_t n,
                struct range part, float *y)
{
    matmul(w, m, x, n, part, y);
    for (size_t i = 0; i < n && bias != NULL; i++)
        for (size_t o = part.first; o < part.last; o++)
            y[i * m->rows + o] += bias[o];
}

/* Norms over all heads together need all of them. Behind it threads share rows of heads as before. */
static void
norm_whole_rows(struct worker *w, const struct pass *p)
{
    struct store *s = w->store;
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    if (!d->form.whole_norms)
        return;
    const size_t q_width = (size_t)d->heads * d->head_dim, kv_width = (size_t)d->kv_heads * d->head_dim;
    const struct norm q = {.weight = m->q_norm}, k = {.weight = m->k_norm};
    const struct range part = worker_share(w, p->n);
    worker_barrier(w);
    for (size_t i = part.first; i < part.last; i++) {
        if (q.weight != NULL)
            form_norm(s->weights, &q, s->q + i * q_width, q_width, s->q + i * q_width);
        if (k.weight != NULL)
            form_norm(s->weights, &k, s->k + i * kv_width, kv_width, s->k + i * kv_width);
    }
    worker_barrier(w);
}

/* q, k, v of all rows, rotated, keys and values stored. Threads share by heads, so a head's rotation needs nobody. */
static void
project(struct worker *w, const struct pass *p)
{
    struct store *s = w->store;
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    const size_t dim = d->head_dim, q_width = d->heads * dim, kv_width = d->kv_heads * dim;
    const bool in_int8 = quantised(&m->wq) || quantised(&m->wk) || quantised(&m->wv);
    const struct norm norm = {m->attn_norm, m->attn_norm_b};
    const struct acts x = worker_activations(w, p->n, d->width, in_int8, &norm, hidden_before, p, NULL);
    const struct range part = worker_share(w, (size_t)d->heads + 2 * d->kv_heads);
    const struct range q = range_overlap(part, 0, d->heads), k = range_overlap(part, d->heads, d->kv_heads),
                       v = range_overlap(part, d->heads + d->kv_heads, d->kv_heads);
    multiply_biased(w, &m->wq, m->bq, &x, p->n, range_times(q, dim), s->q);
    multiply_biased(w, &m->wk, m->bk, &x, p->n, range_times(k, dim), s->k);
    multiply_biased(w, &m->wv, m->bv, &x, p->n, range_times(v, dim), s->v);
    norm_whole_rows(w, p);
    form_clip(d->form.clip, s->q, p->n, q_width, range_times(q, dim));
    form_clip(d->form.clip, s->k, p->n, kv_width, range_times(k, dim));
    form_clip(d->form.clip, s->v, p->n, kv_width, range_times(v, dim));
    const float scale = d->form.attention_scale > 0 ? d->form.attention_scale : 1.0f / sqrtf((float)dim);
    for (size_t i = 0; i < p->n; i++) {
        const struct row *row = row_at(p, i);
        const float *turns = turns_of(s, p, i), grown = scale * form_growth(&d->form, position_of(row));
        for (size_t h = q.first; h < q.last; h++) {
            float *head = s->q + i * q_width + h * dim;
            finish_head(s, p, turns, m->q_norm, head);
            for (size_t j = 0; j < dim; j++)
                head[j] *= grown;
        }
        for (size_t h = k.first; h < k.last; h++) {
            float *head = s->k + i * kv_width + h * dim;
            finish_head(s, p, turns, m->k_norm, head);
            remember(s, p->l, (uint32_t)h, row->slot, s->keys, head);
        }
        for (size_t h = v.first; h < v.last; h++)
            remember(s, p->l, (uint32_t)h, row->slot, s->values, s->v + i * kv_width + h * dim);
    }
}

/* The first position that a row attends to. */
static size_t
first_seen(const struct weights *w, uint32_t l, const struct row *row)
{
    const size_t n = (size_t)row->n_trunk + row->n_tail, window = w->layer_forms[l].sees_all ? 0 : w->desc.window;
    return window > 0 && n > window ? n - window : 0;
}

static struct path
path_of(const struct store *s, const struct sweep *sweep, uint32_t l, const struct row *row)
{
    return (struct path){.trunk = s->trunk + (size_t)row->seq * s->desc.trunk,
                         .tail = sweep->tails + row->tail,
                         .n_trunk = row->n_trunk,
                         .n = (size_t)row->n_trunk + row->n_tail,
                         .first = first_seen(s->weights, l, row)};
}

/* A unit of work is some rows' heads on one key-value head; single heads where there is too little of that. */
static void
attention(struct worker *w, const struct pass *p)
{
    struct store *s = w->store;
    const struct model_desc *d = &s->weights->desc;
    const size_t group = d->heads / d->kv_heads, together = p->n * d->kv_heads >= w->size ? group : 1;
    const size_t columns = d->heads / together; /* units side by side in a row */
    size_t parts = (w->size + columns - 1) / columns, per = (p->n + parts - 1) / parts;
    per = per < ATTEND_ROWS ? per : ATTEND_ROWS;
    parts = (p->n + per - 1) / per;
    const size_t ld = (size_t)d->heads * d->head_dim;
    const struct widened widened = {w->own->keys, w->own->values};
    const struct range share_of = worker_share(w, columns * parts);
    for (size_t u = share_of.first; u < share_of.last; u++) {
        const size_t head = u / parts * together, first = u % parts * per;
        const size_t n = p->n - first < per ? p->n - first : per, at = first * ld + head * d->head_dim;
        struct path paths[ATTEND_ROWS];
        for (size_t i = 0; i < n; i++)
            paths[i] = path_of(s, p->sweep, p->l, row_at(p, first + i));
        const struct of_heads own = {p->layer->sinks != NULL ? p->layer->sinks + head : NULL,
                                     s->weights->slopes != NULL ? s->weights->slopes + head : NULL};
        attend(s, widened, p->l, (uint32_t)(head / group), paths, n, together, s->q + at, own, s->attended + at, ld);
    }
}

/* after = before + what a sublayer adds, of the numbers in `part`. */
static void
add_numbers(const struct store *s, const struct pass *p, size_t i, uint32_t from, struct range part, const float *y)
{
    const float *before = cpu_store_hidden(s, row_at(p, i)->ring, from);
    const float scale = form_factor(s->weights->desc.form.residual_scale);
    float *after = cpu_store_hidden(s, row_at(p, i)->ring, p->l);
    if (scale < 1 || scale > 1)
        for (size_t o = part.first; o < part.last; o++)
            after[o] = before[o] + scale * y[o];
    else
        for (size_t o = part.first; o < part.last; o++)
            after[o] = before[o] + y[o];
}

/* What a sublayer ends with: hidden[l] = from + W x, with a bias and a norm of what is added, where the model has them. */
struct ending {
    const struct matrix *m;
    const float *bias, *post;
};

/* The store's y, of which this worker has its share of the outputs, behind a norm if there is one: that is of whole rows. */
static void
add_sublayer(struct worker *w, const struct pass *p, const float *norm, uint32_t from)
{
    struct store *s = w->store;
    const size_t width = s->weights->desc.width;
    const struct range part = worker_outputs(w, width);
    if (norm == NULL) {
        for (size_t i = 0; i < p->n; i++)
            add_numbers(s, p, i, from, part, s->y + i * width);
        return;
    }
    worker_barrier(w);
    const struct norm post = {.weight = norm};
    const struct range rows = worker_share(w, p->n);
    for (size_t i = rows.first; i < rows.last; i++) {
        float *y = s->y + i * width;
        form_norm(s->weights, &post, y, width, y);
        add_numbers(s, p, i, from, (struct range){0, width}, y);
    }
}

static void
add_to_stream(struct worker *w, const struct pass *p, struct ending end, const struct acts *x, uint32_t from)
{
    multiply_biased(w, end.m, end.bias, x, p->n, worker_outputs(w, end.m->rows), w->store->y);
    add_sublayer(w, p, end.post, from);
}

/* What the MLP reads: its own norm of the stream, or in a parallel form of the layer's input; without one of its own there,
 * attention's. */
static struct acts
mlp_input(struct worker *w, const struct pass *p, bool in_int8)
{
    const struct model_desc *d = &w->store->weights->desc;
    const struct layer *m = p->layer;
    const bool own = m->ffn_norm != NULL || !d->form.parallel;
    const struct norm norm = {own ? m->ffn_norm : m->attn_norm, own ? m->ffn_norm_b : m->attn_norm_b};
    return worker_activations(w, p->n, d->width, in_int8, &norm, d->form.parallel ? hidden_before : hidden_between, p,
                              NULL);
}

static void
mlp(struct worker *w, const struct pass *p)
{
    struct store *s = w->store;
    const struct model_desc *d = &s->weights->desc;
    const struct layer *m = p->layer;
    if (m->experts != NULL) {
        const struct acts normed = mlp_input(w, p, m->experts_in_int8);
        mixture(w, p->l, &normed, p->n, p->active);
        add_sublayer(w, p, m->ffn_post, p->l);
        return;
    }
    const bool gated = m->gate.rows > 0;
    struct acts x = mlp_input(w, p, quantised(&m->gate) || quantised(&m->up));
    const struct range part = worker_outputs(w, d->ffn);
    multiply_biased(w, &m->up, m->bup, &x, p->n, part, gated ? s->up : s->gate);
    if (gated)
        multiply_biased(w, &m->gate, m->bgate, &x, p->n, part, s->gate);
    for (size_t i = 0; i < p->n && part.first < part.last; i++)
        form_activate(s->weights, p->l, s->gate + i * d->ffn + part.first,
                      gated ? s->up + i * d->ffn + part.first : NULL, part.last - part.first);
    worker_barrier(w);
    x = worker_activations(w, p->n, d->ffn, quantised(&m->down), NULL, NULL, NULL, s->gate);
    add_to_stream(w, p, (struct ending){&m->down, m->bdown, m->ffn_post}, &x, p->l);
}

/* Layer l on the rows that need it. Ends without a barrier. */
static void
run_layer(struct worker *w, const struct sweep *sweep, uint32_t l)
{
    struct store *s = w->store;
    const struct model_desc *d = &s->weights->desc;
    struct pass p = {.sweep = sweep, .layer = &s->weights->layers[l], .l = l, .active = w->own->active};
    worker_unit(w, l, &s->layer_use);
    for (size_t i = 0; i < sweep->n; i++)
        if (sweep->rows[i].from < l)
            w->own->active[p.n++] = (uint32_t)i;
    if (sweep->skip_attention != NULL && sweep->skip_attention[l]) {
        const struct range part = worker_share(w, p.n);
        for (size_t i = part.first; i < part.last; i++)
            memcpy(cpu_store_hidden(s, row_at(&p, i)->ring, l), hidden_before(w, &p, i), d->width * sizeof(float));
    } else {
        project(w, &p);
        worker_barrier(w);
        attention(w, &p);
        worker_barrier(w);
        const struct acts x =
            worker_activations(w, p.n, p.layer->wo.cols, quantised(&p.layer->wo), NULL, NULL, NULL, s->attended);
        add_to_stream(w, &p, (struct ending){&p.layer->wo, p.layer->bo, p.layer->attn_post}, &x, l - 1);
    }
    worker_barrier(w);
    if (sweep->skip_mlp == NULL || !sweep->skip_mlp[l])
        mlp(w, &p);
}

/* ---- the sweep ---- */

/* Does the last row leave after layer l? All workers come to the same answer. */
static bool
leaves(struct worker *w, const struct exit_watch *watch, uint32_t l)
{
    const uint64_t start = w->rank == 0 ? clock_ns() : 0;
    head_logits(w);
    head_pieces(w);
    worker_barrier(w);
    struct guess guess;
    double max, sum;
    head_combine(w->store, 0, &guess, &max, &sum);
    const bool exited = guess.annealed >= watch->rule->threshold[l];
    if (w->rank == 0) {
        watch->out->guess = guess;
        watch->out->probes++;
        watch->out->exited = exited;
        if (watch->probed != NULL)
            watch->probed[l] = guess;
        if (!isfinite(guess.confidence))
            head_broken(w->store, l);
        watch->out->probe_ns += clock_ns() - start;
    }
    return exited;
}

static void
walk(struct worker *w, const struct sweep *sweep, const struct exit_watch *watch, uint32_t first)
{
    struct store *s = w->store;
    const struct model_desc *d = &s->weights->desc;
    const struct range part = worker_share(w, sweep->n);
    for (size_t i = part.first; i < part.last; i++) {
        const uint32_t position = position_of(&sweep->rows[i]);
        rope_turns(s->weights, s->weights->rope, form_factor(d->form.rope_gain), position, s->turns + i * d->rope_dims);
        if (d->form.local_base > 0)
            rope_turns(s->weights, s->weights->rope_local, 1, position,
                       s->turns + (s->desc.max_rows + i) * d->rope_dims);
    }
    worker_barrier(w);
    for (uint32_t l = first; l <= sweep->to; l++) {
        run_layer(w, sweep, l);
        const bool probe = watch != NULL && watch->rule->threshold[l] <= 1;
        if (w->rank == 0) { /* for all workers to read behind the barrier */
            if (watch != NULL)
                watch->out->depth = l;
            if (probe) {
                s->head.n = 1;
                s->head.ready = 0;
                s->head.rows[0] = (struct head_row){.ring = sweep->rows[sweep->n - 1].ring,
                                                    .layer = l,
                                                    .head = watch->rule->head,
                                                    .temperature = watch->rule->temperature[l],
                                                    .final = -1,
                                                    .request = -1};
            }
            s->stop = l < sweep->to && cpu_store_stopped(s);
        }
        worker_barrier(w);
        if ((probe && leaves(w, watch, l)) || s->stop)
            return;
    }
}

void
sweep_run(struct store *s, const struct sweep *sweep, const struct exit_watch *watch)
{
    const uint32_t first = request_first_layer(sweep);
    if (first > sweep->to || cpu_store_stopped(s))
        return;
    worker_begin(s);
    PARALLEL(omp parallel num_threads(s->threads))
    {
        struct worker w = worker_here(s);
        walk(&w, sweep, watch, first);
    }
}
