#include "engine/model/lora/lora.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "engine/model/lora/lora_file.h"
#include "engine/model/model.h"
#include "kernels/experts.h"
#include "kernels/half.h"
#include "kernels/openmp.h"
#include "kernels/tensor.h"

struct merging {
    struct model *model;
    const struct arch *arch;
    struct lora_file file;
    double scale;
    bool exact;
    uint32_t n, changed; /* matrices that were merged, and those whose type changed */
    struct err *err;
};

/* A matrix of the model, and the rows of B that belong to it. */
struct merge_target {
    struct tensor *tensor;
    const struct arch_slice *part;
    uint32_t transposed; /* head dimension if RoPE's pairs are ordered differently in the adapter; else 0 */
};

#define STEM_SIZE 128

/* ---- one matrix ---- */

/* Converts a row of the model's matrix to a row of B. */
static uint32_t
row_in_adapter(const struct merging *g, const struct merge_target *t, uint32_t row)
{
    const struct arch_slice *p = t->part;
    if (t->transposed > 0) {
        const uint32_t half = t->transposed / 2, k = row % t->transposed, head = row - k;
        const bool adjacent_here =
            g->model->desc.rope == ROPE_ADJACENT; /* then the adapter has halves; otherwise the reverse */
        row = head + (adjacent_here ? k / 2 + k % 2 * half : k < half ? 2 * k : 2 * (k - half) + 1);
    }
    if (p->n == 0)
        return row;
    return p->each > 0 ? row / p->each * (p->all / p->groups) + p->first + row % p->each : p->first + row;
}

/* Returns the matrix in F32, (rows, cols). The caller frees it. NULL if out of memory. */
static float *
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

/* Computes W + factor B A row by row into `to`, (rows, cols) of `type`. Fails if out of memory. */
static bool
add(const struct merging *g, const struct merge_target *t, const struct lora_pair *p, enum weight_type type,
    unsigned char *to)
{
    const uint32_t cols = t->tensor->cols, rank = (uint32_t)p->a.rows;
    const float factor = (float)(g->scale * lora_file_factor(&g->file, rank));
    float *a = lora_in_f32(&p->a), *b = lora_in_f32(&p->b);
    bool ok = a != NULL && b != NULL;
    PARALLEL(omp parallel for schedule(static))
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

/* Merges a pair into a matrix. `stem` is the tensor's name for messages. Fails if the sizes differ or if out of
 * memory. */
static bool
lora_merge_pair(struct merging *g, const struct merge_target *t, const struct lora_pair *p, const char *stem)
{
    struct model *m = g->model;
    const enum weight_type was = t->tensor->type;
    const enum weight_type type = g->exact || was == WEIGHT_F32 ? WEIGHT_F32
                                  : was == WEIGHT_BF16          ? WEIGHT_BF16
                                                                : WEIGHT_F16;
    const uint64_t rows = t->part->n > 0 ? t->part->all : t->tensor->rows;
    if (p->a.cols != t->tensor->cols || p->b.rows != rows)
        return err_set(g->err, ERR_WORK,
                       "%s: what adds to '%s' is %" PRIu64 " by %" PRIu64 ", the model's is %" PRIu64 " by %" PRIu32
                       ": it belongs to another model",
                       g->file.path, stem, p->b.rows, p->a.cols, rows, t->tensor->cols);
    unsigned char *to = blocks_take(&m->blocks, 1, (size_t)t->tensor->rows * tensor_row_bytes(type, t->tensor->cols));
    if (to == NULL)
        return err_set(g->err, ERR_WORK, "%s: out of memory merging it", g->file.path);
    if (!add(g, t, p, type, to))
        return false;
    model_replace(m, t->tensor, to, type);
    g->n++;
    g->changed += was != type;
    return true;
}

/* Adapters of experts have four forms: modules of each expert, modules of the shared expert, GGUF's stacks, (experts,
 * …), and the stacks of PEFT's target_parameters. In the last form A contains the rows of one expert after another's,
 * (experts * r, inputs), but B's columns alternate between experts, (outputs, r * experts). Older versions of PEFT
 * exchanged inputs and outputs. The two parameters of a module are distinguished by their sizes. */

static const struct arch_slice whole = {.n = 0};

static struct expert_desc *
experts_of(const struct merging *g, uint32_t layer)
{
    return (struct expert_desc *)g->model->desc.layers[layer].experts; /* allocated with the model, so it is writable */
}

static const char *
stem_of(const struct merging *g, uint32_t layer, const char *name, char out[STEM_SIZE])
{
    const bool gguf = g->file.naming == LAYER_NAMED_GGUF;
    const size_t n = strlen(name), end = strlen(".weight");
    const bool ends = n > end && strcmp(name + n - end, ".weight") == 0;
    snprintf(out, STEM_SIZE, "%s%" PRIu32 ".%.*s", gguf ? "blk." : arch_hf_names(g->arch).layer, layer,
             (int)(ends ? n - end : n), name);
    return out;
}

/* Merges the pair of one module into its matrix, if the adapter has one. */
static bool
merge_module(struct merging *g, uint32_t layer, const char *name, const struct arch_slice *part, struct tensor *to)
{
    char stem[STEM_SIZE];
    struct lora_pair pair;
    bool there;
    const struct merge_target t = {.tensor = to, .part = part};
    return lora_file_pair(&g->file, stem_of(g, layer, name, stem), 1, 1, &pair, &there, g->err) &&
           (!there || lora_merge_pair(g, &t, &pair, stem));
}

static bool
merge_modules(struct merging *g, uint32_t layer, struct expert_desc *experts)
{
    const struct model_desc *d = &g->model->desc;
    const struct experts_form *f = &d->form.experts;
    char name[LAYER_NAME_SIZE];
    for (uint32_t e = 0; e < f->n; e++)
        for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++)
            if (!merge_module(g, layer, arch_expert_name(g->arch, e, i, name), &whole, &experts[e].all[i]))
                return false;
    for (enum expert_tensor i = 0; i < EXPERT_MATRICES && f->shared_ffn > 0; i++) {
        struct arch_slice part;
        const char *shared = arch_shared_name(g->arch, d, i, &part);
        if (!merge_module(g, layer, shared, &part, &experts[f->n].all[i]))
            return false;
    }
    return true;
}

