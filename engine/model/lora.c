#include "engine/model/lora.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/printable.h"
#include "engine/model/lora_internal.h"
#include "engine/model/model_hash.h"
#include "kernels/half.h"
#include "kernels/tensor.h"

#ifdef _OPENMP
#define PARALLEL _Pragma("omp parallel for schedule(static)")
#else
#define PARALLEL
#endif

#define STEM_SIZE 128

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

static float *
in_f32(const struct arch_tensor *t)
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
        const uint32_t bits = bits_of_float(x[i]);
        const uint16_t half =
            type == WEIGHT_F16 ? f32_to_f16(x[i]) : (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
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
    float *a = in_f32(&p->a), *b = in_f32(&p->b);
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

/* ---- which matrices ---- */

static bool
merge_of_layer(struct merging *g, uint32_t layer, enum layer_tensor which)
{
    struct model_desc *d = &g->model->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* the model's own */
    const char *names[ARCH_STEMS], *prefix = g->file.naming == LAYER_NAMED_GGUF ? "blk." : arch_hf_names(g->arch).layer;
    struct arch_slice parts[ARCH_STEMS];
    const bool otherwise = g->arch->gguf_rope != g->arch->hf_rope && /* of converters that permute rows */
                           (g->model->file != NULL) != (g->file.naming == LAYER_NAMED_GGUF) && g->arch->gguf != NULL;
    struct merge_target t = {.tensor = &layers[layer].all[which]};
    if (!tensor_present(t.tensor) || layer_tensors[which].kind != LAYER_MATRIX)
        return true;
    t.turned = otherwise && (which == LAYER_WQ || which == LAYER_WK) ? d->head_dim : 0;
    const size_t n = arch_stems(g->arch, g->file.naming, d, which, names, parts);
    for (size_t i = 0; i < n; i++) {
        char stem[STEM_SIZE];
        struct lora_pair pair;
        bool there;
        snprintf(stem, sizeof stem, "%s%" PRIu32 ".%s", prefix, layer, names[i]);
        t.part = &parts[i];
        if (!lora_file_pair(&g->file, stem, &pair, &there, g->err) || (there && !lora_merge_pair(g, &t, &pair, stem)))
            return false;
    }
    return true;
}

static bool
merge_head(struct merging *g)
{
    struct model_desc *d = &g->model->desc;
    const char *name = arch_hf_names(g->arch).head;
    char stem[STEM_SIZE] = "output";
    if (g->file.naming == LAYER_NAMED_HF)
        snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen(".weight")), name);
    const struct arch_slice whole = {.n = 0};
    const struct merge_target t = {.tensor = &d->head, .part = &whole};
    struct lora_pair pair;
    bool there;
    if (!lora_file_pair(&g->file, stem, &pair, &there, g->err))
        return false;
    if (there && g->model->tied)
        return err_set(g->err, ERR_WORK, "%s: adds to the head, which is the embedding here; merge it with PEFT",
                       g->file.path);
    return !there || lora_merge_pair(g, &t, &pair, stem);
}

static bool
merge_all(struct merging *g)
{
    char shown[96];
    for (uint32_t l = 0; l < g->model->desc.n_layers; l++) {
        for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
            if (!merge_of_layer(g, l, i))
                return false;
        if (!lora_merge_experts(g, l))
            return false;
    }
    if (!merge_head(g))
        return false;
    const char *left = lora_file_leftover(&g->file, shown, sizeof shown);
    if (left != NULL)
        return err_set(g->err, ERR_WORK,
                       "%s: '%s' adds to nothing in this %s: it belongs to another model, or is more than LoRA",
                       g->file.path, left, g->arch->hf);
    return g->n > 0 || err_set(g->err, ERR_WORK, "%s: is an adapter without any weights", g->file.path);
}

/* ---- what was asked for ---- */

/* Splits "FILE:SCALE" unless there is a file of that whole name. */
static bool
read_asked(const char *asked, char path[512], double *scale, struct err *err)
{
    const char *colon = strrchr(asked, ':');
    char *end;
    *scale = 1;
    size_t n = strlen(asked);
    if (colon != NULL && access(asked, F_OK) != 0) {
        *scale = strtod(colon + 1, &end);
        n = (size_t)(colon - asked);
        if (end == colon + 1 || *end != '\0' || !(*scale >= -100 && *scale <= 100))
            return err_set(err, ERR_USAGE, "--lora %s: '%s' is no scale from -100 to 100", asked, colon + 1);
    }
    if (n == 0 || n >= 512)
        return err_set(err, ERR_USAGE, "--lora %s: a file, or a file and its scale: FILE:0.5", asked);
    snprintf(path, 512, "%.*s", (int)n, asked);
    return true;
}

bool
lora_merge(struct model *m, const char *asked, bool exact, struct err *err)
{
    struct merging g = {.model = m, .exact = exact, .err = err};
    char path[512], shown[160];
    if (m->file == NULL && m->folder == NULL)
        return err_set(err, ERR_USAGE, "--lora %s: weights that are made up (--synth) take no adapter", asked);
    if (!read_asked(asked, path, &g.scale, err))
        return false;
    g.arch = m->file != NULL ? arch_of_gguf(m->path, slice_of(m->arch), err) : arch_of_hf(m->path, m->arch, err);
    if (g.arch == NULL || !lora_file_open(&g.file, path, g.arch, err))
        return false;
    bool ok = merge_all(&g);
    m->hash = hash_bytes(hash_bytes(m->hash, &g.file.hash, sizeof g.file.hash), &g.scale, sizeof g.scale);
    if (ok) {
        const size_t used = strlen(m->merged);
        snprintf(m->merged + used, sizeof m->merged - used, "%s%s x %g: %" PRIu32 " matrices", used > 0 ? "; " : "",
                 printable_line(shown, sizeof shown, path, strlen(path)), g.scale, g.n);
        m->merged_otherwise += g.changed;
    }
    lora_file_close(&g.file);
    return ok;
}
