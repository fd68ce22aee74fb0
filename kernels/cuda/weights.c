/* Loads a model: checks that it fits, packs weights on the CPU, and copies them to the device. */
#include "kernels/cuda/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/kv_cache.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/schedule.h"
#include "kernels/cuda/upload.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

/* ---- positions: angles of rotations, learned positions, slopes of attention's biases ---- */

/* (rope_dims/2): scale * base^(-2i / rope_dims) / factors, which may be NULL. */
static bool
load_frequencies(struct upload *u, uint32_t rope_dims, double base, double scale, const float *factors,
                 const double **out, struct err *err)
{
    const uint32_t n = rope_dims / 2;
    double *values = malloc((n + 1) * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t i = 0; i < n; i++) {
        const double f = pow(base, -2.0 * i / rope_dims) * scale;
        values[i] = factors != NULL ? f / (double)factors[i] : f;
    }
    const void *there = NULL;
    const bool ok = upload_array(u, values, n * sizeof *values, "rotation frequencies", &there, err);
    *out = there;
    free(values);
    return ok;
}

static bool
load_rope(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const double local = (double)d->form.local_base;
    return load_frequencies(u, d->rope_dims, (double)d->rope_base, (double)d->rope_scale, d->rope_factors,
                            &to->inv_freq, err) &&
           (!(local > 0) || load_frequencies(u, d->rope_dims, local, 1, NULL, &to->inv_freq_local, err));
}

/* The tensors are F32: model_desc_fits() checks it. */
static bool
load_learned(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const struct tensor *t = &d->positions;
    const void *there = NULL;
    if (!tensor_present(t))
        return true;
    if (!upload_array(u, t->data, (size_t)t->rows * t->cols * sizeof(float), "positions", &there, err))
        return false;
    to->positions = there;
    to->n_positions = t->rows;
    return true;
}

static bool
load_slopes(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const struct alibi *a = &d->form.alibi;
    if (!(a->most > 0))
        return true;
    float *slopes = malloc(d->heads * sizeof *slopes);
    if (slopes == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t h = 0; h < d->heads; h++)
        slopes[h] = form_slope(a, h, d->heads);
    const void *there = NULL;
    const bool ok = upload_array(u, slopes, d->heads * sizeof *slopes, "slopes", &there, err);
    to->slopes = there;
    free(slopes);
    return ok;
}

/* Loads the position tables that the model has. */
static bool
positions_load(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    return load_rope(u, d, to, err) && load_learned(u, d, to, err) && load_slopes(u, d, to, err);
}

/* ---- layers of experts ---- */

/* Returns whether the kernels support experts of this form. */
static bool
experts_supported(const struct model_desc *d, struct err *err)
{
    const struct experts_form *f = &d->form.experts;
    for (uint32_t l = 0; l < d->n_layers && d->form.activation == ACT_SWIGLU_CLAMPED; l++) {
        const struct layer_desc *layer = &d->layers[l];
        if (!tensor_present(layer->experts != NULL ? &layer->experts[0].gate : &layer->gate))
            return err_set(err, ERR_WORK, "backend cuda: clamps only MLPs with gates; use --backend cpu");
    }
    if (f->n > MOST_EXPERTS)
        return err_set(err, ERR_WORK, "backend cuda: %" PRIu32 " experts are more than its %d; use --backend cpu", f->n,
                       MOST_EXPERTS);
    return true;
}

/* A stack: n experts of one shape. */

struct stack_plan {
    const struct expert_desc *experts;
    uint32_t n;
    bool exact, down;
};

static bool
plan_one(const struct stack_plan *s, uint32_t e, struct packing *p)
{
    const struct expert_desc *from = &s->experts[e];
    if (s->down)
        return pack_plain(p, &from->down, s->exact);
    return tensor_present(&from->gate) ? pack_gate_up(p, &from->gate, &from->up, s->exact)
                                       : pack_plain(p, &from->up, s->exact);
}

