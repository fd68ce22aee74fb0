/* Layers of experts: what they count in the accounts, and where rows went. A layer read for one row is one load, as any layer is: what it has beside
 * its experts, and as many of them as a row goes to. Rows that share a call may go to others, each of which is read, too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/context/context_internal.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

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

/* An expert's share of what one row reads of a layer. */
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

bool
context_experts_open(struct context *c, const struct model_desc *model)
{
    if (model->form.experts.n == 0)
        return true;
    c->touched = calloc(model->n_layers + 1u, sizeof *c->touched);
    c->expert_share = calloc(model->n_layers + 1u, sizeof *c->expert_share);
    const size_t each = (model->n_layers + 1u) * (size_t)model->form.experts.used;
    c->routes = calloc(c->limits.max_rows * each, sizeof *c->routes);
    c->kept = calloc(c->limits.ring * each, sizeof *c->kept);
    if (c->touched == NULL || c->expert_share == NULL || c->routes == NULL || c->kept == NULL)
        return false;
    c->experts_used = model->form.experts.used;
    for (uint32_t l = 1; l <= model->n_layers; l++)
        c->expert_share[l] = share_of(model, &model->layers[l - 1]);
    return true;
}

void
context_experts_begin(struct context *c)
{
    if (c->touched != NULL)
        memset(c->touched, 0, (c->n_layers + 1u) * sizeof *c->touched);
}

double
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

/* ---- where rows go ---- */

static size_t
entries(const struct context *c) /* of a row */
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

void
context_experts_ask(struct context *c, struct sweep *w)
{
    if (!c->follows_experts)
        return;
    forget(c, c->routes, w->n); /* what stays so the backend didn't tell */
    w->routes = c->routes;
}

void
context_experts_keep(struct context *c, const struct sweep *w, uint32_t depth)
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
