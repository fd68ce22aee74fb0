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

/* ---- checks ---- */

/* Optional tensors that the forward pass supports. */
#define OPTIONAL_TENSORS                                                                                               \
    (LAYER_QKV_BIAS | LAYER_QK_NORM | LAYER_NORM_BIAS | LAYER_MLP_BIAS | LAYER_POST_NORMS | 1ull << LAYER_BO |         \
     1ull << LAYER_BGATE | 1ull << LAYER_SINKS | (LAYER_ROUTING & ~LAYER_BESIDE))

/* Returns whether the kernels support the model. */
static bool
is_supported(const struct model_desc *d, struct err *err)
{
    const uint32_t experts = d->form.experts.n;
    for (uint32_t l = 0; d->layers != NULL && l < d->n_layers; l++) {
        const struct layer_desc *layer = &d->layers[l];
        const struct layer_sizes n = layer_sizes(d, &layer->form);
        const bool gated = tensor_present(layer->experts != NULL ? &layer->experts->gate : &layer->gate);
        if (n.head_dim != d->head_dim || n.kv_heads != d->kv_heads || n.ffn != d->ffn || layer->form.kv_layer > 0 ||
            d->form.value_norms)
            return err_set(err, ERR_WORK,
                           "backend cuda: layers of different shapes and normalised values (Gemma 4) are not "
                           "supported; use --backend cpu");
        if (d->form.activation == ACT_SWIGLU_CLAMPED && !gated)
            return err_set(err, ERR_WORK, "backend cuda: clamps only MLPs with gates; use --backend cpu");
        for (uint32_t e = 1; layer->experts != NULL && e < experts; e++)
            if (tensor_present(&layer->experts[e].gate) != gated)
                return err_set(err, ERR_WORK,
                               "some experts of a layer have gates and some have none: the model file is damaged or of "
                               "a kind this program does not know");
    }
    const struct {
        const char *what;
        uint32_t n, most;
    } limits[] = {{"experts", experts, MOST_EXPERTS},
                  {"dimensions of a head", d->head_dim, MAX_HEAD_DIM},
                  {"layers", d->n_layers, MAX_LAYERS}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].n > limits[i].most)
            return err_set(err, ERR_WORK,
                           "backend cuda: %" PRIu32 " %s are more than its %" PRIu32 "; use --backend cpu", limits[i].n,
                           limits[i].what, limits[i].most);
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

/* ---- vectors and tables ---- */

static bool
no_memory(struct err *err)
{
    return err_set(err, ERR_WORK, "not enough memory for the model's weights");
}

/* Uploads and frees values, which are NULL without memory or if bytes are only counted. */
static bool
load_values(struct upload *u, void *values, size_t bytes, const char *name, void *out, struct err *err)
{
    const bool ok = values != NULL || u->counts ? upload_array(u, values, bytes, name, out, err) : no_memory(err);
    free(values);
    return ok;
}

/* Loads n tensors that are `stride` bytes apart, in F32, with zeros for those that are absent. Sets *out to NULL if all
 * are. */
static bool
load_tensors(struct upload *u, const struct tensor *first, uint32_t n, size_t stride, const char *name,
             const float **out, struct err *err)
{
    const unsigned char *at = (const unsigned char *)first;
    size_t each = 0;
    *out = NULL;
    for (uint32_t e = 0; e < n; e++) {
        const struct tensor *t = (const void *)(at + e * stride);
        each = tensor_present(t) ? (size_t)t->rows * t->cols : each;
    }
    if (each == 0)
        return true;
    float *values = u->counts ? NULL : calloc(n * each, sizeof *values);
    for (uint32_t e = 0; e < n && values != NULL; e++) {
        const struct tensor *t = (const void *)(at + e * stride);
        for (uint32_t r = 0; tensor_present(t) && r < t->rows; r++)
            tensor_row(t, r, values + e * each + (size_t)r * t->cols);
    }
    return load_values(u, values, n * each * sizeof *values, name, out, err);
}

static bool
load_vector(struct upload *u, const struct tensor *t, const char *name, const float **out, struct err *err)
{
    return load_tensors(u, t, 1, 0, name, out, err);
}

