/* The CUDA backend for tests: the plug-in $SPECSCOPE_CUDA_PLUGIN on a real GPU (make test-cuda), else the emulated
 * plug-in in the folder of the test program. */
#pragma once

#include "tests/rigs/backend_rig.h"

/* Loads the plug-in and sets $SPECSCOPE_CUDA_PLUGIN for engines. Returns NULL if none was built; the caller then skips
 * the test. */
const struct backend_ops *cuda_for_tests(void);
/* Returns true if the plug-in is the emulated one (tests/emulator). */
bool cuda_is_emulated(void);

/* Skips the running cmocka test if `cuda` is NULL. */
#define NEEDS_CUDA                                                                                                     \
    (void)state;                                                                                                       \
    const struct backend_ops *const cuda = cuda_for_tests();                                                           \
    if (cuda == NULL)                                                                                                  \
    skip()

/* Small models. The first ones have each type of weights that the device stores, and some types that it converts. The
 * next ones have forms that differ from Llama's. Those from CUDA_MOE on have experts. In models that are not exact all
 * rows use all experts, because rounding could change a choice. */
#define CUDA_PLAIN_SHAPES 9
#define CUDA_MOE          18
#define CUDA_MOE_WIDE     21 /* a row has several stages of a tile (tile.cuh) */
#define CUDA_SHAPES       24
extern const struct naive_shape cuda_shapes[CUDA_SHAPES];

void cuda_rig_open(struct rig *, size_t shape, bool exact, uint64_t seed);
/* Compares with the naive model; if the model is not exact, with the naive model in halves (naive_model.h), within the
 * rounding error. */
void cuda_rig_assert_near_naive(struct rig *, int node, bool exact);
