/* Tensors in file formats: row sizes, and conversion of values of any type to F32. */
#pragma once

#include "kernels/backend.h"

const char *tensor_type_name(enum weight_type); /* "Q8_0" */
/* Return the number of values in a block and its bytes; 0 for an unknown type. */
size_t tensor_block_values(enum weight_type);
size_t tensor_block_bytes(enum weight_type);
/* Returns the bytes of a row of cols values; cols is a multiple of the block. */
size_t tensor_row_bytes(enum weight_type, size_t cols);

/* Returns the bytes of n values (whole blocks) in a backend's memory. Backends expand tightly packed fields: scales of
 * six bits to bytes, TQ1_0's digits to two bits. */
uint64_t tensor_held_bytes(enum weight_type, uint64_t n);

/* Returns whether the tensor's columns are whole blocks of its type, and whether a synthetic tensor's type can be
 * synthetic. */
bool tensor_possible(const struct tensor *);

/* Converts n values from whole blocks at `blocks` (no alignment needed) to F32; n is a multiple of the block. */
void tensor_blocks(enum weight_type, const void *blocks, size_t n, float *y);
/* Writes row `row` of t, which may be synthetic, to y (cols). */
void tensor_row(const struct tensor *t, size_t row, float *y);

/* Returns scale j (0..7) of a block of Q4_K and Q5_K, or with `above` 4 its minimum, from the block's 12 bytes of them:
 * six bits. Those of 0..3 are in the low bits of byte j + above. The others have four bits in a half of byte j + 4, and
 * two in the upper bits of byte j - 4 + above. */
static inline unsigned char
tensor_six_bits(const unsigned char *s, size_t j, size_t above)
{
    if (j < 4)
        return s[j + above] & 63;
    return (unsigned char)((above == 0 ? s[j + 4] & 15 : s[j + 4] >> 4) | s[j - 4 + above] >> 6 << 4);
}

/* Checks that a part of a trained head is F32 of shape (rows, cols); else returns false with an error. */
bool tensor_fits_head(const struct tensor *, uint32_t rows, uint32_t cols, struct err *);
