/* Reads a model's tensors: those of the layers, their experts and those outside the layers, and fails if any is left
 * over. The experts of a layer are stored in one tensor for each kind, or each expert in tensors of its own. Also reads
 * the numbers of experts and how rows are routed to them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch_tensors.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

#define MOST_UNITS   (1u << 20) /* widest expert */
#define USUAL_JITTER 0.01f      /* SparseMixer's */

static const struct arch_experts usual_experts = {
    .each = {"mlp.experts.%u.gate_proj.weight", "mlp.experts.%u.up_proj.weight", "mlp.experts.%u.down_proj.weight"},
    .gate_up = {"mlp.experts.gate_up_proj"},
    .down = {"mlp.experts.down_proj"},
    .shared = {"mlp.shared_expert.gate_proj.weight", "mlp.shared_expert.up_proj.weight",
               "mlp.shared_expert.down_proj.weight"}};

/* ---- numbers ---- */

bool
arch_read_experts(struct model *m, const struct arch_source *s, struct err *err)
{
    struct model_desc *d = &m->desc;
    struct experts_form *f = &d->form.experts;
    const struct arch_experts *how = s->arch->experts;
    const bool hf = s->names->naming == LAYER_NAMED_HF;
    uint32_t of_shared = 0;
    double scale = 0;
    if (!arch_read_whole(s, ARCH_EXPERTS, 0, 0, UINT32_MAX - 1, &f->n, err) || f->n == 0)
        return f->n == 0;
    if (how == NULL)
        return err_set(err, ERR_WORK,
                       "%s: has %" PRIu32 " experts, which are not supported in the architecture '%s'; %s", s->path,
                       f->n, hf ? s->arch->hf : s->arch->gguf, s->names->remedy);
    if (!arch_read_whole(s, ARCH_EXPERTS, 0, 1, EXPERTS_MOST, &f->n, err) ||
        !arch_read_whole(s, ARCH_EXPERTS_USED, UINT32_MAX, 1, f->n < EXPERTS_USED_MOST ? f->n : EXPERTS_USED_MOST,
                         &f->used, err) ||
        !arch_read_whole(s, ARCH_EXPERT_FFN, d->ffn, 1, MOST_UNITS, &f->ffn, err) ||
        !arch_read_whole(s, ARCH_SHARED_FFN, 0, 0, MOST_UNITS, &f->shared_ffn, err) ||
        !arch_read_whole(s, ARCH_SHARED_EXPERTS, 0, 0, MOST_UNITS / f->ffn, &of_shared, err) ||
        !arch_read_whole(s, ARCH_EXPERT_GROUPS, 0, 0, f->n, &f->groups, err) ||
        !arch_read_whole(s, ARCH_GROUPS_USED, f->groups, 0, f->groups, &f->groups_used, err) ||
        !arch_read_real(s, ARCH_EXPERT_SCALE, 0, &scale, err))
        return false;
    if (of_shared > 0)
        f->shared_ffn = of_shared * f->ffn;
    f->scale = (float)scale;
    f->routing = how->routing;
    f->jitter = how->routing == ROUTE_SPARSEMIXER ? USUAL_JITTER : 0;
    if (how->routing == ROUTE_SPARSEMIXER && f->used != 2)
        return err_set(err, ERR_WORK, "%s: SparseMixer chooses two experts for a row, not %" PRIu32 "; %s", s->path,
                       f->used, s->names->remedy);
    f->renormalised = hf ? how->renormalised : how->gguf_renormalised;
    const uint32_t groups = f->groups > 1 ? f->groups : 1, each = f->n / groups;
    if (f->n % groups != 0 || (groups > 1 && (each < 2 || f->groups_used * each < f->used)))
        return err_set(err, ERR_WORK,
                       "%s: %" PRIu32 " experts in %" PRIu32 " groups, of which %" PRIu32 " are chosen for %" PRIu32
                       " experts, make no sense; %s",
                       s->path, f->n, f->groups, f->groups_used, f->used, s->names->remedy);
    return true;
}

/* ---- names in folders ---- */

const char *
arch_expert_name(const struct arch *a, uint32_t e, enum expert_tensor which, char out[LAYER_NAME_SIZE])
{
    const char *name = (a->experts->each[0] != NULL ? a->experts->each : usual_experts.each)[which],
               *number = strstr(name, "%u");
    snprintf(out, LAYER_NAME_SIZE, "%.*s%" PRIu32 "%s", (int)(number - name), name, e, number + 2);
    return out;
}

/* In Granite's folders gate and up are one tensor. */
const char *
arch_shared_name(const struct arch *a, const struct model_desc *d, enum expert_tensor which, struct arch_slice *part)
{
    const char *const *names = a->experts->shared[0] != NULL ? a->experts->shared : usual_experts.shared;
    const uint32_t rows = d->form.experts.shared_ffn;
    *part = (struct arch_slice){.n = 0};
    if (which != EXPERT_DOWN && strcmp(names[EXPERT_GATE], names[EXPERT_UP]) == 0)
        *part = (struct arch_slice){.first = which == EXPERT_UP ? rows : 0, .n = rows, .all = 2 * rows};
    return names[which];
}

