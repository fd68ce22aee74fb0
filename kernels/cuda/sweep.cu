/* A sweep: rows through layers, in one cooperative launch (docs/cuda.md). */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/rope.cuh"

#define MAX_HEAD_DIM 256
#define MAX_ROWS     4096 /* in one sweep: their places among the active ones lie in shared memory */

/* Shared memory of a block: what products and attention use in turn, then what stays. */
#define WORK_SHARED  (PRODUCT_SHARED > 81920 ? PRODUCT_SHARED : 81920)
#define SWEEP_SHARED (WORK_SHARED + (MAX_ROWS + 256) * sizeof(uint16_t))

/* What a block knows while it walks. */
struct walk {
    const struct sweep_args *a;
    const struct dev_model *m;
    const struct dev_layer *layer;
    uint32_t l;
    float *work;     /* shared: WORK_SHARED bytes */
    uint16_t *index; /* shared: (n) place among the active rows */
    float *parts;    /* shared: 32 floats */
    uint32_t n;      /* active rows */
    uint32_t turn;   /* which half of `work` products use next */
};

static __device__ __forceinline__ float *
hidden_of(const struct walk &w, const struct row &row, uint32_t depth)
{
    return w.a->store.hidden + ((size_t)row.ring * (w.m->n_layers + 1) + depth) * w.m->width;
}

/* ---- which rows ---- */

/* Rows with from < l get their places; only when that differs from the layer before. */
static __device__ void
find_active(struct walk &w)
{
    const struct row *rows = w.a->rows;
    int joins = w.l == w.a->first;
    for (uint32_t i = threadIdx.x; i < w.a->n; i += SWEEP_THREADS)
        joins |= rows[i].from == w.l - 1;
    if (!__syncthreads_or(joins))
        return;
    for (uint32_t i = threadIdx.x; i < w.a->n; i += SWEEP_THREADS) {
        uint32_t before = 0;
        for (uint32_t j = 0; j < i; j++)
            before += rows[j].from < w.l;
        w.index[i] = rows[i].from < w.l ? (uint16_t)before : (uint16_t)0xffff;
    }
    int mine = 0;
    w.n = 0;
    for (uint32_t first = 0; first < w.a->n; first += SWEEP_THREADS) {
        mine = first + threadIdx.x < w.a->n && rows[first + threadIdx.x].from < w.l;
        w.n += (uint32_t)__syncthreads_count(mine);
    }
}

/* The row at place i among the active ones. */
static __device__ __forceinline__ const struct row &
active_row(const struct walk &w, uint32_t i)
{
    uint32_t r = i;
    while (w.index[r] != i)
        r++;
    return w.a->rows[r];
}

/* ---- phases ---- */

/* Every active row's hidden state at `depth`, normed. Blocks share rows. */
static __device__ void
norm_rows(const struct walk &w, uint32_t depth, const float *weight)
{
    for (uint32_t i = blockIdx.x; i < w.n; i += gridDim.x)
        norm_row(*w.m, hidden_of(w, active_row(w, i), depth), weight, w.a->store.normed, i, w.parts);
}

/* A skipped attention sublayer: hidden (l) = hidden (l-1). */
static __device__ void
carry_rows(const struct walk &w)
{
    for (uint32_t i = blockIdx.x; i < w.n; i += gridDim.x) {
        const struct row &row = active_row(w, i);
        const float *from = hidden_of(w, row, w.l - 1);
        float *to = hidden_of(w, row, w.l);
        for (uint32_t k = threadIdx.x; k < w.m->width; k += SWEEP_THREADS)
            to[k] = from[k];
    }
    __syncthreads();
}

static __device__ __forceinline__ struct product
product_of(const struct dev_matrix *m, const void *x, uint32_t n)
{
    struct product p = {};
    p.matrices[0] = m;
    p.n_matrices = 1;
    p.x = x;
    p.n = n;
    return p;
}

static __device__ __forceinline__ void
put_kv(const struct walk &w, void *keys_or_values, slot_t slot, uint32_t o, float x)
{
    const size_t stride = (size_t)w.m->kv_heads * w.m->head_dim;
    const size_t at = ((size_t)(w.l - 1) * w.a->store.slots + slot) * stride + o;
    if (w.m->exact)
        ((float *)keys_or_values)[at] = x;
    else
        ((uint16_t *)keys_or_values)[at] = half_bits(x);
}

