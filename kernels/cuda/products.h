/* Products of the host's own matrices on the device, by the plug-in of gemm.h: for training, which decoding has nothing to do
 * with. backend_ops.products. */
#ifndef KERNELS_CUDA_PRODUCTS_H
#define KERNELS_CUDA_PRODUCTS_H

#include "kernels/cuda/device.h"

extern const struct product_ops cuda_products;

#endif
