/* Prompts by a library (docs/cuda.md): a chunk's products by the plug-in of gemm.h, slab by slab, all else by the steps of
 * the sweep. */
#ifndef KERNELS_CUDA_PROMPTS_H
#define KERNELS_CUDA_PROMPTS_H

#include "kernels/cuda/store.h"

#define PROMPT_SLAB ((size_t)64 << 20) /* bytes of plain weights at a time, more or less */

/* Memory, and the algorithm of every shape of the model. For a store with prompt_rows; its memory is freed with the store's. */
bool prompts_open(struct store *, struct err *);
void prompts_close(struct store *);
/* Bytes on the device, about. */
size_t prompts_estimate(const struct model_desc *, uint32_t rows);

/* backend_ops.prompts */
const char *prompts_describe(const struct store *);

/* Queues the chunk. False: the store has failed by it. */
bool prompts_run(struct store *, const struct sweep_args *);

#endif