/* ---- stacks of GGUF files ---- */

static struct arch_tensor
plane_of(const struct arch_tensor *t, uint32_t e)
{
    struct arch_tensor one = *t;
    one.data += e * (size_t)t->rows * tensor_row_bytes(t->type, (size_t)t->cols);
    one.planes = 1;
    return one;
}

static bool
merge_stacks(struct merging *g, uint32_t layer, struct expert_desc *experts)
{
    const struct experts_form *f = &g->model->desc.form.experts;
    for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++) {
        char name[ARCH_NAME_SIZE], stem[STEM_SIZE];
        struct lora_pair all;
        bool there;
        snprintf(name, sizeof name, "%s_exps", expert_tensor_names[i]);
        if (!lora_file_pair(&g->file, stem_of(g, layer, name, stem), f->n, 1, &all, &there, g->err))
            return false;
        for (uint32_t e = 0; e < f->n && there; e++) {
            const struct lora_pair pair = {plane_of(&all.a, e), plane_of(&all.b, e)};
            const struct merge_target t = {.tensor = &experts[e].all[i], .part = &whole};
            if (!lora_merge_pair(g, &t, &pair, stem))
                return false;
        }
        snprintf(name, sizeof name, "%s_shexp", expert_tensor_names[i]);
        if (f->shared_ffn > 0 && !merge_module(g, layer, name, &whole, &experts[f->n].all[i]))
            return false;
    }
    return true;
}

/* ---- PEFT's target_parameters ---- */

/* The pair for gate and up, or for down, of all experts, in F32. */
struct parameter {
    bool down, transposed; /* turned: A has the outputs and B the inputs */
    uint32_t experts, rank, in, out;
    float *a, *b;
};

/* Finds the parameter that a pair belongs to by its sizes. Returns false if none or more than one fits. */
static bool
recognise(const struct merging *g, const struct lora_pair *p, struct parameter *out)
{
    const struct model_desc *d = &g->model->desc;
    const uint32_t ffn = d->form.experts.ffn;
    int found = 0;
    for (int down = 0; down < 2; down++)
        for (int transposed = 0; transposed < (g->arch->experts->crosswise ? 1 : 2); transposed++) {
            const uint32_t ins = down ? ffn : d->width, outs = down ? d->width : 2 * ffn;
            if (p->a.cols != (transposed ? outs : ins) || p->b.rows != (transposed ? ins : outs))
                continue;
            out->down = down;
            out->transposed = transposed;
            out->in = ins;
            out->out = outs;
            found++;
        }
    out->experts = d->form.experts.n;
    out->rank = (uint32_t)(p->a.rows / out->experts);
    return found == 1;
}

