/* The BLAS that the program was built with, as a plug-in: nothing of its own, but linked with that library. So it is loaded when
 * training multiplies, and no other command pays for its start (OpenBLAS's takes memory for each of its threads, and hangs where there
 * is none). */
#include <cblas.h>

extern void (*const specscope_blas)(void);
void (*const specscope_blas)(void) = (void (*)(void))cblas_sgemm; /* or the linker would drop the library */
