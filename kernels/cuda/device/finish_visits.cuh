/* What becomes of the outputs of experts' products: of visit number v, which is a row at one of its experts (visits.h). */
#ifndef KERNELS_CUDA_DEVICE_FINISH_VISITS_CUH
#define KERNELS_CUDA_DEVICE_FINISH_VISITS_CUH

#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/sweep_shared.cuh"

/* Its expert's part of a stack's biases, of `length` each. */
static __device__ __forceinline__ const float *
bias_of(const float *biases, const struct sweep_shared *s, const struct visit &visit, uint32_t length)
{
    return biases != NULL && !s->product.shared ? biases + (size_t)visit.expert * length : biases;
}

/* y0 and y1 are a hidden unit's gate and up, or, without gates, the up of two of them. */
static __device__ __forceinline__ void
put_expert(const struct sweep_shared *s, uint32_t v, uint32_t o0, uint32_t o1, float y0, float y1)
{
    const struct dev_model &m = s->model;
    const bool shared = s->product.shared;
    const struct visit visit = s->a.store.visits[v];
    const struct expert_stack &stack = shared ? mixture_here(s).shared : mixture_here(s).routed;
    const uint32_t ffn = stack.down.cols, row = shared ? visit.row : v;
    const bool gated = stack.gate_up.rows > ffn;
    const float *const bgate = bias_of(stack.bgate, s, visit, ffn), *const bup = bias_of(stack.bup, s, visit, ffn);
    const struct xielu &numbers = layer_here(s).xielu;
    void *const to = shared ? s->a.store.shared_hidden : s->a.store.expert_hidden;
#pragma unroll 1
    for (int i = 0; i < (gated ? 1 : 2); i++) {
        const uint32_t o = i == 0 ? o0 : o1;
        if (o == UINT32_MAX)
            continue;
        float y = i == 0 ? y0 : y1;
        if (gated)
            y = activated_pair(m.form.activation, numbers, y + (bgate != NULL ? bgate[o] : 0),
                               y1 + (bup != NULL ? bup[o] : 0));
        else
            y = activated(m.form.activation, numbers, y + (bup != NULL ? bup[o] : 0));
        put_activation(to, m.exact, ffn, row, o, m.exact ? y : y * HIDDEN_SHRINK);
    }
}

/* A row's visits come one after the other to the threads of one block, with a barrier between them. */
static __device__ __forceinline__ void
add_expert(const struct sweep_shared *s, uint32_t v, uint32_t o0, uint32_t o1, float y0, float y1)
{
    const uint32_t width = s->model.width;
    const struct visit visit = s->a.store.visits[v];
    const struct expert_stack &stack = s->product.shared ? mixture_here(s).shared : mixture_here(s).routed;
    const float *const bias = bias_of(stack.bdown, s, visit, width);
    const bool to_stream = (visit.edge & VISIT_LAST) != 0 && !s->how.raw;
    float *const hidden = s->a.store.hidden + (size_t)row_of(s, visit.row).ring * (s->model.n_layers + 1) * width;
    const float *const before = hidden + (size_t)s->how.from * width;
    float *const sums = s->a.store.raw + (size_t)visit.row * width;
    float *const after = to_stream ? hidden + (size_t)s->l * width : sums;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t o = i == 0 ? o0 : o1;
        if (o == UINT32_MAX)
            continue;
        const float y = fmaf(i == 0 ? y0 : y1, s->how.scale, bias != NULL ? bias[o] : 0);
        const float sum = fmaf(visit.weight, y, (visit.edge & VISIT_FIRST) != 0 ? 0 : sums[o]);
        after[o] = to_stream ? fmaf(s->model.form.residual_scale, sum, before[o]) : sum;
    }
}

#endif
