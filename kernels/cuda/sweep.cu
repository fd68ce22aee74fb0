/* A sweep: rows through layers, in one cooperative launch (docs/cuda.md).
 *
 * A layer is a few steps with a barrier of the grid behind each. Products are most of them, and there is one place where a
 * product is multiplied: what differs is prepared before, so that the kernel has each kind of strip once and needs no
 * calls, which would put registers on a stack. */
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sweep_between.cuh"
#include "kernels/cuda/sweep_exit.cuh"
#include "kernels/cuda/sweep_products.cuh"

/* The product that was prepared. `turn` goes in and comes out. */
template <enum weight_type T, int NT>
static __device__ __forceinline__ uint32_t
multiply(struct sweep_shared *s, uint32_t turn)
{
    struct finish then = {s, {-INFINITY, 0}};
    packed_strips<T, NT>(s->product, 0, (float *)s->work, &turn, then);
    if (s->how.kind == FINISH_LOGITS)
        put_part(s, then.part);
    return turn;
}

static __device__ __forceinline__ uint32_t
multiply_exactly(struct sweep_shared *s, enum pairing pairing, uint32_t turn)
{
    struct finish then = {s, {-INFINITY, 0}};
    exact_product(s->product, pairing, s->model, (float *)s->work, &turn, then);
    if (s->how.kind == FINISH_LOGITS)
        put_part(s, then.part);
    return turn;
}

template <enum weight_type T>
static __device__ __forceinline__ uint32_t
multiply_as(struct sweep_shared *s, uint32_t turn)
{
    const uint32_t n = s->product.n;
    return n <= TILE       ? multiply<T, 1>(s, turn)
           : n <= 2 * TILE ? multiply<T, 2>(s, turn)
                           : multiply<T, PRODUCT_TILES>(s, turn);
}

/* Products of the step, if it has any. */
static __device__ __forceinline__ uint32_t
do_products(struct sweep_shared *s, uint32_t step, uint32_t turn)
{
    const bool product = step == QKV || step == OUT || step == GATE_UP || step == DOWN || step == PROBE;
    const uint32_t parts = !product ? 0 : step == QKV ? 3 : 1;
    for (uint32_t part = 0; part < parts; part += s->product.n_matrices) {
        prepare(s, step, part);
        switch (s->product.matrices[0]->type) {
        case WEIGHT_F32:
            turn = multiply_exactly(s, step == QKV ? PAIR_HEADS : step == GATE_UP ? PAIR_GATE_UP : PAIR_NONE, turn);
            break;
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

static __global__ void
__launch_bounds__(SWEEP_THREADS, 1) sweep_layers(struct sweep_args a)
{
    SHARED_MEMORY(struct sweep_shared, s);
    struct grid_barrier barrier = grid_barrier_of(a.store.barrier);
    uint32_t turn = 0;
    copy_words(&s->model, a.model, sizeof s->model);
    copy_words(s->rows, a.rows, (a.n < NEAR_ROWS ? a.n : NEAR_ROWS) * sizeof *a.rows);
    if (threadIdx.x == 0) {
        s->a = a;
        s->n_probes = s->last_split = 0;
    }
    __syncthreads();
    bring_layer(s, a.first);
    look_at_rows(s);

    for (uint32_t l = a.first; l <= a.to; l++) {
        enter_layer(s, l);
        /* All blocks read the word behind a barrier before which it was set; the next layer has the other word, and this
         * one is not set again before the barrier after that. */
        uint32_t *const stop = &a.store.barrier->stop[l % 2];
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            __stcg(stop, load_acquire(a.store.cancel));
            if (a.until.temperature != NULL)
                a.until.state->depth = l;
        }
        bool first = true;
        for (uint32_t step = step_after(s, 0); step != STEPS; step = step_after(s, step + 1)) {
            do_between(s, step);
            turn = do_products(s, step, turn);
            grid_sync(barrier, [&] { look_ahead(s, step); });
            if (first && __ldcg(stop) != 0)
                return;
            first = false;
        }
        if (s->probes && leaves(s))
            return;
    }
}

cudaError_t
sweep_prepare(int device, uint32_t *blocks)
{
    return resident_blocks(sweep_layers, device, SWEEP_THREADS, sizeof(struct sweep_shared), blocks);
}

cudaError_t
launch_sweep(struct sweep_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch_cooperative(sweep_layers, blocks, SWEEP_THREADS, a, stream, sizeof(struct sweep_shared));
}
