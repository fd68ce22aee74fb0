/* Products with weights in blocks that no instruction set here multiplies as they are: a block at a time in F32. */
#ifndef KERNELS_CPU_DEQUANTISE_H
#define KERNELS_CPU_DEQUANTISE_H

#include "kernels/cpu/isa.h"

/* As isa.h's matmul, for a matrix that lies as in its file, of any type. Reads x in F32. */
void matmul_dequantised(const struct matrix *, const struct acts *x, size_t n, size_t first, size_t last, float *y,
                        size_t ld);

/* The instruction set's own product for a type, or the one above. */
static inline matmul_fn
matmul_for(const struct cpu_isa *isa, enum weight_type type)
{
    return isa->matmul[type] != NULL ? isa->matmul[type] : matmul_dequantised;
}

#endif
