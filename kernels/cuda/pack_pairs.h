/* Rows of Q4_0, Q4_K and Q6_K to pairs of units (layout.h). Part of pack.c. */
#ifndef KERNELS_CUDA_PACK_PAIRS_H
#define KERNELS_CUDA_PACK_PAIRS_H

#include "kernels/cuda/device/layout.h"

/* Row r (0..15) of a strip from `from`, as a file has it, into the strip's quants and scales, which were zero before its
 * first row. cols is a multiple of the type's block. */
void pack_pairs(enum weight_type, uint32_t r, uint32_t cols, const unsigned char *from, unsigned char *quants,
                unsigned char *scales);

#endif
