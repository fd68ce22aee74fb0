/* The steps of a layer, which of them a layer has, and how a block comes to the next layer. */
#ifndef KERNELS_CUDA_SWEEP_STEPS_CUH
#define KERNELS_CUDA_SWEEP_STEPS_CUH

#include "kernels/cuda/finish.cuh"

enum step {
    NORM_ATTENTION,
    QKV,
    NORM_HEADS, /* models that norm queries and keys: that, and their rotation */
    ATTEND,
    OUT,
    NORM_MLP,
    GATE_UP,
    DOWN,
    CARRY,       /* both sublayers skipped */
    SHIFT_PROBE, /* an affine head's */
    NORM_PROBE,
    PROBE,
    STEPS
};

static __device__ __forceinline__ bool
skips(const uint8_t *mask, uint32_t l)
{
    return mask != NULL && mask[l] != 0;
}

static __device__ __forceinline__ float *
hidden_of(struct sweep_shared *s, const struct row &row, uint32_t depth)
{
    return s->a.store.hidden + ((size_t)row.ring * (s->model.n_layers + 1) + depth) * s->model.width;
}

static __device__ __forceinline__ void
copy_words(void *to, const void *from, size_t bytes)
{
    for (size_t i = thread_here(); i < bytes / sizeof(uint32_t); i += SWEEP_THREADS)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

static __device__ __forceinline__ void
bring_layer(struct sweep_shared *s, uint32_t l)
{
    if (l <= s->a.to)
        copy_words(&s->layers[l % 2], &s->model.layers[l], sizeof(struct dev_layer));
}

static __device__ __forceinline__ void
enter_layer(struct sweep_shared *s, uint32_t l)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        s->l = l;
        s->attends = !skips(s->a.skip_attention, l);
        s->has_mlp = !skips(s->a.skip_mlp, l);
        s->probes = s->a.until.temperature != NULL && s->a.until.threshold[l] <= 1;
        s->trained = {NULL, NULL, NULL};
        if (s->probes && s->a.until.trained)
            s->trained = s->model.trained[l];
        s->own_head = {s->trained.full, NULL, NULL, WEIGHT_F32, s->model.vocab, s->model.width, 0, 0};
    }
    __syncthreads();
    bring_layer(s, l + 1);
}

static __device__ __forceinline__ bool
does(struct sweep_shared *s, uint32_t step)
{
    switch (step) {
    case NORM_HEADS: return s->attends && (layer_here(s).q_norm != NULL || layer_here(s).k_norm != NULL);
    case CARRY: return !s->attends && !s->has_mlp;
    case SHIFT_PROBE: return s->trained.a != NULL;
    case NORM_PROBE:
    case PROBE: return s->probes;
    default: return step <= OUT ? s->attends : s->has_mlp;
    }
}

static __device__ __forceinline__ uint32_t
step_after(struct sweep_shared *s, uint32_t step)
{
    while (step < STEPS && !does(s, step))
        step++;
    return step;
}

#endif
