#include "kernels/cpu/weights.h"

#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/interleave.h"
#include "kernels/cpu/settle.h"
#include "kernels/openmp.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"

#define OPTIONAL_TENSORS UINT32_MAX /* sweep.c computes with all there are */

/* A synthetic tensor as a file would have it, when that is how the kernels read it. */
static const void *
make_rows(struct weights *w, const struct tensor *t)
{
    const size_t bytes = synthetic_row_bytes(t->type, t->cols);
    unsigned char *data = bytes == 0 ? NULL : blocks_take(&w->blocks, t->rows, bytes);
    PARALLEL(omp parallel for num_threads(w->backend->threads))
    for (uint32_t r = 0; r < (data == NULL ? 0 : t->rows); r++)
        synthetic_row(t, r, data + r * bytes);
    return data;
}

/* interleave() of a synthetic tensor, a group at a time, so that as a file would have it it never is. */
static bool
interleave_synthetic(struct weights *w, const struct tensor *t, unsigned char *q, unsigned char *scale)
{
    const size_t row = synthetic_row_bytes(t->type, t->cols);
    const size_t q_bytes = t->cols / Q8_BLOCK * quant_bytes(t->type);
    const size_t s_bytes = t->cols / tensor_block_values(t->type) * scale_bytes(t->type);
    bool ok = true;
    PARALLEL(omp parallel num_threads(w->backend->threads))
    {
        unsigned char *rows = malloc(row * Q8_GROUP);
        if (rows == NULL)
            __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
        PARALLEL(omp for)
        for (uint32_t first = 0; first < t->rows; first += Q8_GROUP) {
            const uint32_t n = t->rows - first < Q8_GROUP ? t->rows - first : Q8_GROUP, g = first / Q8_GROUP;
            for (uint32_t r = 0; r < n && rows != NULL; r++)
                synthetic_row(t, first + r, rows + r * row);
            if (rows != NULL)
                interleave(t->type, rows, n, t->cols, w->backend->isa->q8_flip, q + g * q_bytes, scale + g * s_bytes);
        }
        free(rows);
    }
    return ok;
}

/* `as_numbers`: in F32, if it lies in blocks. */
static bool
load_matrix_as(struct weights *w, const struct tensor *t, bool as_numbers, struct matrix *m, struct err *err)
{
    const uint32_t rows = t->rows, cols = t->cols;
    if (!tensor_present(t)) { /* a gate that the model lacks */
        *m = (struct matrix){.type = WEIGHT_F32};
        return true;
    }
    *m = (struct matrix){.type = t->type, .rows = rows, .cols = cols, .data = t->data, .mapped = t->mapped};
    const bool exact = w->backend->exact || (as_numbers && tensor_block_values(t->type) > 1);
    if (exact && t->type != WEIGHT_F32) {
        float *data = blocks_take(&w->blocks, (size_t)rows * cols, sizeof *data);
        if (data == NULL)
            return err_set(err, ERR_WORK, "not enough memory for the model in F32; leave --exact out");
        PARALLEL(omp parallel for num_threads(w->backend->threads))
        for (uint32_t r = 0; r < rows; r++)
            tensor_row(t, r, data + (size_t)r * cols);
        m->type = WEIGHT_F32;
        m->data = data;
    } else if (interleaves(t->type) && w->backend->isa->matmul[t->type] != NULL) {
        const size_t groups = rows / Q8_GROUP + (rows % Q8_GROUP != 0);
        unsigned char *q = blocks_take(&w->blocks, groups * (cols / Q8_BLOCK), quant_bytes(t->type));
        unsigned char *scale =
            blocks_take(&w->blocks, groups * (cols / tensor_block_values(t->type)), scale_bytes(t->type));
        if (q == NULL || scale == NULL || (t->data == NULL && !interleave_synthetic(w, t, q, scale)))
            return err_set(err, ERR_WORK, "not enough memory for the model's weights");
        m->q = q;
        m->scale = scale;
    } else if (t->data == NULL && (m->data = make_rows(w, t)) == NULL) {
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    }
    return true;
}

