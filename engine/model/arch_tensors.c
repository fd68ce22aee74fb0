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

/* Rows of a tensor that holds others, too; n = 0: all of it. */
struct slice_of {
    uint32_t first, n, all; /* rows, or elements of a vector; `all`: how many the tensor has */
    uint32_t by_head; /* 0; or rows of each head's part: then every (all / heads) rows begin with another head's */
    uint32_t heads;
};

static bool
found_fits(const struct taking *t, const char *name, const struct arch_tensor *found, uint32_t rows, uint32_t cols)
{
    const struct arch_source *s = t->source;
    if (found->rows == 0)
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' has more than two dimensions; %s", s->path, name,
                       s->names->remedy);
    if (found->cols != cols || found->rows != rows)
        return err_set(t->err, ERR_WORK,
                       "%s: tensor '%s' is %" PRIu64 " x %" PRIu64 ", but should be %" PRIu32 " x %" PRIu32 "; %s",
                       s->path, name, found->cols, found->rows, cols, rows, s->names->remedy);
    if (found->type == WEIGHT_TYPES)
        return err_set(t->err, ERR_WORK,
                       "%s: tensor '%s' is of type %s, which is not supported; F32, F16, BF16, Q8_0, Q4_0 to Q5_1, "
                       "Q2_K to Q6_K and MXFP4 are",
                       s->path, name, found->type_name);
    return true;
}

/* Every head's rows of `which` out of a tensor where they lie head by head, in memory of the model's. */
static const void *
gather_heads(const struct taking *t, const struct arch_tensor *found, const struct slice_of *part, size_t row_bytes)
{
    const size_t stride = part->all / part->heads, bytes = part->by_head * row_bytes;
    unsigned char *to = model_take(t->model, part->heads * bytes);
    for (uint32_t h = 0; to != NULL && h < part->heads; h++)
        memcpy(to + h * bytes, found->data + (h * stride + part->first) * row_bytes, bytes);
    if (to == NULL)
        err_set(t->err, ERR_WORK, "%s: out of memory for a tensor", t->source->path);
    return to;
}

/* A tensor, or a slice of one: rows by cols is what becomes of it. */
static bool
take_slice(const struct taking *t, const char *name, uint32_t rows, uint32_t cols, const struct slice_of *part,
           struct tensor *out)
{
    const struct arch_source *s = t->source;
    struct arch_tensor found;
    if (!s->tensor(s, name, &found))
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is missing; %s", s->path, name, s->names->remedy);
    const bool whole = part == NULL || part->n == 0, vector = rows == 1 && !whole && part->n == cols;
    if (!found_fits(t, name, &found, whole || vector ? rows : part->all, vector ? part->all : cols))
        return false;
    const uint64_t values = (uint64_t)rows * cols;
    *out = (struct tensor){.type = found.type, .rows = rows, .cols = cols};
    const size_t row_bytes = tensor_row_bytes(found.type, vector ? 1 : cols);
    if (!whole && part->by_head > 0) {
        out->data = gather_heads(t, &found, part, row_bytes);
    } else {
        found.data += whole ? 0 : part->first * row_bytes;
        out->data = aligned_data(t, &found, (size_t)values);
        out->mapped = found.mapped && out->data == found.data;
    }
    t->used[found.index] = true;
    t->model->parameters += values;
    t->model->parameters_of[out->type] += values;
    t->model->tensors_of[out->type]++;
    return out->data != NULL;
}

static bool
take_tensor(const struct taking *t, const char *name, uint32_t rows, uint32_t cols, struct tensor *out)
{
    return take_slice(t, name, rows, cols, NULL, out);
}

