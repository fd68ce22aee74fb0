#include "tests/rigs/heads_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/model/model.h"
#include "engine/model/model_open.h"
#include "kernels/experts.h"
#include "kernels/tensor.h"

bool
heads_rig_write_beside(const char *model_path, enum head_kind kind, uint64_t seed, char *path, size_t n,
                       struct err *err)
{
    struct model *m;
    struct exit_heads *h = NULL;
    if (!model_open(&m, model_path, err))
        return false;
    const int stem = (int)(strlen(model_path) - strlen(".gguf"));
    snprintf(path, n, "%.*s.heads.safetensors", stem, model_path);
    bool ok = exit_heads_new(&h, kind, m, NULL, 0, err);
    for (size_t i = 0; ok && i < h->n_values; i++)
        h->values[i] = ((float)(splitmix64(&seed) % 2001) / 1000 - 1) * 0.15f;
    for (uint32_t l = 1; ok && kind == HEAD_FULL && l < h->n_layers; l++)
        for (uint32_t v = 0; v < h->vocab; v++) { /* near the model's own, so that some drafts are accepted */
            float row[4096];
            tensor_row(&m->desc.head, v, row);
            for (uint32_t i = 0; i < h->width; i++)
                h->layers[l].weight[(size_t)v * h->width + i] += row[i];
        }
    ok = ok && exit_heads_write(h, path, err);
    exit_heads_free(h);
    model_close(m);
    return ok;
}

bool
heads_rig_accept(struct engine *e, uint32_t blocks, uint64_t seed, struct err *err)
{
    const struct model *draft = engine_draft_model(e);
    if (draft == NULL)
        return true;
    accept_head_free(e->accept);
    if (!accept_head_new(&e->accept, draft->desc.width, blocks, false, err))
        return false;
    const float scale = 2 / sqrtf((float)draft->desc.width);
    for (size_t i = 0; i < e->accept->n_values; i++)
        e->accept->values[i] = ((float)(splitmix64(&seed) % 2001) / 1000 - 1) * scale;
    e->accept->c[1] += 1;
    return true;
}

/* ---- feature drafters ---- */

/* Makes a random tensor around `mean`; if `eye`, it begins with the identity. */
static struct tensor
made_up(struct model *m, uint32_t rows, uint32_t cols, float mean, float scale, bool eye, uint64_t *random)
{
    float *values = blocks_take(&m->blocks, 1, (size_t)rows * cols * sizeof *values);
    for (size_t i = 0; values != NULL && i < (size_t)rows * cols; i++)
        values[i] = mean + ((float)(splitmix64(random) % 2001) / 1000 - 1) * scale + (eye && i % cols == i / cols);
    return (struct tensor){.data = values, .type = WEIGHT_F32, .rows = rows, .cols = cols};
}

enum { MADE_LAYERS = 2, MADE_BLOCK = 6 }; /* of block drafters */

/* Copies `n` of the target's first layers with attention and keys of their own, the last one again if there are fewer.
 * Those with experts get the first expert as their MLP if `dense`. */
static void
take_layers(struct model *m, const struct model *target, struct layer_desc *layers, uint32_t n, bool dense)
{
    const struct model_desc *d = &target->desc;
    uint32_t found = 0;
    for (uint32_t i = 0, l = 0; i < n; i++, l++) {
        while (l < d->n_layers && (d->layers[l].form.kind != LAYER_ATTENTION || d->layers[l].form.kv_layer > 0))
            l++;
        found = l < d->n_layers ? l : found;
        const struct expert_desc *expert = dense ? d->layers[found].experts : NULL;
        layer_set_t without = LAYER_INPUTS; /* per-layer inputs belong to the target's layers */
        layers[i] = d->layers[found];
        if (expert != NULL) {
            without |= LAYER_ROUTING;
            layers[i].experts = NULL;
        }
        if (expert != NULL && !tensor_present(&layers[i].up)) {
            layers[i].gate = expert->gate;
            layers[i].up = expert->up;
            layers[i].down = expert->down;
            layers[i].bgate = expert->bgate;
            layers[i].bup = expert->bup;
            layers[i].bdown = expert->bdown;
            layers[i].form.ffn = expert->up.rows;
        }
        for (enum layer_tensor t = 0; t < LAYER_TENSORS; t++)
            if ((without >> t & 1u) != 0)
                layers[i].all[t] = (struct tensor){.data = NULL};
    }
    m->desc.ffn = layer_sizes(d, &layers[0].form).ffn;
    for (uint32_t i = 1; i < n; i++) /* a GPU needs MLPs of one width */
        if (layer_sizes(d, &layers[i].form).ffn != m->desc.ffn)
            layers[i] = layers[0];
    m->desc.n_layers = n;
    m->desc.layers = layers;
    m->desc.form.per_layer = 0;
    m->desc.form.recurrent = (struct recurrent_form){0};
    if (dense)
        m->desc.form.experts = (struct experts_form){0};
}

