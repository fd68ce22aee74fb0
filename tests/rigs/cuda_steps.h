/* What the tests of a sweep's steps share: numbers out of a seed, arrays on the emulated device (tests/cuda/emulation),
 * launches of a few blocks. For one program of C++ each. */
#ifndef TESTS_RIGS_CUDA_STEPS_H
#define TESTS_RIGS_CUDA_STEPS_H

#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout.h"
#include "kernels/rng.h"

enum { BLOCKS = 3 };

static uint64_t seed, state_of_random;

static uint64_t
random64()
{
    return splitmix64(&state_of_random);
}

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
    assert_int_equal(cudaMalloc(&p, (from.size() + 1) * sizeof *p), cudaSuccess);
    if (!from.empty())
        memcpy((void *)p, from.data(), from.size() * sizeof *p);
    return p;
}

template <class A>
static void
run(void (*kernel)(A), A arguments, size_t shared)
{
    emulated_cuda_seed(random64() | 1);
    assert_int_equal(launch_cooperative(kernel, BLOCKS, SWEEP_THREADS, arguments, nullptr, shared), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
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

static void
choose_seed()
{
    const char *given = getenv("SPECSCOPE_SEED");
    seed = state_of_random = given != nullptr ? strtoull(given, nullptr, 10) : (uint64_t)time(nullptr);
    printf("seed %llu\n", (unsigned long long)seed);
}

#endif
