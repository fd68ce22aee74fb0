/* A forward pass: rows through layers, in one cooperative launch (docs/cuda.md). The template parameter Shared is the
 * type of a block's shared memory. Models with experts or other rare forms have one type, and all other models have
 * another, whose kernel contains none of the rare code. The map of calls:
 *
 * forward_layers              the kernel: for each entry of the list that the host made
 *   begin_forward             copies the model and the rows, computes rotations
 *   begin_layer               block 0 reads the cancel word
 *   do_elementwise            the steps without a product (forward_steps.cuh):
 *     norm_rows, norm_heads, post_rows, copy_rows, shift_probe, norm_probe
 *     attend_rows             attend_block, merge_blocks, merge_parts (attention.cuh)
 *     route_rows              put_router_logits, choose_all, order_expert_rows (forward_route.cuh)
 *   do_products               the products of the step, by the type of weights:
 *     multiply                8, 16 or 32 rows at a time, or up to 8 that the block norms itself: all_strips, or
 *                             exact_strips for F32 (matmul.cuh), or all_tiles for many rows (tile.cuh)
 *       unit_of               loads and multiplies packed weights (units.cuh)
 *       epilogue              processes each pair of outputs (epilogue.cuh)
 *   grid_sync                 the barrier (grid.cuh); meanwhile wait_usefully:
 *     take_step, take_ahead, take_layer, fetch_ahead (forward_products.cuh)
 *   leaves                    whether the probed row exits
 *
 * Products are multiplied in one place, for which their differences are prepared in advance. So the kernel contains
 * each kind of strip once and needs no calls, which would put registers on a stack. */
#pragma once

#include "kernels/cuda/device/forward_products.cuh"
#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/forward_steps.cuh"
#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/tile.cuh"

template <class Shared> constexpr unsigned epilogue_more = Shared::RARE ? EPILOGUE_RARE : 0;

/* Multiplies the prepared product, NT tiles of rows at a time. SMEM: the block norms the rows into its shared memory
 * while the first weights load. */
template <enum weight_type T, int NT, bool SMEM, class Shared>
static __device__ __forceinline__ void
multiply(Shared *s)
{
    const unsigned kinds = SMEM ? EPILOGUE_SMEM : NT == 1 ? EPILOGUE_ANY : EPILOGUE_ROWS;
    struct epilogue<kinds | epilogue_more<Shared>> then {
        s
    };
    const block_rows<Shared::RARE, NT> rows(s->product);
    const auto before = [s] {
        if (SMEM && s->now.norms && s->entry.by_squares)
            norm_to_smem(s, true);
    };
    if constexpr (T == WEIGHT_F32)
        exact_strips(rows, (float *)s->work, then);
    else if (NT == PRODUCT_TILES && tiles_pay(s->product))
        all_tiles<T>(s->product, (struct tile_shared *)s->work, then);
    else
        all_strips<T, NT, SMEM>(rows, (float *)s->work, before, then);
    if (NT == 1 && s->entry.kind == EPILOGUE_LOGITS)
        put_part(s, then.part);
}

/* Returns the largest number of rows of an expert, or of the product. */
static __device__ __forceinline__ uint32_t
most_rows(const struct product &p)
{
    return !p.by_expert ? p.n : p.shared ? p.kv_cache->expert_list->rows : p.kv_cache->expert_list->most;
}

template <enum weight_type T, class Shared>
static __device__ __forceinline__ void
multiply_as(Shared *s)
{
    const uint32_t n = Shared::RARE ? most_rows(s->product) : s->product.n;
    if (s->product.in_smem)
        multiply<T, 1, true>(s);
    else if (n <= TILE)
        multiply<T, 1, false>(s);
    else if (n <= 2 * TILE)
        multiply<T, 2, false>(s);
    else
        multiply<T, PRODUCT_TILES, false>(s);
}

