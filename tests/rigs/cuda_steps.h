/* What the tests of a sweep's steps share: numbers out of a seed, arrays on the emulated device (tests/cuda/emulation),
 * launches of a few blocks. For one program of C++ each. */
#ifndef TESTS_RIGS_CUDA_STEPS_H
#define TESTS_RIGS_CUDA_STEPS_H

#include <ctime>
#include <vector>

#include "kernels/cuda/layout.h"
#include "tests/rigs/emulation_rig.cuh"

enum { BLOCKS = 3 };

static uint32_t
below(uint32_t n)
{
    return (uint32_t)(random64() % n);
}

static float
uniform() /* -1..1 */
{
    return (float)(int64_t)random64() * 0x1p-63f;
}

template <class T>
static T *
on_device(const std::vector<T> &from)
{
    T *p;
    SUCCEEDS(cudaMalloc(&p, (from.size() + 1) * sizeof *p));
    if (!from.empty())
        memcpy((void *)p, from.data(), from.size() * sizeof *p);
    return p;
}

template <class A>
static void
run(void (*kernel)(A), A arguments, size_t shared)
{
    RUN(1, launch_cooperative(kernel, BLOCKS, SWEEP_THREADS, arguments, nullptr, shared));
}

/* |got - want| / |want|, norms over all of them. */
static double
difference(const std::vector<double> &want, const float *got)
{
    double apart = 0, all = 0;
    for (size_t i = 0; i < want.size(); i++) {
        apart += (want[i] - (double)got[i]) * (want[i] - (double)got[i]);
        all += want[i] * want[i];
    }
    return sqrt(apart / all);
}

#endif
