/* The CUDA backend's table of functions, and the symbol that the plug-in exports. */
#include "kernels/cuda/profile.h"
#include "kernels/cuda/requests.h"

static const struct backend_ops cuda_backend = {
    .name = "cuda",
    .abi = BACKEND_ABI,
    .prompt_rows = PROMPT_ROWS,
    .open = device_open,
    .close = device_close,
    .describe = device_describe,
    .note = device_note,
    .load = cuda_weights_load,
    .unload = cuda_weights_unload,
    .heads = cuda_weights_heads,
    .dists = cuda_dists_open,
    .drop_dists = cuda_dists_close,
    .kv_cache = cuda_kv_cache_open,
    .drop = cuda_kv_cache_close,
    .trunk = rows_trunk,
    .embed = rows_embed,
    .feed = rows_feed,
    .draft_set = cuda_draft_set,
    .step = rows_step,
    .until = rows_until,
    .predict = decide_predict,
    .dist = decide_dist,
    .draw = decide_draw,
    .overlap = decide_overlap,
    .verify = decide_verify,
    .read_logits = decide_read_logits,
    .read_hidden = decide_read_hidden,
    .read_dist = decide_read_dist,
    .wait = cuda_kv_cache_wait,
    .describe_time = cuda_describe_time,
    .products = &cuda_products,
};

__attribute__((visibility("default"))) const struct backend_ops *specscope_backend(void);

const struct backend_ops *
specscope_backend(void)
{
    return &cuda_backend;
}
