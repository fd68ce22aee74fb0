/* A model's tensors: found by name, checked in shape and type, and none left over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/model/arch.h"
#include "kernels/half.h"

#define NAME_SIZE 96

struct taking {
    struct model *model;
    const struct arch_source *source;
    bool *used; /* (n_tensors) */
    struct err *err;
};

static size_t
element_size(enum weight_type type)
{
    return type == WEIGHT_F32 ? sizeof(float) : type == WEIGHT_F16 || type == WEIGHT_BF16 ? sizeof(uint16_t) : 1;
}

static bool
has_blocks(enum weight_type type)
{
    return type != WEIGHT_F32 && type != WEIGHT_F16 && type != WEIGHT_BF16;
}

/* Where a file doesn't align a tensor even to its elements, a copy that is. */
static const void *
aligned_data(const struct taking *t, const struct arch_tensor *found, size_t elements)
{
    const size_t size = element_size(found->type);
    if ((uintptr_t)found->data % size == 0)
        return found->data;
    void *copy = model_take(t->model, elements * size);
    if (copy == NULL)
        err_set(t->err, ERR_WORK, "%s: out of memory for a tensor of %zu values", t->source->path, elements);
    else
        memcpy(copy, found->data, elements * size);
    return copy;
}

static bool
take_tensor(const struct taking *t, const char *name, uint32_t rows, uint32_t cols, struct tensor *out)
{
    const struct arch_source *s = t->source;
    struct arch_tensor found;
    if (!s->tensor(s, name, &found))
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is missing; %s", s->path, name, s->names->remedy);
    if (found.rows == 0)
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' has more than two dimensions; %s", s->path, name,
                       s->names->remedy);
    if (found.cols != cols || found.rows != rows)
        return err_set(t->err, ERR_WORK,
                       "%s: tensor '%s' is %" PRIu64 " x %" PRIu64 ", but should be %" PRIu32 " x %" PRIu32 "; %s",
                       s->path, name, found.cols, found.rows, cols, rows, s->names->remedy);
    if (found.type == WEIGHT_TYPES)
        return err_set(t->err, ERR_WORK,
                       "%s: tensor '%s' is of type %s, which is not supported; F32, F16, BF16, Q8_0, Q4_0 to Q5_1 and "
                       "Q2_K to Q6_K are",
                       s->path, name, found.type_name);
    const uint64_t values = (uint64_t)rows * cols;
    *out = (struct tensor){.type = found.type, .rows = rows, .cols = cols};
    out->data = aligned_data(t, &found, (size_t)values);
    t->used[found.index] = true;
    t->model->parameters += values;
    t->model->parameters_of[out->type] += values;
    t->model->tensors_of[out->type]++;
    return out->data != NULL;
}

static bool
take_vector(const struct taking *t, const char *name, uint32_t n, struct tensor *out)
{
    if (!take_tensor(t, name, 1, n, out))
        return false;
    if (has_blocks(out->type))
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is quantised; a vector has to be F32, F16 or BF16; %s",
                       t->source->path, name, t->source->names->remedy);
    return true;
}

