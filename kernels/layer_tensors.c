#include "kernels/layer_tensors.h"

#include <inttypes.h>

#include "kernels/backend.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

#define MOST_LAYERS 4096u

const struct layer_tensor_info layer_tensors[LAYER_TENSORS] = {
#define INFO(kind, NAME, need, gguf, hf)                                                                               \
    [LAYER_##NAME] = {LAYER_##kind, LAYER_##need, {[LAYER_NAMED_GGUF] = gguf, [LAYER_NAMED_HF] = hf}},
#define MATRIX(NAME, field, need, rows, cols, gguf, hf) INFO(MATRIX, NAME, need, gguf, hf)
#define NORM(NAME, field, need, rows, cols, gguf, hf)   INFO(NORM, NAME, need, gguf, hf)
#define BIAS(NAME, field, need, rows, cols, gguf, hf)   INFO(BIAS, NAME, need, gguf, hf)
    FOR_LAYER_TENSORS(MATRIX, NORM, BIAS)};

const char *
layer_tensor_name(char out[LAYER_NAME_SIZE], enum layer_tensor which, enum layer_naming naming)
{
    const struct layer_tensor_info *t = &layer_tensors[which];
    return layer_tensor_whole_name(out, t->names[naming], t->kind);
}

const char *
layer_tensor_whole_name(char out[LAYER_NAME_SIZE], const char *name, enum layer_tensor_kind kind)
{
    if (name[0] == '=')
        snprintf(out, LAYER_NAME_SIZE, "%s", name + 1);
    else
        snprintf(out, LAYER_NAME_SIZE, "%s.%s", name, kind == LAYER_BIAS ? "bias" : "weight");
    return out;
}

void
layer_tensor_shape(const struct model_desc *d, uint32_t layer, enum layer_tensor which, uint32_t *rows, uint32_t *cols)
{
    const struct layer_form usual = {.rope = LAYER_ROPE_GLOBAL};
    const struct layer_sizes n = layer_sizes(d, d->layers != NULL ? &d->layers[layer - 1].form : &usual);
    switch (which) {
#define SHAPE(NAME, field, need, n_rows, n_cols, ...)                                                                  \
    case LAYER_##NAME: *rows = n_rows, *cols = n_cols; break;
        FOR_LAYER_TENSORS(SHAPE, SHAPE, SHAPE)
    case LAYER_TENSORS: *rows = *cols = 0;
    }
}

layer_set_t
layer_others(const struct model_form *model, const struct layer_form *f)
{
    static const layer_set_t own[RECURRENCES] = {LAYER_OF_DELTA, LAYER_OF_MAMBA, LAYER_OF_CONV};
    return f->kind == LAYER_RECURRENT ? LAYER_OF_ATTENTION | (LAYER_OF_RECURRENT & ~own[model->recurrent.kind])
                                      : LAYER_OF_RECURRENT;
}

const char *
layer_recurrences(const struct recurrent_form *f)
{
    static const char *const names[RECURRENCES] = {"gated delta nets", "Mamba-2 mixers", "short convolutions"};
    return names[f->kind];
}

/* ---- checks ---- */

static bool
numbers_fit(const struct model_desc *d, struct err *err)
{
    if (d->n_layers == 0 || d->n_layers > MOST_LAYERS || d->width == 0 || d->width > INT32_MAX || d->heads == 0 ||
        d->kv_heads == 0 || d->heads % d->kv_heads != 0 || d->head_dim == 0 || d->head_dim % 2 != 0 || d->ffn == 0 ||
        d->ffn > INT32_MAX || d->vocab == 0 || d->vocab > INT32_MAX || d->rope_dims > d->head_dim ||
        d->rope_dims % 2 != 0 || (uint64_t)d->heads * d->head_dim > INT32_MAX ||
        (d->rope_dims > 0 && !(d->rope_base > 0)) || d->layers == NULL)
        return err_set(err, ERR_WORK,
                       "%" PRIu32 " layers of width %" PRIu32 ", %" PRIu32 " heads of %" PRIu32 " on %" PRIu32
                       ", FFN %" PRIu32 ", vocabulary %" PRIu32
                       ": no model of this shape can be run; the file is damaged",
                       d->n_layers, d->width, d->heads, d->head_dim, d->kv_heads, d->ffn, d->vocab);
    return true;
}

/* A vector has rows = 1 and must be unquantised data of a file. */
static bool
tensor_fits(const struct tensor *t, const char *name, uint32_t layer, bool vector, uint32_t rows, uint32_t cols,
            struct err *err)
{
    if (tensor_present(t) && tensor_possible(t) && t->rows == rows && t->cols == cols &&
        (!vector || (t->data != NULL && tensor_block_values(t->type) == 1)))
        return true;
    return err_set(err, ERR_WORK,
                   "%s of layer %" PRIu32 " is %" PRIu32 " by %" PRIu32 " (%s), not %" PRIu32 " by %" PRIu32
                   "%s: the model file is damaged or of a kind this program does not know",
                   name, layer, t->rows, t->cols, tensor_type_name(t->type), rows, cols,
                   vector ? " plain numbers" : "");
}

/* Checks the layer's own numbers, and that another layer's keys and values have the shape that it reads. */
static bool
form_fits(const struct model_desc *d, uint32_t layer, struct err *err)
{
    const struct layer_desc *l = &d->layers[layer - 1];
    const struct layer_sizes n = layer_sizes(d, &l->form);
    const uint32_t local = d->form.local_dims > 0 ? d->form.local_dims : d->rope_dims;
    const uint32_t rotated = l->form.rope == LAYER_ROPE_LOCAL ? local : d->rope_dims;
    bool ok = n.kv_heads <= d->kv_heads && n.head_dim <= d->head_dim && n.ffn <= d->ffn && d->heads % n.kv_heads == 0 &&
              n.head_dim % 2 == 0 && local % 2 == 0 && (l->form.rope == LAYER_ROPE_NONE || rotated <= n.head_dim);
    if (l->form.kv_layer > 0 && ok) {
        const struct layer_form *from = &d->layers[l->form.kv_layer - 1].form;
        ok = l->form.kv_layer < layer && from->kv_layer == 0 && layer_sizes(d, from).kv == n.kv &&
             layer_sizes(d, from).head_dim == n.head_dim;
    }
    if (l->experts != NULL)
        ok = ok && tensor_present(&l->up) == tensor_present(&l->down);
    return ok || err_set(err, ERR_WORK,
                         "layer %" PRIu32 " has a shape that does not fit the model's; the file is damaged", layer);
}

static bool
recurrent_fits(const struct recurrent_form *f, struct err *err)
{
    const bool keyed = f->key_heads > 0 && f->value_heads % f->key_heads == 0 && f->key_dim > 0;
    return (f->value_heads > 0 && f->value_dim > 0 && f->taps >= 2 && f->taps <= RECURRENT_TAPS_MOST &&
            (f->kind == RECURRENCE_CONV ? f->key_heads == 0 && f->key_dim == 0 : keyed) &&
            2 * (uint64_t)f->key_heads * f->key_dim + (uint64_t)f->value_heads * f->value_dim <= INT32_MAX / 16) ||
           err_set(err, ERR_WORK,
                   "%" PRIu32 " heads of %" PRIu32 " on %" PRIu32 " of %" PRIu32 " in %s, convolution over %" PRIu32
                   ": no model of this shape can be run; the file is damaged",
                   f->value_heads, f->value_dim, f->key_heads, f->key_dim, layer_recurrences(f), f->taps);
}

static bool
layer_fits(const struct model_desc *d, layer_set_t optional, uint32_t layer, struct err *err)
{
    const bool sparse = d->layers[layer - 1].experts != NULL;
    const struct layer_form *form = &d->layers[layer - 1].form;
    const bool recurrent = form->kind == LAYER_RECURRENT;
    const layer_set_t others = layer_others(&d->form, form);
    if (!form_fits(d, layer, err) || (sparse && !experts_fit(d, layer, err)))
        return false;
    if (recurrent && (optional & LAYER_OF_RECURRENT) != LAYER_OF_RECURRENT)
        return err_set(err, ERR_WORK,
                       "layer %" PRIu32 " is one of the model's %s, which only the CPU computes; use --backend cpu",
                       layer, layer_recurrences(&d->form.recurrent));
    if (recurrent && !recurrent_fits(&d->form.recurrent, err))
        return false;
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        const struct tensor *t = &d->layers[layer - 1].all[i];
        const struct layer_tensor_info *info = &layer_tensors[i];
        uint32_t rows, cols;
        layer_tensor_shape(d, layer, i, &rows, &cols);
        if (info->need == LAYER_OPTIONAL && tensor_present(t) && (optional >> i & 1u) == 0)
            return err_set(err, ERR_WORK, "%s of layer %" PRIu32 " is not known to this backend; choose another one",
                           info->names[LAYER_NAMED_GGUF] + (info->names[LAYER_NAMED_GGUF][0] == '='), layer);
        if ((sparse && (LAYER_MLP >> i & 1u) != 0 && !tensor_present(t)) || (others >> i & 1u) != 0)
            continue;
        const bool needed = info->need == LAYER_NEEDED || (sparse && i == LAYER_ROUTER) ||
                            (recurrent && i != LAYER_RECURRENT_CONV_B && (LAYER_OF_RECURRENT >> i & 1u) != 0) ||
                            (i == LAYER_WK && form->kv_layer == 0) ||
                            (d->form.per_layer > 0 && (LAYER_INPUTS >> i & 1u) != 0);
        if ((needed || tensor_present(t)) &&
            !tensor_fits(t, info->names[LAYER_NAMED_GGUF], layer, info->kind != LAYER_MATRIX, rows, cols, err))
            return false;
    }
    return true;
}

