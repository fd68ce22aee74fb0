/* The BLAS of training: the plug-in specscope-blas.so, loaded at its first use; a static program contains it. */
#pragma once

#include <cblas.h>
#include <stdint.h>

#include "base/err.h"

struct blas_library {
    __typeof__(cblas_sgemm) *multiply;
    char *(*config)(void); /* describes an OpenBLAS; NULL: the library is another one */
    bool sequential;       /* only one thread may multiply at a time */
    char core[24];         /* the processor that an OpenBLAS computes for ("SkylakeX"); "": unknown */
    char avoided[24];      /* the one that it would have chosen by itself; "": the same */
    bool outdated;         /* its kernels leave instructions of this processor unused */
    char refused[128];     /* why better ones are not used; "": the user chose, or there are none */
};

/* Loads the library with memory for `threads` threads that multiply at a time; first in a child process, because
 * OpenBLAS hangs or crashes without memory. The child also compares products with plain sums: builds of OpenBLAS
 * compute wrong ones on some processors. On a processor that is newer than the library, OpenBLAS takes its oldest
 * kernels; then better ones are chosen, unless the user has set OPENBLAS_CORETYPE. Call it before other threads use the
 * environment. Later calls return the result of the first. NULL: the library cannot be used. May be called from any
 * thread. */
const struct blas_library *blas_library(uint32_t threads, struct err *);