void
arch_experts_module(const struct arch *a, char out[ARCH_NAME_SIZE])
{
    const struct arch_experts *how = a->experts;
    const char *name = how->gate_up[1] != NULL   ? how->gate_up[1]
                       : how->gate_up[0] != NULL ? how->gate_up[0]
                                                 : usual_experts.gate_up[0];
    snprintf(out, ARCH_NAME_SIZE, "%.*s", (int)(strrchr(name, '.') - name), name);
}

/* ---- tensors ---- */

/* Returns true if the layer, counted from 0, has experts. */
static bool
arch_is_sparse(const struct arch_taking *t, uint32_t layer)
{
    struct arch_tensor found;
    char name[ARCH_NAME_SIZE];
    return t->model->desc.form.experts.n > 0 &&
           t->source->tensor(t->source, arch_layer_name(t->source, layer, LAYER_ROUTER, name), &found);
}

static const char *
full_name(const struct arch_taking *t, uint32_t layer, const char *end, char out[ARCH_NAME_SIZE])
{
    snprintf(out, ARCH_NAME_SIZE, "%s%" PRIu32 ".%s", t->source->names->layer, layer, end);
    return out;
}

/* A tensor of each expert within a stack of matrices: rows `first`, `first` + `step`, and so on of the expert's
 * matrix. */
struct stripe {
    enum expert_tensor which;
    uint32_t first, step;
};

/* Reads expert e's tensor from a stack. */
typedef bool take_part(const struct arch_taking *, const struct arch_tensor *all, uint32_t e, struct stripe,
                       struct tensor *out);

/* Points into the stack, without a copy. The stripe's rows are consecutive. */
static bool
take_stripe(const struct arch_taking *t, const struct arch_tensor *all, uint32_t e, struct stripe s, struct tensor *out)
{
    uint32_t rows, cols;
    expert_tensor_shape(&t->model->desc, e, s.which, &rows, &cols);
    *out = (struct tensor){.data = all->data +
                                   (e * (size_t)all->rows + s.first) * tensor_row_bytes(all->type, (size_t)all->cols),
                           .type = all->type,
                           .rows = rows,
                           .cols = cols,
                           .mapped = all->mapped};
    arch_count(t, out);
    return true;
}

/* Copies from a stack of (inputs, outputs): element `first` + k * `step` of every row becomes row k of the expert's
 * tensor. */
static bool
transpose_stripe(const struct arch_taking *t, const struct arch_tensor *all, uint32_t e, struct stripe s,
                 struct tensor *out)
{
    const size_t size = tensor_block_bytes(all->type);
    const unsigned char *from = all->data + e * (size_t)(all->rows * all->cols) * size;
    uint32_t rows, cols;
    expert_tensor_shape(&t->model->desc, e, s.which, &rows, &cols);
    unsigned char *to = blocks_take(&t->model->blocks, 1, (size_t)rows * cols * size);
    if (to == NULL)
        return arch_refuse(t, "out of memory for experts");
    for (uint32_t c = 0; c < cols; c++)
        for (uint32_t r = 0; r < rows; r++)
            memcpy(to + ((size_t)r * cols + c) * size,
                   from + ((size_t)c * all->cols + s.first + (size_t)r * s.step) * size, size);
    *out = (struct tensor){.data = to, .type = all->type, .rows = rows, .cols = cols};
    arch_count(t, out);
    return true;
}

/* Reads a stack that contains n tensors of each expert, one after the other, or transposed with `crosswise`. */
static bool
take_stack(const struct arch_taking *t, const char *name, bool crosswise, const struct stripe *stripes, size_t n,
           struct expert_desc *experts)
{
    const uint32_t count = t->model->desc.form.experts.n;
    take_part *const take = crosswise ? transpose_stripe : take_stripe;
    struct arch_tensor found;
    uint32_t rows, cols;
    expert_tensor_shape(&t->model->desc, 0, stripes[0].which, &rows, &cols);
    const uint64_t outputs = (uint64_t)rows * n;
    if (!t->source->tensor(t->source, name, &found))
        return arch_refuse(t, "tensor '%s' is missing; %s", name, t->source->names->remedy);
    if (found.planes == 1 && count > 1 && found.rows % count == 0) { /* a matrix of all experts' rows */
        found.planes = count;
        found.rows /= count;
    }
    if (!arch_fits(t, name, &found, count, crosswise ? cols : outputs, crosswise ? outputs : cols))
        return false;
    if (!crosswise) {
        const unsigned char *data = arch_aligned(t, &found, (size_t)(found.planes * found.rows * found.cols));
        if (data == NULL)
            return false;
        found.mapped = found.mapped && data == found.data;
        found.data = data;
    }
    t->used[found.index] = true;
    for (uint32_t e = 0; e < count; e++)
        for (size_t i = 0; i < n; i++)
            if (!take(t, &found, e, stripes[i], &experts[e].all[stripes[i].which]))
                return false;
    return true;
}