/* Computes the products of step number *i of the list and of the steps joined with it. */
template <class Shared>
static __device__ __forceinline__ void
do_products(Shared *s, uint32_t *i)
{
    for (;;) {
        if (s->now.norms && !s->entry.by_squares)
            norm_to_smem(s, false);
        switch (s->entry.matrices[0].type) {
        case WEIGHT_F32: multiply<WEIGHT_F32, 1, false>(s); break;
        case WEIGHT_Q8_0: multiply_as<WEIGHT_Q8_0>(s); break;
        case WEIGHT_Q4_0: multiply_as<WEIGHT_Q4_0>(s); break;
        case WEIGHT_Q4_K: multiply_as<WEIGHT_Q4_K>(s); break;
        case WEIGHT_Q6_K: multiply_as<WEIGHT_Q6_K>(s); break;
        case WEIGHT_BF16: multiply_as<WEIGHT_BF16>(s); break;
        default: multiply_as<WEIGHT_F16>(s);
        }
        if (!s->now.joined)
            return;
        ++*i;
        __syncthreads();
        if (threadIdx.x < WARP)
            take_step(s, s->a.steps[*i]);
        __syncthreads();
    }
}

/* Returns the word that tells the pass to stop at a layer. */
static __device__ __forceinline__ uint32_t *
stop_of(struct forward_state *s, uint32_t l)
{
    return &s->a.kv_cache.barrier->stop[parity(l)];
}

/* Call before the first step of a layer. Block 0 reads the cancel word, and all blocks read its copy at the layer's
 * second barrier and later ones, so that all of them exit at the same point. The next layer uses another copy, and this
 * one is not set again before the barriers of that layer. */
static __device__ __forceinline__ void
begin_layer(struct forward_state *s)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        __stcg(stop_of(s, s->l), load_acquire(s->a.kv_cache.cancel));
        if (s->a.until.temperature != NULL)
            s->a.until.state->depth = s->l;
    }
}

/* Called while a block waits at the barrier after a step of layer l. Prefetches weights, copies entry number `next` of
 * the list and the prefetch of the barrier after it, and checks for cancellation. entered: the step was the first one
 * of its layer. */
template <class Shared>
static __device__ __forceinline__ void
wait_usefully(Shared *s, uint32_t next, uint32_t l, bool entered, uint32_t odd)
{
    const uint32_t warp = thread_here() / WARP;
    stamp_coming(s);
    if (warp == 3 && thread_here() % WARP == 0)
        s->stopped = !entered && __ldcg(stop_of(s, l)) != 0;
    if (next <= s->a.n_steps && warp >= 1 && warp <= 3) {
        const struct pass_step step = s->a.steps[next];
        if (warp == 1)
            take_step(s, step);
        else if (warp == 2)
            take_ahead(s, step, &s->ahead[odd ^ 1]);
        else if (step.enters)
            take_layer(s, step.layer);
    }
    fetch_ahead<Shared>(s->ahead[odd]);
}

/* Initialises the block's state before its first step. A barrier must follow. */
template <class Shared>
static __device__ __forceinline__ void
begin_forward(Shared *s, const struct forward_args &a)
{
    const uint32_t warp = thread_here() / WARP;
    if (warp == 0)
        copy_by_warp(&s->model, a.model, sizeof s->model);
    else if (warp == 1)
        copy_by_warp(s->rows, a.rows, (a.n < SMEM_ROWS ? a.n : SMEM_ROWS) * sizeof *a.rows);
    if (threadIdx.x == 0) {
        s->a = a;
        s->n_probes = s->n_stamps = s->last_split = 0;
    }
    __syncthreads();
    if (warp == 0)
        take_ahead(s, a.steps[0], &s->ahead[0]);
    inspect_rows(s);
}

/* Limit of a block's shared memory on the smallest supported GPUs, compute capability 8.6 and 8.9. */
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
    grid_sync(barrier, [=] { wait_usefully(s, 1, a.first, true, 0); });
    stamp_leaving(s, a.first, START);
    for (uint32_t i = 1, odd = 1; i <= a.n_steps; odd ^= 1) {
        if (s->now.enters)
            begin_layer(s);
        do_elementwise(s);
        if (s->now.product != NO_PRODUCT)
            do_products(s, &i);
        const uint32_t l = s->l, step = s->step, next = ++i;
        const bool entered = s->now.enters;
        barrier.place = grid_place(l, step);
        grid_sync(barrier, [=] { wait_usefully(s, next, l, entered, odd); });
        stamp_leaving(s, l, step);
        if (s->stopped || (step == PROBE && leaves(s, l)))
            return;
    }
}
