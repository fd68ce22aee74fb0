/* The CUDA backend for tests: the plug-in that $SPECSCOPE_CUDA_PLUGIN names, on a real GPU (make test-cuda), else the
 * emulated one beside the test program. */
#ifndef TESTS_RIGS_CUDA_RIG_H
#define TESTS_RIGS_CUDA_RIG_H

#include "kernels/backend.h"

/* NULL: none was built here, the caller skips. Also sets $SPECSCOPE_CUDA_PLUGIN, so that an engine finds the same. */
const struct backend_ops *cuda_for_tests(void);
/* The plug-in is the emulated one (tests/cuda/emulation). */
bool cuda_is_emulated(void);

#endif
