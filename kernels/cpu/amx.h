/* Products of many rows through AMX's tiles: the avx512vnni table with these is cpu_isa_amx. */
#ifndef KERNELS_CPU_AMX_H
#define KERNELS_CPU_AMX_H

#include "kernels/cpu/isa.h"

#define AMX_MANY 32 /* rows from which tiles beat vectors */

/* Does the processor have tiles of int8, and does the system let us use them? */
bool amx_usable(void);

/* isa.h's matmul for interleaved weights with Q8_0 xor 0x80: the bits of avx512vnni. */
void amx_matmul(const struct matrix *, const struct acts *x, size_t n, size_t first, size_t last, float *y, size_t ld);

#endif
