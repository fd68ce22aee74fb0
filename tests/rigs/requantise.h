/* Writers of every weight type, for tests that need a known model's weights in a type for which there is no file. They
 * round to the nearest of the type's values, block by block. A careful quantiser would find better values, but of the
 * same kind and size. */
#pragma once

#include "kernels/backend.h"

/* Writes out (tensor_row_bytes(type, n)) from x (n, a multiple of the type's block). */
void requantise_row(enum weight_type, const float *x, size_t n, unsigned char *out);
