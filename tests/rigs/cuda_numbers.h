/* Shared code of tests of kernels, on the emulator (tests/emulator) and on a GPU: random numbers, arrays on the device,
 * distances. The including file must define SUCCEEDS(call), which handles a failed call. */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include "base/rng.h"

#ifndef SUCCEEDS
#error "SUCCEEDS is not defined"
#endif

static uint64_t state_of_random;

static inline uint64_t
random64()
{
    return splitmix64(&state_of_random);
}

static inline uint32_t
below(uint32_t n)
{
    return (uint32_t)(random64() % n);
}

static inline float
uniform() /* returns a number in -1..1 */
{
    return (float)(int64_t)random64() * 0x1p-63f;
}

/* ---- arrays ---- */

/* Copies the elements to the device, with room for one more. The caller frees them. */
template <class T>
static T *
on_device(const std::vector<T> &from)
{
    T *p;
    SUCCEEDS(cudaMalloc(&p, (from.size() + 1) * sizeof *p));
    if (!from.empty())
        SUCCEEDS(cudaMemcpy(p, from.data(), from.size() * sizeof *p, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaDeviceSynchronize()); /* waits until the copy from pageable memory has arrived */
    return p;
}

/* Returns n elements from the device. */
template <class T>
static std::vector<T>
fetched(const T *from, size_t n)
{
    std::vector<T> got(n);
    if (n > 0)
        SUCCEEDS(cudaMemcpy(got.data(), from, n * sizeof *from, cudaMemcpyDeviceToHost));
    return got;
}

/* ---- distances ---- */

/* Returns |got - want| / |want|. */
static inline double
difference(const std::vector<double> &want, const float *got)
{
    double apart = 0, all = 0;
    for (size_t i = 0; i < want.size(); i++) {
        apart += (want[i] - (double)got[i]) * (want[i] - (double)got[i]);
        all += want[i] * want[i];
    }
    return sqrt(apart / all);
}
