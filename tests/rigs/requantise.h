/* Writers of every weight type, for tests that need a known model's weights in a type that no file of it is in.
 * Rounding to the nearest of the type's values, block by block: not what a careful quantiser finds, but of the same
 * kind and size. */
#ifndef TESTS_RIGS_REQUANTISE_H
#define TESTS_RIGS_REQUANTISE_H

#include "kernels/backend.h"

/* out (tensor_row_bytes(type, n)) = x (n, a multiple of the type's block) */
void requantise_row(enum weight_type, const float *x, size_t n, unsigned char *out);

#endif
