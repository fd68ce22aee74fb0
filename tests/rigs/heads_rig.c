#include "tests/rigs/heads_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/model/model.h"
#include "engine/model/model_open.h"
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

/* Makes a drafter whose layer is the target's first one with attention, with an input near the embedding. */
static struct model *
drafter_of(const struct model *target, bool eagle, uint64_t *random)
{
    struct model *m = calloc(1, sizeof *m);
    struct layer_desc *layer = calloc(1, sizeof *layer);
    struct drafter_desc *form = blocks_take(&m->blocks, 1, sizeof *form);
    const uint32_t width = target->desc.width, layers = target->desc.n_layers;
    uint32_t l = 0;
    while (l + 1 < layers && target->desc.layers[l].form.kind != LAYER_ATTENTION)
        l++;
    *layer = target->desc.layers[l];
    m->path = strdup(target->path);
    snprintf(m->name, sizeof m->name, "%s", eagle ? "head" : "MTP layer");
    m->desc = target->desc;
    m->desc.n_layers = 1;
    m->desc.layers = layer;
    m->desc.drafter = form;
    m->desc.form.per_layer = 0; /* per-layer inputs belong to the target's layers */
    m->desc.form.recurrent = (struct recurrent_form){0};
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++)
        if ((LAYER_INPUTS >> i & 1u) != 0)
            layer->all[i] = (struct tensor){.data = NULL};
    m->ctx_train = target->ctx_train;
    m->n_features = eagle ? 3 : 1;
    for (uint32_t i = 0; i < m->n_features; i++)
        m->features[i] = eagle ? i * layers / 2 : layers;
    *form = (struct drafter_desc){.features = m->n_features * width, .parts = 1, .output_normed = !eagle};
    form->token_norm = made_up(m, 1, width, 1, 0.1f, false, random);
    form->feature_norm = made_up(m, 1, width, 1, 0.1f, false, random);
    form->join = made_up(m, width, 2 * width, 0, 0.02f, true, random);
    if (!eagle) {
        form->norm = made_up(m, 1, width, 1, 0.1f, false, random);
        return m;
    }
    form->projection = made_up(m, width, form->features, 0, 0.1f, true, random);
    token_t *tokens = blocks_take(&m->blocks, 1, target->desc.vocab * sizeof *tokens);
    struct tensor *head = &m->desc.head;
    const uint32_t without = head->data != NULL ? target->desc.vocab / 4 : 0; /* the first tokens, which are rare */
    head->data =
        head->data != NULL ? (const char *)head->data + without * tensor_row_bytes(head->type, head->cols) : NULL;
    head->rows -= without;
    for (uint32_t i = 0; i < head->rows; i++)
        tokens[i] = (token_t)(i + without);
    form->tokens = tokens;
    return m;
}

bool
heads_rig_drafters(struct engine *e, uint64_t seed, struct err *err)
{
    for (enum aux_role role = AUX_EAGLE; role <= AUX_MTP && e->ops->feed != NULL; role++) {
        struct aux_model *h = &e->aux[role];
        if (h->model != NULL)
            continue;
        h->model = drafter_of(e->model, role == AUX_EAGLE, &seed);
        if (!e->ops->load(e->backend, &h->model->desc, NULL, NULL, &h->weights, err))
            return false;
    }
    return true;
}