static bool
load_matrix(struct weights *w, const struct tensor *t, struct matrix *m, struct err *err)
{
    return load_matrix_as(w, t, false, m, err);
}

/* NULL for a vector that the model lacks. */
static bool
load_vector(struct weights *w, const struct tensor *t, const float **out, struct err *err)
{
    *out = NULL;
    if (!tensor_present(t))
        return true;
    float *data = blocks_take(&w->vectors, t->cols, sizeof *data);
    if (data == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    tensor_row(t, 0, data);
    *out = data;
    return true;
}

#define MATRIX(NAME, field, ...) load_matrix_as(w, &from->field, LAYER_##NAME == LAYER_ROUTER, &to->field, err) &&
#define VECTOR(NAME, field, ...) load_vector(w, &from->field, &to->field, err) &&
static bool
load_experts(struct weights *w, const struct layer_desc *layer, struct layer *out, struct err *err)
{
    const uint32_t n = experts_listed(&w->desc);
    if (layer->experts == NULL)
        return true;
    out->experts = blocks_take(&w->vectors, n, sizeof *out->experts);
    if (out->experts == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t e = 0; e < n; e++) {
        const struct expert_desc *from = &layer->experts[e];
        struct expert *to = &out->experts[e];
#define EXPERT_MATRIX(NAME, field, ...) load_matrix(w, &from->field, &to->field, err) &&
        if (!(FOR_EXPERT_TENSORS(EXPERT_MATRIX, VECTOR) true))
            return false;
        out->experts_in_int8 = out->experts_in_int8 || to->gate.q != NULL || to->up.q != NULL;
    }
    return true;
}

/* A router is read in F32, whatever the file has it in: what it chooses decides which experts a row goes to. */
static bool
load_layer(struct weights *w, const struct layer_desc *from, struct layer *to, struct err *err)
{
    return FOR_LAYER_TENSORS(MATRIX, VECTOR, VECTOR) load_experts(w, from, to, err);
}

/* Slopes of attention's biases, where the form has some. */
static bool
make_slopes(struct weights *w, struct err *err)
{
    const struct alibi *a = &w->desc.form.alibi;
    if (!(a->most > 0))
        return true;
    float *slopes = blocks_take(&w->vectors, w->desc.heads, sizeof *slopes);
    if (slopes == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t h = 0; h < w->desc.heads; h++)
        slopes[h] = form_slope(a, h, w->desc.heads);
    w->slopes = slopes;
    return true;
}

static bool
load_all(struct weights *w, const struct model_desc *d, progress_fn progress, void *user, struct err *err)
{
    w->layers = blocks_take(&w->vectors, d->n_layers + 1u, sizeof *w->layers);
    w->layer_forms = blocks_take(&w->vectors, d->n_layers + 1u, sizeof *w->layer_forms);
    w->units = blocks_take(&w->vectors, d->n_layers + 1u, sizeof *w->units);
    double *rope = blocks_take(&w->vectors, d->rope_dims + 2u, sizeof *rope), *local = rope + d->rope_dims / 2;
    if (w->layers == NULL || w->layer_forms == NULL || w->units == NULL || rope == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t i = 0; i < d->rope_dims / 2; i++) {
        rope[i] = pow(d->rope_base, -2.0 * i / d->rope_dims) * d->rope_scale;
        if (d->rope_factors != NULL)
            rope[i] /= d->rope_factors[i];
        local[i] = d->form.local_base > 0 ? pow(d->form.local_base, -2.0 * i / d->rope_dims) : rope[i];
    }
    w->rope = rope;
    w->rope_local = local;
    for (uint32_t l = 1; l <= d->n_layers; l++) {
        if (progress != NULL && !progress(user, (l - 1.0) / (d->n_layers + 1.0)))
            return err_set(err, ERR_CANCELLED, "loading was cancelled");
        w->layer_forms[l] = d->layers[l - 1].form;
        if (!load_layer(w, &d->layers[l - 1], &w->layers[l], err))
            return false;
    }
    if (!make_slopes(w, err) || !load_vector(w, &d->embedding_norm, &w->embedding_norm.weight, err) ||
        !load_vector(w, &d->embedding_norm_bias, &w->embedding_norm.bias, err) ||
        !load_vector(w, &d->final_norm, &w->final_norm.weight, err) ||
        !load_vector(w, &d->final_norm_bias, &w->final_norm.bias, err) || !load_matrix(w, &d->head, &w->head, err) ||
        !load_vector(w, &d->head_bias, &w->head_bias, err))
        return false;
    settle_open(w);
    if (progress != NULL && !progress(user, 1.0))
        return err_set(err, ERR_CANCELLED, "loading was cancelled");
    return true;
}

bool
cpu_weights_load(struct backend *b, const struct model_desc *d, progress_fn progress, void *user, struct weights **out,
                 struct err *err)
{
    *out = NULL;
    if (!model_desc_fits(d, OPTIONAL_TENSORS, err))
        return false;
    struct weights *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    w->backend = b;
    w->blocks.huge = true;
    w->desc = *d;
    w->desc.layers = NULL;
    w->desc.rope_factors = NULL;
    if (!load_all(w, d, progress, user, err)) {
        cpu_weights_unload(w);
        return false;
    }
    *out = w;
    return true;
}

void
cpu_weights_unload(struct weights *w)
{
    if (w == NULL)
        return;
    blocks_free(&w->blocks);
    blocks_free(&w->vectors);
    blocks_free(&w->trained_blocks);
    free(w);
}

/* ---- trained heads ---- */

/* A copy of a tensor, empty for an absent one. */
static bool
copy_head(struct weights *w, const struct tensor *t, uint32_t rows, struct matrix *out, struct err *err)
{
    *out = (struct matrix){.type = WEIGHT_F32};
    if (t->data == NULL)
        return true;
    if (!tensor_fits_head(t, rows, w->desc.width, err))
        return false;
    float *data = blocks_take(&w->trained_blocks, (size_t)rows * t->cols, sizeof *data);
    if (data == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the trained heads");
    for (uint32_t r = 0; r < rows; r++)
        tensor_row(t, r, data + (size_t)r * t->cols);
    out->rows = rows;
    out->cols = t->cols;
    out->data = data;
    return true;
}

static bool
copy_heads(struct weights *w, const struct exit_head *by_layer, struct err *err)
{
    const struct model_desc *d = &w->desc;
    struct trained_head *to = blocks_take(&w->trained_blocks, d->n_layers + 1u, sizeof *to);
    if (to == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the trained heads");
    memset(to, 0, (d->n_layers + 1u) * sizeof *to);
    for (uint32_t l = 1; l < d->n_layers; l++) {
        struct matrix b;
        if (!copy_head(w, &by_layer[l].a, d->width, &to[l].a, err) || !copy_head(w, &by_layer[l].b, 1, &b, err) ||
            !copy_head(w, &by_layer[l].weight, d->vocab, &to[l].full, err))
            return false;
        to[l].b = b.data;
        if ((to[l].a.data == NULL) != (to[l].b == NULL) || (to[l].a.data != NULL && to[l].full.data != NULL))
            return err_set(err, ERR_WORK, "the trained head of layer %" PRIu32 " is neither affine nor full", l);
    }
    w->trained = to;
    return true;
}

bool
cpu_weights_heads(struct weights *w, const struct exit_head *by_layer, struct err *err)
{
    w->trained = NULL;
    blocks_free(&w->trained_blocks);
    w->trained_blocks = (struct blocks){0};
    if (by_layer == NULL || copy_heads(w, by_layer, err))
        return true;
    blocks_free(&w->trained_blocks);
    w->trained_blocks = (struct blocks){0};
    return false;
}
