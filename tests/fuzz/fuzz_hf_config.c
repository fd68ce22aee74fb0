/* A Hugging Face folder's config.json, with weights that fit TINY_CONFIG. The first byte selects one of three kinds of
 * weights: plain, biased, with norms on the heads; from 64 on those of a block drafter. A drafter is read for a target
 * of three layers. A model that is accepted must have shapes that agree with its weights. */
#include <math.h>

#include "engine/model/arch/arch.h"
#include "engine/model/files/hf_folder.h"
#include "engine/model/model_open.h"
#include "tests/fuzz/fuzz.h"
#include "tests/rigs/tiny_folder.h"

static void
check_model(const struct model *m)
{
    const struct model_desc *d = &m->desc;
    volatile unsigned char touched;
    MUST(d->n_layers == 1 && d->width == 8 && d->ffn == 16 && d->vocab == 10 && d->heads % d->kv_heads == 0);
    MUST(d->heads * d->head_dim == 8 && d->rope_dims <= d->head_dim && d->rope_dims % 2 == 0);
    MUST(d->rope_base >= 1 && d->rope_scale > 0 && d->rms_eps >= 0 && d->rms_eps < 1 && m->ctx_train > 0);
    for (uint32_t i = 0; d->rope_factors != NULL && i < d->rope_dims / 2; i++)
        MUST(isfinite(d->rope_factors[i]) && d->rope_factors[i] > 0);
    touched = *((const unsigned char *)d->layers[0].down.data + 8 * 16 * 4 - 1);
    touched = *((const unsigned char *)d->head.data + 10 * 8 * 4 - 1);
    (void)touched;
    const struct drafter_desc *f = d->drafter;
    MUST(f == NULL || (m->n_features >= 1 && m->n_features <= MODEL_FEATURES && f->features == 8 * m->n_features));
    for (uint32_t i = 0; i < m->n_features; i++)
        MUST(m->features[i] <= 3);
    MUST(f == NULL || f->block == 0 || (f->block <= 64 && f->mask >= 0 && f->mask < 10 && f->confidence.cols == 12));
}

static bool
read_config(struct model *m, const struct hf_folder *folder, struct err *err)
{
    static const float values[10 * 8];
    const struct tensor matrix = {.data = values, .type = WEIGHT_F32, .rows = 10, .cols = 8};
    const struct model target = {.name = "target",
                                 .desc = {.n_layers = 3, .width = 8, .vocab = 10, .embedding = matrix, .head = matrix}};
    return arch_hf_head(folder) != NULL ? arch_read_hf_head(m, folder, &target, err)
                                        : arch_read_hf(m, folder, NULL, err);
}

/* Returns the weights that the first byte selects. They are made once. */
static unsigned char *
weights(uint8_t which, size_t *len)
{
    static const struct tiny_weights kinds[] = {{.headless = false},
                                                {.optional = LAYER_QKV_BIAS},
                                                {.optional = LAYER_QK_NORM},
                                                {.headless = true},
                                                {.optional = LAYER_QK_NORM, .block = true}};
    static unsigned char *made[5];
    static size_t bytes[5];
    const unsigned kind = which / 2 % 3, i = which >= 64 ? 4 : kind == 0 && which % 2 != 0 ? 3 : kind;
    if (made[i] == NULL)
        made[i] = tiny_weights(&kinds[i], &bytes[i]);
    *len = bytes[i];
    return made[i];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t len;
    struct err err = {0};
    struct safetensors *file;
    struct hf_folder *folder;
    const unsigned char *bytes = weights(data[0], &len);
    struct model *m = calloc(1, sizeof *m);
    if (bytes != NULL && m != NULL && (m->path = strdup("fuzz")) != NULL &&
        safetensors_parse(&file, "fuzz/model.safetensors", bytes, len, &err)) {
        if (hf_folder_parse(&folder, "fuzz", (const char *)data + 1, size - 1, NULL, 0, file, &err)) {
            m->folder = folder;
            if (read_config(m, folder, &err) && model_quantize(m, &err))
                check_model(m);
            else
                must_refuse(&err);
        } else {
            must_refuse(&err);
        }
    }
    model_close(m);
    return 0;
}

MUTATOR(mutate_json_part(data, size, max_size, seed, 1));
