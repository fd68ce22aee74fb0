#include "kernels/cuda/requests.h"
#include "kernels/cuda/trace.h"

#include <stdlib.h>
#include <string.h>

struct prefill { /* device memory; each buffer has room for one chunk */
    uint16_t *w; /* plain rows of a slab */
    uint16_t *x, *low;
    float *y;
    uint32_t *stop;
    size_t slab;
    char text[1536];
};

/* ---- slabs ---- */

/* Returns the number of values in the plain rows of a strip. */
static size_t
strip_values(const struct dev_matrix *m)
{
    return (size_t)m->units * UNIT * STRIP;
}

/* Returns the strips per slab of the matrix; all slabs except the last are equal. Depends only on the shape. */
static uint32_t
slab_strips(const struct dev_matrix *m, size_t bytes)
{
    const size_t strip = strip_values(m) * sizeof(uint16_t), most = bytes > 8 * strip ? bytes / strip : 8;
    const size_t slabs = (m->strips + most - 1) / most, each = (m->strips + slabs - 1) / slabs;
    const size_t even = (each + 7) / 8 * 8; /* usually whole tiles of the library */
    return even < m->strips ? (uint32_t)even : m->strips;
}

static struct gemm_shape
slab_shape(const struct kv_cache *s, const struct dev_matrix *m, uint32_t strips)
{
    return (struct gemm_shape){.m = strips * STRIP,
                               .n = s->desc.prompt_rows,
                               .k = m->units * UNIT,
                               .type = m->type == WEIGHT_BF16 ? GEMM_BF16 : GEMM_F16};
}

/* ---- a layer's products ---- */

struct layer_product {
    enum prefill_step step;
    uint32_t part;
    const struct dev_matrix *m;
    const void *x; /* packed */
};
#define LAYER_PRODUCTS 6

static void
list_products(const struct kv_cache *s, const struct dev_layer *d, struct layer_product (*out)[LAYER_PRODUCTS])
{
    const struct dev_kv_cache *v = &s->dev;
    const struct layer_product all[LAYER_PRODUCTS] = {
        {PREFILL_QKV, 0, &d->wq, v->normed},          {PREFILL_QKV, 1, &d->wk, v->normed},
        {PREFILL_QKV, 2, &d->wv, v->normed},          {PREFILL_OUT, 0, &d->wo, v->attended},
        {PREFILL_GATE_UP, 0, &d->gate_up, v->normed}, {PREFILL_DOWN, 0, &d->down, v->gated},
    };
    memcpy(*out, all, sizeof all);
}

/* ---- opening ---- */

static void
add_text(struct prefill *p, const char *what)
{
    const size_t n = strlen(p->text);
    if (strstr(p->text, what) == NULL)
        snprintf(p->text + n, sizeof p->text - n, "; %s", what);
}

/* Computes the maximum number of values per chunk for each kind of buffer, and creates a plan for every slab. */
static bool
plan_all(struct kv_cache *s, size_t *w, size_t *k, size_t *m, struct err *err)
{
    const struct gemm_ops *ops = s->backend->gemm_ops;
    struct prefill *p = s->prefill;
    struct layer_product all[LAYER_PRODUCTS];
    *w = *k = *m = 0;
    snprintf(p->text, sizeof p->text, "%s, %u rows", ops->version(s->backend->gemm), (unsigned)s->desc.prompt_rows);
    for (uint32_t l = 1; l <= s->weights->desc.n_layers; l++) {
        list_products(s, &s->weights->layers[l], &all);
        for (size_t i = 0; i < LAYER_PRODUCTS; i++) {
            const struct dev_matrix *x = all[i].m;
            const uint32_t strips = slab_strips(x, p->slab), last = x->strips % strips;
            for (uint32_t n = strips, turn = 0; turn < 2 && n > 0; n = last, turn++) {
                const struct gemm_shape shape = slab_shape(s, x, n);
                const struct gemm_plan *plan;
                struct err why;
                if (!ops->plan(s->backend->gemm, &shape, &plan, &why))
                    return err_set(err, why.kind, "--prefill blas: %s", why.text);
                add_text(p, ops->chosen(plan));
            }
            *w = strips * strip_values(x) > *w ? strips * strip_values(x) : *w;
            *k = (size_t)x->units * UNIT > *k ? (size_t)x->units * UNIT : *k;
            *m = (size_t)strips * STRIP > *m ? (size_t)strips * STRIP : *m;
        }
    }
    return true;
}

