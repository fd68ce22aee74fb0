/* Reads feature drafters (struct drafter_desc): the tensors of EAGLE-3 heads, whose files have the numbers of a Llama
 * of one layer, of block drafters, and of layers for multi-token prediction (MTP) in the files of a model.
 * docs/design-engine.md compares them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/utf8.h"
#include "engine/model/arch/arch_tensors.h"

/* ---- all ---- */

static struct drafter_desc *
new_form(const struct arch_taking *t)
{
    struct drafter_desc *form = blocks_take(&t->model->blocks, 1, sizeof *form);
    if (form == NULL)
        arch_refuse(t, "out of memory");
    else
        *form = (struct drafter_desc){.parts = 1};
    return form;
}

static bool
has(const struct arch_taking *t, const char *name)
{
    struct arch_tensor found;
    return t->source->tensor(t->source, name, &found);
}

/* A tensor that the drafter shares with its target. */
static void
share(struct model *m, const struct tensor *shared, struct tensor *out)
{
    *out = *shared;
    m->parameters_of[shared->type] += (uint64_t)shared->rows * shared->cols;
}

/* ---- EAGLE-3 heads and block drafters ---- */

/* The layers whose outputs the drafter reads: the file's, or those after 2, L/2 and L - 3 layers. */
static bool
set_layers(const struct arch_taking *t, const struct arch_head *h, const struct model *target)
{
    struct model *m = t->model;
    const uint32_t layers = target->desc.n_layers, usual[] = {2, layers / 2, layers - 3};
    if (h->layers == 0 && h->is_block)
        return arch_refuse(t, "does not name the layers of its target that it reads; %s", t->source->names->remedy);
    if (h->layers == 0 && layers < 3)
        return arch_refuse(t, "reads three layers of its target, but %s has %" PRIu32, target->name, layers);
    m->n_features = h->layers > 0 ? h->layers : 3;
    for (uint32_t i = 0; i < m->n_features; i++) {
        m->features[i] = h->layers > 0 ? h->layer[i] : usual[i];
        if (m->features[i] > layers)
            return arch_refuse(t,
                               "reads layer %" PRIu32 " of its target, but %s has %" PRIu32
                               "; the drafter belongs to another model",
                               m->features[i], target->name, layers);
    }
    return true;
}

static bool
check_pair(const struct arch_taking *t, const struct arch_head *h, const struct model *target)
{
    const struct model_desc *d = &t->model->desc, *of = &target->desc;
    const uint32_t wanted = h->target_width > 0 ? h->target_width : d->width;
    if (d->n_layers != 1 && !h->is_block)
        return arch_refuse(t, "has %" PRIu32 " layers; heads of one layer are supported", d->n_layers);
    if (wanted != of->width)
        return arch_refuse(t,
                           "reads hidden states of width %" PRIu32 ", but those of %s have %" PRIu32
                           "; the drafter belongs to another model",
                           wanted, target->name, of->width);
    if (d->vocab != of->vocab)
        return arch_refuse(t,
                           "is for a vocabulary of %" PRIu32 " tokens, but %s has %" PRIu32
                           "; the drafter belongs to another model",
                           d->vocab, target->name, of->vocab);
    return true;
}

