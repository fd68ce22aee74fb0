/* The arithmetic: one matrix, and the pair that adds to it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/lora/lora_internal.h"
#include "kernels/half.h"
#include "kernels/tensor.h"

#ifdef _OPENMP
#define PARALLEL _Pragma("omp parallel for schedule(static)")
#else
#define PARALLEL
#endif

/* A row of the model's as the adapter numbers it. */
static uint32_t
row_in_adapter(const struct merging *g, const struct merge_target *t, uint32_t row)
{
    const struct arch_slice *p = t->part;
    if (t->turned > 0) {
        const uint32_t half = t->turned / 2, k = row % t->turned, head = row - k;
        const bool adjacent_here = g->model->desc.rope == ROPE_ADJACENT; /* halves there, or the other way round */
        row = head + (adjacent_here ? k / 2 + k % 2 * half : k < half ? 2 * k : 2 * (k - half) + 1);
    }
    if (p->n == 0)
        return row;
    return p->each > 0 ? row / p->each * (p->all / p->groups) + p->first + row % p->each : p->first + row;
}

float *
lora_in_f32(const struct arch_tensor *t)
{
    float *wide = malloc((size_t)t->rows * t->cols * sizeof *wide);
    if (wide != NULL)
        tensor_blocks(t->type, t->data, (size_t)t->rows * t->cols, wide);
    return wide;
}

static void
store_row(enum weight_type type, const float *x, uint32_t n, unsigned char *to)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t half = type == WEIGHT_F16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
        if (type == WEIGHT_F32)
            memcpy(to + i * sizeof *x, &x[i], sizeof *x);
        else
            memcpy(to + i * sizeof half, &half, sizeof half);
    }
}

/* W + factor B A, row by row, into memory of the model's. */
static bool
add(const struct merging *g, const struct merge_target *t, const struct lora_pair *p, enum weight_type type,
    unsigned char *to)
{
    const uint32_t cols = t->tensor->cols, rank = (uint32_t)p->a.rows;
    const float factor = (float)(g->scale * lora_file_factor(&g->file, rank));
    float *a = lora_in_f32(&p->a), *b = lora_in_f32(&p->b);
    bool ok = a != NULL && b != NULL;
    PARALLEL
    for (uint32_t r = 0; r < t->tensor->rows; r++) {
        float *x = ok ? malloc(2 * cols * sizeof *x) : NULL, *sum = x + (x != NULL ? cols : 0);
        if (x == NULL) {
            __atomic_store_n(&ok, false, __ATOMIC_RELAXED);
            continue;
        }
        const float *weights = b + (size_t)row_in_adapter(g, t, r) * rank;
        tensor_row(t->tensor, r, x);
        memset(sum, 0, cols * sizeof *sum);
        for (uint32_t k = 0; k < rank; k++)
            for (uint32_t c = 0; c < cols; c++)
                sum[c] += weights[k] * a[(size_t)k * cols + c];
        for (uint32_t c = 0; c < cols; c++)
            x[c] += factor * sum[c];
        store_row(type, x, cols, to + (size_t)r * tensor_row_bytes(type, cols));
        free(x);
    }
    free(a);
    free(b);
    return ok || err_set(g->err, ERR_WORK, "%s: out of memory merging it", g->file.path);
}

bool
lora_merge_pair(struct merging *g, const struct merge_target *t, const struct lora_pair *p, const char *stem)
{
    struct model *m = g->model;
    const enum weight_type was = t->tensor->type;
    const enum weight_type type = g->exact || was == WEIGHT_F32 ? WEIGHT_F32
                                  : was == WEIGHT_BF16          ? WEIGHT_BF16
                                                                : WEIGHT_F16;
    const uint64_t values = (uint64_t)t->tensor->rows * t->tensor->cols;
    const uint64_t rows = t->part->n > 0 ? t->part->all : t->tensor->rows;
    if (p->a.cols != t->tensor->cols || p->b.rows != rows)
        return err_set(g->err, ERR_WORK,
                       "%s: what adds to '%s' is %" PRIu64 " by %" PRIu64 ", the model's is %" PRIu64 " by %" PRIu32
                       ": it belongs to another model",
                       g->file.path, stem, p->b.rows, p->a.cols, rows, t->tensor->cols);
    unsigned char *to = model_take(m, (size_t)t->tensor->rows * tensor_row_bytes(type, t->tensor->cols));
    if (to == NULL)
        return err_set(g->err, ERR_WORK, "%s: out of memory merging it", g->file.path);
    if (!add(g, t, p, type, to))
        return false;
    m->parameters_of[was] -= values;
    m->tensors_of[was]--;
    m->parameters_of[type] += values;
    m->tensors_of[type]++;
    t->tensor->data = to;
    t->tensor->type = type;
    t->tensor->mapped = false;
    g->n++;
    g->changed += was != type;
    return true;
}
