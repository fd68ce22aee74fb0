/* A sweep: rows through layers, in one cooperative launch (docs/cuda.md).
 *
 * A layer is a few steps between which all blocks meet. Products are most of them, and there is one place where a
 * product is multiplied: what differs is prepared before, so that the kernel has each kind of strip once and needs no
 * calls, which would put registers on a stack. */
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/finish.cuh"
#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/trained.cuh"

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

/* ---- layers ---- */

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

/* ---- products ---- */

static __device__ __forceinline__ struct product
product_of(const struct dev_matrix *m, const void *x, uint32_t n)
{
    return {{m, NULL, NULL}, 1, x, n};
}

/* How many of wq, wk, wv, from number `first` on, are one product: those of the same type. */
static __device__ __forceinline__ uint32_t
qkv_together(const struct sweep_shared *s, const struct dev_layer &d, uint32_t first)
{
    if (s->model.exact)
        return 3;
    const bool qk = d.wq.type == d.wk.type, kv = d.wk.type == d.wv.type;
    return first == 0 ? (qk && kv ? 3 : qk ? 2 : 1) : first == 1 && kv ? 2 : 1;
}

static __device__ __forceinline__ struct product
qkv_product(const struct sweep_shared *s, const struct dev_layer &d, uint32_t first, const void *x, uint32_t n)
{
    struct product p = {{&d.wq, &d.wk, &d.wv}, qkv_together(s, d, first), x, n};
    if (first > 0)
        p.matrices[0] = first == 1 ? &d.wk : &d.wv;
    if (first == 1)
        p.matrices[1] = &d.wv;
    return p;
}

/* Puts the product of a step, and what becomes of it, where all threads see it. `part`: the first of wq, wk, wv that is
 * in it. */
static __device__ __forceinline__ void
prepare(struct sweep_shared *s, uint32_t step, uint32_t part)
{
    const struct dev_store &store = s->a.store;
    const struct dev_layer &d = layer_here(s);
    const uint32_t n = s->a.n;
    struct product *p = &s->product;
    struct finish_how *how = &s->how;
    __syncthreads();
    if (threadIdx.x == 0) {
        how->matrix = part;
        switch (step) {
        case QKV:
            how->kind = FINISH_QKV;
            *p = qkv_product(s, d, part, store.normed, n);
            break;
        case GATE_UP:
            how->kind = FINISH_GATED;
            *p = product_of(&d.gate_up, store.normed, n);
            break;
        case OUT:
            how->kind = FINISH_STREAM;
            how->from = s->l - 1;
            how->scale = 1;
            *p = product_of(&d.wo, store.attended, n);
            break;
        case DOWN:
            how->kind = FINISH_STREAM;
            how->from = s->attends ? s->l : s->l - 1;
            how->scale = s->model.exact ? 1 : 1 / HIDDEN_SHRINK;
            *p = product_of(&d.down, store.gated, n);
            break;
        default:
            how->kind = FINISH_LOGITS;
            how->logits = store.until_logits + (size_t)s->n_probes * s->model.vocab;
            how->temperature = s->a.until.temperature[s->l];
            *p = product_of(s->trained.full != NULL ? &s->own_head : &s->model.head, store.until_normed, 1);
        }
    }
    __syncthreads();
}

/* What is multiplied next after a step, on its way into L2: its beginning after a product, what follows after a step in
 * between. */
static __device__ __forceinline__ void
look_ahead(struct sweep_shared *s, uint32_t step)
{
    const bool between =
        step == NORM_ATTENTION || step == NORM_HEADS || step == ATTEND || step == NORM_MLP || step == NORM_PROBE;
    const struct dev_layer *d = &layer_here(s);
    uint32_t next = step_after(s, step + 1);
    if (next == STEPS) {
        if (s->l == s->a.to)
            return;
        d = &s->layers[(s->l + 1) % 2];
        next = !skips(s->a.skip_attention, s->l + 1) ? QKV : !skips(s->a.skip_mlp, s->l + 1) ? GATE_UP : STEPS;
    }
    switch (next) {
    case NORM_ATTENTION:
    case QKV: prefetch_product(qkv_product(s, *d, 0, NULL, 0), between); break;
    case NORM_HEADS:
    case ATTEND:
    case OUT: prefetch_product(product_of(&d->wo, NULL, 0), between); break;
    case NORM_MLP:
    case GATE_UP: prefetch_product(product_of(&d->gate_up, NULL, 0), between); break;
    case DOWN: prefetch_product(product_of(&d->down, NULL, 0), between); break;
    case SHIFT_PROBE:
    case NORM_PROBE:
    case PROBE: prefetch_product(product_of(&s->model.head, NULL, 0), between); break;
    }
}

/* ---- steps in between ---- */

