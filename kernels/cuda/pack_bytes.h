/* Rows of types that are integers of eight bits under a scale for 32 columns: as Q8_0 has them. Part of pack.c. */
#ifndef KERNELS_CUDA_PACK_BYTES_H
#define KERNELS_CUDA_PACK_BYTES_H

#include "kernels/backend.h"

bool packs_as_bytes(enum weight_type);

/* A row of one of those, as a file has it, to cols / 32 blocks of Q8_0. Integers stay what they are; scales become F16, which
 * those of MXFP4 (unless tiny or huge), IQ4_NL, TQ1_0 and TQ2_0 are already. */
void row_as_bytes(enum weight_type, const unsigned char *row, uint32_t cols, unsigned char *out);

#endif
