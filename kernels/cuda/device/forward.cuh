/* A sweep: rows through layers, in one cooperative launch (docs/cuda.md). Shared is what a block has in shared memory: that of models
 * that mix experts or have other rare forms, or of all others, whose kernel has nothing of them.
 *
 * A layer is a few steps with a barrier of the grid behind each. Products are most of them, and there is one place where a
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
constexpr unsigned finish_more = (Shared::MIXES ? FINISH_VISITS : 0) | (Shared::BENDS ? FINISH_CLIPS : 0);

/* The product that was prepared. `turn` goes in and comes out. */
template <enum weight_type T, int NT, class Shared>
static __device__ __forceinline__ uint32_t
multiply(Shared *s, uint32_t turn)
{
    struct finish<(NT == 1 ? FINISH_ANY : FINISH_ROWS) | finish_more<Shared>> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    all_strips<T, NT, false>(
        rows_of<Shared, NT>(s->product), (float *)s->work, &turn, [] {}, then);
    if (NT == 1 && s->how.kind == FINISH_LOGITS)
        put_part(s, then.part);
    return turn;
}

template <class Shared>
static __device__ __forceinline__ uint32_t
multiply_exactly(Shared *s, enum pairing pairing, uint32_t turn)
{
    struct finish<FINISH_ANY | finish_more<Shared>> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    if (Shared::MIXES && s->product.visited)
        exact_visits(s->product, pairing, s->model, (float *)s->work, &turn, then);
    else
        exact_product(s->product, pairing, s->model, (float *)s->work, &turn, then);
    if (s->how.kind == FINISH_LOGITS)
        put_part(s, then.part);
    return turn;
}

/* Of rows that are normed into this block's shared memory. */
template <enum weight_type T, class Shared>
static __device__ __forceinline__ uint32_t
multiply_near(Shared *s, uint32_t turn)
{
    struct finish<FINISH_NEAR | finish_more<Shared>> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    const auto before = [s] {
        if (s->how.near)
            norm_near(s);
    };
    all_strips<T, 1, true>(rows_of<Shared, 1>(s->product), (float *)s->work, &turn, before, then);
    if (s->how.kind == FINISH_LOGITS)
        put_part(s, then.part);
    return turn;
}

/* Of an expert, where they visit. */
static __device__ __forceinline__ uint32_t
most_rows(const struct product &p)
{
    return !p.visited ? p.n : p.shared ? p.store->going->rows : p.store->going->most;
}

template <enum weight_type T, class Shared>
static __device__ __forceinline__ uint32_t
multiply_as(Shared *s, uint32_t turn)
{
    const uint32_t n = Shared::MIXES ? most_rows(s->product) : s->product.n;
    return s->product.near ? multiply_near<T>(s, turn)
           : n <= TILE     ? multiply<T, 1>(s, turn)
           : n <= 2 * TILE ? multiply<T, 2>(s, turn)
                           : multiply<T, PRODUCT_TILES>(s, turn);
}

/* Of the step: wq, wk, wv, some together; or the experts that rows go to, and the one that all go to. */
template <class Shared>
static __device__ __forceinline__ uint32_t
count_parts(const Shared *s)
{
    if (Shared::MIXES && s->product.visited)
        return mixture_here(s).shared.down.rows > 0 ? 2 : 1;
    return s->step == QKV ? 3 : 1;
}

template <class Shared>
static __device__ __forceinline__ enum pairing
pairing_here(const Shared *s)
{
    const struct dev_layer &layer = layer_here(s);
    if (s->step != GATE_UP)
        return s->step == QKV ? PAIR_HEADS : PAIR_NONE;
    if (Shared::MIXES && s->product.visited) {
        const struct expert_stack &stack = s->product.shared ? mixture_here(s).shared : mixture_here(s).routed;
        return stack.gate_up.rows > stack.down.cols ? PAIR_GATE_UP : PAIR_NONE;
    }
    return layer_is_gated(s->model, layer) ? PAIR_GATE_UP : PAIR_NONE;
}

