/* What has to be known of the BLAS that the program was linked with. */
#ifndef ENGINE_TRAINING_BLAS_H
#define ENGINE_TRAINING_BLAS_H

#include <stdint.h>

/* How many of `wanted` threads may be in the BLAS at a time, each computing alone: all of them, but one of OpenBLAS's
 * sequential build, whose callers take each other's buffers. Its pthreads build is told to use no threads of its own. */
uint32_t blas_callers(uint32_t wanted);

#endif
