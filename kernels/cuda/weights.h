/* A model's weights in device memory. */
#ifndef KERNELS_CUDA_WEIGHTS_H
#define KERNELS_CUDA_WEIGHTS_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/layout.h"

struct weights {
    struct backend *backend;
    struct model_desc desc;        /* for checking requests; `layers` and `rope_factors` are not kept */
    struct dev_model sizes;        /* what the device has, with device pointers in it */
    const struct dev_model *model; /* on the device */
    struct dev_layer *layers;      /* (L + 1) what the device's has in model->layers */
    bool has_experts;              /* some layer has experts, sinks or clamped gates */
    bool has_alibi;                /* it has ALiBi or clips: either way the forward pass is launch_forward_moe() */
    struct memory memory;
    struct memory trained; /* of the trained heads */
};

/* Packs on the CPU while what was packed before travels. Refuses, with the numbers, what cannot fit the device's free
 * memory together with keys and values of desc.ctx positions. */
bool cuda_weights_load(struct backend *, const struct model_desc *, progress_fn, void *user, struct weights **,
                       struct err *);
void cuda_weights_unload(struct weights *);

/* weights.c: backend_ops.heads. */
bool cuda_weights_heads(struct weights *, const struct exit_head *by_layer, struct err *);
/* Does that choice make a difference? */
static inline bool
weights_asked(const struct weights *w, enum head_choice head)
{
    return head == USE_TRAINED && w->sizes.trained != NULL;
}

#endif