/* Reads the ids of a reduced vocabulary, if there is one. */
static bool
take_ids(const struct arch_taking *t, bool absolute, struct drafter_desc *form, uint32_t *n)
{
    struct arch_tensor found;
    *n = t->model->desc.vocab;
    if (!t->source->tensor(t->source, "d2t", &found))
        return true;
    if (found.data == NULL || strcmp(found.type_name, "I64") != 0 || found.planes > 1 || found.rows != 1 ||
        found.cols == 0 || found.cols > *n)
        return arch_refuse(t, "tensor 'd2t' should be a list of at most %" PRIu32 " integers; %s", *n,
                           t->source->names->remedy);
    t->used[found.index] = true;
    token_t *ids = blocks_take(&t->model->blocks, 1, (size_t)found.cols * sizeof *ids);
    if (ids == NULL)
        return arch_refuse(t, "out of memory");
    for (uint32_t i = 0; i < found.cols; i++) {
        const int64_t stored = (int64_t)little_endian(found.data + 8 * (size_t)i, 8);
        const int64_t id = absolute ? stored : stored < INT32_MAX && stored > -INT32_MAX ? stored + i : -1;
        if (id < 0 || id >= t->model->desc.vocab)
            return arch_refuse(t,
                               "tensor 'd2t' names token %" PRId64 ", but the vocabulary has %" PRIu32
                               "; the drafter belongs to another model",
                               id, t->model->desc.vocab);
        ids[i] = (token_t)id;
    }
    form->tokens = ids;
    *n = (uint32_t)found.cols;
    return true;
}

/* Reads the norms of features and their projection. */
static bool
take_projection(const struct arch_taking *t, const struct arch_head *h, const struct model *target,
                struct drafter_desc *form)
{
    static const char projection[] = "fc.weight";
    struct model *m = t->model;
    char name[ARCH_NAME_SIZE];
    struct arch_tensor fc;
    if (t->source->tensor(t->source, projection, &fc) && fc.cols != form->features)
        return arch_refuse(t,
                           "reads %" PRIu64 " values of hidden states, but %" PRIu32 " layers of %s have %" PRIu32
                           "; the drafter belongs to another model",
                           (uint64_t)fc.cols, m->n_features, target->name, form->features);
    if (h->norms_features && h->norms_each)
        return arch_refuse(t, "norms of all features and of each ('norm_before_fc' and 'fc_norm') "
                              "are not supported together");
    if (h->norms_features && !arch_take_vector(t, h->norm, form->features, NULL, 0, &form->norm))
        return false;
    if (h->norms_each) {
        const uint32_t each = form->features / m->n_features;
        float *all = blocks_take(&m->blocks, 1, form->features * sizeof *all);
        if (all == NULL)
            return arch_refuse(t, "out of memory");
        for (uint32_t i = 0; i < m->n_features; i++) {
            struct tensor one;
            snprintf(name, sizeof name, "fc_norm.%" PRIu32 ".weight", i);
            if (!arch_take_vector(t, name, each, NULL, 0, &one))
                return false;
            memcpy(all + i * each, one.data, each * sizeof *all);
        }
        form->parts = m->n_features;
        form->norm = (struct tensor){.data = all, .type = WEIGHT_F32, .rows = 1, .cols = form->features};
    }
    return arch_take_tensor(t, projection, m->desc.width, form->features, &form->projection);
}

/* Reads what may be the target's: the embedding and the head. */
static bool
take_ends(const struct arch_taking *t, const struct arch_head *h, const struct model *target, uint32_t outputs)
{
    struct model_desc *d = &t->model->desc;
    const struct arch_names *names = t->source->names;
    const bool embeds = has(t, names->embedding), own_head = has(t, names->head);
    if ((!embeds || (!own_head && !h->tied)) && d->width != target->desc.width)
        return arch_refuse(t, "shares the %s of %s, but is %" PRIu32 " wide and not %" PRIu32,
                           embeds ? "head" : "embedding", target->name, d->width, target->desc.width);
    if (!own_head && outputs != target->desc.head.rows)
        return arch_refuse(t, "has a vocabulary of its own ('d2t'), but no head ('%s'); %s", names->head,
                           names->remedy);
    if (!embeds)
        share(t->model, &target->desc.embedding, &d->embedding);
    else if (!arch_take_tensor(t, names->embedding, d->vocab, d->width, &d->embedding))
        return false;
    if (own_head)
        return arch_take_tensor(t, names->head, outputs, d->width, &d->head);
    t->model->tied = embeds && h->tied;
    if (t->model->tied) {
        d->head = d->embedding;
        return true;
    }
    share(t->model, &target->desc.head, &d->head);
    d->head_bias = target->desc.head_bias;
    return true;
}

