/* What the steps with products multiply, and what of it is fetched ahead. */
#ifndef KERNELS_CUDA_SWEEP_PRODUCTS_CUH
#define KERNELS_CUDA_SWEEP_PRODUCTS_CUH

#include "kernels/cuda/sweep_steps.cuh"

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
    if (!s->a.ahead)
        return;
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

#endif
