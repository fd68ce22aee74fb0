/* Products with weights in blocks that no instruction set here multiplies as they are: a block at a time in F32. */
#ifndef KERNELS_CPU_DEQUANTISE_H
#define KERNELS_CPU_DEQUANTISE_H

#include "kernels/cpu/isa.h"

/* As isa.h's matmul, for a matrix that lies as in its file, of any type. Reads x in F32. */
void matmul_dequantised(const struct matrix *, const struct acts *x, size_t n, size_t first, size_t last, float *y,
                        size_t ld);

/* A product by the best that the instruction set has for the matrix and the rows. */
static inline void
multiply(const struct cpu_isa *isa, const struct matrix *w, const struct acts *x, size_t n, size_t first, size_t last,
         float *y, size_t ld)
{
    const struct matmul_many *many = &isa->many[w->type];
    matmul_fn f = isa->matmul[w->type] != NULL ? isa->matmul[w->type] : matmul_dequantised;
    if (many->matmul != NULL && n >= many->from)
        f = many->matmul;
    if (first < last)
        f(w, x, n, first, last, y, ld);
}

#endif