static bool
check_block(const struct arch_taking *t, const struct arch_head *h)
{
    const uint32_t vocab = t->model->desc.vocab;
    if (h->block < 1 || h->block > ARCH_BLOCK_MOST)
        return arch_refuse(t, "has blocks of %" PRIu32 " rows; 1 to %u are supported", h->block, ARCH_BLOCK_MOST);
    if (h->block == 1 && !h->from_anchor)
        return arch_refuse(t, "has blocks of 1 row, which predicts no draft");
    if (h->mask == UINT32_MAX)
        return arch_refuse(t, "does not name its mask token; %s", t->source->names->remedy);
    if (h->mask >= vocab)
        return arch_refuse(t, "has the mask token %" PRIu32 ", but its vocabulary has %" PRIu32 "; %s", h->mask, vocab,
                           t->source->names->remedy);
    return true;
}

/* Reads the Markov head of DSpark and its confidence head, if the drafter has them. */
static bool
take_spark(const struct arch_taking *t, const struct arch_head *h, struct drafter_desc *form, uint32_t outputs)
{
    const struct model_desc *d = &t->model->desc;
    char name[ARCH_NAME_SIZE];
    struct arch_tensor found;
    struct tensor bias;
    snprintf(name, sizeof name, "%sw1.weight", h->markov);
    if (t->source->tensor(t->source, name, &found)) {
        const uint32_t rank = found.cols <= INT32_MAX ? (uint32_t)found.cols : 0;
        if (!arch_take_tensor(t, name, d->vocab, rank, &form->markov_w1))
            return false;
        snprintf(name, sizeof name, "%sw2.weight", h->markov);
        if (!arch_take_tensor(t, name, outputs, rank, &form->markov_w2))
            return false;
    }
    snprintf(name, sizeof name, "%s.weight", h->confidence);
    if (!t->source->tensor(t->source, name, &found))
        return true;
    if (!arch_take_vector(t, name, found.cols == d->width ? d->width : d->width + form->markov_w1.cols, NULL, 0,
                          &form->confidence))
        return false;
    snprintf(name, sizeof name, "%s.bias", h->confidence);
    if (has(t, name)) {
        if (!arch_take_vector(t, name, 1, NULL, 0, &bias))
            return false;
        form->confidence_bias = *(const float *)bias.data;
    }
    return true;
}

static bool
take_layers(const struct arch_taking *t)
{
    struct layer_desc *layers = (struct layer_desc *)t->model->desc.layers; /* allocated by arch_make_layers() */
    for (uint32_t l = 0; l < t->model->desc.n_layers; l++)
        if (!arch_take_layer(t, l, &layers[l]))
            return false;
    return true;
}

bool
arch_take_head(const struct arch_taking *t, const struct arch_head *h, const struct model *target)
{
    struct model *m = t->model;
    struct drafter_desc *form = new_form(t);
    uint32_t outputs;
    if (form == NULL || !check_pair(t, h, target) || (h->is_block && !check_block(t, h)) || !set_layers(t, h, target))
        return false;
    form->features = m->n_features * target->desc.width;
    form->input_normed = h->input_normed;
    form->output_normed = h->output_normed;
    if (h->is_block) {
        form->block = h->block;
        form->mask = (token_t)h->mask;
        form->causal = h->causal;
        form->from_anchor = h->from_anchor;
    }
    m->desc.drafter = form; /* the shapes of q, k and v depend on it */
    if (!take_layers(t))
        return false;
    const uint64_t in_layers = m->parameters;
    if (!take_ids(t, h->absolute, form, &outputs) || !take_projection(t, h, target, form) ||
        !arch_take_vector(t, h->feature_norm, m->desc.width, NULL, 0, &form->feature_norm) ||
        !arch_take_vector(t, t->source->names->final_norm, m->desc.width, NULL, 0, &m->desc.final_norm) ||
        !take_ends(t, h, target, outputs) || (h->is_block && !take_spark(t, h, form, outputs)))
        return false;
    m->rho = (double)outputs * m->desc.width * m->desc.n_layers / (double)(h->is_block ? in_layers : m->parameters);
    if (!h->is_block) {
        struct layer_desc *layer = (struct layer_desc *)m->desc.layers;
        form->token_norm = layer->attn_norm;
        layer->attn_norm = (struct tensor){.data = NULL};
    }
    return arch_refuse_leftovers(t);
}