/* Plans the first expert, with the type common to all; the caller owns its source. */
static bool
plan_stack(const struct stack_plan *s, struct packing *p, struct err *err)
{
    static const char no_memory[] = "not enough memory to pack the model's weights";
    if (!plan_one(s, 0, p))
        return err_set(err, ERR_WORK, no_memory);
    const bool gated = tensor_present(&s->experts[0].gate);
    for (uint32_t e = 1; e < s->n; e++) {
        const struct expert_desc *from = &s->experts[e];
        const struct tensor *parts[2] = {s->down ? &from->down : &from->up, s->down ? &from->down : &from->gate};
        for (size_t i = 0; i < (gated ? 2 : 1); i++)
            if (pack_type(parts[i]->type, s->exact) != p->type)
                p->type = WEIGHT_F16; /* a stack has one type */
        if (tensor_present(&from->gate) != gated) {
            free(p->source);
            return err_set(err, ERR_WORK,
                           "some experts of a layer have gates and some have none: the model file is "
                           "damaged or of a kind this program does not know");
        }
    }
    return true;
}

static bool
load_matrices(struct upload *u, const struct stack_plan *s, struct dev_matrix *to, struct err *err)
{
    struct packing p;
    if (!plan_stack(s, &p, err))
        return false;
    bool ok = upload_stack(u, &p, s->n, to, err);
    for (uint32_t e = 0; e < s->n && ok; e++) {
        const bool gated = p.n_parts > 1;
        p.parts[0] = s->down ? &s->experts[e].down : gated ? &s->experts[e].gate : &s->experts[e].up;
        p.parts[1] = gated ? &s->experts[e].up : NULL;
        ok = upload_stacked(u, &p, to, e, err);
    }
    free(p.source);
    return ok;
}

/* Loads the biases (n, length) in F32, with zeros for an expert without one; NULL if all experts have none. */
static bool
load_biases(struct upload *u, const struct stack_plan *s, enum expert_tensor which, uint32_t length, const float **out,
            struct err *err)
{
    const void *there = NULL;
    bool any = false, ok = true;
    for (uint32_t e = 0; e < s->n; e++)
        any = any || tensor_present(&s->experts[e].all[which]);
    if (any) {
        float *values = calloc((size_t)s->n * length, sizeof *values);
        if (values == NULL)
            return err_set(err, ERR_WORK, "not enough memory for the model's weights");
        for (uint32_t e = 0; e < s->n; e++)
            if (tensor_present(&s->experts[e].all[which]))
                tensor_row(&s->experts[e].all[which], 0, values + (size_t)e * length);
        ok = upload_array(u, values, (size_t)s->n * length * sizeof *values, expert_tensor_names[which], &there, err);
        free(values);
    }
    *out = there;
    return ok;
}

static bool
load_stack(struct upload *u, const struct model_desc *d, const struct expert_desc *experts, uint32_t n, uint32_t ffn,
           struct expert_stack *to, struct err *err)
{
    struct stack_plan s = {.experts = experts, .n = n, .exact = u->backend->exact};
    if (!load_matrices(u, &s, &to->gate_up, err) || !load_biases(u, &s, EXPERT_BGATE, ffn, &to->bgate, err) ||
        !load_biases(u, &s, EXPERT_BUP, ffn, &to->bup, err) ||
        !load_biases(u, &s, EXPERT_BDOWN, d->width, &to->bdown, err))
        return false;
    s.down = true;
    return load_matrices(u, &s, &to->down, err);
}

static bool
count_stack(const struct expert_desc *experts, uint32_t n, bool exact, struct upload_census *c, struct err *err)
{
    struct stack_plan s = {.experts = experts, .n = n, .exact = exact};
    for (int down = 0; down < 2; down++) {
        struct packing p;
        s.down = down;
        if (!plan_stack(&s, &p, err))
            return false;
        upload_count(c, &p, n);
        free(p.source);
    }
    return true;
}

/* Adds the sizes of a layer's experts. */
static bool
experts_count(const struct model_desc *d, const struct layer_desc *l, bool exact, struct upload_census *c,
              struct err *err)
{
    const struct experts_form *f = &d->form.experts;
    c->bytes += (size_t)f->n * d->width * sizeof(float);
    return count_stack(l->experts, f->n, exact, c, err) &&
           (f->shared_ffn == 0 || count_stack(l->experts + f->n, 1, exact, c, err));
}

