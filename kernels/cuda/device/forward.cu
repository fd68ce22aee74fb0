/* Forward passes of models with one MLP per layer, in all forms except the rare ones of forward_moe.cu. */
#include "kernels/cuda/device/forward.cuh"
#include "kernels/cuda/device/launch.h"

cudaError_t
forward_prepare(int device, uint32_t *blocks)
{
    return resident_blocks(forward_layers<struct forward_state>, device, BLOCK_THREADS, sizeof(struct forward_state),
                           blocks);
}

cudaError_t
launch_forward(struct forward_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch_cooperative(forward_layers<struct forward_state>, blocks, BLOCK_THREADS, a, stream,
                              sizeof(struct forward_state));
}
