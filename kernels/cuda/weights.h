/* A model's weights in device memory. */
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/layout.h"

struct weights {
    struct backend *backend;
    struct model_desc desc;        /* for checking requests; `layers` and `rope_factors` are not stored */
    struct dev_model sizes;        /* copy of the device's structure, with device pointers */
    const struct dev_model *model; /* on the device */
    struct dev_layer *layers;      /* (L + 1): host copies of model->layers, */
    struct dev_moe *moe;           /* (L + 1), NULL: none; model->moe, */
    struct dev_head *heads;        /* (L + 1), NULL: none; model->trained, */
    struct dev_product *products;  /* (n_products) and model->products: schedule.h */
    uint32_t n_products;
    struct plan_step {
        uint32_t first, n;
    } * plan;  /* (L + 1, STEPS): the products of a step; those of a probe belong to layer 0 */
    bool rare; /* experts, sinks, clamps, ALiBi, or q, k and v that read pairs: the forward pass is */
               /* launch_forward_moe() */
    struct memory memory;
    struct memory trained; /* memory of the trained heads */
};

/* Loads a model: packs weights on the CPU while previously packed ones are copied. Fails, with the sizes, if weights
 * and the keys and values of desc.ctx positions exceed the device's free memory. */
bool cuda_weights_load(struct backend *, const struct model_desc *, progress_fn, void *user, struct weights **,
                       struct err *);
void cuda_weights_unload(struct weights *);

/* backend_ops.heads (weights.c) */
bool cuda_weights_heads(struct weights *, const struct exit_head *by_layer, struct err *);
/* Returns whether this head choice differs from the logit lens. */
static inline bool
weights_asked(const struct weights *w, enum head_choice head)
{
    return head == USE_TRAINED && w->sizes.trained != NULL;
}