/* Queries are scaled by 1/sqrt(head_dim) where they are put down. */
static __device__ __forceinline__ void
put_query(const struct walk &w, uint32_t i, uint32_t o, float x)
{
    w.a->store.q[(size_t)i * w.m->heads * w.m->head_dim + o] = x * (1.0f / sqrtf((float)w.m->head_dim));
}

/* max of z, and sum of exp((z - max) / T), of some logits. */
struct softmax_part {
    float max, sum;

    __device__ __forceinline__ void
    add(float z, float more, float temperature)
    {
        if (!(more > 0))
            return;
        const float most = fmaxf(max, z);
        sum = (sum > 0 ? sum * expf((max - most) / temperature) : 0) + more * expf((z - most) / temperature);
        max = most;
    }
};

/* What becomes of a product's outputs. One type for all products, so that each kind of strip is compiled once. */
struct finish {
    enum { QKV, STREAM, GATED, LOGITS } kind;
    const struct walk *walk;

    /* QKV: outputs of wq (0), wk (1), wv (2); a model with norms on queries and keys rotates later */
    uint32_t matrix; /* of the product's first one */
    bool later;
    /* STREAM: hidden (l) = hidden (from) + y * scale */
    uint32_t from;
    float scale;
    /* LOGITS: of one row; a thread's own maximum and sum */
    float *logits, temperature;
    struct softmax_part part;
    bool broken;

    __device__ __forceinline__ void
    put_one(uint32_t which, uint32_t i, const struct row &row, uint32_t o, float y) const
    {
        const struct walk &w = *walk;
        if (o == UINT32_MAX)
            return;
        if (which == 2)
            put_kv(w, w.a->store.values, row.slot, o, y);
        else if (which == 1 && later)
            w.a->store.kv_raw[(size_t)i * 2 * w.m->kv_heads * w.m->head_dim + o] = y;
        else if (which == 1)
            put_kv(w, w.a->store.keys, row.slot, o, y);
        else if (later)
            w.a->store.q[(size_t)i * w.m->heads * w.m->head_dim + o] = y;
        else
            put_query(w, i, o, y);
    }

    __device__ __forceinline__ void
    put_qkv(uint32_t which, uint32_t i, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const struct walk &w = *walk;
        const uint32_t dim = w.m->head_dim, q = w.m->heads * dim, kv = w.m->kv_heads * dim;
        const struct row &row = active_row(w, i);
        if (w.layer->qkv_bias != NULL) {
            const float *bias = w.layer->qkv_bias + (which == 0 ? 0 : which == 1 ? q : q + kv);
            y0 += o0 != UINT32_MAX ? bias[o0] : 0;
            y1 += o1 != UINT32_MAX ? bias[o1] : 0;
        }
        uint32_t pair;
        if (which < 2 && !later && o0 != UINT32_MAX && first_of_pair(*w.m, o0 % dim, &pair))
            rotate(*w.m, row.n_trunk + row.n_tail - 1, pair, &y0, &y1);
        put_one(which, i, row, o0, y0);
        put_one(which, i, row, o1, y1);
    }

    __device__ __forceinline__ void
    add_to_stream(uint32_t i, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        const struct row &row = active_row(*walk, i);
        const float *before = hidden_of(*walk, row, from);
        float *after = hidden_of(*walk, row, walk->l);
        if (o0 != UINT32_MAX)
            after[o0] = before[o0] + y0 * scale;
        if (o1 != UINT32_MAX)
            after[o1] = before[o1] + y1 * scale;
    }

    /* silu(gate) * up, small enough for F16. */
    __device__ __forceinline__ void
    put_gated(uint32_t i, uint32_t o0, uint32_t o1, float gate, float up) const
    {
        const struct dev_model &m = *walk->m;
        if (o0 == UINT32_MAX || o1 == UINT32_MAX)
            return;
        const float y = gate / (1.0f + expf(-gate)) * up;
        put_activation(walk->a->store.gated, m.exact, m.ffn, i, o0, m.exact ? y : y * HIDDEN_SHRINK);
    }

