/* A forward pass: rows through layers, in one cooperative launch (docs/cuda.md). Shared is what a block has in shared memory: that of models
 * that mix experts or have other rare forms, or of all others, whose kernel has nothing of them.
 *
 * A layer is a few steps with a barrier of the grid after each. Products are most of them, and there is one place where a
 * product is multiplied: what differs is prepared before, so that the kernel has each kind of strip once and needs no
 * calls, which would put registers on a stack. */
#ifndef KERNELS_CUDA_DEVICE_FORWARD_CUH
#define KERNELS_CUDA_DEVICE_FORWARD_CUH

#include "kernels/cuda/device/forward_products.cuh"
#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/forward_steps.cuh"
#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/matmul.cuh"

template <class Shared>
constexpr unsigned epilogue_more = (Shared::HAS_EXPERTS ? EPILOGUE_EXPERTS : 0) |
                                   (Shared::HAS_ALIBI ? EPILOGUE_CLIPS : 0);

/* Multiplies the prepared product; takes and returns the index of the buffer to use. */
template <enum weight_type T, int NT, class Shared>
static __device__ __forceinline__ uint32_t
multiply(Shared *s, uint32_t buffer_index)
{
    struct epilogue<(NT == 1 ? EPILOGUE_ANY : EPILOGUE_ROWS) | epilogue_more<Shared>> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    all_strips<T, NT, false>(
        rows_of<Shared, NT>(s->product), (float *)s->work, &buffer_index, [] {}, then);
    if (NT == 1 && s->how.kind == EPILOGUE_LOGITS)
        put_part(s, then.part);
    return buffer_index;
}

template <class Shared>
static __device__ __forceinline__ uint32_t
multiply_exactly(Shared *s, enum pairing pairing, uint32_t buffer_index)
{
    struct epilogue<EPILOGUE_ANY | epilogue_more<Shared>> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    if (Shared::HAS_EXPERTS && s->product.by_expert)
        exact_expert_rows(s->product, pairing, s->model, (float *)s->work, &buffer_index, then);
    else
        exact_product(s->product, pairing, s->model, (float *)s->work, &buffer_index, then);
    if (s->how.kind == EPILOGUE_LOGITS)
        put_part(s, then.part);
    return buffer_index;
}

/* The same for rows that are normed into this block's shared memory. */
template <enum weight_type T, class Shared>
static __device__ __forceinline__ uint32_t
multiply_smem(Shared *s, uint32_t buffer_index)
{
    struct epilogue<EPILOGUE_SMEM | epilogue_more<Shared>> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    const auto before = [s] {
        if (s->how.in_smem)
            norm_to_smem(s);
    };
    all_strips<T, 1, true>(rows_of<Shared, 1>(s->product), (float *)s->work, &buffer_index, before, then);
    if (s->how.kind == EPILOGUE_LOGITS)
        put_part(s, then.part);
    return buffer_index;
}

/* The largest number of rows of an expert, or of the product. */
static __device__ __forceinline__ uint32_t
most_rows(const struct product &p)
{
    return !p.by_expert ? p.n : p.shared ? p.kv_cache->expert_list->rows : p.kv_cache->expert_list->most;
}

template <enum weight_type T, class Shared>
static __device__ __forceinline__ uint32_t
multiply_as(Shared *s, uint32_t buffer_index)
{
    const uint32_t n = Shared::HAS_EXPERTS ? most_rows(s->product) : s->product.n;
    return s->product.in_smem ? multiply_smem<T>(s, buffer_index)
           : n <= TILE        ? multiply<T, 1>(s, buffer_index)
           : n <= 2 * TILE    ? multiply<T, 2>(s, buffer_index)
                              : multiply<T, PRODUCT_TILES>(s, buffer_index);
}

/* Returns the number of parts of the step: wq, wk, wv, some of them together; or the routed experts and the shared
 * expert. */
template <class Shared>
static __device__ __forceinline__ uint32_t
count_parts(const Shared *s)
{
    if (Shared::HAS_EXPERTS && s->product.by_expert)
        return moe_here(s).shared.down.rows > 0 ? 2 : 1;
    return s->step == QKV ? 3 : 1;
}

template <class Shared>
static __device__ __forceinline__ enum pairing
pairing_here(const Shared *s)
{
    const struct dev_layer &layer = layer_here(s);
    if (s->step != GATE_UP)
        return s->step == QKV ? PAIR_HEADS : PAIR_NONE;
    if (Shared::HAS_EXPERTS && s->product.by_expert) {
        const struct expert_stack &stack = s->product.shared ? moe_here(s).shared : moe_here(s).routed;
        return stack.gate_up.rows > stack.down.cols ? PAIR_GATE_UP : PAIR_NONE;
    }
    return layer_is_gated(s->model, layer) ? PAIR_GATE_UP : PAIR_NONE;
}