/* (rope_dims/2): scale * base^(-2i / rope_dims) / factors, which may be NULL. */
static bool
load_frequencies(struct upload *u, uint32_t rope_dims, double base, double scale, const float *factors,
                 const double **out, struct err *err)
{
    const uint32_t n = rope_dims / 2;
    double *values = malloc((n + 1) * sizeof *values);
    for (uint32_t i = 0; i < n && values != NULL; i++) {
        const double f = pow(base, -2.0 * i / rope_dims) * scale;
        values[i] = factors != NULL ? f / (double)factors[i] : f;
    }
    return load_values(u, values, n * sizeof *values, "rotation frequencies", out, err);
}

/* Loads the position tables that the model has: angles of rotations, learned positions, slopes of ALiBi. */
static bool
load_positions(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const struct alibi *a = &d->form.alibi;
    const double local = (double)d->form.local_base;
    to->n_positions = d->positions.rows;
    if (!load_frequencies(u, d->rope_dims, (double)d->rope_base, (double)d->rope_scale, d->rope_factors, &to->inv_freq,
                          err) ||
        (local > 0 && !load_frequencies(u, d->rope_dims, local, 1, NULL, &to->inv_freq_local, err)) ||
        !load_vector(u, &d->positions, "positions", &to->positions, err))
        return false;
    if (!(a->most > 0))
        return true;
    float *slopes = malloc(d->heads * sizeof *slopes);
    for (uint32_t h = 0; h < d->heads && slopes != NULL; h++)
        slopes[h] = form_slope(a, h, d->heads);
    return load_values(u, slopes, d->heads * sizeof *slopes, "slopes", &to->slopes, err);
}

/* ---- layers ---- */

static bool
load_stack(struct upload *u, const struct expert_desc *experts, uint32_t n, struct expert_stack *to, struct err *err)
{
    const bool exact = u->backend->exact;
    const size_t each = sizeof *experts;
    return upload_matrix(u, pack_stack(pack_gate_up(&experts->gate, &experts->up, exact), n, each, exact), &to->gate_up,
                         err) &&
           upload_matrix(u, pack_stack(pack_plain(&experts->down, exact), n, each, exact), &to->down, err) &&
           load_tensors(u, &experts->bgate, n, each, expert_tensor_names[EXPERT_BGATE], &to->bgate, err) &&
           load_tensors(u, &experts->bup, n, each, expert_tensor_names[EXPERT_BUP], &to->bup, err) &&
           load_tensors(u, &experts->bdown, n, each, expert_tensor_names[EXPERT_BDOWN], &to->bdown, err);
}

/* A router is always converted to F32, because its outputs decide which experts a row goes to. */
static bool
load_experts(struct upload *u, const struct experts_form *f, const struct layer_desc *l, struct dev_moe *to,
             struct err *err)
{
    return load_vector(u, &l->router, "a router", &to->router, err) &&
           load_stack(u, l->experts, f->n, &to->routed, err) &&
           (f->shared_ffn == 0 || load_stack(u, l->experts + f->n, 1, &to->shared, err));
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
    const bool local = from->form.rope == LAYER_ROPE_LOCAL && d->form.local_base > 0, exact = u->backend->exact;
    if (!load_vectors(u, from, to, err))
        return false;
    to->window = from->form.sees_all ? 0 : d->window;
    to->causal = from->form.causal;
    if (to->ffn_norm == NULL && d->form.parallel) { /* both sublayers read one norm */
        to->ffn_norm = to->attn_norm;
        to->ffn_norm_b = to->attn_norm_b;
    }
    to->xielu = from->form.xielu;
    to->has_experts = from->experts != NULL;
    to->rope = from->form.rope == LAYER_ROPE_LOCAL && !local ? LAYER_ROPE_GLOBAL : from->form.rope;
    return upload_matrix(u, pack_heads(&from->wq, d->head_dim, d->rope_dims, d->rope, exact), &to->wq, err) &&
           upload_matrix(u, pack_heads(&from->wk, d->head_dim, d->rope_dims, d->rope, exact), &to->wk, err) &&
           upload_matrix(u, pack_heads(&from->wv, d->head_dim, 0, d->rope, exact), &to->wv, err) &&
           upload_matrix(u, pack_plain(&from->wo, exact), &to->wo, err) &&
           (to->has_experts || (upload_matrix(u, pack_gate_up(&from->gate, &from->up, exact), &to->gate_up, err) &&
                                upload_matrix(u, pack_plain(&from->down, exact), &to->down, err)));
}

/* ---- the model ---- */