    __device__ __forceinline__ void
    put_logit(uint32_t o, float z)
    {
        if (o == UINT32_MAX)
            return;
        logits[o] = z;
        part.add(z, 1, temperature);
        broken = broken || !(fabsf(z) < INFINITY);
    }

    __device__ __noinline__ void
    operator()(uint32_t which, uint32_t i, uint32_t o0, uint32_t o1, float y0, float y1)
    {
        switch (kind) {
        case QKV: put_qkv(matrix + which, i, o0, o1, y0, y1); break;
        case STREAM: add_to_stream(i, o0, o1, y0, y1); break;
        case GATED: put_gated(i, o0, o1, y0, y1); break;
        case LOGITS: put_logit(o0, y0); put_logit(o1, y1);
        }
    }
};

static __device__ void
multiply_and_finish(struct walk &w, const struct product &p, enum pairing pairing, struct finish &then)
{
    then.walk = &w;
    multiply(p, pairing, *w.m, w.work, &w.turn, then);
}

static __device__ __forceinline__ struct product
qkv_product(const struct walk &w, const struct dev_layer &layer, uint32_t first, uint32_t n)
{
    struct product p = product_of(&layer.wq, w.a->store.normed, w.n);
    p.matrices[1] = &layer.wk;
    p.matrices[2] = &layer.wv;
    for (uint32_t i = 0; i < n; i++)
        p.matrices[i] = p.matrices[first + i];
    p.n_matrices = n;
    return p;
}

/* Queries, keys and values: in one go when their weights have one type. */
static __device__ void
project(struct walk &w)
{
    const struct dev_layer &d = *w.layer;
    struct finish put = {};
    put.kind = finish::QKV;
    put.later = d.q_norm != NULL || d.k_norm != NULL;
    if (w.m->exact || (d.wq.type == d.wk.type && d.wk.type == d.wv.type)) {
        multiply_and_finish(w, qkv_product(w, d, 0, 3), PAIR_HEADS, put);
        return;
    }
    for (put.matrix = 0; put.matrix < 3; put.matrix++)
        multiply_and_finish(w, qkv_product(w, d, put.matrix, 1), PAIR_NONE, put);
}

/* RMS norm over a head, then rotation: a warp a head. */
static __device__ void
norm_and_rotate(const struct walk &w)
{
    const uint32_t dim = w.m->head_dim, lane = threadIdx.x % WARP, heads = w.m->heads + w.m->kv_heads;
    const uint32_t warps = gridDim.x * SWEEP_WARPS, rotated = w.m->rope_dims / 2;
    for (uint32_t u = blockIdx.x * SWEEP_WARPS + threadIdx.x / WARP; u < w.n * heads; u += warps) {
        const uint32_t i = u / heads, h = u % heads;
        const bool is_key = h >= w.m->heads;
        const struct row &row = active_row(w, i);
        const uint32_t base = (is_key ? h - w.m->heads : h) * dim;
        const float *from = is_key ? w.a->store.kv_raw + (size_t)i * 2 * w.m->kv_heads * dim + base
                                   : w.a->store.q + (size_t)i * w.m->heads * dim + base;
        const float *weight = is_key ? w.layer->k_norm : w.layer->q_norm;
        float squares = 0;
        for (uint32_t d = lane; d < dim; d += WARP)
            squares = fmaf(from[d], from[d], squares);
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            squares += __shfl_xor_sync(ALL_OF_WARP, squares, apart);
        const float inverse = weight != NULL ? 1.0f / sqrtf(squares / (float)dim + w.m->rms_eps) : 1;
        for (uint32_t p = lane; p < dim / 2; p += WARP) {
            const bool apart = p < rotated && w.m->rope == ROPE_HALVES;
            const uint32_t d0 = apart ? p : 2 * p, d1 = apart ? p + rotated : d0 + 1;
            float y0 = from[d0] * inverse, y1 = from[d1] * inverse;
            if (weight != NULL) {
                y0 *= weight[d0];
                y1 *= weight[d1];
            }
            if (p < rotated)
                rotate(*w.m, row.n_trunk + row.n_tail - 1, p, &y0, &y1);
            if (is_key) {
                put_kv(w, w.a->store.keys, row.slot, base + d0, y0);
                put_kv(w, w.a->store.keys, row.slot, base + d1, y1);
            } else { /* in place: a lane reads no other's */
                put_query(w, i, base + d0, y0);
                put_query(w, i, base + d1, y1);
            }
        }
    }
}

