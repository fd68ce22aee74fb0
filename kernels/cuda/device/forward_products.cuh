/* The products of steps, and prefetching of their weights. */
#ifndef KERNELS_CUDA_DEVICE_FORWARD_PRODUCTS_CUH
#define KERNELS_CUDA_DEVICE_FORWARD_PRODUCTS_CUH

#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/matmul.cuh"

/* Products of experts with their rows (layout.h): the strips and activations of a block, with the interface of
 * all_rows (matmul.cuh). A lane takes the activations of whatever row it has, so rows need not be brought together: an instruction's
 * columns do not mix.
 *
 * Of gate and up the blocks take the strips of all listed experts in turn. Of down a block takes the same strip of all experts, one
 * expert after the other: so a row's experts are added by one block, in order. */

struct listed_place : strip_place {
    uint32_t expert, first, n; /* expert rows */
};

/* A product by expert: several experts of several strips each. */
struct listed_experts {
    const struct product &p;
    uint32_t experts, strips;

    __device__ __forceinline__
    listed_experts(const struct product &p, uint32_t strips)
        : p(p), experts(p.shared ? 1 : p.kv_cache->expert_list->n), strips(strips)
    {
    }
    /* The shared expert's strips begin with the last blocks, some of which had one strip less of the routed experts. */
    __device__ __forceinline__ uint32_t
    begin() const
    {
        return p.down ? 0 : p.shared ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    }
    __device__ __forceinline__ uint32_t
    step() const
    {
        return p.down ? 1 : gridDim.x;
    }
    __device__ __forceinline__ uint32_t
    end() const
    {
        if (!p.down)
            return experts * strips;
        return blockIdx.x < strips ? (strips - blockIdx.x + gridDim.x - 1) / gridDim.x * experts : 0;
    }
    __device__ __forceinline__ struct listed_place
    find(uint32_t i) const
    {
        const uint32_t which = p.down ? i % experts : i / strips;
        const struct listed_expert at = p.shared ? p.kv_cache->expert_list->alone : p.kv_cache->expert_list->experts[which];
        struct listed_place place;
        place.m = p.matrices[0];
        place.matrix = 0;
        place.strip = p.down ? blockIdx.x + i / experts * gridDim.x : i % strips;
        place.expert = p.shared ? 0 : at.expert;
        place.first = at.first;
        place.n = at.n;
        return place;
    }
    /* Returns the activations of expert row v. */
    __device__ __forceinline__ uint32_t
    row_of_entry(uint32_t v) const
    {
        return p.down && !p.shared ? v : p.kv_cache->expert_rows[v].row;
    }
};

