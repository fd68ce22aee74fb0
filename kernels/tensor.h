/* Rows of a tensor as numbers, whatever its type. */
#ifndef KERNELS_TENSOR_H
#define KERNELS_TENSOR_H

#include "kernels/backend.h"

/* y (cols) = row `row` of t, in F32. */
void tensor_row(const struct tensor *t, size_t row, float *y);

#endif
