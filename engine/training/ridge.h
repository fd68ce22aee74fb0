/* Linear regression of vectors on vectors of the same width, by normal equations and Cholesky's factorisation. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blas;

/* Finds the A (width, width) and b (width) of least Σ |x + A·x + b - y|² + λ |A|² over n >= 1 pairs of rows, which are
 * `stride` floats apart. λ is a thousandth of the mean variance of x's elements, times n: enough for rows that vary in
 * a few directions only. Uses the BLAS of engine/training/blas.h; several threads may call it. Returns false if memory
 * ran out; a and b are then unchanged, as they are when *cancel (NULL: never) becomes true before the end. */
bool ridge_fit(struct blas *, const float *x, const float *y, size_t stride, size_t n, uint32_t width,
               const atomic_bool *cancel, float *a, float *b);