/* Of any product. */
template <int NT> struct listed_rows {
    using place = struct listed_place;
    struct of_lane {
        uint32_t row[NT];
        struct packed_place following; /* read together with the rows, so that the ring never waits for the list */
    };
    const struct product &p;
    const struct all_rows<NT> all;
    uint32_t end;

    __device__ __forceinline__ struct listed_experts
    experts() const
    {
        return listed_experts(p, p.matrices[0]->strips);
    }
    __device__ __forceinline__ explicit listed_rows(const struct product &p)
        : p(p), all(p), end(p.by_expert ? experts().end() : all.end)
    {
    }
    __device__ __forceinline__ uint32_t
    begin() const
    {
        return p.by_expert ? experts().begin() : all.begin();
    }
    __device__ __forceinline__ uint32_t
    step() const
    {
        return p.by_expert ? experts().step() : all.step();
    }
    __device__ __forceinline__ place
    find(uint32_t i) const
    {
        if (p.by_expert)
            return experts().find(i);
        struct listed_place at;
        (struct strip_place &)at = all.find(i);
        at.expert = at.first = 0;
        at.n = p.n;
        return at;
    }
    __device__ __forceinline__ struct packed_place
    packed(const place &at) const
    {
        return {at.m, at.expert * at.m->strips + at.strip};
    }
    __device__ __forceinline__ struct packed_place
    following(const of_lane &own, uint32_t) const
    {
        return own.following;
    }
    __device__ __forceinline__ uint32_t
    passes_of(const place &at) const
    {
        return (at.n + NT * TILE - 1) / (NT * TILE);
    }
    __device__ __forceinline__ bool
    has(const place &at, uint32_t row) const
    {
        return row < at.n;
    }
    __device__ __forceinline__ uint32_t
    number(const place &at, uint32_t row) const
    {
        return at.first + row;
    }
    /* Lanes of missing rows read the activations of the tiles' first row. */
    __device__ __forceinline__ of_lane
    look_up(const place &at, uint32_t tile, uint32_t lane, uint32_t next) const
    {
        struct of_lane own;
        own.following = packed(find(next));
#pragma unroll
        for (uint32_t j = 0; j < NT; j++) {
            const uint32_t row = (tile + j) * TILE + lane / 4, there = row < at.n ? row : tile * TILE;
            own.row[j] = p.by_expert ? experts().row_of_entry(at.first + there) : there;
        }
        return own;
    }
    template <bool SMEM>
    __device__ __forceinline__ const uint4 *
    activations(const of_lane &own, uint32_t, uint32_t j, uint32_t unit, uint32_t units, uint32_t lane) const
    {
        const uint32_t row = own.row[j];
        if (SMEM)
            return (const uint4 *)p.x + row * smem_stride(units) + unit * 4 + lane % 4;
        return opaque((const uint4 *)p.x + (size_t)(row / TILE) * units * WARP + row % TILE * 4 + lane % 4 +
                       (size_t)unit * WARP);
    }
};

/* The same for exact models. */
template <class Then>
static __device__ __forceinline__ void
exact_expert_rows(const struct product &p, enum pairing pairing, const struct dev_model &model, float *shared,
                  uint32_t *buffer_index, Then &then)
{
    const struct dev_matrix &m = *p.matrices[0];
    const struct listed_experts experts(p, exact_strips(m, pairing, model.head_dim));
    for (uint32_t i = experts.begin(); i < experts.end(); i += experts.step()) {
        const struct listed_place at = experts.find(i);
        const float *const w = (const float *)m.quants + (size_t)at.expert * m.rows * m.cols;
        const auto x_of = [&](uint32_t row) {
            return (const float *)p.x + (size_t)experts.row_of_entry(at.first + row) * m.cols;
        };
        const auto put = [&](uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) {
            then(0, at.first + row, o0, o1, y0, y1);
        };
        exact_strip(m, w, at.strip, at.n, pairing, model, shared, buffer_index, x_of, put);
    }
}

static __device__ __forceinline__ bool
has_product(uint32_t step)
{
    return step == QKV || step == OUT || step == GATE_UP || step == DOWN || step == PROBE;
}

/* The strips of a product, and their rows. */
template <class Shared, int NT>
static __device__ __forceinline__ auto
rows_of(const struct product &p)
{
    if constexpr (Shared::HAS_EXPERTS)
        return listed_rows<NT>(p);
    else
        return all_rows<NT>(p);
}

static __device__ __forceinline__ struct product
product_of(const struct dev_matrix *m, const void *x, uint32_t n, bool in_smem)
{
    return {{m, NULL, NULL}, 1, x, n, in_smem};
}

/* Returns how many of wq, wk, wv, from number `first` on, form one product: those of the same type. */
static __device__ __forceinline__ uint32_t
qkv_together(const struct forward_state *s, const struct dev_layer &d, uint32_t first)
{
    if (s->model.exact)
        return 3;
    const bool qk = d.wq.type == d.wk.type, kv = d.wk.type == d.wv.type;
    return first == 0 ? (qk && kv ? 3 : qk ? 2 : 1) : first == 1 && kv ? 2 : 1;
}

static __device__ __forceinline__ struct product
qkv_product(const struct forward_state *s, const struct dev_layer &d, uint32_t first, const void *x)
{
    struct product p = {{&d.wq, &d.wk, &d.wv}, qkv_together(s, d, first), x, s->a.n, s->in_smem};
    if (first > 0)
        p.matrices[0] = first == 1 ? &d.wk : &d.wv;
    if (first == 1)
        p.matrices[1] = &d.wv;
    return p;
}