/* ---- layers for multi-token prediction ---- */

/* Names of a file's tensors: after the name of the layer, or complete, with "=". NULL: the model's own tensor. */
struct ahead_names {
    const char *layer; /* NULL: that of the model's layers, and the number of the first after the last */
    const char *token_norm, *feature_norm, *join, *final_norm, *embedding, *head;
    bool normed; /* features, and outputs of rows before, have passed the final norm */
};

static const struct ahead_names ahead_names[] = {
    {NULL, "nextn.enorm.weight", "nextn.hnorm.weight", "nextn.eh_proj.weight", "nextn.shared_head_norm.weight",
     "nextn.embed_tokens.weight", "nextn.shared_head_head.weight", true}, /* GGUF */
    {NULL, "enorm.weight", "hnorm.weight", "eh_proj.weight", "shared_head.norm.weight", "embed_tokens.weight",
     "shared_head.head.weight", true}, /* DeepSeek-V3, GLM-4 MoE */
    {"model.mtp_block.", "=model.mtp_emb_norm.0.weight", "=model.mtp_hidden_norm.0.weight",
     "=model.mtp_linear_proj.0.weight", NULL, NULL, NULL, false}, /* ERNIE 4.5 MoE */
    {"mtp.layers.", "=mtp.pre_fc_norm_embedding.weight", "=mtp.pre_fc_norm_hidden.weight", "=mtp.fc.weight",
     "=mtp.norm.weight", "=mtp.embed_tokens.weight", NULL, true}, /* Qwen3-Next, Qwen3.5 */
};

static const char *
ahead_name(const struct arch_taking *t, uint32_t layer, const char *end, char out[ARCH_NAME_SIZE])
{
    if (end[0] == '=')
        snprintf(out, ARCH_NAME_SIZE, "%s", end + 1);
    else
        snprintf(out, ARCH_NAME_SIZE, "%s%" PRIu32 ".%s", t->source->names->layer, layer, end);
    return out;
}

/* Reads a tensor of the layer, or takes the model's if the file has none. */
static bool
own_or_shared(const struct arch_taking *t, uint32_t layer, const char *end, const struct tensor *shared,
              struct tensor *out)
{
    char name[ARCH_NAME_SIZE];
    if (end == NULL || !has(t, ahead_name(t, layer, end, name))) {
        share(t->model, shared, out);
        return true;
    }
    return shared->rows == 1 ? arch_take_norm(t, name, shared->cols, out)
                             : arch_take_tensor(t, name, shared->rows, shared->cols, out);
}

static bool
take_ahead(const struct arch_taking *t, const struct ahead_names *n, uint32_t layer, struct model_ahead *out)
{
    const struct model_desc *d = &t->model->desc;
    struct drafter_desc *form = &out->form;
    char name[ARCH_NAME_SIZE];
    *form = (struct drafter_desc){.features = d->width, .parts = 1, .output_normed = n->normed};
    if (n->normed)
        form->norm = d->final_norm;
    return arch_take_norm(t, ahead_name(t, layer, n->token_norm, name), d->width, &form->token_norm) &&
           arch_take_norm(t, ahead_name(t, layer, n->feature_norm, name), d->width, &form->feature_norm) &&
           arch_take_tensor(t, ahead_name(t, layer, n->join, name), d->width, 2 * d->width, &form->join) &&
           own_or_shared(t, layer, n->final_norm, &d->final_norm, &out->final_norm) &&
           own_or_shared(t, layer, n->embedding, &d->embedding, &out->embedding) &&
           own_or_shared(t, layer, n->head, &d->head, &out->head) && arch_take_layer(t, layer, &out->layer);
}