static bool
same_tensor(const struct tensor *a, const struct tensor *b)
{
    return a->data == b->data && a->synthetic == b->synthetic && a->type == b->type && a->rows == b->rows;
}

static bool
load_ends(struct upload *u, const struct model_desc *d, struct dev_model *to, struct err *err)
{
    const bool exact = u->backend->exact;
    if (!upload_matrix(u, pack_plain(&d->embedding, exact), &to->embedding, err))
        return false;
    to->head = to->embedding; /* when tied, one copy serves both */
    return (same_tensor(&d->embedding, &d->head) || upload_matrix(u, pack_plain(&d->head, exact), &to->head, err)) &&
           load_vector(u, &d->final_norm, "output_norm", &to->final_norm.weight, err) &&
           load_vector(u, &d->final_norm_bias, "output_norm", &to->final_norm.bias, err) &&
           load_vector(u, &d->embedding_norm, "token_embd_norm", &to->embedding_norm.weight, err) &&
           load_vector(u, &d->embedding_norm_bias, "token_embd_norm", &to->embedding_norm.bias, err) &&
           load_vector(u, &d->head_bias, "output", &to->head_bias, err);
}

static bool
load_drafter(struct upload *u, const struct model_desc *d, struct dev_drafter *to, struct err *err)
{
    const struct drafter_desc *f = d->drafter;
    const bool exact = u->backend->exact;
    if (f == NULL)
        return true;
    to->features = f->features;
    to->parts = f->parts > 0 ? f->parts : 1;
    to->pairs = model_pairs(d);
    to->block = f->block > 0;
    to->input_normed = f->input_normed;
    to->output_normed = f->output_normed;
    return load_vector(u, &f->norm, "norm of features", &to->norm.weight, err) &&
           load_vector(u, &f->token_norm, "norm of embeddings", &to->token_norm.weight, err) &&
           load_vector(u, &f->feature_norm, "hidden_norm", &to->feature_norm.weight, err) &&
           (!tensor_present(&f->projection) ||
            upload_matrix(u, pack_plain(&f->projection, exact), &to->projection, err)) &&
           (!tensor_present(&f->join) || upload_matrix(u, pack_plain(&f->join, exact), &to->join, err)) &&
           (!tensor_present(&f->markov_w1) ||
            (upload_matrix(u, pack_plain(&f->markov_w1, exact), &to->markov_w1, err) &&
             upload_matrix(u, pack_plain(&f->markov_w2, exact), &to->markov_w2, err))) &&
           (f->tokens == NULL ||
            upload_array(u, f->tokens, d->head.rows * sizeof *f->tokens, "token ids", &to->tokens, err));
}

static bool
load_all(struct upload *u, struct weights *w, const struct model_desc *d, struct err *err)
{
    struct dev_model *to = &w->sizes;
    bool ok = load_ends(u, d, to, err) && load_positions(u, d, to, err) && load_drafter(u, d, &to->drafter, err);
    for (uint32_t l = 1; l <= d->n_layers && ok; l++) {
        const struct layer_desc *from = &d->layers[l - 1];
        ok = load_layer(u, d, l, &w->layers[l], err) &&
             (from->experts == NULL || load_experts(u, &d->form.experts, from, &w->moe[l], err));
    }
    return ok;
}

/* Makes the tables of layers and products. */
static bool
load_tables(struct upload *u, struct weights *w, const struct model_desc *d, struct err *err)
{
    struct dev_model *to = &w->sizes;
    const size_t depths = d->n_layers + 1u;
    w->rare = d->form.activation == ACT_SWIGLU_CLAMPED || d->form.alibi.most > 0 || d->form.clip > 0 || model_pairs(d);
    for (uint32_t l = 1; l < depths; l++)
        w->rare = w->rare || w->layers[l].has_experts || w->layers[l].sinks != NULL;
    return (w->moe == NULL || upload_array(u, w->moe, depths * sizeof *w->moe, "tables", &to->moe, err)) &&
           upload_array(u, w->layers, depths * sizeof *w->layers, "tables", &to->layers, err) &&
           schedule_model(w, err) &&
           upload_array(u, w->products, w->n_products * sizeof *w->products, "tables", &to->products, err) &&
           upload_array(u, to, sizeof *to, "tables", &w->model, err) && upload_finish(u, err);
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
    n += (size_t)snprintf(text + n, sizeof text - n, " held as %s", tensor_type_name(to));
    const size_t at = strlen(b->text);
    if (converted != 0 && !b->exact && at + n + 3 <= sizeof b->text)
        snprintf(b->text + at, sizeof b->text - at, ", %s", text);
}

