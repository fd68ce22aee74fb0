/* A model out of a GGUF file: what its numbers and tensors are called there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/model/arch.h"
#include "engine/model/gguf.h"
#include "engine/model/gguf_types.h"

#define REMEDY     "convert the model again"
#define ROPE_FREQS "rope_freqs.weight"

static const struct arch_names gguf_names = {
    .numbers =
        {
            [ARCH_LAYERS] = "block_count",
            [ARCH_CTX] = "context_length",
            [ARCH_WIDTH] = "embedding_length",
            [ARCH_FFN] = "feed_forward_length",
            [ARCH_VOCAB] = "vocab_size",
            [ARCH_HEADS] = "attention.head_count",
            [ARCH_KV_HEADS] = "attention.head_count_kv",
            [ARCH_HEAD_DIM] = "attention.key_length",
            [ARCH_VALUE_DIM] = "attention.value_length",
            [ARCH_ROPE_DIMS] = "rope.dimension_count",
            [ARCH_ROPE_BASE] = "rope.freq_base",
            [ARCH_RMS_EPS] = "attention.layer_norm_rms_epsilon",
            [ARCH_WINDOW] = "attention.sliding_window",
            [ARCH_EXPERTS] = "expert_count",
            [ARCH_NORM_EPS] = "attention.layer_norm_epsilon",
            [ARCH_ATTENTION_CAP] = "attn_logit_softcapping",
            [ARCH_LOGIT_CAP] = "final_logit_softcapping",
            [ARCH_EMBEDDING_SCALE] = "embedding_scale",
            [ARCH_RESIDUAL_SCALE] = "residual_scale",
            [ARCH_ATTENTION_SCALE] = "attention.scale",
            [ARCH_LOGIT_SCALE] = "logit_scale",
        },
    .embedding = "token_embd.weight",
    .final_norm = "output_norm.weight",
    .head = "output.weight",
    .layer = "blk.",
    .naming = LAYER_NAMED_GGUF,
    .computable = {"rot_embd", "rope_freqs"},
    .where = "metadata",
    .remedy = REMEDY,
};

static enum arch_value
number(const struct arch_source *s, const char *name, double *out)
{
    const struct gguf_value *v = gguf_find(s->file, name);
    if (v == NULL)
        return VALUE_MISSING;
    if (v->type == GGUF_BOOL || v->type == GGUF_STRING || v->type == GGUF_ARRAY)
        return VALUE_OTHER;
    struct gguf_value scalar = *v; /* as if it were an array of one */
    scalar.element = v->type;
    *out = gguf_number(&scalar, 0);
    return v->type == GGUF_F32 || v->type == GGUF_F64 ? VALUE_REAL : VALUE_WHOLE;
}

static bool
tensor(const struct arch_source *s, const char *name, struct arch_tensor *out)
{
    const struct gguf *g = s->file;
    const struct gguf_tensor *t = gguf_find_tensor(g, name);
    if (t == NULL)
        return false;
    *out =
        (struct arch_tensor){.data = t->data, .type_name = gguf_type_name(t->type), .type = gguf_weight_type(t->type)};
    out->index = (size_t)(t - g->tensors);
    if (t->dims[2] == 1 && t->dims[3] == 1) {
        out->cols = t->dims[0];
        out->rows = t->dims[1];
    }
    return true;
}

static void
tensor_name(const struct arch_source *s, size_t index, const char **name, size_t *len)
{
    const struct gguf *g = s->file;
    *name = g->tensors[index].name.data;
    *len = g->tensors[index].name.len;
}

static bool
read_scaling(struct model *m, const struct gguf *g, const char *arch, struct err *err)
{
    struct slice type;
    float factor, old;
    char key[96], shown[32];
    snprintf(key, sizeof key, "%.32s.rope.scaling.type", arch);
    if (!gguf_get_string(g, key, &type, err))
        return false;
    snprintf(key, sizeof key, "%.32s.rope.scale_linear", arch); /* how older files say it */
    if (!gguf_get_f32(g, key, 1, &old, err))
        return false;
    snprintf(key, sizeof key, "%.32s.rope.scaling.factor", arch);
    if (!gguf_get_f32(g, key, old, &factor, err))
        return false;
    if (slice_is(type, "none"))
        factor = 1;
    else if (type.len != 0 && !slice_is(type, "linear"))
        return err_set(err, ERR_WORK, "%s: RoPE scaling '%s' is not supported; 'linear' and 'none' are", m->path,
                       printable_line(shown, sizeof shown, type.data, type.len));
    return arch_scale_linear(m, factor, err);
}

/* Llama 3.1 and later: each frequency has a divisor of its own. */
static bool
read_rope_factors(struct model *m, const struct gguf *g, struct err *err)
{
    struct model_desc *d = &m->desc;
    const uint32_t n = d->rope_dims / 2;
    const struct gguf_tensor *t = gguf_find_tensor(g, ROPE_FREQS);
    if (t == NULL)
        return true;
    if (gguf_weight_type(t->type) != WEIGHT_F32 || t->dims[0] != n || t->dims[1] != 1 || t->dims[2] != 1 ||
        t->dims[3] != 1)
        return err_set(err, ERR_WORK, "%s: tensor '" ROPE_FREQS "' should be %u F32 values; " REMEDY, m->path,
                       (unsigned)n);
    for (uint32_t i = 0; i < n; i++) {
        float factor;
        memcpy(&factor, t->data + 4 * (size_t)i, sizeof factor);
        if (!(factor > 0 && factor < 1e9f))
            return err_set(err, ERR_WORK, "%s: tensor '" ROPE_FREQS "' holds %g, which is no divisor; " REMEDY, m->path,
                           (double)factor);
    }
    d->rope_factors = (const float *)(const void *)t->data; /* the alignment was checked */
    return true;
}

bool
arch_read_gguf(struct model *m, const struct gguf *g, const struct arch *arch, struct err *err)
{
    const struct arch_source s = {.path = m->path,
                                  .prefix = arch->gguf,
                                  .arch = arch,
                                  .names = &gguf_names,
                                  .file = g,
                                  .n_tensors = (size_t)g->n_tensors,
                                  .number = number,
                                  .tensor = tensor,
                                  .tensor_name = tensor_name};
    bool *used = calloc(s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", m->path);
    m->desc.rope = arch->gguf_rope;
    bool ok = arch_read_numbers(m, &s, err) && arch_make_layers(m, &s, err) && read_scaling(m, g, arch->gguf, err) &&
              read_rope_factors(m, g, err) &&
              arch_read_tensors(m, &s, gguf_find_tensor(g, gguf_names.head) == NULL, used, err);
    free(used);
    return ok;
}
