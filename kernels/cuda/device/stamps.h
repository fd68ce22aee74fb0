/* How the stamps of a sweep lie (trace.h), in words of 64 bits: how many phases there are; when block 0 began; then of each
 * phase its layer and step, when block 0 left the barrier behind it, and when each block came there. */
#ifndef KERNELS_CUDA_DEVICE_STAMPS_H
#define KERNELS_CUDA_DEVICE_STAMPS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/device/steps.h"
#include "kernels/host_device.h"

enum { STAMPED_PHASES, STAMPED_BEGIN, STAMPS_HEAD };
enum { STAMP_PLACE, STAMP_LEFT, STAMP_CAME }; /* STAMP_PLACE: grid_place() */

static inline HOST_DEVICE size_t
stamps_at(uint32_t phase, uint32_t blocks)
{
    return STAMPS_HEAD + (size_t)phase * (STAMP_CAME + blocks);
}

/* Words of so many layers' stamps. */
static inline size_t
stamps_room(uint32_t layers, uint32_t blocks)
{
    return stamps_at(layers * STEPS, blocks);
}

#endif