static bool
block_drafter_fits(const struct model_desc *d, struct err *err)
{
    const struct drafter_desc *f = d->drafter;
    const bool projects = tensor_present(&f->projection), biases = tensor_present(&f->markov_w1);
    const uint32_t rank = biases ? f->markov_w1.cols : 0;
    bool ok = f->block <= VERIFY_NODES && f->block > !f->from_anchor && f->mask >= 0 && (uint32_t)f->mask < d->vocab &&
              f->features > 0 && f->features <= INT32_MAX && (projects || f->features == d->width) &&
              (!tensor_present(&f->norm) || (f->parts > 0 && f->features % f->parts == 0)) && d->form.per_layer == 0 &&
              !tensor_present(&f->join) && biases == tensor_present(&f->markov_w2) && rank <= INT32_MAX - d->width;
    for (uint32_t l = 0; l < d->n_layers; l++)
        ok = ok && d->layers[l].form.kind == LAYER_ATTENTION && d->layers[l].experts == NULL;
    if (!ok)
        return err_set(err, ERR_WORK,
                       "a block drafter of %" PRIu32 " layers with blocks of %" PRIu32 " that reads %" PRIu32
                       " numbers cannot be run",
                       d->n_layers, f->block, f->features);
    const struct tensor *c = &f->confidence;
    if (tensor_present(c) && (c->data == NULL || c->type != WEIGHT_F32 || c->rows != 1 ||
                              (c->cols != d->width && c->cols != d->width + rank)))
        return err_set(err, ERR_WORK, "the confidence head reads %" PRIu32 " numbers, not %" PRIu32 " or %" PRIu32,
                       c->cols, d->width, d->width + rank);
    return (!tensor_present(&f->norm) || tensor_fits(&f->norm, "norm of features", 0, true, 1, f->features, err)) &&
           (!projects || tensor_fits(&f->projection, "fc", 0, false, d->width, f->features, err)) &&
           tensor_fits(&f->feature_norm, "hidden_norm", 0, true, 1, d->width, err) &&
           (!biases || (tensor_fits(&f->markov_w1, "markov_w1", 0, false, d->vocab, rank, err) &&
                        tensor_fits(&f->markov_w2, "markov_w2", 0, false, d->head.rows, rank, err)));
}

