/* The BLAS library that the program was built with, as a plug-in: it contains no code but is linked with that library.
 * Only training loads it, so other commands do not pay for the library's start (OpenBLAS allocates memory for each of
 * its threads, and hangs if there is none). */
#include <cblas.h>

extern void (*const specscope_blas)(void);
void (*const specscope_blas)(void) = (void (*)(void))cblas_sgemm; /* keeps the linker from dropping the library */
