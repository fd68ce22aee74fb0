/* What tells a model where a token stands: angles of rotations, learned positions, slopes of attention's biases. */
#ifndef KERNELS_CUDA_POSITIONS_H
#define KERNELS_CUDA_POSITIONS_H

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/upload.h"

/* Loads what the model has of it; what it has not stays as it is. False: no memory, or the device failed. */
bool positions_load(struct upload *, const struct model_desc *, struct dev_model *, struct err *);

#endif
