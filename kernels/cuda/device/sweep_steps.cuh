/* Which steps a layer has, and how a block comes to the next layer. */
#ifndef KERNELS_CUDA_DEVICE_SWEEP_STEPS_CUH
#define KERNELS_CUDA_DEVICE_SWEEP_STEPS_CUH

#include "kernels/cuda/device/finish.cuh"
#include "kernels/cuda/device/steps.h"

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

template <class Shared>
static __device__ __forceinline__ void
bring_layer(Shared *s, uint32_t l)
{
    if (l > s->a.to)
        return;
    copy_words(&s->layers[l % 2], &s->model.layers[l], sizeof(struct dev_layer));
    if constexpr (Shared::MIXES)
        if (s->model.mixtures != NULL)
            copy_words(&s->mixtures[l % 2], &s->model.mixtures[l], sizeof(struct dev_mixture));
}

/* ---- what the MLP of layer s->l reads ---- */

/* In a parallel form without a norm of its own: what attention reads. */
static __device__ __forceinline__ struct dev_norm
mlp_norm(const struct sweep_shared *s, const struct dev_layer &d)
{
    if (d.ffn_norm == NULL && s->model.form.parallel)
        return {d.attn_norm, d.attn_norm_b};
    return {d.ffn_norm, d.ffn_norm_b};
}

static __device__ __forceinline__ uint32_t
mlp_depth(const struct sweep_shared *s)
{
    return s->does.attends && !s->model.form.parallel ? s->l : s->l - 1;
}

/* ---- steps ---- */

/* What layer l does, of 1 and up; its descriptors must be there. */
static __device__ __forceinline__ struct layer_does
layer_does_what(const struct sweep_shared *s, uint32_t l)
{
    const struct dev_layer &d = s->layers[l % 2];
    const bool probes = s->a.until.temperature != NULL && s->a.until.threshold[l] <= 1;
    struct dev_head head = {NULL, NULL, NULL};
    if (probes && s->a.until.trained)
        head = s->model.trained[l];
    return {!skips(s->a.skip_attention, l),
            !skips(s->a.skip_mlp, l),
            d.q_norm != NULL || d.k_norm != NULL,
            d.attn_post != NULL,
            d.ffn_post != NULL,
            d.mixes,
            probes,
            head.a != NULL,
            head.full == NULL && rows_are_near(s->model, 1)};
}

static __device__ __forceinline__ bool
does(const struct sweep_shared *s, const struct layer_does &layer, uint32_t step)
{
    switch (step) {
    case START: return false;
    case NORM_ATTENTION: return layer.attends && !s->near;
    case NORM_HEADS: return layer.attends && layer.norms_heads;
    case POST_ATTENTION: return layer.attends && layer.posts_attention;
    case NORM_MLP: return layer.has_mlp && !s->near;
    case ROUTE: return layer.has_mlp && layer.mixes;
    case POST_MLP: return layer.has_mlp && layer.posts_mlp;
    case CARRY: return !layer.attends && !layer.has_mlp;
    case SHIFT_PROBE: return layer.probes && layer.shifts;
    case NORM_PROBE: return layer.probes && !layer.probes_near;
    case PROBE: return layer.probes;
    default: return step <= OUT ? layer.attends : layer.has_mlp;
    }
}

/* What comes after a step of layer s->l, or of the one behind it if its descriptors are there, which layer `brought` says. A
 * step of STEPS: nothing, or nobody knows yet. */
static __device__ __forceinline__ struct sweep_at
step_after(const struct sweep_shared *s, struct sweep_at at, uint32_t brought)
{
    struct layer_does layer = s->does;
    if (at.l != s->l)
        layer = layer_does_what(s, at.l);
    for (;;) {
        while (++at.step < STEPS)
            if (does(s, layer, at.step))
                return at;
        if (at.l == s->a.to || at.l == brought)
            return at;
        layer = layer_does_what(s, ++at.l);
        at.step = UINT32_MAX;
    }
}

static __device__ __forceinline__ const float2 *
turns_of(const struct sweep_shared *s, uint32_t l)
{
    const float2 *const turns = (const float2 *)s->a.store.turns;
    switch (s->layers[l % 2].rope) {
    case LAYER_ROPE_GLOBAL: return turns;
    case LAYER_ROPE_LOCAL: return turns + (size_t)s->a.store.max_rows * (s->model.rope_dims / 2);
    default: return NULL;
    }
}

/* By one thread. */
static __device__ __forceinline__ void
enter_layer(struct sweep_shared *s, uint32_t l)
{
    s->l = l;
    s->does = layer_does_what(s, l);
    s->turns = turns_of(s, l);
    s->trained = {NULL, NULL, NULL};
    if (s->does.probes && s->a.until.trained)
        s->trained = s->model.trained[l];
    s->own_head = {s->trained.full, NULL, NULL, WEIGHT_F32, s->model.vocab, s->model.width, 0, 0};
}

#endif
