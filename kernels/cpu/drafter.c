/* The input of a drafter (struct drafter_desc): rows begin with features of another model's rows, or with the output of
 * the row before them. Rows of a block drafter that are fed have keys and values only. */
#include "kernels/cpu/forward.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/weights.h"
#include "kernels/tensor.h"

void
embed_token(const struct kv_cache *s, token_t token, float *e)
{
    const struct model_desc *d = &s->weights->desc;
    const float scale = form_factor(d->form.embedding_scale);
    tensor_row(&d->embedding, (size_t)token, e);
    for (uint32_t k = 0; (scale < 1 || scale > 1) && k < d->width; k++)
        e[k] *= scale;
}

void
drafter_pair(const struct kv_cache *s, token_t token, const float *g, bool normed, float *pair)
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

/* From g in s->y: the pairs that are joined, or the layer's input; in a block drafter norm(g) in s->pairs. */
static void
begin_rows(const struct worker *w, const void *arg, struct range rows)
{
    const struct feeding *f = arg;
    const struct kv_cache *s = w->kv_cache;
    const struct model_desc *d = &s->weights->desc;
    for (size_t i = rows.first; i < rows.last; i++) {
        const float *g = s->y + i * d->width;
        float *input = cpu_kv_cache_hidden(s, f->rows[i].ring, 0);
        if (d->drafter->block > 0)
            form_norm(s->weights, &s->weights->drafter.feature_norm, g, d->width, s->pairs + i * d->width);
        else if (f->m != NULL)
            drafter_pair(s, f->rows[i].token, g, false, s->pairs + 2 * i * d->width);
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
    if (d->drafter->block > 0)
        forward_keys(s, rows, n, s->pairs);
    if (f.m == NULL)
        return;
    feed_product(s, &f);
    for (size_t i = 0; i < n; i++)
        memcpy(cpu_kv_cache_hidden(s, rows[i].ring, 0), s->y + i * d->width, d->width * sizeof *s->y);
}
