/* Epilogues of a forward pass's products. One functor contains all of them, so that each kind of strip is compiled once
 * (matmul.cuh describes when it is called). */
#pragma once

#include <math.h>

#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/forward_state.cuh"

/* Calls with(o, y) for those of two outputs that exist. */
template <class With>
static __device__ __forceinline__ void
for_outputs(uint32_t o0, uint32_t o1, float y0, float y1, With with)
{
    if (o0 != UINT32_MAX)
        with(o0, y0);
    if (o1 != UINT32_MAX)
        with(o1, y1);
}

/* Epilogues of experts' products, of expert row v (layout.h). */

/* Returns the expert's part of a stack of biases, of `length` each. */
static __device__ __forceinline__ const float *
bias_of(const float *biases, const struct forward_state *s, const struct expert_row &entry, uint32_t length)
{
    return biases != NULL && !s->product.shared ? biases + (size_t)entry.expert * length : biases;
}

/* Stores the activations of hidden units, for row `row` of a matrix (rows, ffn). y0 and y1 are a unit's gate and up or,
 * without gates, the up of two units. RARE: the activation may be a function of both. */
template <bool RARE>
static __device__ __forceinline__ void
put_hidden(const struct forward_state *s, void *to, uint32_t ffn, bool gated, const float *bgate, const float *bup,
           uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1)
{
    const struct dev_model &m = s->model;
    const struct xielu &numbers = s->layer.xielu;
    const float *const bias = gated ? bgate : bup;
    const float up = !gated ? 1 : bup != NULL && o0 != UINT32_MAX ? y1 + bup[o0] : y1;
#pragma unroll 1
    for (int i = 0; i < (gated ? 1 : 2); i++) {
        const uint32_t o = i == 0 ? o0 : o1;
        if (o == UINT32_MAX)
            continue;
        const float plain = i == 0 ? y0 : y1, x = bias != NULL ? plain + bias[o] : plain;
        const float y = RARE && gated ? activated_pair(m.form.activation, numbers, x, up)
                                      : activated(m.form.activation, numbers, x) * up;
        put_activation(to, m.exact, ffn, row, o, m.exact ? y : y * HIDDEN_SHRINK);
    }
}

static __device__ __forceinline__ void
put_expert(const struct forward_state *s, uint32_t v, uint32_t o0, uint32_t o1, float y0, float y1)
{
    const bool shared = s->product.shared;
    const struct expert_row entry = s->a.kv_cache.expert_rows[v];
    const struct expert_stack &stack = shared ? moe_here(s).shared : moe_here(s).routed;
    const uint32_t ffn = stack.down.cols;
    put_hidden<true>(s, shared ? s->a.kv_cache.shared_hidden : s->a.kv_cache.expert_hidden, ffn,
                     stack.gate_up.rows > ffn, bias_of(stack.bgate, s, entry, ffn), bias_of(stack.bup, s, entry, ffn),
                     shared ? entry.row : v, o0, o1, y0, y1);
}

/* The experts of a row are processed by the threads of one block, one after the other, with a barrier between them. */
static __device__ __forceinline__ void
add_expert(const struct forward_state *s, uint32_t v, uint32_t o0, uint32_t o1, float y0, float y1)
{
    const uint32_t width = s->model.width;
    const struct expert_row entry = s->a.kv_cache.expert_rows[v];
    const struct expert_stack &stack = s->product.shared ? moe_here(s).shared : moe_here(s).routed;
    const float *const bias = bias_of(stack.bdown, s, entry, width);
    const bool to_stream = (entry.edge & ROW_LAST) != 0 && !s->entry.raw;
    const float *const before = hidden_of(s, row_of(s, entry.row), s->now.depth);
    float *const sums = s->a.kv_cache.raw + (size_t)entry.row * width;
    float *const after = to_stream ? hidden_of(s, row_of(s, entry.row), s->l) : sums;
    for_outputs(o0, o1, y0, y1, [=](uint32_t o, float x) {
        const float y = fmaf(x, s->entry.scale, bias != NULL ? bias[o] : 0);
        const float sum = fmaf(entry.weight, y, (entry.edge & ROW_FIRST) != 0 ? 0 : sums[o]);
        after[o] = to_stream ? fmaf(s->model.form.residual_scale, sum, before[o]) : sum;
    });
}

/* The maximum of z and the sum of exp((z - max) / T) of several logits. Merging is symmetrical to the last bit. */
struct softmax_part {
    float max = -INFINITY, sum = 0;

    __device__ __forceinline__ void
    add(float z, float more, float temperature)
    {
        if (more == 0)
            return;
        const float most = fmaxf(max, z), keep = sum == 0 ? 0 : expf((max - most) / temperature);
        sum = __fadd_rn(__fmul_rn(sum, keep), __fmul_rn(more, expf((z - most) / temperature)));
        max = most;
    }
};

/* ---- the functor ---- */