/* Reads the biases of all experts from one tensor, (experts, n * length), as F32 vectors. Succeeds if there is none. */
static bool
take_biases(const struct arch_taking *t, const char *name, const struct stripe *stripes, size_t n,
            struct expert_desc *experts)
{
    const uint32_t count = t->model->desc.form.experts.n;
    struct arch_tensor found;
    uint32_t one, length;
    expert_tensor_shape(&t->model->desc, 0, stripes[0].which, &one, &length);
    const uint32_t all = (uint32_t)n * length;
    if (!t->source->tensor(t->source, name, &found))
        return true;
    if (!arch_fits(t, name, &found, 1, count, all))
        return false;
    if (tensor_block_values(found.type) != 1)
        return arch_refuse(t, "tensor '%s' is quantised; a vector has to be F32, F16 or BF16; %s", name,
                           t->source->names->remedy);
    t->used[found.index] = true;
    const struct tensor rows = {.data = found.data, .type = found.type, .rows = count, .cols = all};
    float *row = blocks_take(&t->model->blocks, 1, all * sizeof *row),
          *values = blocks_take(&t->model->blocks, 1, (size_t)count * all * sizeof *row);
    if (row == NULL || values == NULL)
        return arch_refuse(t, "out of memory for experts");
    for (uint32_t e = 0; e < count; e++) {
        tensor_row(&rows, e, row);
        for (size_t i = 0; i < n; i++, values += length) {
            for (uint32_t k = 0; k < length; k++)
                values[k] = row[stripes[i].first + k * stripes[i].step];
            struct tensor *out = &experts[e].all[stripes[i].which];
            *out = (struct tensor){.data = values, .type = found.type, .rows = 1, .cols = length};
            arch_count(t, out);
            out->type = WEIGHT_F32;
        }
    }
    return true;
}

/* ---- experts of a layer, in GGUF files and Hugging Face folders ---- */

static bool
take_gguf(const struct arch_taking *t, uint32_t layer, struct expert_desc *experts)
{
    const struct model_desc *d = &t->model->desc;
    const struct experts_form *f = &d->form.experts;
    const struct stripe gate_up[] = {{EXPERT_GATE, 0, 1}, {EXPERT_UP, f->ffn, 1}};
    char name[ARCH_NAME_SIZE], end[LAYER_NAME_SIZE];
    struct arch_tensor found;
    const bool fused = t->source->tensor(t->source, full_name(t, layer, "ffn_gate_up_exps.weight", name), &found);
    if (fused && !take_stack(t, name, false, gate_up, 2, experts))
        return false;
    for (enum expert_tensor i = 0; i < EXPERT_TENSORS; i++) {
        const struct stripe whole = {i, 0, 1};
        const bool matrix = i < EXPERT_MATRICES;
        uint32_t rows, cols;
        if (fused && (i == EXPERT_GATE || i == EXPERT_UP))
            continue;
        expert_tensor_shape(d, 0, i, &rows, &cols);
        snprintf(end, sizeof end, "%s_exps.%s", expert_tensor_names[i], matrix ? "weight" : "bias");
        full_name(t, layer, end, name);
        if (!(matrix ? take_stack(t, name, false, &whole, 1, experts) : take_biases(t, name, &whole, 1, experts)))
            return false;
        if (!matrix || f->shared_ffn == 0)
            continue;
        expert_tensor_shape(d, f->n, i, &rows, &cols);
        snprintf(end, sizeof end, "%s_shexp.weight", expert_tensor_names[i]);
        if (!arch_take_tensor(t, full_name(t, layer, end, name), rows, cols, &experts[f->n].all[i]))
            return false;
    }
    return true;
}

/* Reads the shared expert. */
static bool
take_shared(const struct arch_taking *t, uint32_t layer, struct expert_desc *out)
{
    const struct model_desc *d = &t->model->desc;
    char name[ARCH_NAME_SIZE];
    for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++) {
        struct arch_slice part;
        uint32_t rows, cols;
        expert_tensor_shape(d, d->form.experts.n, i, &rows, &cols);
        full_name(t, layer, arch_shared_name(t->source->arch, d, i, &part), name);
        if (!arch_take_slice(t, name, rows, cols, &part, &out->all[i]))
            return false;
    }
    return true;
}

