/* The choice of experts as a kernel of its own, compared with the CPU's (kernels/cpu/route.h). The including file must
 * define run(kernel, arguments, shared memory). */
#pragma once

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/route.cuh"
#include "tests/rigs/cuda_numbers.h"

extern "C" {
#include "kernels/cpu/route.h"
}

struct route_args {
    struct experts_form form;
    float *z; /* (BLOCK_WARPS, n): a row for each warp */
    const float *bias, *correction;
    struct route *out; /* (BLOCK_WARPS, used) */
};

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) choose_rows(struct route_args a)
{
    SHARED_MEMORY(struct route_place, places);
    const uint32_t warp = thread_here() / WARP;
    if (blockIdx.x == 0)
        choose_experts(a.form, a.z + (size_t)warp * a.form.n, a.bias, a.correction, &places[warp],
                       a.out + (size_t)warp * a.form.used);
}

/* Makes logits of few values, so that many are equal, or of random values. */
static std::vector<float>
some_logits(size_t n, bool few)
{
    std::vector<float> z(n);
    for (float &x : z)
        x = few ? (float)below(5) - 2 : 4 * uniform();
    return z;
}

static void
check_routes(const struct experts_form &f, bool few, bool biased, bool corrected)
{
    const std::vector<float> z = some_logits((size_t)BLOCK_WARPS * f.n, few), bias = some_logits(f.n, few),
                             correction = some_logits(f.n, few);
    struct route_args a = {f, on_device(z), biased ? on_device(bias) : nullptr,
                           corrected ? on_device(correction) : nullptr,
                           on_device(std::vector<struct route>((size_t)BLOCK_WARPS * f.used))};
    run(choose_rows, a, BLOCK_WARPS * sizeof(struct route_place));
    const float bound = 2e-6f + (float)f.n * 0x1p-24f; /* the CPU sums n scores one by one */
    const std::vector<struct route> got = fetched(a.out, (size_t)BLOCK_WARPS * f.used);
    for (uint32_t row = 0; row < BLOCK_WARPS; row++) {
        std::vector<float> own(z.begin() + (long)row * f.n, z.begin() + (long)(row + 1) * f.n);
        std::vector<struct route> want(f.used);
        route(&f, own.data(), biased ? bias.data() : nullptr, corrected ? correction.data() : nullptr, want.data());
        for (uint32_t k = 0; k < f.used; k++) {
            const struct route &is = got[(size_t)row * f.used + k];
            if (is.expert != want[k].expert || !(fabsf(is.weight - want[k].weight) <= bound * want[k].weight))
                fail_msg("%u of %u experts, row %u: number %u is %u with %g, not %u with %g", f.used, f.n, row, k,
                         is.expert, (double)is.weight, want[k].expert, (double)want[k].weight);
        }
    }
    cudaFree(a.z);
    cudaFree((void *)a.bias);
    cudaFree((void *)a.correction);
    cudaFree(a.out);
}