/* A router is always converted to F32, because its outputs decide which experts a row goes to. */
static bool
load_router(struct upload *u, const struct tensor *t, const float **out, struct err *err)
{
    const void *there = NULL;
    float *values = malloc((size_t)t->rows * t->cols * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t e = 0; e < t->rows; e++)
        tensor_row(t, e, values + (size_t)e * t->cols);
    const bool ok = upload_array(u, values, (size_t)t->rows * t->cols * sizeof *values, "a router", &there, err);
    *out = there;
    free(values);
    return ok;
}

static bool
load_moe(struct upload *u, const struct model_desc *d, const struct layer_desc *l, struct dev_moe *to, struct err *err)
{
    const struct experts_form *f = &d->form.experts;
    return load_router(u, &l->router, &to->router, err) &&
           load_stack(u, d, l->experts, f->n, f->ffn, &to->routed, err) &&
           (f->shared_ffn == 0 || load_stack(u, d, l->experts + f->n, 1, f->shared_ffn, &to->shared, err));
}

/* Loads the experts of all layers: *host (L + 1), and *out in device memory. */
static bool
experts_load(struct upload *u, const struct model_desc *d, struct dev_moe **host, const struct dev_moe **out,
             struct err *err)
{
    const size_t n = d->n_layers + 1u;
    const void *there = NULL;
    struct dev_moe *all = *host = calloc(n, sizeof *all);
    if (all == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    bool ok = true;
    for (uint32_t l = 1; l <= d->n_layers && ok; l++)
        ok = d->layers[l - 1].experts == NULL || load_moe(u, d, &d->layers[l - 1], &all[l], err);
    ok = ok && upload_array(u, all, n * sizeof *all, "tables", &there, err);
    *out = there;
    return ok;
}

/* ---- trained heads ---- */

/* Copies w->sizes to the device. A copy from pageable memory may return before it is complete, and the streams of KV
 * caches do not wait for the default stream: the function waits until all copies so far are complete. */
static bool
send_model(struct weights *w, struct err *err)
{
    static const char doing[] = "taking trained heads over";
    return cuda_did(w->backend,
                    cudaMemcpy((void *)(uintptr_t)w->model, &w->sizes, sizeof w->sizes, cudaMemcpyHostToDevice), doing,
                    err) &&
           cuda_did(w->backend, cudaStreamSynchronize(NULL), doing, err);
}

static bool
copy_bytes(struct weights *w, const void *from, size_t bytes, const void **to, struct err *err)
{
    void *there;
    if (!memory_take(&w->trained, w->backend, bytes, false, "the trained heads", &there, err) ||
        !cuda_did(w->backend, cudaMemcpy(there, from, bytes, cudaMemcpyHostToDevice), "copying trained heads", err))
        return false;
    *to = there;
    return true;
}

/* Copies a tensor; the result of an absent one is NULL. */
static bool
copy_tensor(struct weights *w, const struct tensor *t, uint32_t rows, const float **to, struct err *err)
{
    const void *there = NULL;
    *to = NULL;
    if (t->data == NULL)
        return true;
    if (!tensor_fits_head(t, rows, w->desc.width, err))
        return false;
    const bool ok = copy_bytes(w, t->data, (size_t)rows * t->cols * sizeof(float), &there, err);
    *to = there;
    return ok;
}

static bool
copy_heads(struct weights *w, const struct exit_head *by_layer, struct dev_head *heads, struct err *err)
{
    const struct model_desc *d = &w->desc;
    const void *there = NULL;
    for (uint32_t l = 1; l < d->n_layers; l++) {
        struct dev_head *h = &heads[l];
        if (!copy_tensor(w, &by_layer[l].a, d->width, &h->a, err) || !copy_tensor(w, &by_layer[l].b, 1, &h->b, err) ||
            !copy_tensor(w, &by_layer[l].weight, d->vocab, &h->full, err))
            return false;
        if ((h->a == NULL) != (h->b == NULL) || (h->a != NULL && h->full != NULL))
            return err_set(err, ERR_WORK, "the trained head of layer %" PRIu32 " is neither affine nor full", l);
    }
    if (!copy_bytes(w, heads, (d->n_layers + 1u) * sizeof *heads, &there, err))
        return false;
    w->sizes.trained = there;
    return send_model(w, err);
}

bool
cuda_weights_heads(struct weights *w, const struct exit_head *by_layer, struct err *err)
{
    if (!device_here(w->backend, err))
        return false;
    const bool had = w->sizes.trained != NULL;
    w->sizes.trained = NULL;
    if (had && !send_model(w, err))
        return false;
    memory_free(&w->trained);
    w->trained = (struct memory){.pieces = NULL};
    free(w->heads);
    w->heads = NULL;
    if (by_layer == NULL)
        return true;
    w->heads = calloc(w->desc.n_layers + 1u, sizeof *w->heads);
    if (w->heads != NULL ? copy_heads(w, by_layer, w->heads, err)
                         : err_set(err, ERR_WORK, "not enough memory for the trained heads"))
        return true;
    w->sizes.trained = NULL;
    memory_free(&w->trained);
    w->trained = (struct memory){.pieces = NULL};
    return false;
}

/* Optional tensors that the forward pass supports. */
#define OPTIONAL_TENSORS                                                                                               \
    (LAYER_QKV_BIAS | LAYER_QK_NORM | LAYER_NORM_BIAS | LAYER_MLP_BIAS | LAYER_POST_NORMS | 1ull << LAYER_BO |         \
     1ull << LAYER_BGATE | 1ull << LAYER_SINKS | (LAYER_ROUTING & ~LAYER_BESIDE))

/* ---- what there is to load ---- */

enum matrix_kind { MATRIX_Q, MATRIX_K, MATRIX_V, MATRIX_OUT, MATRIX_GATE_UP, MATRIX_DOWN, MATRICES };

/* Returns the kinds of matrices in a layer: a layer with experts has no MLP. */
static enum matrix_kind
matrices_of(const struct layer_desc *l)
{
    return l->experts != NULL ? MATRIX_GATE_UP : MATRICES;
}

/* The tensors of a layer that form a matrix. */
struct matrix_plan {
    const struct tensor *tensor, *second;
    struct dev_matrix *to;
};

static struct matrix_plan
matrix_of(const struct layer_desc *from, enum matrix_kind kind, struct dev_layer *to)
{
    switch (kind) {
    case MATRIX_Q: return (struct matrix_plan){&from->wq, NULL, &to->wq};
    case MATRIX_K: return (struct matrix_plan){&from->wk, NULL, &to->wk};
    case MATRIX_V: return (struct matrix_plan){&from->wv, NULL, &to->wv};
    case MATRIX_OUT: return (struct matrix_plan){&from->wo, NULL, &to->wo};
    case MATRIX_GATE_UP:
        if (!tensor_present(&from->gate))
            return (struct matrix_plan){&from->up, NULL, &to->gate_up};
        return (struct matrix_plan){&from->gate, &from->up, &to->gate_up};
    default: return (struct matrix_plan){&from->down, NULL, &to->down};
    }
}

static bool
plan_packing(const struct model_desc *d, bool exact, const struct matrix_plan *m, enum matrix_kind kind,
             struct packing *p, struct err *err)
{
    bool ok;
    switch (kind) {
    case MATRIX_Q:
    case MATRIX_K: ok = pack_heads(p, m->tensor, d->head_dim, d->rope_dims, d->rope, exact); break;
    case MATRIX_V: ok = pack_heads(p, m->tensor, d->head_dim, 0, d->rope, exact); break;
    case MATRIX_GATE_UP:
        ok = m->second != NULL ? pack_gate_up(p, m->tensor, m->second, exact) : pack_plain(p, m->tensor, exact);
        break;
    default: ok = pack_plain(p, m->tensor, exact);
    }
    return ok || err_set(err, ERR_WORK, "not enough memory to pack the model's weights");
}

/* ---- checks ---- */

static bool
shapes_supported(const struct model_desc *d, struct err *err)
{
    for (uint32_t l = 0; d->layers != NULL && l < d->n_layers; l++) {
        const struct layer_sizes n = layer_sizes(d, &d->layers[l].form);
        if (n.head_dim != d->head_dim || n.kv_heads != d->kv_heads || n.ffn != d->ffn ||
            d->layers[l].form.kv_layer > 0 || d->form.value_norms)
            return err_set(
                err, ERR_WORK,
                "backend cuda: layers of different shapes and normalised values (Gemma 4) are not supported; "
                "use --backend cpu");
    }
    return true;
}

static bool
check_limits(const struct model_desc *d, struct err *err)
{
    if (!experts_supported(d, err))
        return false;
    if (d->head_dim > MAX_HEAD_DIM)
        return err_set(err, ERR_WORK,
                       "backend cuda: heads of %" PRIu32 " dimensions are more than its %d; use --backend cpu",
                       d->head_dim, MAX_HEAD_DIM);
    if (d->n_layers > MAX_LAYERS)
        return err_set(err, ERR_WORK, "backend cuda: %" PRIu32 " layers are more than its %d; use --backend cpu",
                       d->n_layers, MAX_LAYERS);
    return true;
}

static bool
same_tensor(const struct tensor *a, const struct tensor *b)
{
    return a->data == b->data && a->synthetic == b->synthetic && a->type == b->type && a->rows == b->rows;
}

/* Adds up the sizes of the model's parts. */
static bool
survey(const struct model_desc *d, bool exact, struct upload_census *c, struct err *err)
{
    struct dev_layer none = {0};
    struct packing p;
    *c = (struct upload_census){0};
    for (uint32_t l = 1; l <= d->n_layers; l++) {
        const struct layer_desc *from = &d->layers[l - 1];
        for (enum matrix_kind kind = 0; kind < matrices_of(from); kind++) {
            const struct matrix_plan m = matrix_of(from, kind, &none);
            if (!plan_packing(d, exact, &m, kind, &p, err))
                return false;
            upload_count(c, &p, 1);
            free(p.source);
        }
        if (from->experts != NULL && !experts_count(d, from, exact, c, err))
            return false;
    }
    const struct tensor *const whole[] = {&d->embedding, same_tensor(&d->embedding, &d->head) ? NULL : &d->head,
                                          d->drafter != NULL ? &d->drafter->projection : NULL,
                                          d->drafter != NULL ? &d->drafter->join : NULL};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (whole[i] != NULL && tensor_present(whole[i]) && pack_plain(&p, whole[i], exact))
            upload_count(c, &p, 1);
    return true;
}

/* Fails before anything is loaded if the model cannot fit. */
static bool
check_room(struct backend *b, const struct model_desc *d, size_t weights, struct err *err)
{
    size_t left = 0, total = 0, keys = 0, work = 0;
    if (!cuda_did(b, cudaMemGetInfo(&left, &total), "asking for its free memory", err))
        return false;
    if (d->ctx > 0 && !cuda_kv_cache_estimate(b, d, d->ctx, &keys, &work))
        return err_set(err, ERR_WORK,
                       "a context of %" PRIu32 " positions is too large for any GPU; use a smaller --ctx", d->ctx);
    if (weights <= left && keys + work <= left - weights)
        return true;
    return err_set(err, ERR_WORK,
                   "GPU %d (%s) is too small: %.2f GiB of weights, %.2f GiB of keys and values for %" PRIu32
                   " positions, %.2f GiB to work in, and %.2f of its %.2f GiB are free; use %s, or --backend cpu",
                   b->device, b->name, (double)weights / 0x1p30, (double)keys / 0x1p30, d->ctx, (double)work / 0x1p30,
                   (double)left / 0x1p30, (double)total / 0x1p30,
                   weights < left ? "a smaller --ctx" : "a model of fewer bits");
}

/* ---- loading ---- */

/* Loads a vector in F32; NULL if the model lacks it. */
static bool
load_vector(struct upload *u, const struct tensor *t, const char *name, const float **out, struct err *err)
{
    *out = NULL;
    if (!tensor_present(t))
        return true;
    float *values = malloc(t->cols * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    tensor_row(t, 0, values);
    const void *there = NULL;
    const bool ok = upload_array(u, values, t->cols * sizeof *values, name, &there, err);
    *out = there;
    free(values);
    return ok;
}

static bool
load_vectors(struct upload *u, const struct layer_desc *from, struct dev_layer *to, struct err *err)
{
#define MATRIX(...)
#define VECTOR(NAME, field, need, rows, cols, name, hf) load_vector(u, &from->field, name, &to->field, err) &&
    return FOR_LAYER_TENSORS(MATRIX, VECTOR, VECTOR) true;
}

static bool
load_layer(struct upload *u, const struct model_desc *d, uint32_t l, struct dev_layer *to, struct err *err)
{
    const struct layer_desc *from = &d->layers[l - 1];
    const bool local = from->form.rope == LAYER_ROPE_LOCAL && d->form.local_base > 0;
    if (!load_vectors(u, from, to, err))
        return false;
    to->window = from->form.sees_all ? 0 : d->window;
    if (to->ffn_norm == NULL && d->form.parallel) { /* both sublayers read one norm */
        to->ffn_norm = to->attn_norm;
        to->ffn_norm_b = to->attn_norm_b;
    }
    to->xielu = from->form.xielu;
    to->has_experts = from->experts != NULL;
    to->rope = from->form.rope == LAYER_ROPE_LOCAL && !local ? LAYER_ROPE_GLOBAL : from->form.rope;
    for (enum matrix_kind kind = 0; kind < matrices_of(from); kind++) {
        const struct matrix_plan m = matrix_of(from, kind, to);
        struct packing p;
        if (!plan_packing(d, u->backend->exact, &m, kind, &p, err))
            return false;
        const bool ok = upload_matrix(u, &p, m.to, err);
        free(p.source);
        if (!ok)
            return false;
    }
    return true;
}

static bool
load_end_vectors(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    return load_vector(u, &d->final_norm, "output_norm", &to->final_norm.weight, err) &&
           load_vector(u, &d->final_norm_bias, "output_norm", &to->final_norm.bias, err) &&
           load_vector(u, &d->embedding_norm, "token_embd_norm", &to->embedding_norm.weight, err) &&
           load_vector(u, &d->embedding_norm_bias, "token_embd_norm", &to->embedding_norm.bias, err) &&
           load_vector(u, &d->head_bias, "output", &to->head_bias, err);
}

static bool
load_ends(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    struct packing p;
    pack_plain(&p, &d->embedding, u->backend->exact);
    if (!upload_matrix(u, &p, &to->embedding, err))
        return false;
    to->head = to->embedding; /* when tied, one copy serves both */
    pack_plain(&p, &d->head, u->backend->exact);
    return same_tensor(&d->embedding, &d->head) || upload_matrix(u, &p, &to->head, err);
}

static bool
load_matrix(struct upload *u, const struct tensor *t, struct dev_matrix *to, struct err *err)
{
    struct packing p;
    return !tensor_present(t) || (pack_plain(&p, t, u->backend->exact) && upload_matrix(u, &p, to, err));
}

static bool
load_drafter(struct upload *u, const struct model_desc *d, struct dev_drafter *to, struct err *err)
{
    const struct drafter_desc *f = d->drafter;
    const void *tokens = NULL;
    if (f == NULL)
        return true;
    to->features = f->features;
    to->parts = f->parts > 0 ? f->parts : 1;
    to->pairs = model_pairs(d);
    to->input_normed = f->input_normed;
    to->output_normed = f->output_normed;
    const bool ok =
        load_vector(u, &f->norm, "norm of features", &to->norm.weight, err) &&
        load_vector(u, &f->token_norm, "norm of embeddings", &to->token_norm.weight, err) &&
        load_vector(u, &f->feature_norm, "hidden_norm", &to->feature_norm.weight, err) &&
        load_matrix(u, &f->projection, &to->projection, err) && load_matrix(u, &f->join, &to->join, err) &&
        (f->tokens == NULL || upload_array(u, f->tokens, d->head.rows * sizeof *f->tokens, "token ids", &tokens, err));
    to->tokens = tokens;
    return ok;
}

static bool
load_all(struct upload *u, struct weights *w, const struct model_desc *d, struct err *err)
{
    const size_t table = (d->n_layers + 1u) * sizeof(struct dev_layer);
    struct dev_model *to = &w->sizes;
    struct dev_layer *layers = w->layers = calloc(d->n_layers + 1u, sizeof *layers);
    if (layers == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    w->has_experts = d->form.activation == ACT_SWIGLU_CLAMPED;
    w->has_alibi = d->form.alibi.most > 0 || d->form.clip > 0 || model_pairs(d);
    bool ok = load_ends(u, d, to, err) && load_end_vectors(u, d, to, err) && positions_load(u, d, to, err) &&
              load_drafter(u, d, &to->drafter, err);
    for (uint32_t l = 1; l <= d->n_layers && ok; l++) {
        ok = load_layer(u, d, l, &layers[l], err);
        w->has_experts = w->has_experts || layers[l].has_experts || layers[l].sinks != NULL;
    }
    ok = ok && (d->form.experts.n == 0 || experts_load(u, d, &w->moe, &to->moe, err));
    const void *there = NULL;
    ok = ok && upload_array(u, layers, table, "tables", &there, err);
    to->layers = there;
    ok = ok && schedule_model(w, err) &&
         upload_array(u, w->products, w->n_products * sizeof *w->products, "tables", &there, err);
    to->products = there;
    ok = ok && upload_array(u, to, sizeof *to, "tables", &there, err);
    w->model = there;
    return ok && upload_finish(u, err);
}

/* Adds the converted types to describe(): "Q5_K, Q4_1 held as F16". */
static void
remark_converted(struct backend *b, uint32_t converted, enum weight_type to)
{
    char text[96];
    size_t n = 0;
    for (enum weight_type t = 0; t < WEIGHT_TYPES; t++)
        if (converted >> t & 1u && n + 24 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? ", " : "", tensor_type_name(t));
    if (n > 0 && !b->exact) {
        snprintf(text + n, sizeof text - n, " held as %s", tensor_type_name(to));
        device_remark(b, text);
    }
}

/* Returns the form with explicit scales in place of 0. */
static struct model_form
form_in_full(const struct model_desc *d)
{
    struct model_form f = d->form;
    f.embedding_scale = form_factor(f.embedding_scale);
    f.residual_scale = form_factor(f.residual_scale);
    f.logit_scale = form_factor(f.logit_scale);
    f.rope_gain = form_factor(f.rope_gain);
    f.experts.scale = form_factor(f.experts.scale);
    f.growth = f.growth_every > 0 ? f.growth : 0;
    f.attention_scale = f.attention_scale > 0 ? f.attention_scale : 1.0f / sqrtf((float)d->head_dim);
    return f;
}

static struct dev_model
sizes_of(const struct model_desc *d, bool exact)
{
    const struct model_form f = form_in_full(d);
    return (struct dev_model){.n_layers = d->n_layers,
                              .width = d->width,
                              .heads = d->heads,
                              .kv_heads = d->kv_heads,
                              .head_dim = d->head_dim,
                              .ffn = d->ffn,
                              .vocab = d->head.rows,
                              .rope_dims = d->rope_dims,
                              .rope = d->rope,
                              .rms_eps = d->rms_eps,
                              .exact = exact,
                              .form = f,
                              .shapes_logits = tensor_present(&d->head_bias) || f.logit_scale < 1 ||
                                               f.logit_scale > 1 || f.logit_cap > 0};
}

bool
cuda_weights_load(struct backend *b, const struct model_desc *d, progress_fn progress, void *user, struct weights **out,
                  struct err *err)
{
    struct upload_census census;
    *out = NULL;
    if (!device_here(b, err) || !shapes_supported(d, err) || !model_desc_fits(d, OPTIONAL_TENSORS, err) ||
        !check_limits(d, err) || !survey(d, b->exact, &census, err) || !check_room(b, d, census.bytes, err) ||
        !device_prepare(b, err))
        return false;
    struct weights *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    w->backend = b;
    w->desc = *d;
    w->desc.layers = NULL;
    w->desc.rope_factors = NULL;
    w->sizes = sizes_of(d, b->exact);
    struct upload u = {.backend = b,
                       .memory = &w->memory,
                       .total = census.bytes,
                       .strip = census.largest_strip,
                       .progress = progress,
                       .user = user};
    bool ok = upload_open(&u, err) && load_all(&u, w, d, err);
    upload_close(&u);
    uint32_t blocks; /* same number as of forward passes: one per multiprocessor */
    ok = ok && (!(w->has_experts || w->has_alibi) ||
                cuda_did(b, forward_moe_prepare(b->device, &blocks), "preparing its kernels for rare forms", err));
    if (!ok) {
        cuda_weights_unload(w);
        return false;
    }
    remark_converted(b, u.to_bytes, WEIGHT_Q8_0);
    remark_converted(b, u.to_halves, WEIGHT_F16);
    *out = w;
    return true;
}

void
cuda_weights_unload(struct weights *w)
{
    if (w == NULL)
        return;
    (void)device_here(w->backend, NULL);
    memory_free(&w->memory);
    memory_free(&w->trained);
    free(w->layers);
    free(w->moe);
    free(w->heads);
    free(w->products);
    free(w->plan);
    free(w);
}