/* A vector, which becomes F32; `add` is added to every number. */
static bool
take_vector(const struct taking *t, const char *name, uint32_t n, const struct slice_of *part, float add,
            struct tensor *out)
{
    struct arch_tensor found;
    if (t->source->tensor(t->source, name, &found) && found.type != WEIGHT_TYPES &&
        tensor_block_values(found.type) != 1)
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is quantised; a vector has to be F32, F16 or BF16; %s",
                       t->source->path, name, t->source->names->remedy);
    if (!take_slice(t, name, 1, n, part, out))
        return false;
    if (out->type == WEIGHT_F32 && !(add > 0))
        return true;
    float *wide = model_take(t->model, n * sizeof *wide);
    if (wide == NULL)
        return err_set(t->err, ERR_WORK, "%s: out of memory for tensor '%s'", t->source->path, name);
    tensor_row(out, 0, wide);
    for (uint32_t i = 0; i < n; i++)
        wide[i] += add;
    *out = (struct tensor){.data = wide, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}

/* A norm without weights is one of ones. */
static bool
make_ones(const struct taking *t, uint32_t n, struct tensor *out)
{
    float *ones = model_take(t->model, n * sizeof *ones);
    if (ones == NULL)
        return err_set(t->err, ERR_WORK, "%s: out of memory for a norm", t->source->path);
    for (uint32_t i = 0; i < n; i++)
        ones[i] = 1;
    *out = (struct tensor){.data = ones, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}

/* ---- a layer's ---- */

static const char *
own_name(const struct arch_source *s, enum layer_tensor which, char end[LAYER_NAME_SIZE])
{
    const struct arch_rename *r = s->names->naming == LAYER_NAMED_HF ? s->arch->renames : s->arch->gguf_renames;
    for (; r != NULL && r->name != NULL; r++)
        if (r->which == which) {
            snprintf(end, LAYER_NAME_SIZE, "%s.%s", r->name,
                     layer_tensors[which].kind == LAYER_BIAS ? "bias" : "weight");
            return end;
        }
    return layer_tensor_name(end, which, s->names->naming);
}

/* Where in a fused tensor, or its bias, a layer's tensor lies; NULL: the architecture has it apart. */
static const char *
fused_name(const struct taking *t, enum layer_tensor which, struct slice_of *part)
{
    const struct arch *a = t->source->arch;
    const struct arch_fused *f = t->source->names->naming == LAYER_NAMED_HF ? &a->hf_fused : &a->gguf_fused;
    const struct model_desc *d = &t->model->desc;
    const uint32_t q = LAYER_Q(d), kv = LAYER_KV(d);
    const int third = which == LAYER_WQ || which == LAYER_BQ   ? 0
                      : which == LAYER_WK || which == LAYER_BK ? 1
                      : which == LAYER_WV || which == LAYER_BV ? 2
                                                               : -1;
    *part = (struct slice_of){0};
    if (f->qkv != NULL && third >= 0) {
        *part = (struct slice_of){third == 0   ? 0
                                  : third == 1 ? q
                                               : q + kv,
                                  third == 0 ? q : kv, q + 2 * kv, 0, d->heads};
        if (f->by_head)
            *part = (struct slice_of){(uint32_t)third * d->head_dim, q, 3 * q, d->head_dim, d->heads};
        return f->qkv;
    }
    if (f->gate_up != NULL && (which == LAYER_GATE || which == LAYER_UP)) {
        *part = (struct slice_of){which == LAYER_GATE ? 0 : d->ffn, d->ffn, 2 * d->ffn, 0, 0};
        return f->gate_up;
    }
    return NULL;
}

/* What is optional is looked for where the architecture may have it, and only there: elsewhere it is left over. */
static bool
take_of_layer(const struct taking *t, uint32_t layer, enum layer_tensor i, struct tensor *out)
{
    const struct arch_source *s = t->source;
    const uint32_t bit = 1u << i;
    const bool usual = layer_tensors[i].need != LAYER_OPTIONAL && (s->arch->lacks & bit) == 0;
    const bool needed = usual || (s->arch->needs & bit) != 0, norm = layer_tensors[i].kind == LAYER_NORM;
    struct arch_tensor found;
    struct slice_of part;
    char name[NAME_SIZE], end[LAYER_NAME_SIZE];
    uint32_t rows, cols;
    layer_tensor_shape(&t->model->desc, i, &rows, &cols);
    if (norm && layer_tensors[i].need == LAYER_USUAL && (s->arch->traits & ARCH_NORMS_OF_ONES) != 0)
        return make_ones(t, cols, out);
    const char *fused = fused_name(t, i, &part);
    if (fused != NULL)
        snprintf(name, sizeof name, "%s%" PRIu32 ".%s.%s", s->names->layer, layer, fused,
                 layer_tensors[i].kind == LAYER_BIAS ? "bias" : "weight");
    if (fused == NULL || !s->tensor(s, name, &found)) { /* some files have them apart all the same */
        part.n = 0;
        snprintf(name, sizeof name, "%s%" PRIu32 ".%s", s->names->layer, layer, own_name(s, i, end));
    }
    if (!needed && ((s->arch->may & bit) == 0 || !s->tensor(s, name, &found)))
        return true;
    if (layer_tensors[i].kind == LAYER_MATRIX)
        return take_slice(t, name, rows, cols, &part, out);
    const bool less_one = norm && s->names->naming == LAYER_NAMED_HF && (s->arch->traits & ARCH_NORMS_LESS_ONE) != 0;
    return take_vector(t, name, cols, &part, less_one ? 1 : 0, out);
}

static bool
take_layer(const struct taking *t, uint32_t layer, struct layer_desc *out)
{
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        if (!take_of_layer(t, layer, i, &out->all[i]))
            return false;
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

/* ---- all ---- */

/* A bias beside a tensor that ends in ".weight", where there is one. */
static bool
take_bias(const struct taking *t, const char *of, uint32_t n, struct tensor *out)
{
    struct arch_tensor found;
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(of) - strlen(".weight")), of);
    return !t->source->tensor(t->source, name, &found) || take_vector(t, name, n, NULL, 0, out);
}

