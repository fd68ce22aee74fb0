/* Forward passes of models with experts or with rare forms: attention sinks, clamped gates, ALiBi, clipped queries,
 * keys and values. */
#include "kernels/cuda/device/forward.cuh"
#include "kernels/cuda/device/launch.h"

cudaError_t
forward_moe_prepare(int device, uint32_t *blocks)
{
    return resident_blocks(forward_layers<struct moe_state>, device, BLOCK_THREADS, sizeof(struct moe_state), blocks);
}

cudaError_t
launch_forward_moe(struct forward_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch_cooperative(forward_layers<struct moe_state>, blocks, BLOCK_THREADS, a, stream,
                              sizeof(struct moe_state));
}