/* KINDS: bits of the epilogues that can occur. */
template <unsigned KINDS> struct epilogue {
    const struct forward_state *s;
    struct softmax_part part = {}; /* statistics of this thread's logits */

    /* In models with query and key norms the rotation follows the norm. Clipping follows norms of whole rows. */
    __device__ __forceinline__ void
    put_qk(bool key, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const struct dev_model &m = s->model;
        const struct dev_layer &layer = s->layer;
        const bool later = layer.q_norm != NULL || layer.k_norm != NULL;
        uint32_t pair;
        if ((KINDS & EPILOGUE_RARE) != 0 && !(later && m.form.whole_norms)) {
            y0 = clipped(m.form.clip, y0);
            y1 = clipped(m.form.clip, y1);
        }
        if (!later && s->rotations != NULL && o0 != UINT32_MAX && first_of_pair(m, o0 % m.head_dim, &pair))
            rotate(s->rotations[row * (m.rope_dims / 2) + pair], &y0, &y1);
        const float scale = later || key ? 1 : m.form.attention_scale;
        for_outputs(o0, o1, y0 * scale, y1 * scale, [=, &m](uint32_t o, float y) {
            if (later)
                s->a.kv_cache.qk_raw[((size_t)row * (m.heads + m.kv_heads) + (key ? m.heads : 0)) * m.head_dim + o] = y;
            else if (!key)
                s->a.kv_cache.q[(size_t)row * m.heads * m.head_dim + o] = y;
            else
                put_kv(m, s->a.kv_cache, s->a.kv_cache.keys, s->l, row_of(s, row).slot, o, y);
        });
    }

    __device__ __forceinline__ void
    put_qkv(uint32_t which, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const struct dev_model &m = s->model;
        const struct dev_layer &layer = s->layer;
        const float *bias = which == 0 ? layer.bq : which == 1 ? layer.bk : layer.bv;
        if (bias != NULL) {
            y0 += o0 != UINT32_MAX ? bias[o0] : 0;
            y1 += o1 != UINT32_MAX ? bias[o1] : 0;
        }
        if (which < 2) {
            put_qk(which == 1, row, o0, o1, y0, y1);
            return;
        }
        if ((KINDS & EPILOGUE_RARE) != 0) {
            y0 = clipped(m.form.clip, y0);
            y1 = clipped(m.form.clip, y1);
        }
        const slot_t slot = row_of(s, row).slot;
        for_outputs(o0, o1, y0, y1,
                    [=, &m](uint32_t o, float y) { put_kv(m, s->a.kv_cache, s->a.kv_cache.values, s->l, slot, o, y); });
    }

    __device__ __forceinline__ void
    add_to_stream(uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const uint32_t width = s->model.width;
        const float *before = hidden_of(s, row_of(s, row), s->now.depth);
        float *after = s->entry.raw ? s->a.kv_cache.raw + (size_t)row * width : hidden_of(s, row_of(s, row), s->l);
        for_outputs(o0, o1, y0, y1, [=](uint32_t o, float y) {
            float x = s->entry.raw ? 0 : before[o];
            if (s->entry.bias != NULL)
                x = fmaf(s->entry.bias[o], s->entry.bias_scale, x);
            after[o] = fmaf(y, s->entry.scale, x);
        });
    }

    __device__ __forceinline__ void
    put_logit(uint32_t o, float z)
    {
        if (s->model.shapes_logits)
            z = shaped_logit(s->model, set_token(&s->a.until.set, o), z);
        s->logits[o] = z;
        part.add(z, fabsf(z) < INFINITY ? 1 : NAN, s->temperature); /* keeps values that are not numbers */
    }

    __device__ __forceinline__ bool
    is(enum epilogue_kind kind) const
    {
        return (KINDS >> kind & 1u) != 0 && s->entry.kind == kind;
    }

    __device__ __forceinline__ void
    operator()(uint32_t which, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1)
    {
        if (is(EPILOGUE_LOGITS)) {
            const uint32_t first = which > 0 ? s->entry.matrices[0].rows : 0;
            for_outputs(o0, o1, y0, y1, [this, first](uint32_t o, float z) { put_logit(first + o, z); });
        } else if (is(EPILOGUE_EXPERT)) {
            put_expert(s, row, o0, o1, y0, y1);
        } else if (is(EPILOGUE_MIX)) {
            add_expert(s, row, o0, o1, y0, y1);
        } else if (row_of(s, row).from >= s->l) { /* the row has already passed this layer */
            return;
        } else if (is(EPILOGUE_STREAM)) {
            add_to_stream(row, o0, o1, y0, y1);
        } else if (is(EPILOGUE_QKV)) {
            put_qkv(s->entry.first_matrix + which, row, o0, o1, y0, y1);
        } else { /* EPILOGUE_ACTIVATED */
            put_hidden<(KINDS & EPILOGUE_RARE) != 0>(s, s->a.kv_cache.gated, s->model.ffn,
                                                     s->entry.matrices[0].rows > s->model.ffn, s->layer.bgate,
                                                     s->layer.bup, row, o0, o1, y0, y1);
        }
    }
};
