/* Products of many rows with AMX tiles; cpu_isa_amx is the avx512vnni table with these functions. */
#pragma once

#include "kernels/cpu/isa.h"

#define AMX_MANY 32 /* number of rows from which tiles are faster than vectors */

/* Returns whether the processor has int8 tiles and the system permits their use. */
bool amx_usable(void);

/* matmul_fn (isa.h) for interleaved weights with Q8_0 xor 0x80; its results equal avx512vnni's bit by bit. */
void amx_matmul(const struct matrix *, const struct acts *x, size_t n, size_t first, size_t last, float *y, size_t ld);
