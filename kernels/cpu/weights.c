#include "kernels/cpu/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/repack.h"
#include "kernels/openmp.h"
#include "kernels/synthetic.h"
#include "kernels/team.h"
#include "kernels/tensor.h"

#define OPTIONAL_TENSORS UINT64_MAX /* forward.c supports all of them */

/* Makes a synthetic tensor in its file format, if the kernels read that format. */
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

/* interleave() for a synthetic tensor, one group at a time, so that the whole tensor is never in memory in its file
 * format. */
static bool
repack_synthetic(struct weights *w, const struct tensor *t, unsigned char *q, unsigned char *scale)
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
                repack(t->type, rows, n, t->cols, w->backend->isa->q8_flip, q + g * q_bytes, scale + g * s_bytes);
        }
        free(rows);
    }
    return ok;
}

/* `as_numbers`: convert block types to F32. */
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
        if (q == NULL || scale == NULL || (t->data == NULL && !repack_synthetic(w, t, q, scale)))
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

/* Sets *out to NULL if the model lacks the vector. */
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

/* Rows of a tap for all channels, so that neighbouring channels are computed together. */
static bool
transpose_convolution(struct weights *w, const struct layer_desc *from, struct layer *to, struct err *err)
{
    const uint32_t taps = w->desc.form.recurrent.taps, channels = LAYER_RC(&w->desc);
    if (from->form.kind != LAYER_RECURRENT)
        return true;
    float *rows = blocks_take(&w->vectors, (size_t)taps * channels, sizeof *rows);
    if (rows == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t j = 0; j < taps; j++)
            rows[(size_t)j * channels + c] = to->recurrent_conv[(size_t)c * taps + j];
    to->recurrent_conv = rows;
    return true;
}

/* A router is always converted to F32, because its outputs decide which experts a row goes to. */
static bool
load_layer(struct weights *w, const struct layer_desc *from, struct layer *to, struct err *err)
{
    return FOR_LAYER_TENSORS(MATRIX, VECTOR, VECTOR) transpose_convolution(w, from, to, err) &&
           load_experts(w, from, to, err);
}

/* Computes the slopes of ALiBi if the form has it. */
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
make_ones(struct weights *w, struct err *err)
{
    if (!w->desc.form.value_norms)
        return true;
    float *ones = blocks_take(&w->vectors, w->desc.head_dim, sizeof *ones);
    if (ones == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t i = 0; i < w->desc.head_dim; i++)
        ones[i] = 1;
    w->ones = ones;
    return true;
}

static bool
load_drafter(struct weights *w, const struct drafter_desc *d, struct err *err)
{
    return d == NULL || (load_vector(w, &d->norm, &w->drafter.norm.weight, err) &&
                         load_vector(w, &d->token_norm, &w->drafter.token_norm.weight, err) &&
                         load_vector(w, &d->feature_norm, &w->drafter.feature_norm.weight, err) &&
                         load_matrix(w, &d->projection, &w->drafter.projection, err) &&
                         load_matrix(w, &d->join, &w->drafter.join, err) &&
                         load_matrix(w, &d->markov_w2, &w->drafter.markov_w2, err));
}

