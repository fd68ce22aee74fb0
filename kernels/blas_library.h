/* The BLAS that training multiplies with: a plug-in, specscope-blas.so, loaded when it is first asked for; part of a static
 * program. */
#ifndef KERNELS_BLAS_LIBRARY_H
#define KERNELS_BLAS_LIBRARY_H

#include "kernels/err.h"

/* Loads it, once for the process's life. False: it cannot be loaded. Safe from any thread. */
bool blas_library_load(struct err *);
/* One of its symbols; NULL: it has none of that name, or cannot be loaded. */
void *blas_library_symbol(const char *name);

#endif