static __device__ void
attend(const struct walk &w)
{
    const struct attend_scene scene = {w.m, &w.a->store, w.a, w.l, {w.n, w.index}};
    if (w.m->exact)
        attend_as<float>(scene, w.work);
    else
        attend_as<uint16_t>(scene, w.work);
}

/* hidden (l) = hidden (from) + W x. */
static __device__ void
add_product(struct walk &w, const struct dev_matrix *m, const void *x, uint32_t from, float scale)
{
    struct finish add = {};
    add.kind = finish::STREAM;
    add.from = from;
    add.scale = scale;
    multiply_and_finish(w, product_of(m, x, w.n), PAIR_NONE, add);
}

static __device__ void
pad_gated(const struct walk &w)
{
    for (uint32_t i = blockIdx.x; i < w.n; i += gridDim.x)
        put_padding(w.a->store.gated, w.m->exact, w.m->ffn, i);
}

/* ---- layers ---- */

static __device__ __forceinline__ bool
skips(const uint8_t *mask, uint32_t l)
{
    return mask != NULL && mask[l] != 0;
}

/* What layer l reads first, on its way into L2. */
static __device__ __forceinline__ void
look_ahead(const struct walk &w, uint32_t l)
{
    if (l > w.a->to)
        return;
    const struct dev_layer &d = w.m->layers[l];
    if (!skips(w.a->skip_attention, l))
        prefetch_product(qkv_product(w, d, 0, 3));
    else if (!skips(w.a->skip_mlp, l))
        prefetch_product(product_of(&d.gate_up, NULL, 0));
}

static __device__ void
attention_sublayer(struct walk &w)
{
    const struct dev_layer &d = *w.layer;
    struct dev_barrier *barrier = w.a->store.barrier;
    norm_rows(w, w.l - 1, d.attn_norm);
    grid_meet(barrier, [&] { prefetch_product(qkv_product(w, d, 0, 3)); });
    project(w);
    if (d.q_norm != NULL || d.k_norm != NULL) {
        grid_meet(barrier, [] {});
        norm_and_rotate(w);
    }
    grid_meet(barrier, [&] { prefetch_product(product_of(&d.wo, NULL, 0)); });
    attend(w);
    grid_meet(barrier, [] {});
    add_product(w, &d.wo, w.a->store.attended, w.l - 1, 1);
    grid_meet(barrier, [&] {
        if (!skips(w.a->skip_mlp, w.l))
            prefetch_product(product_of(&d.gate_up, NULL, 0));
    });
}

static __device__ void
mlp_sublayer(struct walk &w)
{
    const struct dev_layer &d = *w.layer;
    struct dev_barrier *barrier = w.a->store.barrier;
    norm_rows(w, w.l, d.ffn_norm);
    pad_gated(w);
    grid_meet(barrier, [&] { prefetch_product(product_of(&d.gate_up, NULL, 0)); });
    struct finish put = {};
    put.kind = finish::GATED;
    multiply_and_finish(w, product_of(&d.gate_up, w.a->store.normed, w.n), PAIR_GATE_UP, put);
    grid_meet(barrier, [&] { prefetch_product(product_of(&d.down, NULL, 0)); });
    add_product(w, &d.down, w.a->store.gated, w.l, w.m->exact ? 1 : 1 / HIDDEN_SHRINK);
}

/* ---- early exit ---- */