/* Extracts the pair of one expert's matrix. Row k of b is output `first` + k * `step` of the parameter. */
static void
cut(const struct parameter *p, uint32_t e, uint32_t first, uint32_t step, uint32_t rows, float *a, float *b)
{
    const size_t all = (size_t)p->rank * p->experts;
    for (uint32_t k = 0; k < p->rank; k++) {
        const size_t of_a = (size_t)e * p->rank + k, of_b = (size_t)k * p->experts + e;
        for (uint32_t c = 0; c < p->in; c++)
            a[(size_t)k * p->in + c] = p->transposed ? p->b[c * all + of_b] : p->a[of_a * p->in + c];
        for (uint32_t row = 0; row < rows; row++) {
            const size_t o = first + (size_t)row * step;
            b[(size_t)row * p->rank + k] = p->transposed ? p->a[of_a * p->out + o] : p->b[o * all + of_b];
        }
    }
}

static bool
merge_cut(struct merging *g, const struct parameter *p, const char *stem, struct expert_desc *experts)
{
    const bool crosswise = g->arch->experts->crosswise;
    const uint32_t rows = p->down ? p->out : p->out / 2;
    float *a = malloc((size_t)p->rank * p->in * sizeof *a), *b = malloc((size_t)rows * p->rank * sizeof *b);
    const struct lora_pair pair = {
        .a = {.data = (const unsigned char *)a, .type = WEIGHT_F32, .planes = 1, .rows = p->rank, .cols = p->in},
        .b = {.data = (const unsigned char *)b, .type = WEIGHT_F32, .planes = 1, .rows = rows, .cols = p->rank}};
    bool ok = (a != NULL && b != NULL) || err_set(g->err, ERR_WORK, "%s: out of memory merging it", g->file.path);
    for (uint32_t e = 0; e < p->experts && ok; e++)
        for (int i = 0; i < (p->down ? 1 : 2) && ok; i++) {
            const enum expert_tensor which = p->down ? EXPERT_DOWN : i == 0 ? EXPERT_GATE : EXPERT_UP;
            const struct merge_target t = {.tensor = &experts[e].all[which], .part = &whole};
            cut(p, e, i == 0 ? 0 : crosswise ? 1 : rows, crosswise && !p->down ? 2 : 1, rows, a, b);
            ok = lora_merge_pair(g, &t, &pair, stem);
        }
    free(a);
    free(b);
    return ok;
}

static bool
merge_parameter(struct merging *g, uint32_t layer, const char *module, struct expert_desc *experts)
{
    char stem[STEM_SIZE];
    struct lora_pair pair;
    struct parameter p = {.down = false};
    bool there;
    stem_of(g, layer, module, stem);
    if (!lora_file_pair(&g->file, stem, 1, g->model->desc.form.experts.n, &pair, &there, g->err))
        return false;
    if (!there)
        return true;
    if (!recognise(g, &pair, &p))
        return err_set(g->err, ERR_WORK,
                       "%s: what adds to '%s' is %" PRIu64 " by %" PRIu64
                       ", which is of no parameter, or of more than one; merge it with PEFT",
                       g->file.path, stem, pair.b.rows, pair.a.cols);
    p.a = lora_in_f32(&pair.a);
    p.b = lora_in_f32(&pair.b);
    const bool ok = p.a != NULL && p.b != NULL
                        ? merge_cut(g, &p, stem, experts)
                        : err_set(g->err, ERR_WORK, "%s: out of memory merging it", g->file.path);
    free(p.a);
    free(p.b);
    return ok;
}

/* Merges the adapter's pairs for a layer's experts. Layers count from 0. Does nothing if the layer has no experts. */
static bool
lora_merge_experts(struct merging *g, uint32_t layer)
{
    struct expert_desc *experts = experts_of(g, layer);
    char module[ARCH_NAME_SIZE], inner[ARCH_NAME_SIZE + 16];
    if (experts == NULL)
        return true;
    if (g->file.naming == LAYER_NAMED_GGUF)
        return merge_stacks(g, layer, experts);
    if (!merge_modules(g, layer, experts))
        return false;
    if (g->arch->experts->stacks[0] != NULL) /* DBRX's stacks have another layout */
        return true;
    arch_experts_module(g->arch, module);
    snprintf(inner, sizeof inner, "%s.base_layer", module); /* PEFT wraps a module twice for two parameters */
    return merge_parameter(g, layer, module, experts) && merge_parameter(g, layer, inner, experts);
}

