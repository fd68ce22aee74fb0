/* The CUDA backend for tests: the plug-in that $SPECSCOPE_CUDA_PLUGIN names, on a real GPU (make test-cuda), else the
 * emulated one beside the test program. */
#ifndef TESTS_RIGS_CUDA_RIG_H
#define TESTS_RIGS_CUDA_RIG_H

#include "tests/rigs/backend_rig.h"

/* NULL: none was built here, the caller skips. Also sets $SPECSCOPE_CUDA_PLUGIN, so that an engine finds the same. */
const struct backend_ops *cuda_for_tests(void);
/* The plug-in is the emulated one (tests/emulator). */
bool cuda_is_emulated(void);

/* In a cmocka test: `cuda`, or the test is skipped. */
#define NEEDS_CUDA                                                                                                     \
    (void)state;                                                                                                       \
    const struct backend_ops *const cuda = cuda_for_tests();                                                           \
    if (cuda == NULL)                                                                                                  \
    skip()

/* Small models of the types that a device holds, and some that it does not; then of forms that are not Llama's, those from
 * CUDA_MOE on of experts. Of a model that is not exact all rows go to all experts: rounded, one may choose another. */
#define CUDA_PLAIN_SHAPES 9
#define CUDA_MOE          18
#define CUDA_MOE_WIDE     21 /* several stages of a tile (tile.cuh) */
#define CUDA_SHAPES       24
extern const struct naive_shape cuda_shapes[CUDA_SHAPES];

void cuda_rig_open(struct rig *, size_t shape, bool exact, uint64_t seed);
/* Of a model that is not exact: the naive model in halves (naive_model.h), to within what rounds the other way. */
void cuda_rig_assert_near_naive(struct rig *, int node, bool exact);

#endif
