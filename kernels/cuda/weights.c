#include "kernels/cuda/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/pack.h"
#include "kernels/cuda/store.h"
#include "kernels/cuda/upload.h"
#include "kernels/tensor.h"

/* ---- what there is to load ---- */

enum matrix_kind { MATRIX_Q, MATRIX_K, MATRIX_V, MATRIX_OUT, MATRIX_GATE_UP, MATRIX_DOWN, MATRICES };

/* Which tensors of a layer become which matrix, and what shape they must have. */
struct matrix_plan {
    const char *name, *second_name;
    const struct tensor *tensor, *second;
    uint32_t rows, cols; /* of each */
    struct dev_matrix *to;
};

static struct matrix_plan
matrix_of(const struct model_desc *d, uint32_t l, enum matrix_kind kind, struct dev_layer *to)
{
    const struct layer_desc *from = &d->layers[l - 1];
    const uint32_t q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    switch (kind) {
    case MATRIX_Q: return (struct matrix_plan){"attn_q", NULL, &from->wq, NULL, q, d->width, &to->wq};
    case MATRIX_K: return (struct matrix_plan){"attn_k", NULL, &from->wk, NULL, kv, d->width, &to->wk};
    case MATRIX_V: return (struct matrix_plan){"attn_v", NULL, &from->wv, NULL, kv, d->width, &to->wv};
    case MATRIX_OUT: return (struct matrix_plan){"attn_output", NULL, &from->wo, NULL, d->width, q, &to->wo};
    case MATRIX_GATE_UP:
        return (struct matrix_plan){"ffn_gate", "ffn_up", &from->gate, &from->up, d->ffn, d->width, &to->gate_up};
    default: return (struct matrix_plan){"ffn_down", NULL, &from->down, NULL, d->width, d->ffn, &to->down};
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
    case MATRIX_GATE_UP: ok = pack_gate_up(p, m->tensor, m->second, exact); break;
    default: ok = pack_plain(p, m->tensor, exact);
    }
    return ok || err_set(err, ERR_WORK, "not enough memory to pack the model's weights");
}

/* ---- checks ---- */