static bool
load_all(struct weights *w, const struct model_desc *d, progress_fn progress, void *user, struct err *err)
{
    w->layers = blocks_take(&w->vectors, d->n_layers + 1u, sizeof *w->layers);
    w->layer_forms = blocks_take(&w->vectors, d->n_layers + 1u, sizeof *w->layer_forms);
    w->units = blocks_take(&w->vectors, d->n_layers + 1u, sizeof *w->units);
    w->local_dims = d->form.local_base > 0 && d->form.local_dims > 0 ? d->form.local_dims : d->rope_dims;
    double *rope = blocks_take(&w->vectors, (d->rope_dims + w->local_dims) / 2 + 2u, sizeof *rope),
           *local = rope + d->rope_dims / 2;
    if (w->layers == NULL || w->layer_forms == NULL || w->units == NULL || rope == NULL)
        return err_set(err, ERR_WORK, "not enough memory for the model's weights");
    for (uint32_t i = 0; i < d->rope_dims / 2; i++) {
        rope[i] = pow(d->rope_base, -2.0 * i / d->rope_dims) * d->rope_scale;
        if (d->rope_factors != NULL)
            rope[i] /= d->rope_factors[i];
    }
    for (uint32_t i = 0; i < w->local_dims / 2; i++)
        local[i] = d->form.local_base > 0 ? pow(d->form.local_base, -2.0 * i / w->local_dims) : rope[i];
    w->rope = rope;
    w->rope_local = local;
    for (uint32_t l = 1; l <= d->n_layers; l++) {
        if (progress != NULL && !progress(user, (l - 1.0) / (d->n_layers + 1.0)))
            return err_set(err, ERR_CANCELLED, "loading was cancelled");
        w->layer_forms[l] = d->layers[l - 1].form;
        if (!load_layer(w, &d->layers[l - 1], &w->layers[l], err))
            return false;
        w->has_beside = w->has_beside || (w->layers[l].experts != NULL && w->layers[l].up.rows > 0);
    }
    if (!make_slopes(w, err) || !make_ones(w, err) || !load_vector(w, &d->input_norm, &w->input_norm, err) ||
        !load_vector(w, &d->embedding_norm, &w->embedding_norm.weight, err) ||
        !load_vector(w, &d->embedding_norm_bias, &w->embedding_norm.bias, err) ||
        !load_vector(w, &d->final_norm, &w->final_norm.weight, err) ||
        !load_vector(w, &d->final_norm_bias, &w->final_norm.bias, err) || !load_matrix(w, &d->head, &w->head, err) ||
        !load_vector(w, &d->head_bias, &w->head_bias, err) || !load_drafter(w, d->drafter, err))
        return false;
    repack_open(w);
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

/* Copies a tensor; an absent one yields an empty matrix. */
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
    if (by_layer == NULL || copy_heads(w, by_layer, err))
        return true;
    blocks_free(&w->trained_blocks);
    return false;
}

#define ROWS_HELD       4                   /* rows of the embedding in memory: each may have mapped a large folio */
#define EMBEDDING_LARGE ((size_t)8 << 20)   /* bytes; pages of a smaller embedding are not released */
#define GROUPS_HELD     32                  /* groups that are in memory twice during repacking */
#define FAULT_WINDOW    ((size_t)256 << 10) /* bytes mapped around a fault: Linux's 64 KiB, or a large folio */

/* ---- a unit's matrices ---- */

/* Returns matrix i of a unit, whether it is repacked or not; NULL after the last one. */
static const struct matrix *
matrix_at(const struct weights *w, uint32_t unit, size_t i)
{
#define MATRIX_FIELD(NAME, field, ...) &layer->field,
#define EXPERT_FIELD(NAME, field, ...) &expert->field,
#define NO_FIELD(...)
    const struct layer *layer = &w->layers[unit];
    const struct matrix *of_layer[] = {FOR_LAYER_TENSORS(MATRIX_FIELD, NO_FIELD, NO_FIELD)};
    const size_t n_layer = sizeof of_layer / sizeof of_layer[0], n = n_layer + (unit == 1 ? 2 : 0);
    if (unit == 0)
        return i == 0 ? &w->head : i == 1 ? &w->drafter.markov_w2 : NULL;
    if (i < n_layer)
        return of_layer[i];
    if (i < n) /* a drafter's belong to its layer */
        return i == n_layer ? &w->drafter.projection : &w->drafter.join;
    if (layer->experts == NULL || (i - n) / EXPERT_MATRICES >= experts_listed(&w->desc))
        return NULL;
    const struct expert *expert = &layer->experts[(i - n) / EXPERT_MATRICES];
    const struct matrix *of_expert[] = {FOR_EXPERT_TENSORS(EXPERT_FIELD, NO_FIELD)};
    return of_expert[(i - n) % EXPERT_MATRICES];
}

