/* Sweeps of models that mix experts, or that have other forms that few have: sinks of attention, clamped gates, ALiBi, clipped
 * queries, keys and values. */
#include "kernels/cuda/device/forward.cuh"
#include "kernels/cuda/device/launch.h"

cudaError_t
mixture_sweep_prepare(int device, uint32_t *blocks)
{
    return resident_blocks(sweep_layers<struct mixture_shared>, device, SWEEP_THREADS, sizeof(struct mixture_shared),
                           blocks);
}

cudaError_t
launch_mixture_sweep(struct sweep_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch_cooperative(sweep_layers<struct mixture_shared>, blocks, SWEEP_THREADS, a, stream,
                              sizeof(struct mixture_shared));
}