static bool
check_shape(const struct model_desc *d, struct err *err)
{
    if (d->n_layers == 0 || d->width == 0 || d->heads == 0 || d->kv_heads == 0 || d->heads % d->kv_heads != 0 ||
        d->head_dim == 0 || d->head_dim % 2 != 0 || d->ffn == 0 || d->ffn > INT32_MAX || d->vocab == 0 ||
        d->vocab > INT32_MAX || d->rope_dims > d->head_dim || d->rope_dims % 2 != 0 ||
        (uint64_t)d->heads * d->head_dim > INT32_MAX || d->width > INT32_MAX ||
        (d->rope_dims > 0 && !(d->rope_base > 0)) || d->layers == NULL)
        return err_set(err, ERR_WORK,
                       "%" PRIu32 " layers of width %" PRIu32 ", %" PRIu32 " heads of %" PRIu32 " on %" PRIu32
                       ", FFN %" PRIu32 ", vocabulary %" PRIu32
                       ": no model of this shape can be run; the file is damaged",
                       d->n_layers, d->width, d->heads, d->head_dim, d->kv_heads, d->ffn, d->vocab);
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
check_tensor(const struct tensor *t, const char *name, uint32_t layer, uint32_t rows, uint32_t cols, struct err *err)
{
    if (tensor_present(t) && t->rows == rows && t->cols == cols && pack_possible(t))
        return true;
    return err_set(err, ERR_WORK,
                   "%s of layer %" PRIu32 " is %" PRIu32 " by %" PRIu32 " (%s), not %" PRIu32 " by %" PRIu32
                   ": the model file is damaged or of a kind this program does not know",
                   name, layer, t->rows, t->cols, weight_type_name(t->type), rows, cols);
}

static bool
same_tensor(const struct tensor *a, const struct tensor *b)
{
    return a->data == b->data && a->planted == b->planted && a->type == b->type;
}

struct census {
    size_t bytes;         /* that the device will hold */
    size_t largest_strip; /* of any matrix: what a buffer must take */
};

static void
count_matrix(struct census *c, const struct packing *p)
{
    const size_t strip = pack_quant_bytes(p) + pack_scale_bytes(p);
    c->bytes += p->strips * strip;
    c->largest_strip = c->largest_strip > strip ? c->largest_strip : strip;
}

/* Checks every matrix and adds up. */
static bool
survey(const struct model_desc *d, bool exact, struct census *c, struct err *err)
{
    struct dev_layer none = {0};
    struct packing p;
    *c = (struct census){0};
    for (uint32_t l = 1; l <= d->n_layers; l++)
        for (enum matrix_kind kind = 0; kind < MATRICES; kind++) {
            struct matrix_plan m = matrix_of(d, l, kind, &none);
            if (!check_tensor(m.tensor, m.name, l, m.rows, m.cols, err) ||
                (m.second != NULL && !check_tensor(m.second, m.second_name, l, m.rows, m.cols, err)) ||
                !plan_packing(d, exact, &m, kind, &p, err))
                return false;
            count_matrix(c, &p);
            free(p.source);
        }
    if (!check_tensor(&d->embedding, "token_embd", 0, d->vocab, d->width, err) ||
        !check_tensor(&d->head, "output", d->n_layers, d->vocab, d->width, err))
        return false;
    pack_plain(&p, &d->embedding, exact);
    count_matrix(c, &p);
    pack_plain(&p, &d->head, exact);
    if (!same_tensor(&d->embedding, &d->head))
        count_matrix(c, &p);
    return true;
}

/* Says no before anything is loaded when the model cannot fit, rather than after a minute. */
static bool
check_room(struct backend *b, const struct model_desc *d, size_t weights, struct err *err)
{
    size_t left = 0, total = 0, keys = 0, work = 0;
    if (!cuda_did(b, cudaMemGetInfo(&left, &total), "asking for its free memory", err))
        return false;
    if (d->ctx > 0 && !cuda_store_estimate(d, b->exact, d->ctx, &keys, &work))
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

/* A vector of a layer in F32; absent: NULL. */
static bool
load_vector(struct upload *u, const struct tensor *t, const char *name, uint32_t layer, uint32_t cols, bool optional,
            const float **out, struct err *err)
{
    *out = NULL;
    if (optional && !tensor_present(t))
        return true;
    if (!check_tensor(t, name, layer, 1, cols, err))
        return false;
    float *values = malloc(cols * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    tensor_row(t, 0, values);
    const void *there = NULL;
    const bool ok = upload_array(u, values, cols * sizeof *values, name, &there, err);
    *out = there;
    free(values);
    return ok;
}

/* The biases of q, k and v one after the other; those that the model lacks are zero. */
static bool
load_bias(struct upload *u, const struct model_desc *d, const struct layer_desc *from, uint32_t l, const float **out,
          struct err *err)
{
    const uint32_t q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    const struct {
        const struct tensor *tensor;
        const char *name;
        uint32_t first, n;
    } parts[] = {
        {&from->bq, "attn_q.bias", 0, q}, {&from->bk, "attn_k.bias", q, kv}, {&from->bv, "attn_v.bias", q + kv, kv}};
    *out = NULL;
    if (!tensor_present(&from->bq) && !tensor_present(&from->bk) && !tensor_present(&from->bv))
        return true;
    float *values = calloc((size_t)q + 2 * (size_t)kv, sizeof *values);
    bool ok = values != NULL || err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (size_t i = 0; i < 3 && ok; i++) {
        if (!tensor_present(parts[i].tensor))
            continue;
        ok = check_tensor(parts[i].tensor, parts[i].name, l, 1, parts[i].n, err);
        if (ok)
            tensor_row(parts[i].tensor, 0, values + parts[i].first);
    }
    const void *there = NULL;
    ok = ok && upload_array(u, values, ((size_t)q + 2 * (size_t)kv) * sizeof *values, "biases", &there, err);
    *out = there;
    free(values);
    return ok;
}

static bool
load_layer(struct upload *u, const struct model_desc *d, uint32_t l, struct dev_layer *to, struct err *err)
{
    const struct layer_desc *from = &d->layers[l - 1];
    if (!load_vector(u, &from->attn_norm, "attn_norm", l, d->width, false, &to->attn_norm, err) ||
        !load_vector(u, &from->ffn_norm, "ffn_norm", l, d->width, false, &to->ffn_norm, err) ||
        !load_vector(u, &from->q_norm, "attn_q_norm", l, d->head_dim, true, &to->q_norm, err) ||
        !load_vector(u, &from->k_norm, "attn_k_norm", l, d->head_dim, true, &to->k_norm, err) ||
        !load_bias(u, d, from, l, &to->qkv_bias, err))
        return false;
    for (enum matrix_kind kind = 0; kind < MATRICES; kind++) {
        const struct matrix_plan m = matrix_of(d, l, kind, to);
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
load_rope(struct upload *u, const struct model_desc *d, const double **out, struct err *err)
{
    const uint32_t n = d->rope_dims / 2;
    double *values = malloc((n + 1) * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t i = 0; i < n; i++) {
        const double f = pow((double)d->rope_base, -2.0 * i / d->rope_dims) * (double)d->rope_scale;
        values[i] = d->rope_factors != NULL ? f / (double)d->rope_factors[i] : f;
    }
    const void *there = NULL;
    const bool ok = upload_array(u, values, n * sizeof *values, "rotation frequencies", &there, err);
    *out = there;
    free(values);
    return ok;
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
load_all(struct upload *u, struct weights *w, const struct model_desc *d, struct err *err)
{
    const size_t table = (d->n_layers + 1u) * sizeof(struct dev_layer);
    struct dev_model *to = &w->sizes;
    struct dev_layer *layers = calloc(d->n_layers + 1u, sizeof *layers);
    if (layers == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    bool ok = load_ends(u, d, to, err) &&
              load_vector(u, &d->final_norm, "output_norm", d->n_layers, d->width, false, &to->final_norm, err) &&
              load_rope(u, d, &to->inv_freq, err);
    for (uint32_t l = 1; l <= d->n_layers && ok; l++)
        ok = load_layer(u, d, l, &layers[l], err);
    const void *there = NULL;
    ok = ok && upload_array(u, layers, table, "tables", &there, err);
    to->layers = there;
    ok = ok && upload_array(u, to, sizeof *to, "tables", &there, err);
    w->model = there;
    free(layers);
    return ok && upload_finish(u, err);
}

/* "Q5_K, Q4_1 held as F16": what describe() adds. */
static void
remark_converted(struct backend *b, uint32_t converted)
{
    char text[96];
    size_t n = 0;
    for (enum weight_type t = 0; t < WEIGHT_TYPES; t++)
        if (converted >> t & 1u)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? ", " : "", weight_type_name(t));
    if (n > 0 && !b->exact) {
        snprintf(text + n, sizeof text - n, " held as F16");
        device_remark(b, text);
    }
}

bool
cuda_weights_load(struct backend *b, const struct model_desc *d, progress_fn progress, void *user, struct weights **out,
                  struct err *err)
{
    struct census census;
    *out = NULL;
    if (!device_here(b, err) || !check_shape(d, err) || !survey(d, b->exact, &census, err) ||
        !check_room(b, d, census.bytes, err))
        return false;
    struct weights *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    w->backend = b;
    w->desc = *d;
    w->desc.layers = NULL;
    w->desc.rope_factors = NULL;
    w->sizes = (struct dev_model){.n_layers = d->n_layers,
                                  .width = d->width,
                                  .heads = d->heads,
                                  .kv_heads = d->kv_heads,
                                  .head_dim = d->head_dim,
                                  .ffn = d->ffn,
                                  .vocab = d->vocab,
                                  .rope_dims = d->rope_dims,
                                  .window = d->window,
                                  .rope = d->rope,
                                  .rms_eps = d->rms_eps,
                                  .exact = b->exact};
    struct upload u = {.backend = b,
                       .memory = &w->memory,
                       .total = census.bytes,
                       .strip = census.largest_strip,
                       .progress = progress,
                       .user = user};
    const bool ok = upload_open(&u, err) && load_all(&u, w, d, err);
    upload_close(&u);
    if (!ok) {
        cuda_weights_unload(w);
        return false;
    }
    remark_converted(b, u.converted);
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
    free(w);
}