/* Reads gate, up and down from one stack each. */
static bool
take_stacks(const struct arch_taking *t, uint32_t layer, const char *const names[3], struct expert_desc *experts)
{
    char name[ARCH_NAME_SIZE];
    for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++) {
        const struct stripe whole = {i, 0, 1};
        if (!take_stack(t, full_name(t, layer, names[i], name), i == EXPERT_DOWN, &whole, 1, experts))
            return false;
    }
    return true;
}

static bool
take_each(const struct arch_taking *t, uint32_t layer, struct expert_desc *experts)
{
    const struct model_desc *d = &t->model->desc;
    char name[ARCH_NAME_SIZE], end[LAYER_NAME_SIZE];
    for (uint32_t e = 0; e < d->form.experts.n; e++)
        for (enum expert_tensor i = 0; i < EXPERT_MATRICES; i++) {
            uint32_t rows, cols;
            expert_tensor_shape(d, e, i, &rows, &cols);
            arch_expert_name(t->source->arch, e, i, end);
            if (!arch_take_tensor(t, full_name(t, layer, end, name), rows, cols, &experts[e].all[i]))
                return false;
        }
    return true;
}

static bool
take_hf(const struct arch_taking *t, uint32_t layer, struct expert_desc *experts)
{
    const struct arch_experts *how = t->source->arch->experts;
    const uint32_t ffn = t->model->desc.form.experts.ffn, step = how->crosswise ? 2 : 1;
    struct arch_tensor found;
    char name[ARCH_NAME_SIZE];
    if (how->stacks[0] != NULL)
        return take_stacks(t, layer, how->stacks, experts);
    const bool own = how->gate_up[0] != NULL;
    const char *const *gate_up_names = own ? how->gate_up : usual_experts.gate_up, *const *downs =
                                                                                       own ? how->down
                                                                                           : usual_experts.down;
    bool there = t->source->tensor(t->source, full_name(t, layer, gate_up_names[0], name), &found);
    const bool later = !there && gate_up_names[1] != NULL &&
                       t->source->tensor(t->source, full_name(t, layer, gate_up_names[1], name), &found);
    full_name(t, layer, gate_up_names[later], name);
    there = there || later;
    if (!there && !own)
        return take_each(t, layer, experts);
    const bool crosswise =
        how->crosswise && !(there && tensor_block_values(found.type) >
                                         1); /* quantised stacks are (outputs, inputs), as blocks run along inputs */
    const struct stripe gate_up[] = {{EXPERT_GATE, 0, crosswise ? 2 : 1},
                                     {EXPERT_UP, crosswise ? 1 : ffn, crosswise ? 2 : 1}},
                        biases[] = {{EXPERT_BGATE, 0, step}, {EXPERT_BUP, how->crosswise ? 1 : ffn, step}},
                        down = {EXPERT_DOWN, 0, 1}, down_bias = {EXPERT_BDOWN, 0, 1};
    if (!take_stack(t, name, crosswise, gate_up, 2, experts))
        return false;
    full_name(t, layer, downs[later], name);
    if (!take_stack(t, name, crosswise, &down, 1, experts))
        return false;
    if (how->gate_up_bias == NULL)
        return true;
    return take_biases(t, full_name(t, layer, how->gate_up_bias, name), biases, 2, experts) &&
           take_biases(t, full_name(t, layer, how->down_bias, name), &down_bias, 1, experts);
}

static bool
arch_take_experts(const struct arch_taking *t, uint32_t layer, struct layer_desc *out)
{
    const struct model_desc *d = &t->model->desc;
    const bool hf = t->source->names->naming == LAYER_NAMED_HF;
    const uint32_t n = experts_listed(d);
    struct expert_desc *experts = blocks_take(&t->model->blocks, 1, n * sizeof *experts);
    if (experts == NULL)
        return arch_refuse(t, "out of memory for %" PRIu32 " experts", n);
    memset(experts, 0, n * sizeof *experts);
    out->experts = experts;
    if (!hf)
        return take_gguf(t, layer, experts);
    return take_hf(t, layer, experts) &&
           (d->form.experts.shared_ffn == 0 || take_shared(t, layer, &experts[d->form.experts.n]));
}

/* ---- tensors of a layer ---- */

