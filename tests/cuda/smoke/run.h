/* Runs the smoke test's own kernels with resident blocks, and waits for them. */
#pragma once

#include "tests/cuda/smoke/smoke.h"

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/layout.h"
#include "tests/rigs/cuda_numbers.h"

static int device_here; /* set by begin(), with the largest number of blocks */
static uint32_t most_blocks;

static inline void
begin(const struct smoke *s)
{
    device_here = s->device;
    most_blocks = s->blocks;
    state_of_random = 1;
}

/* Returns one block a multiprocessor. */
template <class A>
static uint32_t
blocks_of(void (*kernel)(A), size_t shared)
{
    uint32_t blocks;
    SUCCEEDS(resident_blocks(kernel, device_here, BLOCK_THREADS, shared, &blocks));
    return blocks < most_blocks ? blocks : most_blocks;
}

template <class A>
static void
run(void (*kernel)(A), A arguments, size_t shared)
{
    const uint32_t blocks = blocks_of(kernel, shared);
    SUCCEEDS(launch_cooperative(kernel, blocks, BLOCK_THREADS, arguments, nullptr, shared));
    SUCCEEDS(cudaDeviceSynchronize());
}
