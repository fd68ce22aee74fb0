/* Shared code of the tests of a forward pass's steps: random numbers, arrays on the emulated device (tests/emulator),
 * launches of a few blocks. Only one source of a C++ program may include it. */
#pragma once

#include <ctime>
#include <vector>

#include "kernels/cuda/device/layout.h"
#include "tests/rigs/emulation_rig.cuh"

enum { BLOCKS = 3 };

template <class A>
static void
run(void (*kernel)(A), A arguments, size_t shared)
{
    uint32_t all;
    SUCCEEDS(resident_blocks(kernel, 0, BLOCK_THREADS, shared, &all));
    RUN(1, launch_cooperative(kernel, BLOCKS, BLOCK_THREADS, arguments, nullptr, shared));
}
