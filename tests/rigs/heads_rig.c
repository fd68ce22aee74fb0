#include "tests/rigs/heads_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/synthetic/model_open.h"
#include "kernels/base/rng.h"
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
    bool ok = exit_heads_new(&h, kind, m, err);
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