/* Products of the step that was prepared. */
template <class Shared>
static __device__ __forceinline__ uint32_t
do_products(Shared *s, uint32_t turn)
{
    for (uint32_t part = 0; part < count_parts(s); part += s->product.n_matrices) {
        if (part > 0) {
            __syncthreads();
            if (threadIdx.x == 0)
                prepare(s, part);
            __syncthreads();
        }
        if (s->how.near_first)
            norm_near_first(s);
        switch (s->product.matrices[0]->type) {
        case WEIGHT_F32: turn = multiply_exactly(s, pairing_here(s), turn); break;
        case WEIGHT_Q8_0: turn = multiply_as<WEIGHT_Q8_0>(s, turn); break;
        case WEIGHT_Q4_0: turn = multiply_as<WEIGHT_Q4_0>(s, turn); break;
        case WEIGHT_Q4_K: turn = multiply_as<WEIGHT_Q4_K>(s, turn); break;
        case WEIGHT_Q6_K: turn = multiply_as<WEIGHT_Q6_K>(s, turn); break;
        case WEIGHT_BF16: turn = multiply_as<WEIGHT_BF16>(s, turn); break;
        default: turn = multiply_as<WEIGHT_F16>(s, turn);
        }
    }
    return turn;
}

/* The first step of a layer comes. What block 0 says of a cancel is read by all at the layer's second barrier and at later
 * ones: all leave at the same place. The next layer has another word, and this one is not set again before the barriers of that. */
template <class Shared>
static __device__ __forceinline__ void
begin_layer(Shared *s)
{
    bring_layer(s, s->l + 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        __stcg(&s->a.store.barrier->stop[s->l % 2], load_acquire(s->a.store.cancel));
        if (s->a.until.temperature != NULL)
            s->a.until.state->depth = s->l;
    }
}

/* While a block waits: weights, what comes next, a cancel. */
template <class Shared>
static __device__ __forceinline__ void
wait_usefully(Shared *s, uint32_t l, bool entered, uint32_t odd)
{
    const uint32_t thread = threadIdx.x;
    stamp_coming(s);
    if (thread == 2 * WARP)
        arrange(s, &s->ahead[odd ^ 1]);
    else if (thread == 3 * WARP)
        s->stopped = !entered && __ldcg(&s->a.store.barrier->stop[l % 2]) != 0;
    fetch_ahead<Shared>(s->ahead[odd]);
}

/* What a block has to know before its first step. Behind it is a barrier, for what blocks have found out for each other. */
template <class Shared>
static __device__ __forceinline__ void
begin_sweep(Shared *s, const struct sweep_args &a)
{
    copy_words(&s->model, a.model, sizeof s->model);
    copy_words(s->rows, a.rows, (a.n < NEAR_ROWS ? a.n : NEAR_ROWS) * sizeof *a.rows);
    if (threadIdx.x == 0) {
        s->a = a;
        s->l = a.first - 1;
        s->step = STEPS - 1;
        s->does = {};
        s->n_probes = s->n_stamps = s->last_split = s->between = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        s->near = rows_are_near(s->model, a.n);
    bring_layer(s, a.first);
    __syncthreads();
    if (threadIdx.x == SWEEP_THREADS - 1)
        look_ahead(s, &s->ahead[0], a.first);
    look_at_rows(s);
}

/* What a block of the GPUs with least has, compute capability 8.6 and 8.9. */
static_assert(sizeof(struct mixture_shared) <= 99 << 10, "a block's shared memory");

template <class Shared>
static __global__ void
__launch_bounds__(SWEEP_THREADS, 1) sweep_layers(struct sweep_args a)
{
    SHARED_MEMORY(Shared, s);
    struct grid_barrier barrier = grid_barrier_of(a.store.barrier);
    stamp_begin(a);
    begin_sweep(s, a);
    barrier.place = grid_place(a.first, START);
    grid_sync(barrier, [=] { wait_usefully(s, a.first, true, 0); });
    stamp_leaving(s, a.first, START);
    for (uint32_t turn = 0, odd = 1; s->step != STEPS; odd ^= 1) {
        if (s->before.l != s->l)
            begin_layer(s);
        do_between(s);
        if (has_product(s->step))
            turn = do_products(s, turn);
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