/* Leaves out the first quarter of the vocabulary, whose tokens are rare, if the head is in memory. */
static void
reduce_vocabulary(struct model *m, struct drafter_desc *form)
{
    struct tensor *head = &m->desc.head;
    const uint32_t without = head->data != NULL ? m->desc.vocab / 4 : 0;
    token_t *tokens = blocks_take(&m->blocks, 1, m->desc.vocab * sizeof *tokens);
    head->data =
        head->data != NULL ? (const char *)head->data + without * tensor_row_bytes(head->type, head->cols) : NULL;
    head->rows -= without;
    for (uint32_t i = 0; i < head->rows; i++)
        tokens[i] = (token_t)(i + without);
    form->tokens = tokens;
}

/* Makes a drafter of the target's first layers, with an input near the embedding. */
static struct model *
drafter_of(const struct model *target, enum aux_role role, uint64_t *random)
{
    const bool blocks = role == AUX_BLOCK;
    struct model *m = calloc(1, sizeof *m);
    struct layer_desc *layers = calloc(MADE_LAYERS, sizeof *layers);
    struct drafter_desc *form = blocks_take(&m->blocks, 1, sizeof *form);
    const uint32_t width = target->desc.width, target_layers = target->desc.n_layers;
    m->path = strdup(target->path);
    snprintf(m->name, sizeof m->name, "%s", blocks ? "block" : role == AUX_EAGLE ? "head" : "MTP layer");
    m->desc = target->desc;
    take_layers(m, target, layers, blocks ? MADE_LAYERS : 1, blocks);
    m->desc.drafter = form;
    m->ctx_train = target->ctx_train;
    m->n_features = role == AUX_MTP ? 1 : 3;
    for (uint32_t i = 0; i < m->n_features; i++)
        m->features[i] = role == AUX_MTP ? target_layers : i * target_layers / 2;
    *form = (struct drafter_desc){.features = m->n_features * width, .parts = 1, .output_normed = role == AUX_MTP};
    if (!blocks)
        form->token_norm = made_up(m, 1, width, 1, 0.1f, false, random);
    form->feature_norm = made_up(m, 1, width, 1, 0.1f, false, random);
    if (!blocks)
        form->join = made_up(m, width, 2 * width, 0, 0.02f, true, random);
    if (role != AUX_MTP)
        form->projection = made_up(m, width, form->features, 0, 0.1f, true, random);
    if (blocks) { /* its Markov head is the model without layers */
        form->block = MADE_BLOCK;
        form->mask = (token_t)m->desc.vocab - 1;
        form->from_anchor = true;
        form->markov_w1 = m->desc.embedding;
        form->markov_w2 = m->desc.head;
        form->confidence = made_up(m, 1, 2 * width, 0, 2 / sqrtf((float)width), false, random);
    }
    if (role == AUX_MTP)
        form->norm = made_up(m, 1, width, 1, 0.1f, false, random);
    if (role == AUX_EAGLE)
        reduce_vocabulary(m, form);
    return m;
}

bool
heads_rig_drafters(struct engine *e, uint64_t seed, struct err *err)
{
    for (enum aux_role role = AUX_EAGLE; role <= AUX_MTP && e->ops->feed != NULL; role++) {
        struct aux_model *h = &e->aux[role];
        if (h->model != NULL)
            continue;
        h->model = drafter_of(e->model, role, &seed);
        if (!e->ops->load(e->backend, &h->model->desc, NULL, NULL, &h->weights, err))
            return false;
    }
    return true;
}
