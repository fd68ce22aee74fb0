#include "engine/arch/arch_take.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/tensor.h"

/* Where a file doesn't align a tensor even to its elements, a copy that is. */
const void *
arch_aligned(const struct arch_taking *t, const struct arch_tensor *found, size_t elements)
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

bool
arch_fits(const struct arch_taking *t, const char *name, const struct arch_tensor *found, uint64_t planes,
          uint64_t rows, uint64_t cols)
{
    const struct arch_source *s = t->source;
    const uint64_t has = found->planes > 0 ? found->planes : 1;
    char many[32] = "";
    if (found->rows == 0 || (planes == 1 && has > 1))
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' has more than two dimensions; %s", s->path, name,
                       s->names->remedy);
    if (planes > 1)
        snprintf(many, sizeof many, " x %" PRIu64, planes);
    if (found->cols != cols || found->rows != rows || has != planes)
        return err_set(t->err, ERR_WORK,
                       "%s: tensor '%s' is %" PRIu64 " x %" PRIu64 ", but should be %" PRIu64 " x %" PRIu64 "%s; %s",
                       s->path, name, found->cols, found->rows, cols, rows, many, s->names->remedy);
    if (found->type == WEIGHT_TYPES)
        return err_set(t->err, ERR_WORK,
                       "%s: tensor '%s' is of type %s, which is not supported; F32, F16, BF16, Q8_0, Q4_0 to Q5_1, "
                       "Q2_K to Q6_K, MXFP4, IQ1 to IQ4, TQ1_0 and TQ2_0 are",
                       s->path, name, found->type_name);
    return true;
}

void
arch_count(const struct arch_taking *t, const struct tensor *taken)
{
    const uint64_t values = (uint64_t)taken->rows * taken->cols;
    t->model->parameters += values;
    t->model->parameters_of[taken->type] += values;
    t->model->tensors_of[taken->type]++;
}

/* Of several names that the architecture has for it the first that is there. */
const char *
arch_layer_name(const struct arch_source *s, uint32_t layer, enum layer_tensor which, char name[ARCH_NAME_SIZE])
{
    const struct arch_rename *r = s->names->naming == LAYER_NAMED_HF ? s->arch->renames : s->arch->gguf_renames;
    char end[LAYER_NAME_SIZE];
    struct arch_tensor found;
    bool renamed = false, there = false;
    for (; r != NULL && r->name != NULL && !there; r++)
        if (r->which == which) {
            snprintf(name, ARCH_NAME_SIZE, "%s%" PRIu32 ".%s", s->names->layer, layer,
                     layer_tensor_whole_name(end, r->name, layer_tensors[which].kind));
            renamed = true;
            there = s->tensor(s, name, &found);
        }
    if (!renamed)
        snprintf(name, ARCH_NAME_SIZE, "%s%" PRIu32 ".%s", s->names->layer, layer,
                 layer_tensor_name(end, which, s->names->naming));
    return name;
}

/* Every group's rows out of a tensor where they lie group by group, in memory of the model's. */
static const void *
gather_groups(const struct arch_taking *t, const struct arch_tensor *found, const struct arch_slice *part,
              size_t row_bytes)
{
    const size_t stride = part->all / part->groups, bytes = part->each * row_bytes;
    unsigned char *to = model_take(t->model, part->groups * bytes);
    for (uint32_t g = 0; to != NULL && g < part->groups; g++)
        memcpy(to + g * bytes, found->data + (g * stride + part->first) * row_bytes, bytes);
    if (to == NULL)
        err_set(t->err, ERR_WORK, "%s: out of memory for a tensor", t->source->path);
    return to;
}

/* Columns of a tensor as rows, in memory of the model's. */
static const void *
turn_over(const struct arch_taking *t, const char *name, const struct arch_tensor *found, const struct arch_slice *part,
          uint32_t rows, uint32_t cols)
{
    if (found->type >= WEIGHT_TYPES || tensor_block_values(found->type) != 1) {
        err_set(t->err, ERR_WORK, "%s: tensor '%s' is of type %s, and lies transposed; F32, F16 and BF16 can",
                t->source->path, name, found->type_name);
        return NULL;
    }
    const size_t size = tensor_block_bytes(found->type), all = (size_t)found->cols;
    unsigned char *to = model_take(t->model, (size_t)rows * cols * size);
    for (size_t c = 0; to != NULL && c < cols; c++)
        for (size_t r = 0; r < rows; r++)
            memcpy(to + (r * cols + c) * size, found->data + (c * all + part->first + r) * size, size);
    if (to == NULL)
        err_set(t->err, ERR_WORK, "%s: out of memory for a tensor", t->source->path);
    return to;
}

/* A tensor, or a slice of one: rows by cols is what becomes of it. */
bool
arch_take_slice(const struct arch_taking *t, const char *name, uint32_t rows, uint32_t cols,
                const struct arch_slice *part, struct tensor *out)
{
    const struct arch_source *s = t->source;
    struct arch_tensor found;
    if (!s->tensor(s, name, &found))
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is missing; %s", s->path, name, s->names->remedy);
    const bool whole = part == NULL || part->n == 0, vector = rows == 1 && !whole && part->n == cols;
    const bool columns = part != NULL && part->columns;
    const uint32_t there = whole || vector ? rows : part->all, across = vector ? part->all : cols;
    if (!arch_fits(t, name, &found, 1, columns ? across : there, columns ? there : across))
        return false;
    const uint64_t values = (uint64_t)rows * cols;
    *out = (struct tensor){.type = found.type, .rows = rows, .cols = cols};
    const size_t row_bytes = tensor_row_bytes(found.type, vector ? 1 : cols);
    if (columns) {
        out->data = turn_over(t, name, &found, part, rows, cols);
    } else if (!whole && part->each > 0) {
        out->data = gather_groups(t, &found, part, row_bytes);
    } else {
        found.data += whole ? 0 : part->first * row_bytes;
        out->data = arch_aligned(t, &found, (size_t)values);
        out->mapped = found.mapped && out->data == found.data;
    }
    t->used[found.index] = true;
    arch_count(t, out);
    return out->data != NULL;
}

bool
arch_take_tensor(const struct arch_taking *t, const char *name, uint32_t rows, uint32_t cols, struct tensor *out)
{
    return arch_take_slice(t, name, rows, cols, NULL, out);
}

/* A vector, which becomes F32; `add` is added to every number. */
bool
arch_take_vector(const struct arch_taking *t, const char *name, uint32_t n, const struct arch_slice *part, float add,
                 struct tensor *out)
{
    struct arch_tensor found;
    if (t->source->tensor(t->source, name, &found) && found.type != WEIGHT_TYPES &&
        tensor_block_values(found.type) != 1)
        return err_set(t->err, ERR_WORK, "%s: tensor '%s' is quantised; a vector has to be F32, F16 or BF16; %s",
                       t->source->path, name, t->source->names->remedy);
    if (!arch_take_slice(t, name, 1, n, part, out))
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
bool
arch_make_ones(const struct arch_taking *t, uint32_t n, struct tensor *out)
{
    float *ones = model_take(t->model, n * sizeof *ones);
    if (ones == NULL)
        return err_set(t->err, ERR_WORK, "%s: out of memory for a norm", t->source->path);
    for (uint32_t i = 0; i < n; i++)
        ones[i] = 1;
    *out = (struct tensor){.data = ones, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}
