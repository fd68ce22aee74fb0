#include "cli/info_form.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base/plural.h"
#include "engine/model/memory.h"
#include "kernels/tensor.h"

void
info_print_form(const struct model_desc *d)
{
    static const char *const activations[] = {"",        ", GELU (tanh)",   ", GELU", ", squared ReLU",
                                              ", xIELU", ", clamped SwiGLU"};
    const struct model_form *f = &d->form;
    uint32_t windows = 0, turned = 0;
    for (uint32_t l = 0; l < d->n_layers; l++) {
        windows += d->window > 0 && !d->layers[l].form.sees_all;
        turned += d->layers[l].form.rope != LAYER_ROPE_NONE;
    }
    printf("%s%s%s%s%s%s", activations[f->activation],
           d->layers[0].experts != NULL || tensor_present(&d->layers[0].gate) ? "" : " without a gate",
           f->centred ? ", LayerNorm" : "", f->parallel ? ", attention and MLP side by side" : "",
           tensor_present(&d->layers[0].attn_post) ? ", norms behind sublayers" : "",
           f->whole_norms ? " (those of Q and K over whole rows)" : "");
    if (windows > 0)
        printf(", attends to the last %" PRIu32 " position%s", d->window, plural(d->window));
    if (windows > 0 && windows < d->n_layers)
        printf(" in %" PRIu32 " layer%s", windows, plural(windows));
    if (f->alibi.most > 0)
        printf(", ALiBi");
    else if (tensor_present(&d->positions))
        printf(", learned positions");
    else if (turned < d->n_layers)
        printf(", no RoPE in %" PRIu32 " layer%s", d->n_layers - turned, plural(d->n_layers - turned));
    if (f->clip > 0)
        printf(", queries, keys and values clipped at %g", (double)f->clip);
    if (f->logit_cap > 0)
        printf(", logits capped at %g", (double)f->logit_cap);
}

void
info_print_experts(const struct model *m)
{
    const struct model_desc *d = &m->desc;
    static const char *const ways[ROUTINGS] = {"softmax", "sigmoid", "SparseMixer"};
    const struct experts_form *f = &d->form.experts;
    uint32_t layers = 0;
    for (uint32_t l = 0; l < d->n_layers; l++)
        layers += d->layers[l].experts != NULL;
    if (layers == 0)
        return;
    printf("experts       %" PRIu32 " of %" PRIu32 " units in %" PRIu32 " layer%s, a row goes to %" PRIu32, f->n,
           f->ffn, layers, plural(layers), f->used);
    if (f->groups > 1)
        printf(" from %" PRIu32 " of %" PRIu32 " groups", f->groups_used, f->groups);
    if (f->shared_ffn > 0)
        printf(" and to one of %" PRIu32 " units", f->shared_ffn);
    printf(", by %s%s\n", ways[f->routing], f->renormalised ? ", sums to 1" : "");
    printf("active        %" PRIu64 " parameters for a row\n", m->parameters - model_idle_parameters(m));
}
