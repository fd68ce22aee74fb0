/* A model out of a Hugging Face folder: what config.json says, and what its tensors are called. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/model/arch.h"
#include "engine/model/hf_folder.h"

#define REMEDY "fetch the folder again"
#define TWO_PI 6.283185307179586

static const struct arch_names hf_names = {
    .numbers =
        {
            [ARCH_LAYERS] = "num_hidden_layers",
            [ARCH_CTX] = "max_position_embeddings",
            [ARCH_WIDTH] = "hidden_size",
            [ARCH_FFN] = "intermediate_size",
            [ARCH_VOCAB] = "vocab_size",
            [ARCH_HEADS] = "num_attention_heads",
            [ARCH_KV_HEADS] = "num_key_value_heads",
            [ARCH_HEAD_DIM] = "head_dim",
            [ARCH_ROPE_BASE] = "rope_theta",
            [ARCH_RMS_EPS] = "rms_norm_eps",
            [ARCH_EXPERTS] = "num_experts",
        },
    .embedding = "model.embed_tokens.weight",
    .final_norm = "model.norm.weight",
    .head = "lm_head.weight",
    .layer = "model.layers.",
    .naming = LAYER_NAMED_HF,
    .computable = {"rotary_emb.inv_freq"},
    .where = "config.json's",
    .remedy = REMEDY,
};

/* ---- the source ---- */

/* An entry that is null counts as missing, as Python's None does. */
static const cJSON *
entry_of(const cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(v) ? NULL : v;
}

static enum arch_value
kind_of(const cJSON *v, double *out)
{
    if (v == NULL)
        return VALUE_MISSING;
    if (!cJSON_IsNumber(v))
        return VALUE_OTHER;
    *out = v->valuedouble;
    return floor(*out) < *out || !(fabs(*out) <= 0x1p53) ? VALUE_REAL : VALUE_WHOLE;
}

/* What RoPE is made of: rope_parameters since transformers 5, rope_scaling with rope_theta beside it before. */
static const cJSON *
rope_entry(const cJSON *config)
{
    const cJSON *v = entry_of(config, "rope_parameters");
    return v != NULL ? v : entry_of(config, "rope_scaling");
}

static enum arch_value
number(const struct arch_source *s, const char *name, double *out)
{
    const struct hf_folder *f = s->file;
    const cJSON *v = entry_of(f->config, name);
    if (v == NULL && strcmp(name, hf_names.numbers[ARCH_ROPE_BASE]) == 0)
        v = entry_of(rope_entry(f->config), name);
    return kind_of(v, out);
}

static bool
tensor(const struct arch_source *s, const char *name, struct arch_tensor *out)
{
    const struct hf_folder *f = s->file;
    const struct safetensor *const *at = hf_folder_find(f, name), *t;
    if (at == NULL)
        return false;
    t = *at;
    *out =
        (struct arch_tensor){.data = t->data, .type_name = t->dtype, .type = t->type, .rows = t->rows, .cols = t->cols};
    out->index = (size_t)(at - f->tensors);
    return true;
}

static void
tensor_name(const struct arch_source *s, size_t index, const char **name, size_t *len)
{
    const struct hf_folder *f = s->file;
    *name = f->tensors[index]->name;
    *len = strlen(*name);
}

/* ---- what config.json says besides sizes ---- */

static bool
read_real(const struct hf_folder *f, const cJSON *object, const char *name, double otherwise, double *out,
          struct err *err)
{
    const cJSON *v = entry_of(object, name);
    *out = v == NULL ? otherwise : v->valuedouble;
    if ((v != NULL && !cJSON_IsNumber(v)) || !(fabs(*out) <= 3.4e38))
        return err_set(err, ERR_WORK, "%s: config.json's '%s' of RoPE should be a number; " REMEDY, f->path, name);
    return true;
}

/* Llama 3.1's scaling: wavelengths above old/low turn slower by `factor`, those below old/high as they did, those
 * between are interpolated. As divisors of the frequencies. */
