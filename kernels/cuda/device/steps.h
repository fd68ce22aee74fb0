/* The steps of a layer and the barrier behind each, on both sides: the sweep kernel goes through them (sweep_steps.cuh), and
 * the host names the one that a block waits behind for too long (failure.c). */
#ifndef KERNELS_CUDA_DEVICE_STEPS_H
#define KERNELS_CUDA_DEVICE_STEPS_H

#include <stdint.h>

#include "kernels/host_device.h"

/* In order. */
enum step {
    START, /* of a sweep, before its first layer */
    NORM_ATTENTION,
    QKV,
    NORM_HEADS, /* models that norm queries and keys: that, and their rotation */
    ATTEND,
    OUT,
    POST_ATTENTION, /* models that norm what a sublayer adds: that, and the addition */
    NORM_MLP,
    ROUTE, /* layers of experts: which rows go to which */
    GATE_UP,
    DOWN,
    POST_MLP,
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

struct dev_barrier {  /* of a cooperative grid: grid.cuh */
    uint32_t arrived; /* at rest zero but for the highest bit */
    uint32_t apart[31];
    uint32_t stop[2];  /* the sweep was cancelled: block 0 looks, all others read it; layers take turns */
    uint64_t patience; /* nanoseconds until a waiting block notes it; twice that: it ends the kernel; 0: forever */
    uint32_t *notes;   /* (blocks) of a device, on the host: where a block waits for too long, else 0 */
};
#define GRID_LOOK 10000000u /* nanoseconds between two looks at the clock, at most */

#endif
