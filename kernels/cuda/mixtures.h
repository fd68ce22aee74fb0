/* Layers of experts in device memory (visits.h). Part of weights.c. */
#ifndef KERNELS_CUDA_MIXTURES_H
#define KERNELS_CUDA_MIXTURES_H

#include "kernels/cuda/device/visits.h"
#include "kernels/cuda/upload.h"

/* Does the sweep compute with experts of this form, if there are any? */
bool mixtures_fit(const struct model_desc *, struct err *);
/* Adds what a layer's experts will take. */
bool mixture_count(const struct model_desc *, const struct layer_desc *, bool exact, struct upload_census *,
                   struct err *);
/* Those of all layers: *out (L + 1) on the device. */
bool mixtures_load(struct upload *, const struct model_desc *, const struct dev_mixture **out, struct err *);

#endif