/* ---- all matrices ---- */

static bool
merge_of_layer(struct merging *g, uint32_t layer, enum layer_tensor which)
{
    struct model_desc *d = &g->model->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* allocated with the model, so it is writable */
    const struct arch_names usual = arch_hf_names(g->arch);
    const char *prefix = g->file.naming == LAYER_NAMED_GGUF ? "blk." : usual.layer;
    char names[ARCH_STEMS][LAYER_NAME_SIZE];
    struct arch_slice parts[ARCH_STEMS];
    const bool other_format = (g->model->file != NULL) != (g->file.naming == LAYER_NAMED_GGUF) && g->arch->gguf != NULL;
    /* Converters to GGUF permute rows of Q and K, and value heads of recurrent layers. */
    const bool otherwise = other_format && (g->arch->flags & ARCH_GGUF_ADJACENT) != 0;
    const bool permuted =
        other_format && (g->arch->flags & ARCH_RECURRENT_TILED) != 0 && (1ull << which & LAYER_OF_RECURRENT) != 0;
    struct merge_target t = {.tensor = &layers[layer].all[which]};
    if (!tensor_present(t.tensor) || layer_tensors[which].kind != LAYER_MATRIX)
        return true;
    t.transposed = otherwise && (which == LAYER_WQ || which == LAYER_WK) ? d->head_dim : 0;
    const size_t n = arch_stems(g->arch, g->file.naming, d, which, names, parts);
    for (size_t i = 0; i < n; i++) {
        char stem[STEM_SIZE];
        struct lora_pair pair;
        bool there;
        snprintf(stem, sizeof stem, "%s%" PRIu32 ".%.*s", prefix, layer, LAYER_NAME_SIZE - 1, names[i]);
        t.part = &parts[i];
        if (!lora_file_pair(&g->file, stem, 1, 1, &pair, &there, g->err))
            return false;
        if (there && permuted)
            return err_set(g->err, ERR_WORK,
                           "%s: '%s' is of a recurrent layer, whose heads have another order in GGUF files; convert "
                           "the adapter to the model's format",
                           g->file.path, stem);
        if (there && !lora_merge_pair(g, &t, &pair, stem))
            return false;
    }
    return true;
}

static bool
merge_head(struct merging *g)
{
    struct model_desc *d = &g->model->desc;
    const struct arch_names usual = arch_hf_names(g->arch);
    char stem[STEM_SIZE] = "output";
    if (g->file.naming == LAYER_NAMED_HF)
        snprintf(stem, sizeof stem, "%.*s", (int)(strlen(usual.head) - strlen(".weight")), usual.head);
    const struct merge_target t = {.tensor = &d->head, .part = &whole};
    struct lora_pair pair;
    bool there;
    if (!lora_file_pair(&g->file, stem, 1, 1, &pair, &there, g->err))
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
    if (left != NULL && strstr(left, ".base_layer.") != NULL)
        return err_set(g->err, ERR_WORK,
                       "%s: '%s' is a layer of the model itself, saved whole beside what adds to it, as PEFT does for "
                       "a resized vocabulary; that is not supported: merge it with PEFT",
                       g->file.path, left);
    if (left != NULL && strstr(left, ".linear_attn.") != NULL && g->model->desc.form.recurrent.value_heads > 0)
        return err_set(g->err, ERR_WORK,
                       "%s: '%s' adds to a part of what is one tensor of recurrent layers here; merge it with PEFT",
                       g->file.path, left);
    if (left != NULL)
        return err_set(g->err, ERR_WORK,
                       "%s: '%s' adds to nothing in this %s: it belongs to another model, or is more than LoRA",
                       g->file.path, left, g->arch->hf);
    return g->n > 0 || err_set(g->err, ERR_WORK, "%s: is an adapter without any weights", g->file.path);
}

/* ---- the option --lora ---- */

/* Splits "FILE:SCALE", unless a file has the whole argument as its name. The scale is 1 if it is missing. */
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
        snprintf(m->merged + used, sizeof m->merged - used, "%s%s x %g: %" PRIu32 " matri%s", used > 0 ? "; " : "",
                 printable_line(shown, sizeof shown, path, strlen(path)), g.scale, g.n, g.n == 1 ? "x" : "ces");
        m->merged_otherwise += g.changed;
    }
    lora_file_close(&g.file);
    return ok;
}
