/* Sweeps of models whose layers have one MLP each, in all forms but the rare ones (forward_moe.cu). */
#include "kernels/cuda/device/forward.cuh"
#include "kernels/cuda/device/launch.h"

cudaError_t
sweep_prepare(int device, uint32_t *blocks)
{
    return resident_blocks(sweep_layers<struct sweep_shared>, device, SWEEP_THREADS, sizeof(struct sweep_shared),
                           blocks);
}

cudaError_t
launch_sweep(struct sweep_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch_cooperative(sweep_layers<struct sweep_shared>, blocks, SWEEP_THREADS, a, stream,
                              sizeof(struct sweep_shared));
}
