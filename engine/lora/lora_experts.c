/* Adapters of experts: of each one's matrices as modules of their own, of the one that all rows go to, of stacks as GGUF files have
 * them, (experts, …), and of stacks as PEFT's target_parameters have them. There A's rows are an expert's after another's, (experts *
 * r, inputs), but B's columns turn from expert to expert, (outputs, r * experts); before it knew which dimension is which, PEFT had
 * inputs and outputs the other way round. What two parameters of a module have are told apart by their sizes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/lora/lora_internal.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

#define STEM_SIZE 128

static const struct arch_slice whole = {.n = 0};

static struct expert_desc *
experts_of(const struct merging *g, uint32_t layer)
{
    return (struct expert_desc *)g->model->desc.layers[layer].experts; /* the model's own */
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

/* A pair that adds to one matrix. */
static bool
merge_module(struct merging *g, uint32_t layer, const char *name, const struct arch_slice *part, struct tensor *to)
{
    char stem[STEM_SIZE];
    struct lora_pair pair;
    bool there;
    const struct merge_target t = {.tensor = to, .part = part};
    return lora_file_pair(&g->file, stem_of(g, layer, name, stem), &pair, &there, g->err) &&
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
        if (!lora_file_stack(&g->file, stem_of(g, layer, name, stem), f->n, &all, &there, g->err))
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

/* ---- parameters of PEFT's ---- */

/* What adds to gate and up, or to down, of all experts; in F32. */
struct parameter {
    bool down, turned; /* turned: A is of outputs and B of inputs */
    uint32_t experts, rank, in, out;
    float *a, *b;
};

/* Which parameter it is of; false: of none, or it can't be told. */
static bool
recognise(const struct merging *g, const struct lora_pair *p, struct parameter *out)
{
    const struct model_desc *d = &g->model->desc;
    const uint32_t ffn = d->form.experts.ffn;
    int found = 0;
    for (int down = 0; down < 2; down++)
        for (int turned = 0; turned < (g->arch->experts->crosswise ? 1 : 2); turned++) {
            const uint32_t ins = down ? ffn : d->width, outs = down ? d->width : 2 * ffn;
            if (p->a.cols != (turned ? outs : ins) || p->b.rows != (turned ? ins : outs))
                continue;
            out->down = down;
            out->turned = turned;
            out->in = ins;
            out->out = outs;
            found++;
        }
    out->experts = d->form.experts.n;
    out->rank = (uint32_t)(p->a.rows / out->experts);
    return found == 1;
}

/* A pair of one expert's matrix: row k is `first` + k * `step` of the parameter's outputs. */
static void
cut(const struct parameter *p, uint32_t e, uint32_t first, uint32_t step, uint32_t rows, float *a, float *b)
{
    const size_t all = (size_t)p->rank * p->experts;
    for (uint32_t k = 0; k < p->rank; k++) {
        const size_t of_a = (size_t)e * p->rank + k, of_b = (size_t)k * p->experts + e;
        for (uint32_t c = 0; c < p->in; c++)
            a[(size_t)k * p->in + c] = p->turned ? p->b[c * all + of_b] : p->a[of_a * p->in + c];
        for (uint32_t row = 0; row < rows; row++) {
            const size_t o = first + (size_t)row * step;
            b[(size_t)row * p->rank + k] = p->turned ? p->a[of_a * p->out + o] : p->b[o * all + of_b];
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
    if (!lora_file_parameter(&g->file, stem, g->model->desc.form.experts.n, &pair, &there, g->err))
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

bool
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
    if (g->arch->experts->stacks[0] != NULL) /* DBRX's lie otherwise */
        return true;
    arch_experts_module(g->arch, module);
    snprintf(inner, sizeof inner, "%s.base_layer", module); /* the first that was wrapped of two */
    return merge_parameter(g, layer, module, experts) && merge_parameter(g, layer, inner, experts);
}