/* Returns the next matrix of a unit from matrix *i on that is repacked; NULL after the last one. */
static const struct matrix *
next_moving(const struct weights *w, uint32_t unit, size_t *i)
{
    const struct matrix *m;
    while ((m = matrix_at(w, unit, (*i)++)) != NULL)
        if (m->q != NULL && m->data != NULL)
            return m;
    return NULL;
}

static size_t
groups_of(const struct matrix *m)
{
    return ((size_t)m->rows + Q8_GROUP - 1) / Q8_GROUP;
}

size_t
group_quant_bytes(const struct matrix *m)
{
    return m->cols / Q8_BLOCK * quant_bytes(m->type);
}

size_t
group_scale_bytes(const struct matrix *m)
{
    return m->cols / tensor_block_values(m->type) * scale_bytes(m->type);
}

/* Interleaves the rows of a group. */
static size_t
repack_group(const struct cpu_isa *isa, const struct matrix *m, size_t group, unsigned char *q, unsigned char *scale)
{
    const size_t row = tensor_row_bytes(m->type, m->cols), first = group * Q8_GROUP, left = m->rows - first;
    const size_t n = left < Q8_GROUP ? left : Q8_GROUP;
    repack(m->type, (const unsigned char *)m->data + first * row, n, m->cols, isa->q8_flip, q, scale);
    return n;
}

/* Releases the pages of the file that contain bytes from `begin` on; pages before `from` are kept. A page fault also
 * maps neighbouring pages, so some pages before `begin` may have been mapped again. Released pages that are still
 * needed are read again. */
static void
give_back(const void *from, size_t begin, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)from;
    const uintptr_t first = (at + (begin > FAULT_WINDOW ? begin - FAULT_WINDOW : 0)) / page * page;
    madvise((void *)first, at + begin + bytes - first, MADV_DONTNEED); /* only a hint, so failure is harmless */
}

static void
give_groups_back(const struct matrix *m, struct range groups)
{
    const size_t group = Q8_GROUP * tensor_row_bytes(m->type, m->cols), all = m->rows * group / Q8_GROUP;
    const size_t begin = groups.first * group, end = groups.last * group < all ? groups.last * group : all;
    if (m->mapped && begin < end)
        give_back(m->data, begin, end - begin);
}

void
repack_embedded(struct weights *w)
{
    const struct tensor *t = &w->desc.embedding;
    const size_t bytes = t->rows * tensor_row_bytes(t->type, t->cols);
    const bool read_by_head = w->head.q == NULL && w->head.data == t->data; /* then the head reads these pages for */
                                                                            /* every token */
    const struct tensor *inputs = &w->desc.input_embedding;
    if (atomic_fetch_add_explicit(&w->embedded, 1, memory_order_relaxed) % ROWS_HELD != ROWS_HELD - 1)
        return;
    if (t->mapped && !read_by_head && bytes >= EMBEDDING_LARGE)
        give_back(t->data, 0, bytes);
    if (inputs->mapped && tensor_present(inputs))
        give_back(inputs->data, 0, inputs->rows * tensor_row_bytes(inputs->type, inputs->cols));
}

/* ---- repacking ---- */

void
repack_open(struct weights *w)
{
    unsigned left = 0;
    for (uint32_t unit = 0; unit <= w->desc.n_layers; unit++) {
        size_t i = 0;
        const bool moves = next_moving(w, unit, &i) != NULL;
        atomic_init(&w->units[unit].state, moves ? UNIT_IN_FILE : UNIT_REPACKED);
        left += moves;
    }
    atomic_init(&w->not_repacked, left);
}

