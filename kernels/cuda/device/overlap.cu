/* How much two distributions have in common (kernels/backend.h, struct overlap); a block for each request. */
#include "kernels/cuda/device/draw.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"

__global__ void
__launch_bounds__(ROW_THREADS) compare_dists(struct overlap_args a)
{
    __shared__ struct block_scratch scratch;
    const uint32_t vocab = a.store.dists_vocab;
    const struct overlap_req *const r = &a.requests[blockIdx.x];
    const struct stored_p d = {a.store.dists_p + (size_t)r->d * vocab, NULL, 0},
                          c = {a.store.dists_p + (size_t)r->c * vocab, NULL, 0};
    const struct mass common = block_mass([=](uint32_t v) { return fminf(d(v), c(v)); }, vocab, &scratch);
    if (threadIdx.x != 0)
        return;
    const float dx = d((uint32_t)r->token), cx = c((uint32_t)r->token);
    r->out->similarity = (float)mass_value(common);
    r->out->acceptance = fminf(dx > 0 ? cx / dx : cx, 1.0f);
}

cudaError_t
launch_overlap(struct overlap_args a, cudaStream_t stream)
{
    return a.n == 0 ? cudaSuccess : launch(compare_dists, a.n, ROW_THREADS, a, stream);
}