/* Returns the product of the routed experts or of the shared expert. */
static __device__ __forceinline__ struct product
experts_product(const struct moe_state *s, struct layer_step at, bool shared, const void *normed)
{
    const struct dev_kv_cache &kv_cache = s->a.kv_cache;
    const struct dev_moe &moe = s->moe[at.l % 2];
    const struct expert_stack &stack = shared ? moe.shared : moe.routed;
    const bool down = at.step == DOWN;
    const void *const hidden = shared ? kv_cache.shared_hidden : kv_cache.expert_hidden;
    struct product p =
        product_of(down ? &stack.down : &stack.gate_up, down ? hidden : normed, s->a.n, !down && s->in_smem);
    p.by_expert = true;
    p.shared = shared;
    p.down = down;
    p.kv_cache = &kv_cache;
    return p;
}

/* Returns the product of a step. `part`: the first of wq, wk, wv in it; in layers with experts 1 is the shared
 * expert. */
template <class Shared>
static __device__ __forceinline__ struct product
product_at(const Shared *s, struct layer_step at, uint32_t part)
{
    const struct dev_kv_cache &kv_cache = s->a.kv_cache;
    const struct dev_layer &d = s->layers[at.l % 2];
    const void *const in_smem = s->work + SMEM_AT, *const normed = s->in_smem ? in_smem : kv_cache.normed;
    if constexpr (Shared::HAS_EXPERTS)
        if (d.has_experts && (at.step == GATE_UP || at.step == DOWN))
            return experts_product(s, at, part > 0, normed);
    switch (at.step) {
    case QKV: return qkv_product(s, d, part, normed);
    case GATE_UP: return product_of(&d.gate_up, normed, s->a.n, s->in_smem);
    case OUT: return product_of(&d.wo, kv_cache.attended, s->a.n, false);
    case DOWN: return product_of(&d.down, kv_cache.gated, s->a.n, false);
    default:
        return product_of(s->trained.full != NULL ? &s->own_head : &s->model.head,
                          s->does.probe_in_smem ? in_smem : kv_cache.until_normed, 1, s->does.probe_in_smem);
    }
}

/* Returns whether the MLP is Llama's, which has a specialised epilogue. */
static __device__ __forceinline__ bool
is_silu_gated(const struct forward_state *s, const struct dev_layer &d)
{
    return s->model.form.activation == ACT_SILU && layer_is_gated(s->model, d) && d.bgate == NULL && d.bup == NULL;
}

/* Sets the epilogue that adds a sublayer's output, times `scale`, to the hidden states of depth `from`. */
static __device__ __forceinline__ void
prepare_stream(struct forward_state *s, uint32_t from, const float *bias, bool posts, float scale)
{
    struct epilogue_args *how = &s->how;
    how->kind = EPILOGUE_STREAM;
    how->from = from;
    how->raw = posts;
    how->bias = bias;
    how->bias_scale = posts ? 1 : s->model.form.residual_scale;
    how->scale = scale * how->bias_scale;
}

static __device__ __forceinline__ void
prepare_smem(struct forward_state *s, bool in_smem, const struct dev_norm &norm)
{
    const bool by_squares = !s->model.form.centred && norm.weight != NULL;
    s->how.in_smem = in_smem && by_squares;
    s->how.smem_first = in_smem && !by_squares;
    s->how.norm = norm;
}

static __device__ __forceinline__ void
prepare_experts(struct forward_state *s, uint32_t part)
{
    struct epilogue_args *how = &s->how;
    if (s->step == GATE_UP) {
        how->kind = EPILOGUE_EXPERT;
        how->norm_depth = mlp_depth(s);
        prepare_smem(s, s->in_smem && part == 0, mlp_norm(s, layer_here(s)));
    } else {
        how->kind = EPILOGUE_MIX;
        how->from = s->does.attends ? s->l : s->l - 1;
        how->raw = s->does.posts_mlp;
        how->scale = s->model.exact ? 1 : 1 / HIDDEN_SHRINK;
    }
}