static bool
drafter_fits(const struct model_desc *d, struct err *err)
{
    const struct drafter_desc *f = d->drafter;
    if (f == NULL)
        return true;
    if (f->block > 0)
        return block_drafter_fits(d, err);
    const bool joins = tensor_present(&f->join), projects = tensor_present(&f->projection);
    if (d->n_layers != 1 || f->features == 0 || f->features > INT32_MAX || d->width > INT32_MAX / 2 ||
        (tensor_present(&f->norm) && (f->parts == 0 || f->features % f->parts != 0)) ||
        (!projects && f->features != d->width))
        return err_set(err, ERR_WORK, "a drafter of %" PRIu32 " layers that reads %" PRIu32 " numbers cannot be run",
                       d->n_layers, f->features);
    return (!tensor_present(&f->norm) || tensor_fits(&f->norm, "norm of features", 0, true, 1, f->features, err)) &&
           (!projects || tensor_fits(&f->projection, "fc", 0, false, d->width, f->features, err)) &&
           tensor_fits(&f->token_norm, "norm of embeddings", 0, true, 1, d->width, err) &&
           tensor_fits(&f->feature_norm, "hidden_norm", 0, true, 1, d->width, err) &&
           (!joins || tensor_fits(&f->join, "eh_proj", 0, false, d->width, 2 * d->width, err));
}

