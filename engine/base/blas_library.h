/* The BLAS that training multiplies with: a plug-in, specscope-blas.so, loaded when it is needed first; part of a static program. */
#ifndef ENGINE_BASE_BLAS_LIBRARY_H
#define ENGINE_BASE_BLAS_LIBRARY_H

#include <cblas.h>
#include <stdint.h>

#include "kernels/base/err.h"

struct blas_library {
    __typeof__(cblas_sgemm) *multiply;
    char *(*config)(void); /* describes an OpenBLAS; NULL: the library is another one */
    bool sequential;       /* only one thread may multiply at a time */
};

/* Loads the library, with memory for `threads` threads that multiply at a time. A process of its own does that first, for OpenBLAS
 * hangs or crashes where it gets no memory. The first call decides for the life of the process; later calls return the same. NULL: the
 * library cannot be used. Any thread may call it. */
const struct blas_library *blas_library(uint32_t threads, struct err *);

#endif