/* The form has explicit scales in place of 0. */
static struct dev_model
sizes_of(const struct model_desc *d, bool exact)
{
    struct model_form f = d->form;
    f.embedding_scale = form_factor(f.embedding_scale);
    f.residual_scale = form_factor(f.residual_scale);
    f.logit_scale = form_factor(f.logit_scale);
    f.rope_gain = form_factor(f.rope_gain);
    f.experts.scale = form_factor(f.experts.scale);
    f.growth = f.growth_every > 0 ? f.growth : 0;
    f.attention_scale = f.attention_scale > 0 ? f.attention_scale : 1.0f / sqrtf((float)d->head_dim);
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

/* Loads the model twice: first its sizes are counted, so that it fails before anything is loaded if it cannot fit. */
static bool
load_model(struct upload *u, struct weights *w, const struct model_desc *d, struct err *err)
{
    u->counts = true;
    if (!load_all(u, w, d, err) || !check_room(w->backend, d, u->total + u->arrays, err) ||
        !device_prepare(w->backend, err))
        return false;
    u->counts = false;
    return upload_open(u, err) && load_all(u, w, d, err) && load_tables(u, w, d, err);
}

bool
cuda_weights_load(struct backend *b, const struct model_desc *d, progress_fn progress, void *user, struct weights **out,
                  struct err *err)
{
    *out = NULL;
    if (!device_here(b, err) || !is_supported(d, err) || !model_desc_fits(d, OPTIONAL_TENSORS, err))
        return false;
    struct weights *w = calloc(1, sizeof *w);
    if (w == NULL)
        return no_memory(err);
    w->backend = b;
    w->desc = *d;
    w->desc.layers = NULL;
    w->desc.rope_factors = NULL;
    w->sizes = sizes_of(d, b->exact);
    w->layers = calloc(d->n_layers + 1u, sizeof *w->layers);
    w->moe = d->form.experts.n > 0 ? calloc(d->n_layers + 1u, sizeof *w->moe) : NULL;
    struct upload u = {.backend = b, .memory = &w->memory, .progress = progress, .user = user};
    bool ok =
        w->layers != NULL && (w->moe != NULL || d->form.experts.n == 0) ? load_model(&u, w, d, err) : no_memory(err);
    upload_close(&u);
    uint32_t blocks; /* same number as of forward passes: one per multiprocessor */
    ok = ok && (!w->rare ||
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

/* Copies a tensor; the result of an absent one is NULL. */
static bool
copy_tensor(struct weights *w, struct upload *u, const struct tensor *t, uint32_t rows, const float **to,
            struct err *err)
{
    return t->data == NULL ||
           (tensor_fits_head(t, rows, w->desc.width, err) && load_vector(u, t, "trained heads", to, err));
}

static bool
load_heads(struct weights *w, const struct exit_head *by_layer, struct err *err)
{
    const struct model_desc *d = &w->desc;
    struct upload u = {.backend = w->backend, .memory = &w->trained};
    struct dev_head *heads = w->heads = calloc(d->n_layers + 1u, sizeof *heads);
    if (heads == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the trained heads");
    for (uint32_t l = 1; l < d->n_layers; l++) {
        struct dev_head *h = &heads[l];
        if (!copy_tensor(w, &u, &by_layer[l].a, d->width, &h->a, err) ||
            !copy_tensor(w, &u, &by_layer[l].b, 1, &h->b, err) ||
            !copy_tensor(w, &u, &by_layer[l].weight, d->vocab, &h->full, err))
            return false;
        if ((h->a == NULL) != (h->b == NULL) || (h->a != NULL && h->full != NULL))
            return err_set(err, ERR_WORK, "the trained head of layer %" PRIu32 " is neither affine nor full", l);
    }
    return upload_array(&u, heads, (d->n_layers + 1u) * sizeof *heads, "trained heads", &w->sizes.trained, err) &&
           send_model(w, err);
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
    free(w->heads);
    w->heads = NULL;
    if (by_layer == NULL || load_heads(w, by_layer, err))
        return true;
    w->sizes.trained = NULL;
    memory_free(&w->trained);
    return false;
}