static bool
take_final_norm(const struct taking *t)
{
    const struct arch_source *s = t->source;
    struct model_desc *d = &t->model->desc;
    if ((s->arch->traits & ARCH_NORMS_OF_ONES) != 0)
        return make_ones(t, d->width, &d->final_norm);
    const bool less_one = s->names->naming == LAYER_NAMED_HF && (s->arch->traits & ARCH_NORMS_LESS_ONE) != 0;
    return take_vector(t, s->names->final_norm, d->width, NULL, less_one ? 1 : 0, &d->final_norm) &&
           (!d->form.centred || take_bias(t, s->names->final_norm, d->width, &d->final_norm_bias));
}

bool
arch_make_layers(struct model *m, const struct arch_source *s, struct err *err)
{
    struct model_desc *d = &m->desc;
    if (d->n_layers > s->n_tensors)
        return err_set(err, ERR_WORK, "%s: %" PRIu32 " layers, but only %zu tensors; %s", s->path, d->n_layers,
                       s->n_tensors, s->names->remedy);
    struct layer_desc *layers = calloc(d->n_layers, sizeof *layers);
    d->layers = layers;
    if (layers == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for %" PRIu32 " layers", s->path, d->n_layers);
    arch_usual_layers(m, s->arch, layers);
    return true;
}

bool
arch_read_tensors(struct model *m, const struct arch_source *s, bool tied, bool *used, struct err *err)
{
    const struct taking t = {.model = m, .source = s, .used = used, .err = err};
    struct model_desc *d = &m->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* the model's own */
    struct arch_tensor head;
    if (!take_tensor(&t, s->names->embedding, d->vocab, d->width, &d->embedding))
        return false;
    const uint64_t before = m->parameters;
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (!take_layer(&t, l, &layers[l]))
            return false;
    m->rho = (double)d->vocab * d->width / ((double)(m->parameters - before) / d->n_layers);
    if (!take_final_norm(&t))
        return false;
    m->tied = tied;
    d->head = d->embedding;
    if (!tied)
        return take_tensor(&t, s->names->head, d->vocab, d->width, &d->head) &&
               take_bias(&t, s->names->head, d->vocab, &d->head_bias) && refuse_leftovers(&t);
    if (s->tensor(s, s->names->head, &head))
        used[head.index] = true; /* a copy */
    return refuse_leftovers(&t);
}