/* The same for the fused tensors of recurrent layers; those of gated delta nets are in groups by key head. */
static const char *
fused_recurrent(const struct arch_fused *f, const struct recurrent_form *d, enum layer_tensor which,
                struct arch_slice *part)
{
    const uint32_t each = d->key_heads > 0 ? d->value_heads / d->key_heads : 0, k = d->key_dim, v = each * d->value_dim;
    const uint32_t values = recurrent_values(d);
    if (f->recurrent != NULL && (which == LAYER_RECURRENT_QKV || which == LAYER_RECURRENT_Z ||
                                 which == LAYER_RECURRENT_B || which == LAYER_RECURRENT_A)) {
        const uint32_t channels = recurrent_channels(d), first = d->kind == RECURRENCE_CONV ? values : 0;
        const uint32_t last = d->kind == RECURRENCE_CONV ? 0 : d->value_heads;
        *part = (struct arch_slice){.n = values, .all = first + values + channels + last};
        if (which == LAYER_RECURRENT_Z)
            part->first = first;
        if (which == LAYER_RECURRENT_QKV)
            part->first = first + values, part->n = channels;
        if (which == LAYER_RECURRENT_A)
            part->first = first + values + channels, part->n = last;
        return f->recurrent;
    }
    if (f->qkvz != NULL && (which == LAYER_RECURRENT_QKV || which == LAYER_RECURRENT_Z)) {
        *part = (struct arch_slice){.all = d->key_heads * (2 * k + 2 * v), .groups = d->key_heads};
        part->first = which == LAYER_RECURRENT_QKV ? 0 : 2 * k + v;
        part->each = which == LAYER_RECURRENT_QKV ? k : v;
        part->n = d->key_heads * v;
        if (which == LAYER_RECURRENT_QKV) {
            part->n = recurrent_channels(d);
            part->then[0] = (struct arch_span){k, k};
            part->then[1] = (struct arch_span){2 * k, v};
        }
        return f->qkvz;
    }
    if (f->ba != NULL && (which == LAYER_RECURRENT_B || which == LAYER_RECURRENT_A)) {
        *part = (struct arch_slice){.first = which == LAYER_RECURRENT_A ? each : 0,
                                    .n = d->value_heads,
                                    .all = 2 * d->value_heads,
                                    .each = each,
                                    .groups = d->key_heads};
        return f->ba;
    }
    return NULL;
}

/* Returns the name of the fused tensor, or bias, that contains a layer's tensor, and its rows there. Returns NULL if
 * the architecture does not fuse the tensor. */
static const char *
fused_name(const struct arch *a, enum layer_naming naming, const struct model_desc *d, enum layer_tensor which,
           struct arch_slice *part) /* layers with fused tensors have the model's numbers */
{
    const struct arch_fused *f = naming == LAYER_NAMED_HF ? &a->hf_fused : &a->gguf_fused;
    const uint32_t q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    const int third = which == LAYER_WQ || which == LAYER_BQ   ? 0
                      : which == LAYER_WK || which == LAYER_BK ? 1
                      : which == LAYER_WV || which == LAYER_BV ? 2
                                                               : -1;
    *part = (struct arch_slice){0};
    if (f->qkv != NULL && third >= 0) {
        const uint32_t groups = f->by_group ? d->kv_heads : 1, at = (third > 0 ? q : 0) + (third > 1 ? kv : 0);
        const uint32_t n = third == 0 ? q : kv;
        *part = (struct arch_slice){.first = at / groups, .n = n, .all = q + 2 * kv, .groups = groups};
        part->each = f->by_group ? n / groups : 0;
        return f->qkv;
    }
    if (f->gate_up != NULL && (which == LAYER_GATE || which == LAYER_UP)) {
        *part = (struct arch_slice){.first = which == LAYER_GATE ? 0 : d->ffn, .n = d->ffn, .all = 2 * d->ffn};
        return f->gate_up;
    }
    return fused_recurrent(f, &d->form.recurrent, which, part);
}

size_t
arch_stems(const struct arch *a, enum layer_naming naming, const struct model_desc *d, enum layer_tensor which,
           char names[ARCH_STEMS][LAYER_NAME_SIZE], struct arch_slice parts[ARCH_STEMS])
{
    const struct layer_tensor_info *info = &layer_tensors[which];
    const char *fused = fused_name(a, naming, d, which, &parts[0]), *usual = info->names[naming];
    const size_t before = fused != NULL;
    size_t n = before;
    snprintf(names[0], LAYER_NAME_SIZE, "%s", fused != NULL ? fused : "");
    for (; n < ARCH_STEMS && arch_own_name(a, naming, info->names[LAYER_NAMED_GGUF], n - before, names[n]); n++)
        parts[n] = (struct arch_slice){.n = 0};
    if (n == before && (before == 0 || strcmp(fused, usual) != 0)) {
        parts[n] = (struct arch_slice){.n = 0};
        snprintf(names[n++], LAYER_NAME_SIZE, "%s", usual);
    }
    return n;
}

/* Per-layer inputs are tensors of the whole model; that of the projection contains the rows of one layer after the
 * other. */
static const char *
inputs_name(const struct arch_source *s, const char *hf, const char *gguf, char out[ARCH_NAME_SIZE])
{
    const bool is_hf = s->names->naming == LAYER_NAMED_HF;
    const int before = is_hf ? (int)(strlen(s->names->layer) - strlen("layers.")) : 0;
    snprintf(out, ARCH_NAME_SIZE, "%.*s%s.weight", before, s->names->layer, is_hf ? hf : gguf);
    return out;
}