/* Writes the product of step s->step and its epilogue to shared memory; called by one thread. */
template <class Shared>
static __device__ __forceinline__ void
prepare(Shared *s, uint32_t part)
{
    const struct dev_layer &d = layer_here(s);
    struct epilogue_args *how = &s->how;
    how->matrix = part;
    how->in_smem = how->smem_first = false;
    how->norm_depth = s->l - 1;
    s->product = product_at(s, {s->l, s->step}, part);
    if (Shared::HAS_EXPERTS && s->product.by_expert) {
        prepare_experts(s, part);
        return;
    }
    switch (s->step) {
    case QKV:
        how->kind = EPILOGUE_QKV;
        prepare_smem(s, s->in_smem && part == 0, {d.attn_norm, d.attn_norm_b});
        break;
    case GATE_UP:
        how->kind = is_silu_gated(s, d) ? EPILOGUE_GATED : EPILOGUE_ACTIVATED;
        prepare_smem(s, s->in_smem, mlp_norm(s, d));
        how->norm_depth = mlp_depth(s);
        break;
    case OUT: prepare_stream(s, s->l - 1, d.bo, s->does.posts_attention, 1); break;
    case DOWN:
        prepare_stream(s, s->does.attends ? s->l : s->l - 1, d.bdown, s->does.posts_mlp,
                       s->model.exact ? 1 : 1 / HIDDEN_SHRINK);
        break;
    default:
        how->kind = EPILOGUE_LOGITS;
        how->logits = s->a.kv_cache.until_logits + (size_t)s->n_probes * s->model.vocab;
        how->temperature = s->a.until.temperature[s->l];
        prepare_smem(s, s->does.probe_in_smem, s->model.final_norm);
    }
}

/* ---- what comes next: by one thread, while others wait ---- */

/* Before routing, only the shared expert's gate and up are known. */
static __device__ __forceinline__ bool
look_ahead_at_experts(const struct moe_state *s, struct layer_step at, struct product *p)
{
    if (!p->by_expert || at.step == DOWN)
        return true;
    *p = product_of(&s->moe[at.l % 2].shared.gate_up, NULL, 0, false);
    return p->matrices[0]->rows > 0;
}

/* Determines the next product after the coming step, to prefetch its weights at the barrier after that step: their
 * beginning after a product, the following part after a step without one. */
template <class Shared>
static __device__ __forceinline__ void
look_ahead(Shared *s, struct ahead *ahead, uint32_t copied)
{
    struct layer_step at = {s->l, s->step};
    s->idle_steps = has_product(s->step) ? 0 : s->idle_steps + 1;
    ahead->from = ahead->to = 0;
    do
        at = step_after(s, at, copied);
    while (at.step != STEPS && !has_product(at.step));
    if (at.step == STEPS)
        return;
    ahead->product = product_at(s, at, 0);
    if constexpr (Shared::HAS_EXPERTS)
        if (!look_ahead_at_experts(s, at, &ahead->product))
            return;
    ahead->from = s->idle_steps * s->a.window;
    ahead->to = ahead->from + s->a.window;
}

/* Prepares the step after the current one, and what is prefetched after it. */
template <class Shared>
static __device__ __forceinline__ void
schedule(Shared *s, struct ahead *ahead)
{
    const uint32_t copied = s->l + 1;
    const struct layer_step next = step_after(s, {s->l, s->step}, copied);
    s->before = {s->l, s->step};
    s->step = next.step;
    if (next.step == STEPS)
        return;
    if (next.l != s->l)
        enter_layer(s, next.l);
    if (has_product(next.step))
        prepare(s, 0);
    look_ahead(s, ahead, copied);
}

/* Prefetches this block's part, with all warps except the first. */
template <class Shared>
static __device__ __forceinline__ void
fetch_ahead(const struct ahead &ahead)
{
    if (ahead.from < ahead.to)
        prefetch_strips(rows_of<Shared, 1>(ahead.product), ahead.from, ahead.to, thread_here() - WARP,
                        BLOCK_THREADS - WARP);
}

#endif
