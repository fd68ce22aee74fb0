/* What layers of experts count in the accounts. A layer read for one row is one load, as any layer is: what it has beside
 * its experts, and as many of them as a row goes to. Rows that share a call may go to others, each of which is read, too. */
#include <stdlib.h>

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
    if (c->touched == NULL || c->expert_share == NULL)
        return false;
    c->experts_used = model->form.experts.used;
    for (uint32_t l = 1; l <= model->n_layers; l++)
        c->expert_share[l] = share_of(model, &model->layers[l - 1]);
    return true;
}

double
context_experts_load(const struct context *c, uint32_t layer)
{
    if (c->touched == NULL || c->touched[layer] == 0)
        return 0;
    return c->expert_share[layer] * ((double)c->touched[layer] - c->experts_used);
}
