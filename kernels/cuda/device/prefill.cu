/* Prefill in chunks, with products computed by a library: the steps of a forward pass as separate launches of the same
 * code, and conversion between packed and plain matrices. */
#include "kernels/cuda/device/forward_products.cuh"
#include "kernels/cuda/device/forward_steps.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/units.cuh"

#define PLAIN_THREADS 256
#define PLAIN_COLS    8 /* columns stored per thread, 16 bytes */

/* ---- steps ---- */

static __device__ __forceinline__ uint32_t
forward_step(enum prefill_step step)
{
    switch (step) {
    case PREFILL_NORM_ATTENTION: return NORM_ATTENTION;
    case PREFILL_QKV: return QKV;
    case PREFILL_NORM_HEADS: return NORM_HEADS;
    case PREFILL_ATTEND: return ATTEND;
    case PREFILL_OUT: return OUT;
    case PREFILL_POST_ATTENTION: return POST_ATTENTION;
    case PREFILL_NORM_MLP: return NORM_MLP;
    case PREFILL_GATE_UP: return GATE_UP;
    case PREFILL_DOWN: return DOWN;
    default: return POST_MLP;
    }
}

/* The forward pass's state of models without experts, in all other forms. */
struct prefill_state : forward_state {
    static const bool HAS_ALIBI = true;
};

/* Initialises a block's state for a step in the middle of a forward pass; complete after the caller's barrier. */
static __device__ __forceinline__ void
begin_step(struct prefill_state *s, const struct prefill_args &a)
{
    copy_words(&s->model, a.forward.model, sizeof s->model);
    copy_words(s->rows, a.forward.rows, (a.forward.n < SMEM_ROWS ? a.forward.n : SMEM_ROWS) * sizeof *a.forward.rows);
    if (threadIdx.x == 0) {
        s->a = a.forward;
        s->in_smem = false;
        s->step = forward_step(a.step);
        s->before = {a.layer, START};
        s->n_probes = s->last_split = 0;
    }
    __syncthreads();
    copy_layer(s, a.layer);
    __syncthreads();
    if (threadIdx.x == 0) {
        enter_layer(s, a.layer);
        if (has_product(s->step))
            prepare(s, a.part);
    }
}

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) prefill_elementwise(struct prefill_args a)
{
    SHARED_MEMORY(struct prefill_state, s);
    if (*a.stop != 0)
        return;
    begin_step(s, a);
    if ((a.step == PREFILL_NORM_ATTENTION && a.layer == a.forward.first) ||
        (a.step == PREFILL_ATTEND && a.forward.n <= SPLIT_ROWS))
        inspect_rows(s);
    __syncthreads();
    do_elementwise(s);
}

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) prefill_epilogue(struct prefill_args a)
{
    SHARED_MEMORY(struct prefill_state, s);
    if (*a.stop != 0)
        return;
    begin_step(s, a);
    __syncthreads();
    const struct dev_matrix *const m = s->product.matrices[0];
    struct epilogue<EPILOGUE_ROWS | EPILOGUE_CLIPS> then = {
        s,
        {
            -INFINITY, 0
        }
    };
    const uint32_t pairs = a.strips * (STRIP / 2);
    for (uint32_t u = blockIdx.x * BLOCK_THREADS + threadIdx.x; u < a.forward.n * pairs;
         u += gridDim.x * BLOCK_THREADS) {
        const uint32_t row = u / pairs, strip = u % pairs / (STRIP / 2), g = u % (STRIP / 2);
        const struct strip_place at = {m, 0, a.first + strip};
        const uint2 outputs = own_outputs(at, look_up_outputs(at, g, true));
        const float *y = a.y + ((size_t)row * a.strips + strip) * STRIP + g;
        then(0, row, outputs.x, outputs.y, y[0], y[STRIP / 2]);
    }
}

/* ---- plain matrices ---- */