/* Computes the products of the prepared step. */
template <class Shared>
static __device__ __forceinline__ uint32_t
do_products(Shared *s, uint32_t buffer_index)
{
    for (uint32_t part = 0; part < count_parts(s); part += s->product.n_matrices) {
        if (part > 0) {
            __syncthreads();
            if (threadIdx.x == 0)
                prepare(s, part);
            __syncthreads();
        }
        if (s->how.smem_first)
            norm_to_smem_first(s);
        switch (s->product.matrices[0]->type) {
        case WEIGHT_F32: buffer_index = multiply_exactly(s, pairing_here(s), buffer_index); break;
        case WEIGHT_Q8_0: buffer_index = multiply_as<WEIGHT_Q8_0>(s, buffer_index); break;
        case WEIGHT_Q4_0: buffer_index = multiply_as<WEIGHT_Q4_0>(s, buffer_index); break;
        case WEIGHT_Q4_K: buffer_index = multiply_as<WEIGHT_Q4_K>(s, buffer_index); break;
        case WEIGHT_Q6_K: buffer_index = multiply_as<WEIGHT_Q6_K>(s, buffer_index); break;
        case WEIGHT_BF16: buffer_index = multiply_as<WEIGHT_BF16>(s, buffer_index); break;
        default: buffer_index = multiply_as<WEIGHT_F16>(s, buffer_index);
        }
    }
    return buffer_index;
}

/* Call before the first step of a layer. Block 0 reads the cancel word, and all blocks read its copy at the layer's
 * second barrier and later ones, so that all of them exit at the same point. The next layer uses another copy, and this
 * one is not set again before the barriers of that layer. */
template <class Shared>
static __device__ __forceinline__ void
begin_layer(Shared *s)
{
    copy_layer(s, s->l + 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        __stcg(&s->a.kv_cache.barrier->stop[s->l % 2], load_acquire(s->a.kv_cache.cancel));
        if (s->a.until.temperature != NULL)
            s->a.until.state->depth = s->l;
    }
}

/* While a block waits at a barrier: prefetches weights, prepares the next step, checks for cancellation. */
template <class Shared>
static __device__ __forceinline__ void
wait_usefully(Shared *s, uint32_t l, bool entered, uint32_t odd)
{
    const uint32_t thread = threadIdx.x;
    stamp_coming(s);
    if (thread == 2 * WARP)
        schedule(s, &s->ahead[odd ^ 1]);
    else if (thread == 3 * WARP)
        s->stopped = !entered && __ldcg(&s->a.kv_cache.barrier->stop[l % 2]) != 0;
    fetch_ahead<Shared>(s->ahead[odd]);
}

/* Initialises the block's state before its first step. The caller must follow it by a barrier. */
template <class Shared>
static __device__ __forceinline__ void
begin_forward(Shared *s, const struct forward_args &a)
{
    copy_words(&s->model, a.model, sizeof s->model);
    copy_words(s->rows, a.rows, (a.n < SMEM_ROWS ? a.n : SMEM_ROWS) * sizeof *a.rows);
    if (threadIdx.x == 0) {
        s->a = a;
        s->l = a.first - 1;
        s->step = STEPS - 1;
        s->does = {};
        s->n_probes = s->n_stamps = s->last_split = s->idle_steps = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        s->in_smem = rows_fit_smem(s->model, a.n);
    copy_layer(s, a.first);
    __syncthreads();
    if (threadIdx.x == BLOCK_THREADS - 1)
        look_ahead(s, &s->ahead[0], a.first);
    inspect_rows(s);
}

/* Shared memory of a block on the smallest supported GPUs, compute capability 8.6 and 8.9. */
static_assert(sizeof(struct moe_state) <= 99 << 10, "a block's shared memory");

template <class Shared>
static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) forward_layers(struct forward_args a)
{
    SHARED_MEMORY(Shared, s);
    struct grid_barrier barrier = grid_barrier_of(a.kv_cache.barrier);
    stamp_begin(a);
    begin_forward(s, a);
    barrier.place = grid_place(a.first, START);
    grid_sync(barrier, [=] { wait_usefully(s, a.first, true, 0); });
    stamp_leaving(s, a.first, START);
    for (uint32_t buffer_index = 0, odd = 1; s->step != STEPS; odd ^= 1) {
        if (s->before.l != s->l)
            begin_layer(s);
        do_elementwise(s);
        if (has_product(s->step))
            buffer_index = do_products(s, buffer_index);
        const uint32_t l = s->l, step = s->step;
        const bool entered = s->before.l != l;
        barrier.place = grid_place(l, step);
        grid_sync(barrier, [=] { wait_usefully(s, l, entered, odd); });
        stamp_leaving(s, l, step);
        if (s->stopped || (step == PROBE && leaves(s, l)))
            return;
    }
}

#endif