/* A vector that backends want in F32 (biases, norms of heads); absent when the file has none, unless it is needed. */
static bool
take_f32(const struct taking *t, const char *name, uint32_t n, bool needed, struct tensor *out)
{
    struct arch_tensor found;
    *out = (struct tensor){0};
    if (!needed && !t->source->tensor(t->source, name, &found))
        return true;
    if (!take_vector(t, name, n, out))
        return false;
    if (out->type == WEIGHT_F32)
        return true;
    const uint16_t *half = out->data;
    float *wide = model_take(t->model, n * sizeof *wide);
    if (wide == NULL)
        return err_set(t->err, ERR_WORK, "%s: out of memory for tensor '%s'", t->source->path, name);
    for (uint32_t i = 0; i < n; i++)
        wide[i] = out->type == WEIGHT_F16 ? f16_to_f32(half[i]) : bf16_to_f32(half[i]);
    *out = (struct tensor){.data = wide, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}

static bool
take_layer(const struct taking *t, uint32_t layer, struct layer_desc *out)
{
    const struct model_desc *d = &t->model->desc;
    const struct arch *a = t->source->arch;
    const uint32_t heads = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    enum kind { MATRIX, VECTOR, BIAS, HEAD_NORM };
    const struct {
        struct tensor *to;
        enum kind kind;
        uint32_t rows, cols;
    } parts[ARCH_PARTS] = {
        [PART_ATTN_NORM] = {&out->attn_norm, VECTOR, 1, d->width},
        [PART_Q] = {&out->wq, MATRIX, heads, d->width},
        [PART_K] = {&out->wk, MATRIX, kv, d->width},
        [PART_V] = {&out->wv, MATRIX, kv, d->width},
        [PART_Q_BIAS] = {&out->bq, BIAS, 1, heads},
        [PART_K_BIAS] = {&out->bk, BIAS, 1, kv},
        [PART_V_BIAS] = {&out->bv, BIAS, 1, kv},
        [PART_Q_NORM] = {&out->q_norm, HEAD_NORM, 1, d->head_dim},
        [PART_K_NORM] = {&out->k_norm, HEAD_NORM, 1, d->head_dim},
        [PART_O] = {&out->wo, MATRIX, d->width, heads},
        [PART_FFN_NORM] = {&out->ffn_norm, VECTOR, 1, d->width},
        [PART_GATE] = {&out->gate, MATRIX, d->ffn, d->width},
        [PART_UP] = {&out->up, MATRIX, d->ffn, d->width},
        [PART_DOWN] = {&out->down, MATRIX, d->width, d->ffn},
    };
    for (int i = 0; i < ARCH_PARTS; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "%s%" PRIu32 ".%s", t->source->names->layer, layer, t->source->names->parts[i]);
        bool ok = true;
        switch (parts[i].kind) {
        case MATRIX: ok = take_tensor(t, name, parts[i].rows, parts[i].cols, parts[i].to); break;
        case VECTOR: ok = take_vector(t, name, parts[i].cols, parts[i].to); break;
        case BIAS: ok = take_f32(t, name, parts[i].cols, a->qkv_bias, parts[i].to); break;
        case HEAD_NORM: ok = !a->qk_norm || take_f32(t, name, parts[i].cols, true, parts[i].to); break;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* Some converters leave tables that can be computed; anything else would change what the model says. */
static bool
refuse_leftovers(const struct taking *t)
{
    const struct arch_source *s = t->source;
    const size_t n_computable = sizeof s->names->computable / sizeof s->names->computable[0];
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name, *table;
        size_t len;
        char shown[80];
        if (t->used[i])
            continue;
        s->tensor_name(s, i, &name, &len);
        bool computable = false;
        for (size_t k = 0; k < n_computable && (table = s->names->computable[k]) != NULL; k++)
            computable = computable || memmem(name, len, table, strlen(table)) != NULL;
        if (!computable)
            return err_set(t->err, ERR_WORK,
                           "%s: tensor '%s' is no part of a plain %s; a model that needs it is not supported", s->path,
                           printable_line(shown, sizeof shown, name, len), s->arch->hf);
    }
    return true;
}

bool
arch_read_tensors(struct model *m, const struct arch_source *s, bool tied, bool *used, struct err *err)
{
    const struct taking t = {.model = m, .source = s, .used = used, .err = err};
    struct model_desc *d = &m->desc;
    struct arch_tensor head;
    if (d->n_layers > s->n_tensors)
        return err_set(err, ERR_WORK, "%s: %" PRIu32 " layers, but only %zu tensors; %s", s->path, d->n_layers,
                       s->n_tensors, s->names->remedy);
    struct layer_desc *layers = calloc(d->n_layers, sizeof *layers);
    d->layers = layers;
    if (layers == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for %" PRIu32 " layers", s->path, d->n_layers);
    if (!take_tensor(&t, s->names->embedding, d->vocab, d->width, &d->embedding))
        return false;
    const uint64_t before = m->parameters;
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (!take_layer(&t, l, &layers[l]))
            return false;
    m->rho = (double)d->vocab * d->width / ((double)(m->parameters - before) / d->n_layers);
    if (!take_vector(&t, s->names->final_norm, d->width, &d->final_norm))
        return false;
    m->tied = tied;
    d->head = d->embedding;
    if (!tied)
        return take_tensor(&t, s->names->head, d->vocab, d->width, &d->head) && refuse_leftovers(&t);
    if (s->tensor(s, s->names->head, &head))
        used[head.index] = true; /* a copy */
    return refuse_leftovers(&t);
}