static bool
take_inputs_of_layer(const struct arch_taking *t, uint32_t layer, struct tensor *out)
{
    const struct model_desc *d = &t->model->desc;
    const uint32_t n = d->form.per_layer;
    const struct arch_slice part = {.first = layer * n, .n = n, .all = d->n_layers * n};
    char name[ARCH_NAME_SIZE];
    inputs_name(t->source, "per_layer_model_projection", "per_layer_model_proj", name);
    return arch_take_slice(t, name, n, d->width, &part, out);
}

static bool
take_inputs(const struct arch_taking *t)
{
    struct model_desc *d = &t->model->desc;
    const struct arch_source *s = t->source;
    const uint32_t n = d->form.per_layer;
    char name[ARCH_NAME_SIZE];
    if (n == 0)
        return true;
    if (n > INT32_MAX / d->n_layers)
        return arch_refuse(t, "per-layer inputs of %" PRIu32 " numbers make no sense; %s", n, s->names->remedy);
    return arch_take_tensor(t, inputs_name(s, "embed_tokens_per_layer", "per_layer_token_embd", name), d->vocab,
                            d->n_layers * n, &d->input_embedding) &&
           arch_take_vector(t, inputs_name(s, "per_layer_projection_norm", "per_layer_proj_norm", name), n, NULL, 0,
                            &d->input_norm);
}

/* The factors of the router's input are read as a norm's weights: they include 1 / sqrt(width). */
static bool
scale_router(const struct arch_taking *t, struct tensor *norm)
{
    if (!tensor_present(norm))
        return true;
    float *own = blocks_take(&t->model->blocks, 1, norm->cols * sizeof *own);
    if (own == NULL)
        return arch_refuse(t, "out of memory for a router");
    tensor_row(norm, 0, own);
    for (uint32_t i = 0; i < norm->cols; i++)
        own[i] /= sqrtf((float)norm->cols);
    norm->data = own;
    norm->mapped = false;
    return true;
}

/* Folders have the logarithms of decays. */
static bool
negate_exponentials(const struct arch_taking *t, struct tensor *out)
{
    float *own = blocks_take(&t->model->blocks, 1, out->cols * sizeof *own);
    if (own == NULL)
        return arch_refuse(t, "out of memory for a tensor");
    for (uint32_t i = 0; i < out->cols; i++)
        own[i] = (float)-exp((double)((const float *)out->data)[i]);
    out->data = own;
    out->mapped = false;
    return true;
}

/* Names in OLMo hybrid's folders, where q, k and v have matrices and convolutions of their own. */
static const char *const separate[2][3] = {
    {"linear_attn.q_proj.weight", "linear_attn.k_proj.weight", "linear_attn.v_proj.weight"},
    {"linear_attn.q_conv1d.weight", "linear_attn.k_conv1d.weight", "linear_attn.v_conv1d.weight"}};

static bool
is_separate(const struct arch_taking *t, uint32_t layer, enum layer_tensor which)
{
    struct arch_tensor found;
    char name[ARCH_NAME_SIZE];
    const bool conv = which == LAYER_RECURRENT_CONV;
    return (conv || which == LAYER_RECURRENT_QKV) &&
           t->source->tensor(t->source, full_name(t, layer, separate[conv][0], name), &found);
}

/* Copies the separate tensors into one. */
static bool
take_separate(const struct arch_taking *t, uint32_t layer, enum layer_tensor which, struct tensor *out)
{
    const struct recurrent_form *f = &t->model->desc.form.recurrent;
    const bool conv = which == LAYER_RECURRENT_CONV;
    struct tensor parts[3];
    char name[ARCH_NAME_SIZE];
    size_t bytes[3];
    for (size_t i = 0; i < 3; i++) {
        const uint32_t rows = i < 2 ? f->key_heads * f->key_dim : recurrent_values(f);
        full_name(t, layer, separate[conv][i], name);
        if (!(conv ? arch_take_vector(t, name, rows * f->taps, NULL, 0, &parts[i])
                   : arch_take_tensor(t, name, rows, t->model->desc.width, &parts[i])))
            return false;
        if (parts[i].type != parts[0].type)
            return arch_refuse(t, "tensor '%s' is of another type than that of q; %s", name, t->source->names->remedy);
        bytes[i] = parts[i].rows * tensor_row_bytes(parts[i].type, parts[i].cols);
    }
    unsigned char *all = blocks_take(&t->model->blocks, 1, bytes[0] + bytes[1] + bytes[2]), *at = all;
    if (all == NULL)
        return arch_refuse(t, "out of memory for a tensor");
    *out = (struct tensor){.data = all, .type = parts[0].type};
    layer_tensor_shape(&t->model->desc, layer + 1, which, &out->rows, &out->cols);
    for (size_t i = 0; i < 3; at += bytes[i++])
        memcpy(at, parts[i].data, bytes[i]);
    return true;
}

/* An optional tensor is read only if the architecture allows it. In other architectures it stays unused, so
 * arch_refuse_leftovers() fails. */