static bool
change_state(struct weights *w, uint32_t unit, enum repacking from, enum repacking to)
{
    return atomic_compare_exchange_strong_explicit(&w->units[unit].state, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

enum use
repack_use(struct weights *w, uint32_t unit)
{
    if (atomic_load_explicit(&w->units[unit].state, memory_order_acquire) == UNIT_REPACKED)
        return USE_MEMORY;
    if (change_state(w, unit, UNIT_USED, UNIT_MOVING))
        return USE_REPACK;
    (void)change_state(w, unit, UNIT_IN_FILE, UNIT_USED);
    return USE_FILE;
}

struct unit_parts {
    const struct weights *weights;
    uint32_t unit;
    size_t parts;
};

/* Repacks a part of each of the unit's matrices. */
static void
repack_part(void *arg, uint32_t rank, size_t chunk)
{
    const struct unit_parts *s = arg;
    const struct weights *w = s->weights;
    const struct matrix *m;
    (void)rank;
    for (size_t i = 0; (m = next_moving(w, s->unit, &i)) != NULL;) {
        const struct range part = team_share(groups_of(m), chunk, s->parts);
        for (struct range some = part; some.first < part.last; some.first = some.last) {
            some.last = some.first + GROUPS_HELD < part.last ? some.first + GROUPS_HELD : part.last;
            for (size_t g = some.first; g < some.last; g++)
                repack_group(w->backend->isa, m, g, m->q + g * group_quant_bytes(m),
                             m->scale + g * group_scale_bytes(m));
            give_groups_back(m, some);
        }
    }
}

void
repack_unit(struct weights *w, uint32_t unit)
{
    struct unit_parts s = {w, unit, w->backend->threads};
    team_for(w->backend->team, s.parts, repack_part, &s);
    const struct matrix *m;
    for (size_t i = 0; (m = next_moving(w, unit, &i)) != NULL;) /* releases pages mapped again between the parts */
        give_groups_back(m, (struct range){0, groups_of(m)});
    atomic_store_explicit(&w->units[unit].state, UNIT_REPACKED, memory_order_release);
    atomic_fetch_sub_explicit(&w->not_repacked, 1, memory_order_acq_rel);
}

void
cpu_weights_repack(struct weights *w, const atomic_bool *cancel)
{
    for (uint32_t unit = 0; unit <= w->desc.n_layers && !repacked(w); unit++) {
        if (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed))
            return;
        if (change_state(w, unit, UNIT_IN_FILE, UNIT_MOVING) || change_state(w, unit, UNIT_USED, UNIT_MOVING))
            repack_unit(w, unit);
    }
}

/* ---- from the file ---- */

void
repack_group_bytes(const struct weights *w, size_t *q, size_t *scale)
{
    const struct matrix *m;
    *q = *scale = 0;
    for (uint32_t unit = 0; unit <= w->desc.n_layers; unit++)
        for (size_t i = 0; (m = next_moving(w, unit, &i)) != NULL;) {
            *q = group_quant_bytes(m) > *q ? group_quant_bytes(m) : *q;
            *scale = group_scale_bytes(m) > *scale ? group_scale_bytes(m) : *scale;
        }
}

struct matrix
matrix_part(const struct matrix *m, struct range part)
{
    struct matrix some = *m;
    some.rows = (uint32_t)(part.last - part.first);
    if (m->data != NULL)
        some.data = (const char *)m->data + part.first * tensor_row_bytes(m->type, m->cols);
    if (m->q != NULL) {
        some.q += part.first / Q8_GROUP * group_quant_bytes(m);
        some.scale += part.first / Q8_GROUP * group_scale_bytes(m);
    }
    return some;
}

void
multiply_from_file(const struct cpu_isa *isa, const struct matrix *m, const struct acts *x, size_t n, size_t first,
                   size_t last, float *y, size_t ld, struct group_buffer buffer)
{
    for (size_t o = first; o < last;) {
        const size_t group = o / Q8_GROUP, begin = group * Q8_GROUP;
        const size_t rows = repack_group(isa, m, group, buffer.q, buffer.scale);
        const size_t end = begin + rows < last ? begin + rows : last;
        const struct matrix sixteen = {
            .type = m->type, .rows = (uint32_t)rows, .cols = m->cols, .q = buffer.q, .scale = buffer.scale};
        multiply(isa, &sixteen, x, n, o - begin, end - begin, y + begin, ld);
        o = end;
    }
}