/* Returns columns [k, k + PLAIN_COLS) of a packed row, as bits of 16-bit values in pairs. */
static __device__ __forceinline__ uint4
plain_weights(const struct dev_matrix &m, uint32_t row, uint32_t k)
{
    uint32_t words[PLAIN_COLS / 2];
    if (m.type == WEIGHT_F16 || m.type == WEIGHT_BF16) {
        const uint16_t *unit =
            (const uint16_t *)m.quants + ((size_t)(row / STRIP) * m.units + k / UNIT) * (STRIP * UNIT);
#pragma unroll
        for (uint32_t i = 0; i < PLAIN_COLS / 2; i++)
            words[i] = *(const uint32_t *)(unit + unit_place_16(row % STRIP, k % UNIT + 2 * i));
    } else {
#pragma unroll
        for (uint32_t i = 0; i < PLAIN_COLS / 2; i++)
            words[i] = pack_halves(element(m, row, k + 2 * i), element(m, row, k + 2 * i + 1));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

static __global__ void
__launch_bounds__(PLAIN_THREADS) unpack_strips(struct unpack_args a)
{
    const uint32_t each = a.m.units * UNIT / PLAIN_COLS; /* per row */
    const size_t all = (size_t)a.strips * STRIP * each;
    for (size_t u = (size_t)blockIdx.x * PLAIN_THREADS + threadIdx.x; u < all; u += (size_t)gridDim.x * PLAIN_THREADS)
        ((uint4 *)a.to)[u] =
            plain_weights(a.m, a.first * STRIP + (uint32_t)(u / each), (uint32_t)(u % each) * PLAIN_COLS);
}

static __global__ void
__launch_bounds__(PLAIN_THREADS) gather_rows(struct gather_args a)
{
    const uint32_t each = a.units * UNIT / PLAIN_COLS, all = a.rows * each;
    for (uint32_t u = blockIdx.x * PLAIN_THREADS + threadIdx.x; u < all; u += gridDim.x * PLAIN_THREADS) {
        const uint32_t row = u / each, k = u % each * PLAIN_COLS;
        uint32_t words[PLAIN_COLS / 2] = {}, low[PLAIN_COLS / 2] = {};
#pragma unroll
        for (uint32_t i = 0; i < PLAIN_COLS / 2 && row < a.n; i++) {
            words[i] = *(const uint32_t *)((const uint16_t *)a.packed + packed_place(a.units, row, k + 2 * i));
            if (a.low != NULL)
                unit_of<WEIGHT_BF16>::split(words[i], &words[i], &low[i]);
        }
        ((uint4 *)a.to)[u] = make_uint4(words[0], words[1], words[2], words[3]);
        if (a.low != NULL)
            ((uint4 *)a.low)[u] = make_uint4(low[0], low[1], low[2], low[3]);
    }
}

struct look_args {
    const uint32_t *cancel;
    uint32_t *stop;
};

static __global__ void __launch_bounds__(1) prefill_poll(struct look_args a)
{
    *a.stop = load_acquire(a.cancel);
}

/* ---- launches ---- */

extern "C" cudaError_t
prefill_prepare(int device)
{
    uint32_t blocks;
    const cudaError_t said =
        resident_blocks(prefill_elementwise, device, BLOCK_THREADS, sizeof(struct prefill_state), &blocks);
    return said != cudaSuccess
               ? said
               : resident_blocks(prefill_epilogue, device, BLOCK_THREADS, sizeof(struct prefill_state), &blocks);
}

extern "C" cudaError_t
launch_prefill_poll(const uint32_t *cancel, uint32_t *stop, cudaStream_t stream)
{
    const struct look_args a = {cancel, stop};
    return launch(prefill_poll, 1, 1, a, stream);
}

extern "C" cudaError_t
launch_prefill_elementwise(struct prefill_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch(prefill_elementwise, blocks, BLOCK_THREADS, a, stream, sizeof(struct prefill_state));
}

extern "C" cudaError_t
launch_prefill_epilogue(struct prefill_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch(prefill_epilogue, blocks, BLOCK_THREADS, a, stream, sizeof(struct prefill_state));
}

static dim3
plain_blocks(size_t values)
{
    const size_t blocks = (values / PLAIN_COLS + PLAIN_THREADS - 1) / PLAIN_THREADS;
    return (unsigned)(blocks < 65536 ? blocks : 65536);
}

extern "C" cudaError_t
launch_unpack(struct unpack_args a, cudaStream_t stream)
{
    return launch(unpack_strips, plain_blocks((size_t)a.strips * STRIP * a.m.units * UNIT), PLAIN_THREADS, a, stream);
}

extern "C" cudaError_t
launch_gather(struct gather_args a, cudaStream_t stream)
{
    return launch(gather_rows, plain_blocks((size_t)a.rows * a.units * UNIT), PLAIN_THREADS, a, stream);
}