static bool
take_of_layer(const struct arch_taking *t, uint32_t layer, enum layer_tensor i, struct tensor *out)
{
    const struct arch_source *s = t->source;
    const layer_set_t bit = 1ull << i;
    const bool usual = layer_tensors[i].need != LAYER_OPTIONAL && (s->arch->lacks & bit) == 0;
    const bool needed = usual || (s->arch->needs & bit) != 0 || i == LAYER_ROUTER,
               norm = layer_tensors[i].kind == LAYER_NORM;
    struct arch_tensor found;
    struct arch_slice part;
    char name[ARCH_NAME_SIZE];
    uint32_t rows, cols;
    const struct model_desc *d = &t->model->desc;
    const uint32_t shaped = layer < d->n_layers ? layer : d->n_layers - 1; /* an MTP layer has the last one's shape */
    layer_tensor_shape(d, shaped + 1, i, &rows, &cols);
    if (i == LAYER_INPUT)
        return take_inputs_of_layer(t, layer, out);
    if (d->layers[shaped].form.kv_layer > 0 && (LAYER_KEYS_VALUES & bit) != 0) {
        if (s->tensor(s, arch_layer_name(s, layer, i, name), &found)) /* some files have unused ones */
            t->used[found.index] = true;
        return true;
    }
    if (norm && layer_tensors[i].need == LAYER_USUAL && (s->arch->flags & ARCH_NORMS_OF_ONES) != 0)
        return arch_make_ones(t, cols, out);
    if (is_separate(t, layer, i))
        return take_separate(t, layer, i, out);
    const char *fused = fused_name(s->arch, s->names->naming, d, i, &part);
    if (fused != NULL)
        snprintf(name, sizeof name, "%s%" PRIu32 ".%s.%s", s->names->layer, layer, fused,
                 layer_tensors[i].kind == LAYER_BIAS ? "bias" : "weight");
    if (fused == NULL || !s->tensor(s, name, &found)) { /* some files have separate tensors all the same */
        part.n = 0;
        fused = NULL;
        arch_layer_name(s, layer, i, name);
    }
    if (!needed &&
        ((s->arch->may & bit) == 0 || !s->tensor(s, name, &found) || (fused == NULL && t->used[found.index])))
        return true;
    if (layer_tensors[i].kind == LAYER_MATRIX) {
        part.columns = s->names->naming == LAYER_NAMED_HF && (s->arch->flags & ARCH_COLUMNS) != 0;
        return arch_take_slice(t, name, rows, cols, &part, out);
    }
    const bool less_one = norm && s->names->naming == LAYER_NAMED_HF && (s->arch->flags & ARCH_NORMS_LESS_ONE) != 0 &&
                          ((LAYER_OF_RECURRENT | 1ull << LAYER_SHARED_MIX) & bit) == 0;
    return arch_take_vector(t, name, cols, &part, less_one ? 1 : 0, out) &&
           (i != LAYER_RECURRENT_DECAY || s->names->naming != LAYER_NAMED_HF || negate_exponentials(t, out));
}

bool
arch_take_layer(const struct arch_taking *t, uint32_t layer, struct layer_desc *out)
{
    const bool sparse = arch_is_sparse(t, layer);
    const bool beside = (t->source->arch->needs & LAYER_BESIDE) != 0;
    layer_set_t without =
        layer_others(&t->model->desc.form, &out->form) | (t->model->desc.form.per_layer > 0 ? 0 : LAYER_INPUTS);
    if ((t->source->arch->flags & ARCH_NORMS_BY_KIND) != 0)
        without |= out->form.kind == LAYER_RECURRENT ? LAYER_POST_NORMS : LAYER_PRE_NORMS;
    if (sparse && !beside)
        without |= LAYER_MLP;
    else if (!sparse)
        without |= LAYER_ROUTING;
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        if ((without >> i & 1u) == 0 && !take_of_layer(t, layer, i, &out->all[i]))
            return false;
    return scale_router(t, &out->router_norm) && (!sparse || arch_take_experts(t, layer, out));
}

bool
arch_looks_ahead(const struct arch_taking *t, const char *name, size_t len)
{
    const char *before = t->source->names->layer;
    const size_t n = strlen(before);
    if ((t->source->arch->flags & ARCH_LOOKS_AHEAD) == 0)
        return false;
    return memmem(name, len, ".mtp_", 5) != NULL || (len > 4 && strncmp(name, "mtp.", 4) == 0) ||
           (len > n && strncmp(name, before, n) == 0 && strtoul(name + n, NULL, 10) >= t->model->desc.n_layers);
}

static bool
is_computable(const struct arch_source *s, const char *name, size_t len)
{
    const size_t n = sizeof s->names->computable / sizeof s->names->computable[0];
    const char *table;
    for (size_t k = 0; k < n && (table = s->names->computable[k]) != NULL; k++)
        if (memmem(name, len, table, strlen(table)) != NULL)
            return true;
    return false;
}