/* The form of the last layer with attention, or of the last layer if none has it. */
static struct layer_form
form_ahead(const struct model_desc *d)
{
    uint32_t l = d->n_layers;
    while (l > 1 && d->layers[l - 1].form.kind != LAYER_ATTENTION)
        l--;
    return d->layers[l - 1].form;
}

/* Fails if a tensor of the layer is unused: its form is another one. Further layers are ignored. */
static bool
refuse_others(const struct arch_taking *t, uint32_t layer)
{
    const char *before = t->source->names->layer, *name;
    const size_t n = strlen(before);
    char shown[80];
    for (size_t i = 0, len; arch_next_unused(t, &i, &name, &len);) {
        const bool further = len > n && strncmp(name, before, n) == 0 && strtoul(name + n, NULL, 10) > layer;
        if (arch_looks_ahead(t, name, len) && !further)
            return arch_refuse(t, "tensor '%s' of the layer for multi-token prediction is not supported in a %s",
                               printable_line(shown, sizeof shown, name, len), t->source->arch->hf);
    }
    return true;
}

/* Sets model.ahead. A layer that cannot be used is left out, as if the file had none: the model runs without it. Fails
 * if memory runs out. */
static bool
take_layer_ahead(const struct arch_taking *t)
{
    struct model *m = t->model, counted = *m;
    struct err why = {.kind = ERR_NONE};
    struct arch_names names = *t->source->names;
    struct arch_source source = *t->source;
    const struct arch_taking of = {&counted, &source, t->used, &why};
    const struct ahead_names *n = NULL;
    uint32_t layer = m->desc.n_layers;
    char name[ARCH_NAME_SIZE];
    counted.parameters = 0;
    memset(counted.parameters_of, 0, sizeof counted.parameters_of);
    memset(counted.tensors_of, 0, sizeof counted.tensors_of);
    for (size_t i = 0; i < sizeof ahead_names / sizeof ahead_names[0] && n == NULL; i++)
        if (has(t, ahead_name(t, layer, ahead_names[i].join, name)))
            n = &ahead_names[i];
    if (n != NULL && n->layer != NULL) {
        snprintf(names.layer, sizeof names.layer, "%s", n->layer);
        source.names = &names;
        layer = 0;
    }
    struct model_ahead *ahead = n != NULL ? blocks_take(&counted.blocks, 1, sizeof *ahead) : NULL;
    if (n != NULL && ahead == NULL)
        return arch_refuse(t, "out of memory for its layer for multi-token prediction");
    if (ahead != NULL) {
        *ahead = (struct model_ahead){.layer.form = form_ahead(&m->desc)};
        if (take_ahead(&of, n, layer, ahead) && refuse_others(&of, layer)) {
            ahead->parameters = counted.parameters;
            memcpy(ahead->parameters_of, counted.parameters_of, sizeof ahead->parameters_of);
            memcpy(ahead->tensors_of, counted.tensors_of, sizeof ahead->tensors_of);
            m->ahead = ahead;
        }
    } else
        refuse_others(&of, UINT32_MAX);
    m->blocks = counted.blocks;
    snprintf(m->ahead_refused, sizeof m->ahead_refused, "%s", why.text);
    return !err_is_memory(&why) || err_set(t->err, why.kind, "%s", why.text);
}

bool
arch_read_tensors(struct model *m, const struct arch_source *s, bool tied, bool *used, struct err *err)
{
    const struct arch_taking t = {.model = m, .source = s, .used = used, .err = err};
    if (!arch_take_model(m, s, tied, used, err))
        return false;
    if ((s->arch->flags & ARCH_LOOKS_AHEAD) != 0 && !take_layer_ahead(&t))
        return false;
    return arch_refuse_leftovers(&t);
}
