/* A model's tensors: found by name, checked in shape and type, and none left over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/model/arch.h"
#include "kernels/tensor.h"

#define NAME_SIZE 96

struct taking {
    struct model *model;
    const struct arch_source *source;
    bool *used; /* (n_tensors) */
    struct err *err;
};

/* Where a file doesn't align a tensor even to its elements, a copy that is. */
static const void *
aligned_data(const struct taking *t, const struct arch_tensor *found, size_t elements)
{
    const size_t size = tensor_block_values(found->type) == 1 ? tensor_block_bytes(found->type) : 1;
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

/* A vector, which becomes F32. */
static bool
take_vector(const struct taking *t, const char *name, uint32_t n, struct tensor *out)
{
    if (!take_tensor(t, name, 1, n, out))
        return false;
    if (tensor_block_values(out->type) != 1)
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is quantised; a vector has to be F32, F16 or BF16; %s",
                       t->source->path, name, t->source->names->remedy);
    if (out->type == WEIGHT_F32)
        return true;
    float *wide = model_take(t->model, n * sizeof *wide);
    if (wide == NULL)
        return err_set(t->err, ERR_WORK, "%s: out of memory for tensor '%s'", t->source->path, name);
    tensor_row(out, 0, wide);
    *out = (struct tensor){.data = wide, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}

/* What is optional is looked for where the architecture may have it, and only there: elsewhere it is left over. */
static bool
take_layer(const struct taking *t, uint32_t layer, struct layer_desc *out)
{
    const struct arch_source *s = t->source;
    struct arch_tensor found;
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        const bool needed = layer_tensors[i].need != LAYER_OPTIONAL || (s->arch->needs >> i & 1u) != 0;
        char name[NAME_SIZE], end[LAYER_NAME_SIZE];
        uint32_t rows, cols;
        snprintf(name, sizeof name, "%s%" PRIu32 ".%s", s->names->layer, layer,
                 layer_tensor_name(end, i, s->names->naming));
        if (!needed && ((s->arch->may >> i & 1u) == 0 || !s->tensor(s, name, &found)))
            continue;
        layer_tensor_shape(&t->model->desc, i, &rows, &cols);
        if (!(layer_tensors[i].kind == LAYER_MATRIX ? take_tensor(t, name, rows, cols, &out->all[i])
                                                    : take_vector(t, name, cols, &out->all[i])))
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