bool
arch_next_unused(const struct arch_taking *t, size_t *i, const char **name, size_t *len)
{
    const struct arch_source *s = t->source;
    while (*i < s->n_tensors) {
        const size_t at = (*i)++;
        if (t->used[at])
            continue;
        s->tensor_name(s, at, name, len);
        if (!is_computable(s, *name, *len))
            return true;
    }
    return false;
}

bool
arch_refuse_leftovers(const struct arch_taking *t)
{
    const char *name;
    char shown[80];
    for (size_t i = 0, len; arch_next_unused(t, &i, &name, &len);)
        if (!arch_looks_ahead(t, name, len))
            return arch_refuse(t, "tensor '%s' does not belong to a plain %s; models that need it are not supported",
                               printable_line(shown, sizeof shown, name, len), t->source->arch->hf);
    return true;
}

/* ---- all tensors ---- */

/* Reads the bias that belongs to a tensor with a name in ".weight", if there is one. */
static bool
take_bias(const struct arch_taking *t, const char *of, uint32_t n, struct tensor *out)
{
    struct arch_tensor found;
    char name[ARCH_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(of) - strlen(".weight")), of);
    return !t->source->tensor(t->source, name, &found) || arch_take_vector(t, name, n, NULL, 0, out);
}

/* Reads learned positions as F32, one row for each position of the training context. */
static bool
take_positions(const struct arch_taking *t)
{
    struct model *m = t->model;
    struct tensor found;
    if ((t->source->arch->flags & ARCH_LEARNED) == 0)
        return true;
    if (!arch_take_tensor(t, t->source->names->positions, m->ctx_train, m->desc.width, &found))
        return false;
    float *wide = blocks_take(&m->blocks, 1, (size_t)found.rows * found.cols * sizeof *wide);
    if (wide == NULL)
        return arch_refuse(t, "out of memory for the embedding of positions");
    for (uint32_t r = 0; r < found.rows; r++)
        tensor_row(&found, r, wide + (size_t)r * found.cols);
    m->desc.positions = (struct tensor){.data = wide, .type = WEIGHT_F32, .rows = found.rows, .cols = found.cols};
    return true;
}

static bool
take_embedding_norm(const struct arch_taking *t)
{
    struct model_desc *d = &t->model->desc;
    const char *name = t->source->names->embedding_norm;
    return (t->source->arch->flags & ARCH_EMBEDDING_NORM) == 0 ||
           (arch_take_vector(t, name, d->width, NULL, 0, &d->embedding_norm) &&
            take_bias(t, name, d->width, &d->embedding_norm_bias));
}

bool
arch_take_norm(const struct arch_taking *t, const char *name, uint32_t n, struct tensor *out)
{
    const struct arch_source *s = t->source;
    const bool less_one = s->names->naming == LAYER_NAMED_HF && (s->arch->flags & ARCH_NORMS_LESS_ONE) != 0;
    return arch_take_vector(t, name, n, NULL, less_one ? 1 : 0, out);
}

static bool
take_final_norm(const struct arch_taking *t)
{
    const struct arch_source *s = t->source;
    struct model_desc *d = &t->model->desc;
    if ((s->arch->flags & ARCH_NORMS_OF_ONES) != 0)
        return arch_make_ones(t, d->width, &d->final_norm);
    return arch_take_norm(t, s->names->final_norm, d->width, &d->final_norm) &&
           (!d->form.layer_norm || take_bias(t, s->names->final_norm, d->width, &d->final_norm_bias));
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
arch_take_model(struct model *m, const struct arch_source *s, bool tied, bool *used, struct err *err)
{
    const struct arch_taking t = {.model = m, .source = s, .used = used, .err = err};
    struct model_desc *d = &m->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* allocated by arch_make_layers(), so it is writable */
    struct arch_tensor head;
    if (!arch_take_tensor(&t, s->names->embedding, d->vocab, d->width, &d->embedding) || !take_positions(&t) ||
        !take_embedding_norm(&t) || !take_inputs(&t))
        return false;
    const uint64_t before = m->parameters;
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (!arch_take_layer(&t, l, &layers[l]))
            return false;
    const uint64_t active = m->parameters - before - model_idle_parameters(m);
    m->rho = (double)d->vocab * d->width / ((double)active / d->n_layers);
    if (!take_final_norm(&t))
        return false;
    m->tied = tied;
    d->head = d->embedding;
    if (!tied && !(arch_take_tensor(&t, s->names->head, d->vocab, d->width, &d->head) &&
                   take_bias(&t, s->names->head, d->vocab, &d->head_bias)))
        return false;
    if (tied && s->tensor(s, s->names->head, &head))
        used[head.index] = true; /* a copy of the embedding */
    return true;
}