/* The hidden states of the rows that take part, normed. A block a row. */
static __device__ __forceinline__ void
norm_rows(struct sweep_shared *s, uint32_t depth, const float *weight)
{
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x) {
        const struct row &row = row_of(s, i);
        if (row.from < s->l)
            norm_row(s->model, hidden_of(s, row, depth), weight, s->a.store.normed, i, s->parts);
    }
}

static __device__ __forceinline__ void
carry_rows(struct sweep_shared *s)
{
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x) {
        const struct row &row = row_of(s, i);
        const float *from = hidden_of(s, row, s->l - 1);
        float *to = hidden_of(s, row, s->l);
        for (uint32_t k = thread_here(); row.from < s->l && k < s->model.width; k += SWEEP_THREADS)
            to[k] = from[k];
    }
}

/* RMS norm over a head, then rotation: a warp a head. */
static __device__ __forceinline__ void
norm_head(struct sweep_shared *s, uint32_t i, uint32_t h)
{
    const uint32_t dim = s->model.head_dim, lane = thread_here() % WARP, rotated = s->model.rope_dims / 2;
    const struct dev_store &store = s->a.store;
    const bool is_key = h >= s->model.heads;
    const uint32_t base = (is_key ? h - s->model.heads : h) * dim;
    const float *from = is_key ? store.kv_raw + (size_t)i * 2 * s->model.kv_heads * dim + base
                               : store.q + (size_t)i * s->model.heads * dim + base;
    const float *weight = is_key ? layer_here(s).k_norm : layer_here(s).q_norm;
    float squares = 0;
    for (uint32_t d = lane; d < dim; d += WARP)
        squares = fmaf(from[d], from[d], squares);
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        squares += __shfl_xor_sync(ALL_OF_WARP, squares, apart);
    const float inverse = weight != NULL ? 1.0f / sqrtf(squares / (float)dim + s->model.rms_eps) : 1;
    const float scale = 1.0f / sqrtf((float)dim);
    for (uint32_t p = lane; p < dim / 2; p += WARP) {
        const bool apart = p < rotated && s->model.rope == ROPE_HALVES;
        const uint32_t d0 = apart ? p : 2 * p, d1 = apart ? p + rotated : d0 + 1;
        float y0 = from[d0] * inverse, y1 = from[d1] * inverse;
        if (weight != NULL) {
            y0 *= weight[d0];
            y1 *= weight[d1];
        }
        if (p < rotated)
            rotate(((const float2 *)store.turns)[i * rotated + p], &y0, &y1);
        if (is_key) {
            put_kv(s->model, store, store.keys, s->l, row_of(s, i).slot, base + d0, y0);
            put_kv(s->model, store, store.keys, s->l, row_of(s, i).slot, base + d1, y1);
        } else { /* in place: a lane reads no other's */
            store.q[(size_t)i * s->model.heads * dim + base + d0] = y0 * scale;
            store.q[(size_t)i * s->model.heads * dim + base + d1] = y1 * scale;
        }
    }
}

static __device__ __forceinline__ void
norm_heads(struct sweep_shared *s)
{
    const uint32_t heads = s->model.heads + s->model.kv_heads;
    for (uint32_t u = thread_here() / WARP * gridDim.x + blockIdx.x; u < s->a.n * heads; u += gridDim.x * SWEEP_WARPS)
        if (row_of(s, u / heads).from < s->l)
            norm_head(s, u / heads, u % heads);
}

template <class KV, int PAIRS, int DIMS, bool APART>
static __device__ __forceinline__ void
attend(struct sweep_shared *s)
{
    const struct attend_scene scene = {&s->a, &s->model, s->l, s->last_split + 1};
    attend_rows<KV, PAIRS, DIMS, APART>(scene, (float *)s->work);
}

/* A warp that walks all splits holds the sums of two at a time, so it takes half as many pairs. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_either(struct sweep_shared *s)
{
    if (s->a.n <= SPLIT_ROWS)
        attend<KV, PAIRS, DIMS, true>(s);
    else
        attend<KV, PAIRS / 2, DIMS, false>(s);
}

static __device__ __forceinline__ void
attend_all(struct sweep_shared *s)
{
    if (s->model.exact)
        attend_either<float, ATTEND_PAIRS / 2, 8>(s);
    else if (s->model.head_dim <= 128)
        attend_either<uint16_t, ATTEND_PAIRS, 4>(s);
    else
        attend_either<uint16_t, ATTEND_PAIRS / 2, 8>(s);
}

/* h + A h + b of the last row, all warps together. */
static __device__ __forceinline__ void
shift_probe(struct sweep_shared *s)
{
    const float *const h = hidden_of(s, s->a.rows[s->a.n - 1], s->l);
    if (threadIdx.x == 0)
        s->probe_start = globaltimer();
    for (uint32_t o = thread_here() / WARP * gridDim.x + blockIdx.x; o < s->model.width; o += gridDim.x * SWEEP_WARPS) {
        const float y = shifted(s->trained, h, o, s->model.width);
        if (threadIdx.x % WARP == 0)
            s->a.store.until_shifted[o] = y;
    }
}