bool
model_desc_fits(const struct model_desc *d, layer_set_t optional, struct err *err)
{
    if (!numbers_fit(d, err) || !tensor_fits(&d->embedding, "token_embd", 0, false, d->vocab, d->width, err))
        return false;
    const uint32_t outputs = d->drafter != NULL && d->drafter->tokens != NULL ? d->head.rows : d->vocab;
    for (uint32_t l = 1; l <= d->n_layers; l++)
        if (!layer_fits(d, optional, l, err))
            return false;
    const struct tensor *bias = &d->final_norm_bias, *of_head = &d->head_bias, *at = &d->positions;
    if (tensor_present(at) && (at->data == NULL || at->type != WEIGHT_F32 || at->rows == 0 || at->cols != d->width))
        return err_set(err, ERR_WORK, "the embedding of positions is no matrix in F32 of the model's width");
    const struct tensor *inputs = &d->input_embedding;
    if (d->form.per_layer > 0 &&
        (d->form.per_layer > INT32_MAX / d->n_layers || inputs->data == NULL ||
         !tensor_fits(inputs, "per_layer_token_embd", 0, false, d->vocab, d->n_layers * d->form.per_layer, err) ||
         d->form.per_layer % tensor_block_values(inputs->type) != 0 ||
         !tensor_fits(&d->input_norm, "per_layer_proj_norm", 0, true, 1, d->form.per_layer, err)))
        return err_set(err, ERR_WORK, "the per-layer inputs do not fit the model's layers; the file is damaged");
    const struct tensor *first = &d->embedding_norm, *of_first = &d->embedding_norm_bias;
    return (!tensor_present(first) || tensor_fits(first, "token_embd_norm", 0, true, 1, d->width, err)) &&
           (!tensor_present(of_first) || tensor_fits(of_first, "bias of token_embd_norm", 0, true, 1, d->width, err)) &&
           tensor_fits(&d->final_norm, "output_norm", d->n_layers, true, 1, d->width, err) &&
           tensor_fits(&d->head, "output", d->n_layers, false, outputs, d->width, err) && drafter_fits(d, err) &&
           (!tensor_present(bias) || tensor_fits(bias, "bias of output_norm", d->n_layers, true, 1, d->width, err)) &&
           (!tensor_present(of_head) || tensor_fits(of_head, "bias of output", d->n_layers, true, 1, d->vocab, err));
}
