/* The steps of a layer, on both sides: the sweep kernel goes through them (sweep_steps.cuh), and the host names the one that a
 * block waits behind for too long (failure.c). */
#ifndef KERNELS_CUDA_STEPS_H
#define KERNELS_CUDA_STEPS_H

#include <stdint.h>

#include "kernels/host_device.h"

enum step {        /* in order */
            START, /* of a sweep, before its first layer */
            NORM_ATTENTION,
            QKV,
            NORM_HEADS, /* models that norm queries and keys: that, and their rotation */
            ATTEND,
            OUT,
            NORM_MLP,
            GATE_UP,
            DOWN,
            CARRY,       /* both sublayers skipped */
            SHIFT_PROBE, /* an affine head's */
            NORM_PROBE,
            PROBE,
            STEPS
};

/* The barrier behind a step of a layer, of 1 and up, as one number that is never 0. */
static inline HOST_DEVICE uint32_t
grid_place(uint32_t layer, uint32_t step)
{
    return layer * STEPS + step;
}

#endif