static bool
take(struct kv_cache *s, void **out, size_t values, size_t size, struct err *err)
{
    return memory_take(&s->memory, s->backend, values * size, true, "chunks of prompts", out, err);
}

bool
prefill_open(struct kv_cache *s, struct err *err)
{
    struct prefill *p = s->prefill = calloc(1, sizeof *p);
    const char *slab = getenv("SPECSCOPE_CUDA_SLAB"); /* KiB: for tests with small matrices */
    const size_t rows = s->desc.prompt_rows;
    size_t w, k, m;
    if (p == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a context");
    if (s->weights->has_experts)
        return err_set(err, ERR_WORK,
                       "--prefill blas: reads no prompts of mixtures of experts, nor of attention with sinks; "
                       "--prefill rows does");
    p->slab = slab != NULL && strtoul(slab, NULL, 10) > 0 ? (size_t)strtoul(slab, NULL, 10) << 10 : PREFILL_SLAB;
    void *x = NULL, *low = NULL, *plain = NULL, *y = NULL, *stop = NULL;
    const bool ok = plan_all(s, &w, &k, &m, err) && take(s, &plain, w, sizeof(uint16_t), err) &&
                    take(s, &x, rows * k, sizeof(uint16_t), err) && take(s, &low, rows * k, sizeof(uint16_t), err) &&
                    take(s, &y, rows * m, sizeof(float), err) && take(s, &stop, 1, sizeof(uint32_t), err);
    p->w = plain;
    p->x = x;
    p->low = low;
    p->y = y;
    p->stop = stop;
    return ok;
}

void
prefill_close(struct kv_cache *s)
{
    free(s->prefill);
}

size_t
prefill_estimate(const struct model_desc *d, uint32_t rows)
{
    const size_t heads = (size_t)d->heads * d->head_dim, wide = heads > d->ffn ? heads : d->ffn,
                 k = wide > d->width ? wide : d->width;
    return rows == 0 ? 0 : PREFILL_SLAB + PREFILL_SLAB / 8 + rows * k * 2 * (2 * sizeof(uint16_t) + sizeof(float));
}

const char *
prefill_describe(const struct kv_cache *s)
{
    return s->prefill != NULL ? s->prefill->text : NULL;
}

/* ---- a chunk ---- */

static bool
launched(struct kv_cache *s, cudaError_t code)
{
    return cuda_kv_cache_did(s, code, "reading a prompt");
}

/* Call after a launch: ends its trace. */
static bool
traced(struct kv_cache *s, uint64_t *stamps, cudaError_t code)
{
    const bool ok = launched(s, code);
    trace_end(s, stamps);
    return ok;
}

static bool
library_did(struct kv_cache *s, const struct gemm_plan *plan, const uint16_t *x, float beta)
{
    const struct prefill *p = s->prefill;
    struct err err = {.kind = ERR_NONE};
    s->queued = true;
    if (s->backend->gemm_ops->multiply(s->backend->gemm, plan, p->w, x, p->y, beta, s->stream, &err))
        return true;
    const cudaError_t code =
        cudaStreamQuery(s->stream); /* fetches errors of the library's own runtime, which are not reported otherwise */
    if (code != cudaSuccess && code != cudaErrorNotReady)
        return launched(s, code);
    (void)cudaGetLastError();
    if (!s->failed)
        err_set(&s->err, ERR_WORK, "GPU %d (%s): %s; --prefill rows does without it", s->backend->device,
                s->backend->name, err.text);
    s->failed = true;
    return false;
}

/* Computes y = x w^T for a slab, and its epilogue. */
static bool
multiply_slab(struct kv_cache *s, struct prefill_args a, const struct dev_matrix *m)
{
    const struct prefill *p = s->prefill;
    const struct gemm_shape shape = slab_shape(s, m, a.strips);
    const struct unpack_args unpack = {.m = *m, .first = a.first, .strips = a.strips, .to = p->w};
    const struct gemm_plan *plan;
    uint64_t *stamps = trace_begin(s, TRACED_PLAIN, a.forward.n);
    if (!traced(s, stamps, launch_unpack(unpack, s->stream)))
        return false;
    if (!s->backend->gemm_ops->plan(s->backend->gemm, &shape, &plan, &s->err)) {
        s->failed = true;
        return false;
    }
    stamps = trace_begin(s, TRACED_LIBRARY, a.forward.n);
    if (!library_did(s, plan, p->x, 0) || (m->type == WEIGHT_BF16 && !library_did(s, plan, p->low, 1)))
        return false;
    trace_end(s, stamps);
    a.y = p->y;
    stamps = trace_begin(s, TRACED_EPILOGUE, a.forward.n);
    return traced(s, stamps, launch_prefill_epilogue(a, s->blocks, s->stream));
}

static bool
multiply(struct kv_cache *s, struct prefill_args a, const struct dev_matrix *m)
{
    const uint32_t each = slab_strips(m, s->prefill->slab);
    for (a.first = 0; a.first < m->strips; a.first += each) {
        a.strips = m->strips - a.first < each ? m->strips - a.first : each;
        if (!multiply_slab(s, a, m))
            return false;
    }
    return true;
}

static bool
gather(struct kv_cache *s, const struct prefill_args *a, const void *packed, const struct dev_matrix *m)
{
    const struct gather_args g = {.packed = packed,
                                  .units = m->units,
                                  .n = a->forward.n,
                                  .rows = s->desc.prompt_rows,
                                  .to = s->prefill->x,
                                  .low = m->type == WEIGHT_BF16 ? s->prefill->low : NULL};
    uint64_t *const stamps = trace_begin(s, TRACED_PLAIN, g.n);
    return traced(s, stamps, launch_gather(g, s->stream));
}

static bool
between(struct kv_cache *s, struct prefill_args a, enum prefill_step step)
{
    a.step = step;
    uint64_t *const stamps = trace_begin(s, step == PREFILL_ATTEND ? TRACED_ATTEND : TRACED_NORMS, a.forward.n);
    return traced(s, stamps, launch_prefill_elementwise(a, s->blocks, s->stream));
}

/* Prepares the input of a product; only for the first of several products that read the same input. */
static bool
prepare(struct kv_cache *s, const struct prefill_args *a, const struct layer_product *p)
{
    const struct dev_layer *d = &s->weights->layers[a->layer];
    switch (p->step) {
    case PREFILL_QKV: return p->part > 0 || between(s, *a, PREFILL_NORM_ATTENTION);
    case PREFILL_OUT:
        return ((d->q_norm == NULL && d->k_norm == NULL) || between(s, *a, PREFILL_NORM_HEADS)) &&
               between(s, *a, PREFILL_ATTEND);
    case PREFILL_GATE_UP: return between(s, *a, PREFILL_NORM_MLP);
    default: return true;
    }
}

/* Queues the norm after a sublayer, if there is one. */
static bool
conclude(struct kv_cache *s, const struct prefill_args *a, const struct layer_product *p)
{
    const struct dev_layer *d = &s->weights->layers[a->layer];
    if (p->step == PREFILL_OUT && d->attn_post != NULL)
        return between(s, *a, PREFILL_POST_ATTENTION);
    return p->step != PREFILL_DOWN || d->ffn_post == NULL || between(s, *a, PREFILL_POST_MLP);
}

static bool
run_layer(struct kv_cache *s, struct prefill_args a)
{
    struct layer_product all[LAYER_PRODUCTS];
    list_products(s, &s->weights->layers[a.layer], &all);
    for (size_t i = 0; i < LAYER_PRODUCTS; i++) {
        const struct layer_product *p = &all[i];
        a.step = p->step;
        a.part = p->part;
        const bool there = p->part > 0 && (p->m->type == WEIGHT_BF16) == (all[i - 1].m->type == WEIGHT_BF16);
        if (!prepare(s, &a, p) || (!there && !gather(s, &a, p->x, p->m)) || !multiply(s, a, p->m) ||
            !conclude(s, &a, p))
            return false;
    }
    return true;
}

bool
prefill_run(struct kv_cache *s, const struct forward_args *forward)
{
    struct prefill_args a = {.forward = *forward, .stop = s->prefill->stop};
    for (a.layer = forward->first; a.layer <= forward->to; a.layer++)
        if (!launched(s, launch_prefill_poll(s->dev.cancel, s->prefill->stop, s->stream)) || !run_layer(s, a))
            return false;
    return true;
}