static bool
scale_llama3(struct model *m, const struct hf_folder *f, const cJSON *rope, double factor, struct err *err)
{
    struct model_desc *d = &m->desc;
    const uint32_t n = d->rope_dims / 2;
    double low, high, old;
    if (!read_real(f, rope, "low_freq_factor", NAN, &low, err) ||
        !read_real(f, rope, "high_freq_factor", NAN, &high, err) ||
        !read_real(f, rope, "original_max_position_embeddings", NAN, &old, err))
        return false;
    if (!(low > 0 && high > low && old >= 1 && factor >= 1e-3 && factor <= 1e6))
        return err_set(err, ERR_WORK,
                       "%s: RoPE scaling 'llama3' with the factors %g, %g, %g and %g makes no sense; " REMEDY, f->path,
                       factor, low, high, old);
    float *divisors = model_take(m, n * sizeof *divisors);
    if (divisors == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    for (uint32_t i = 0; i < n; i++) {
        const double wavelength = TWO_PI * pow(d->rope_base, 2.0 * i / d->rope_dims);
        const double smooth = fmin(1, fmax(0, (old / wavelength - low) / (high - low)));
        divisors[i] = (float)(1 / ((1 - smooth) / factor + smooth));
    }
    d->rope_factors = divisors;
    return true;
}

static bool
read_rope(struct model *m, const struct hf_folder *f, struct err *err)
{
    const cJSON *rope = rope_entry(f->config);
    if (rope == NULL)
        return true;
    char shown[40];
    double factor, part;
    const cJSON *type = entry_of(rope, "rope_type");
    if (type == NULL)
        type = entry_of(rope, "type"); /* as it was called first */
    if (!cJSON_IsObject(rope) || (type != NULL && !cJSON_IsString(type)))
        return err_set(err, ERR_WORK, "%s: config.json's RoPE scaling is not understood; " REMEDY, f->path);
    if (!read_real(f, rope, "factor", 1, &factor, err) || !read_real(f, rope, "partial_rotary_factor", 1, &part, err))
        return false;
    if (part < 1 || part > 1)
        return err_set(err, ERR_WORK,
                       "%s: turns only a part of every head (partial_rotary_factor %g), which is not "
                       "supported",
                       f->path, part);
    const char *name = type == NULL ? "default" : type->valuestring;
    if (strcmp(name, "default") == 0)
        return true;
    if (strcmp(name, "linear") == 0)
        return arch_scale_linear(m, factor, err);
    if (strcmp(name, "llama3") == 0)
        return scale_llama3(m, f, rope, factor, err);
    return err_set(err, ERR_WORK, "%s: RoPE scaling '%s' is not supported; 'linear' and 'llama3' are", f->path,
                   printable_line(shown, sizeof shown, name, strlen(name)));
}

/* Which layers attend to a window: one for all of them, or none. Qwen keeps sliding_window in its config even where it is
 * not used, and starts it at layer max_window_layers (or says so for each layer in layer_types). */
static bool
read_window(struct model *m, const struct hf_folder *f, struct err *err)
{
    const cJSON *window = entry_of(f->config, "sliding_window"), *used = entry_of(f->config, "use_sliding_window"),
                *type;
    const cJSON *types = entry_of(f->config, "layer_types");
    double size = 0, full = 0;
    m->desc.window = 0;
    if (window == NULL || (used != NULL && !cJSON_IsTrue(used)) || (used == NULL && strcmp(m->arch, "mistral") != 0))
        return true;
    if (kind_of(window, &size) != VALUE_WHOLE || size < 1 || size > UINT32_MAX - 1)
        return err_set(err, ERR_WORK, "%s: config.json's 'sliding_window' should be a whole number of tokens; " REMEDY,
                       f->path);
    uint32_t sliding = m->desc.n_layers;
    if (cJSON_IsArray(types)) {
        sliding = 0;
        cJSON_ArrayForEach(type, types) sliding +=
            cJSON_IsString(type) && strcmp(type->valuestring, "sliding_attention") == 0;
    } else if (used != NULL && kind_of(entry_of(f->config, "max_window_layers"), &full) == VALUE_WHOLE && full > 0) {
        sliding = full >= m->desc.n_layers ? 0 : m->desc.n_layers - (uint32_t)full;
    }
    if (sliding != 0 && sliding != m->desc.n_layers)
        return err_set(err, ERR_WORK,
                       "%s: %" PRIu32 " of its %" PRIu32 " layers attend to a window, the others to everything; only "
                       "one window for all layers is supported",
                       f->path, sliding, m->desc.n_layers);
    m->desc.window = sliding == 0 ? 0 : (uint32_t)size;
    return true;
}

static bool
refuse_variants(const struct hf_folder *f, struct err *err)
{
    const cJSON *act = entry_of(f->config, "hidden_act"), *quant = entry_of(f->config, "quantization_config");
    char shown[40];
    if (act != NULL &&
        (!cJSON_IsString(act) || (strcmp(act->valuestring, "silu") != 0 && strcmp(act->valuestring, "swish") != 0)))
        return err_set(err, ERR_WORK, "%s: the activation '%s' is not supported; only SiLU is", f->path,
                       cJSON_IsString(act)
                           ? printable_line(shown, sizeof shown, act->valuestring, strlen(act->valuestring))
                           : "?");
    if (quant != NULL) {
        const cJSON *method = entry_of(quant, "quant_method");
        return err_set(err, ERR_WORK,
                       "%s: its weights are quantised with '%s', which is not supported; take the folder in BF16 or "
                       "F16, or a GGUF file",
                       f->path,
                       cJSON_IsString(method)
                           ? printable_line(shown, sizeof shown, method->valuestring, strlen(method->valuestring))
                           : "?");
    }
    return true;
}

static bool
is_tied(const struct hf_folder *f)
{
    const cJSON *tie = entry_of(f->config, "tie_word_embeddings");
    return cJSON_IsBool(tie) ? cJSON_IsTrue(tie) : hf_folder_find(f, hf_names.head) == NULL;
}

bool
arch_read_hf(struct model *m, const struct hf_folder *f, struct err *err)
{
    const cJSON *type = entry_of(f->config, "model_type");
    if (!cJSON_IsString(type))
        return err_set(err, ERR_WORK, "%s: config.json does not say what it is ('model_type'); " REMEDY, f->path);
    const struct arch *arch = arch_of_hf(f->path, type->valuestring, err);
    if (arch == NULL)
        return false;
    snprintf(m->arch, sizeof m->arch, "%s", arch->hf);
    const struct arch_source s = {.path = f->path,
                                  .arch = arch,
                                  .names = &hf_names,
                                  .file = f,
                                  .n_tensors = f->n_tensors,
                                  .number = number,
                                  .tensor = tensor,
                                  .tensor_name = tensor_name};
    bool *used = calloc(s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    m->desc.rope = ROPE_HALVES;
    bool ok = refuse_variants(f, err) && arch_read_numbers(m, &s, err) && read_rope(m, f, err) &&
              read_window(m, f, err) && arch_read_tensors(m, &s, is_tied(f), used, err);
    free(used);
    return ok;
}
