/* GGUF's types whose bits are places in a table: the tables, which are facts of the format. */
#ifndef KERNELS_CODEBOOKS_H
#define KERNELS_CODEBOOKS_H

#include "kernels/half.h"

/* X(value) of each of sixteen codes. MXFP4's are twice the numbers of E2M1 (OCP Microscaling Formats 1.0). */
#define MXFP4_VALUES(X) X(0) X(1) X(2) X(3) X(4) X(6) X(8) X(12) X(0) X(-1) X(-2) X(-3) X(-4) X(-6) X(-8) X(-12)

#define CODEBOOK_ENTRY(value) value,
static const int8_t mxfp4_values[16] = {MXFP4_VALUES(CODEBOOK_ENTRY)};
#undef CODEBOOK_ENTRY

/* MXFP4's scale from its exponent: half of 2^(e - 127), as the values are doubled. */
static inline float
e8m0_half(uint8_t e)
{
    return float_of_bits(e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23);
}

#endif
