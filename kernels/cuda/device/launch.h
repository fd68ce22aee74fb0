/* Host functions that launch kernels: each queues one launch on the stream and returns the result of the launch. */
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/device/layout.h"
#include "kernels/synthetic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call once per device, after cudaSetDevice: raises shared-memory limits and returns the number of blocks of the
 * forward pass (one per multiprocessor, all resident). */
cudaError_t forward_prepare(int device, uint32_t *blocks);
/* The same for models with experts or other rare forms (forward_state.cuh). */
cudaError_t forward_moe_prepare(int device, uint32_t *blocks);
cudaError_t head_prepare(int device); /* the same for launch_head */

/* A whole synthetic matrix, packed like pack_strips() does. */
struct synthetic_args {
    struct synthetic parts[2]; /* outputs below `first` belong to parts[0] */
    enum weight_type from[2];  /* the tensors' own types, since BF16 rounds */
    uint32_t first;
    struct dev_matrix to;
};
cudaError_t launch_synthetic(struct synthetic_args, cudaStream_t);

/* Hidden states of depth 0: hidden[rows[i].ring][0] = embedding[rows[i].token], in the model's form. */
cudaError_t launch_embed(const struct dev_model *, struct dev_kv_cache, const struct row *rows, size_t n, cudaStream_t);
/* rows and slots are on the host: they are parameters of kernels, FEW_ROWS at a time, which saves a copy. */
cudaError_t launch_trunk(struct dev_kv_cache, seq_t, uint32_t first, const slot_t *slots, size_t n, cudaStream_t);
/* embed() of a drafter: hidden[rows[i].ring][0], and kv_cache.pairs. sizes: host copy of the model. */
cudaError_t launch_feed(struct feed_args, const struct dev_model *sizes, cudaStream_t);
cudaError_t launch_stamp(uint64_t *to, cudaStream_t);                           /* writes the global timer's time */
cudaError_t launch_forward(struct forward_args, uint32_t blocks, cudaStream_t); /* cooperative launch */
cudaError_t launch_forward_moe(struct forward_args, uint32_t blocks, cudaStream_t);

/* model: device pointer; sizes: host copy, for the grid. */
cudaError_t launch_head(struct head_args, const struct dev_model *sizes, cudaStream_t); /* norm, logits, statistics */
cudaError_t launch_product(struct matrix_args, cudaStream_t);
cudaError_t launch_gather(struct gather_args, cudaStream_t);
cudaError_t launch_predictions(struct prediction_args, cudaStream_t);

cudaError_t launch_dist(struct dist_args, cudaStream_t);
cudaError_t launch_draw(struct draw_args, cudaStream_t);
cudaError_t launch_overlap(struct overlap_args, cudaStream_t);
cudaError_t launch_verify(struct verify_args, cudaStream_t);

#ifdef __cplusplus
}
#endif