/* Does the last row leave after layer l? Every block comes to the same answer. */
static __device__ bool
leaves(struct walk &w, uint32_t probe)
{
    const struct dev_store &s = w.a->store;
    struct until_state *state = w.a->until.state;
    const struct row &last = w.a->rows[w.a->n - 1];
    const float temperature = w.a->until.temperature[w.l];
    uint64_t start = 0;
    if (blockIdx.x == 0) {
        start = globaltimer();
        norm_row(*w.m, hidden_of(w, last, w.l), w.m->final_norm, s.until_normed, 0, w.parts);
    }
    grid_meet(s.barrier, [&] { prefetch_product(product_of(&w.m->head, NULL, 0)); });
    struct finish put = {};
    put.kind = finish::LOGITS;
    put.logits = s.until_logits + (size_t)probe * w.m->vocab;
    put.temperature = temperature;
    put.part.max = -INFINITY;
    multiply_and_finish(w, product_of(&w.m->head, s.until_normed, 1), PAIR_NONE, put);

    /* only the first 8 threads have logits of row 0 */
    __syncthreads();
    if (threadIdx.x < 8) {
        w.work[2 * threadIdx.x] = put.broken ? NAN : put.part.max;
        w.work[2 * threadIdx.x + 1] = put.part.sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        struct softmax_part all = {-INFINITY, 0};
        bool broken = false;
        for (uint32_t i = 0; i < 8; i++) {
            broken = broken || w.work[2 * i] != w.work[2 * i];
            all.add(w.work[2 * i], w.work[2 * i + 1], temperature);
        }
        s.until_parts[2 * blockIdx.x] = broken ? NAN : all.max;
        s.until_parts[2 * blockIdx.x + 1] = all.sum;
    }
    grid_meet(s.barrier, [&] { look_ahead(w, w.l + 1); });
    if (threadIdx.x == 0) {
        struct softmax_part all = {-INFINITY, 0};
        bool broken = false;
        for (uint32_t b = 0; b < gridDim.x; b++) {
            const float max = __ldcg(&s.until_parts[2 * b]);
            broken = broken || max != max;
            all.add(max, __ldcg(&s.until_parts[2 * b + 1]), temperature);
        }
        w.parts[0] = broken ? NAN : 1 / all.sum;
    }
    __syncthreads();
    const float annealed = w.parts[0];
    __syncthreads();
    const bool exited = annealed >= w.a->until.threshold[w.l];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        state->probed[probe] = w.l;
        state->annealed[probe] = annealed;
        state->probes = probe + 1;
        state->exited = exited;
        state->probe_ns += globaltimer() - start;
    }
    return exited;
}

/* ---- the kernel ---- */

static __global__ void
__launch_bounds__(SWEEP_THREADS, 1) sweep_layers(struct sweep_args a)
{
    SHARED_MEMORY(unsigned char, shared);
    struct walk w = {};
    w.a = &a;
    w.m = a.model;
    w.work = (float *)shared;
    w.parts = (float *)(shared + WORK_SHARED);
    w.index = (uint16_t *)(shared + WORK_SHARED + 256);
    uint32_t probes = 0;
    for (uint32_t l = a.first; l <= a.to; l++) {
        w.l = l;
        w.layer = &w.m->layers[l];
        find_active(w);
        if (skips(a.skip_attention, l))
            carry_rows(w);
        else
            attention_sublayer(w);
        if (!skips(a.skip_mlp, l))
            mlp_sublayer(w);
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            a.store.barrier->stop = l < a.to && load_acquire(a.store.cancel) != 0;
            if (a.until.temperature != NULL)
                a.until.state->depth = l;
        }
        const bool probe = a.until.temperature != NULL && a.until.threshold[l] <= 1;
        grid_meet(a.store.barrier, [&] {
            if (!probe)
                look_ahead(w, l + 1);
        });
        const bool stop = __ldcg(&a.store.barrier->stop) != 0;
        if (probe && leaves(w, probes++))
            break;
        if (stop)
            break;
    }
}

extern "C" cudaError_t
sweep_prepare(int device, uint32_t *blocks)
{
    return resident_blocks(sweep_layers, device, SWEEP_THREADS, SWEEP_SHARED, blocks);
}

extern "C" cudaError_t
launch_sweep(struct sweep_args a, uint32_t blocks, cudaStream_t stream)
{
    return launch_cooperative(sweep_layers, blocks, SWEEP_THREADS, a, stream, SWEEP_SHARED);
}