static __device__ __forceinline__ void
norm_probe(struct sweep_shared *s)
{
    const bool affine = s->trained.a != NULL;
    if (threadIdx.x == 0 && !affine)
        s->probe_start = globaltimer();
    if (blockIdx.x == 0)
        norm_row_as(s->model, s->model.exact || s->trained.full != NULL,
                    affine ? s->a.store.until_shifted : hidden_of(s, s->a.rows[s->a.n - 1], s->l), s->model.final_norm,
                    s->a.store.until_normed, 0, s->parts);
}

static __device__ __forceinline__ void
do_between(struct sweep_shared *s, uint32_t step)
{
    switch (step) {
    case NORM_ATTENTION: norm_rows(s, s->l - 1, layer_here(s).attn_norm); break;
    case NORM_HEADS: norm_heads(s); break;
    case ATTEND: attend_all(s); break;
    case NORM_MLP: norm_rows(s, s->attends ? s->l : s->l - 1, layer_here(s).ffn_norm); break;
    case CARRY: carry_rows(s); break;
    case SHIFT_PROBE: shift_probe(s); break;
    case NORM_PROBE: norm_probe(s); break;
    }
}

/* ---- early exit ---- */

/* Before the blocks meet: what the first warp's threads have of row 0's softmax, together. */
static __device__ __forceinline__ void
put_part(struct sweep_shared *s, struct softmax_part all)
{
    if (threadIdx.x >= WARP)
        return;
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        all.add(__shfl_xor_sync(ALL_OF_WARP, all.max, apart), __shfl_xor_sync(ALL_OF_WARP, all.sum, apart),
                s->how.temperature);
    if (threadIdx.x == 0)
        ((float2 *)s->a.store.until_parts)[blockIdx.x] = make_float2(all.max, all.sum);
}

/* Does the last row leave here? Every block comes to the same answer. */
static __device__ __forceinline__ bool
leaves(struct sweep_shared *s)
{
    const float temperature = s->a.until.temperature[s->l];
    if (threadIdx.x < WARP) {
        struct softmax_part all = {-INFINITY, 0};
        for (uint32_t b = threadIdx.x; b < gridDim.x; b += WARP) {
            const float2 part = __ldcg((const float2 *)s->a.store.until_parts + b);
            all.add(part.x, part.y, temperature);
        }
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            all.add(__shfl_xor_sync(ALL_OF_WARP, all.max, apart), __shfl_xor_sync(ALL_OF_WARP, all.sum, apart),
                    temperature);
        if (threadIdx.x == 0)
            s->parts[0] = 1 / all.sum;
    }
    __syncthreads();
    const float annealed = s->parts[0];
    const bool exited = annealed >= s->a.until.threshold[s->l];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        struct until_state *state = s->a.until.state;
        state->probed[s->n_probes] = s->l;
        state->annealed[s->n_probes] = annealed;
        state->probes = s->n_probes + 1;
        state->exited = exited;
        state->probe_ns += globaltimer() - s->probe_start;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        s->n_probes++;
    return exited;
}

/* ---- the kernel ---- */

/* Turns of all rows; where the longest path's last split is. */
static __device__ __forceinline__ void
look_at_rows(struct sweep_shared *s)
{
    const uint32_t pairs = s->model.rope_dims / 2;
    uint32_t last = 0;
    for (uint32_t i = threadIdx.x; i < s->a.n; i += SWEEP_THREADS) {
        const uint32_t position = row_of(s, i).n_trunk + row_of(s, i).n_tail - 1;
        last = position > last ? position : last;
    }
    for (uint32_t u = blockIdx.x * SWEEP_THREADS + threadIdx.x; u < s->a.n * pairs; u += gridDim.x * SWEEP_THREADS) {
        const struct row &row = s->a.rows[u / pairs];
        ((float2 *)s->a.store.turns)[u] = turn_of(row.n_trunk + row.n_tail - 1, s->model.inv_freq[u % pairs]);
    }
    last = __reduce_max_sync(ALL_OF_WARP, last / ATTEND_SPLIT);
    if (threadIdx.x % WARP == 0)
        atomicMax(&s->last_split, last);
}

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
    struct meeting meeting = first_meeting(a.store.barrier);
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
        /* All blocks read the word behind a meeting before which it was set; the next layer has the other word, and this
         * one is not set again before all have met again. */
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
            grid_meet(meeting, [&] { look_ahead(s, step); });
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
