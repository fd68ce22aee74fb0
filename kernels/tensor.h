/* Tensors as they lie in files: how long rows are, and their values as numbers, whatever the type. */
#ifndef KERNELS_TENSOR_H
#define KERNELS_TENSOR_H

#include "kernels/backend.h"

const char *tensor_type_name(enum weight_type); /* "Q8_0" */
/* Values that share a block, and its bytes. 0 for what is no type. */
size_t tensor_block_values(enum weight_type);
size_t tensor_block_bytes(enum weight_type);
/* Bytes of a row of cols values, a multiple of the block. */
size_t tensor_row_bytes(enum weight_type, size_t cols);

/* Bytes of n values, whole blocks, as backends hold them: what the file packs into a few bits more than fit is spread a little
 * (scales of six bits become bytes, TQ1_0's digits two bits). */
uint64_t tensor_held_bytes(enum weight_type, uint64_t n);

/* Do the tensor's type and columns fit each other (blocks along a row), and can it be made if it is synthetic? */
bool tensor_possible(const struct tensor *);

/* n values from whole blocks at `blocks` (aligned to nothing) in F32; n is a multiple of the block. */
void tensor_blocks(enum weight_type, const void *blocks, size_t n, float *y);
/* y (cols) = row `row` of t, which may be synthetic. */
void tensor_row(const struct tensor *t, size_t row, float *y);

/* A part of a trained head must be rows by cols in F32. */
bool tensor_fits_head(const struct tensor *, uint32_t rows, uint32_t cols, struct err *);

#endif
