/* The BLAS of training: the plug-in specscope-blas.so, loaded at its first use; a static program contains it. */
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

/* Loads the library with memory for `threads` threads that multiply at a time; first in a child process, because OpenBLAS
 * hangs or crashes without memory. Later calls return the result of the first. NULL: the library cannot be used. May be
 * called from any thread. */
const struct blas_library *blas_library(uint32_t threads, struct err *);

#endif
