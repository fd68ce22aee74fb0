/* The form of a model, as config.json gives it: what of it the architecture leaves open. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/arch/arch_hf.h"
#include "engine/base/printable.h"

#define REMEDY ARCH_HF_REMEDY

static bool
read_activation(struct model *m, const struct hf_folder *f, struct err *err)
{
    static const struct {
        const char *name;
        enum activation kind;
    } known[] = {{"silu", ACT_SILU},
                 {"swish", ACT_SILU},
                 {"gelu_pytorch_tanh", ACT_GELU_TANH},
                 {"gelu_new", ACT_GELU_TANH},
                 {"gelu_fast", ACT_GELU_TANH},
                 {"gelu", ACT_GELU},
                 {"relu2", ACT_RELU_SQUARED},
                 {"relu_squared", ACT_RELU_SQUARED},
                 {"xielu", ACT_XIELU}};
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation_function", "activation",
                                       "ffn_config.ffn_act_fn.name"};
    char shown[40];
    const cJSON *act = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && act == NULL; i++)
        act = arch_hf_entry(f->config, keys[i]);
    if (act == NULL || m->desc.form.activation == ACT_SWIGLU_CLAMPED)
        return true;
    /* Gemma's first files say gelu and mean the other one, which is what transformers computes, too. */
    if (strcmp(m->arch, "gemma") == 0 && cJSON_IsString(act) && strcmp(act->valuestring, "gelu") == 0)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && cJSON_IsString(act); i++)
        if (strcmp(act->valuestring, known[i].name) == 0) {
            m->desc.form.activation = known[i].kind;
            return true;
        }
    return err_set(
        err, ERR_WORK, "%s: the activation '%s' is not supported; SiLU, GELU, squared ReLU and xIELU are", f->path,
        cJSON_IsString(act) ? printable_line(shown, sizeof shown, act->valuestring, strlen(act->valuestring)) : "?");
}

/* What some models of an architecture have, and this program doesn't compute with. */
static bool
refuse_variants(const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    static const struct {
        const char *key, *what;
    } variants[] = {{"use_qk_norm", "norms of queries and keys of its own kind"},
                    {"qk_layernorm", "norms of queries and keys of its own kind"},
                    {"clip_qkv", "clipped queries, keys and values"},
                    {"alibi", "positions told by attention's scores (ALiBi)"},
                    {"attn_config.qk_ln", "norms of queries and keys of its own kind"},
                    {"attn_config.prefix_lm", "attention to what is to come"},
                    {"apply_residual_connection_post_layernorm", "norms before what is added to"},
                    {"scale_attn_by_inverse_layer_idx", "scores scaled by the layer's number"},
                    {"add_cross_attention", "attention to another model's states"},
                    {"use_bidirectional_attention", "attention to what is to come"}};
    const cJSON *kind = cJSON_GetArrayItem(arch_hf_entry(f->config, "architectures"), 0);
    if (cJSON_IsString(kind) &&
        (strcasestr(kind->valuestring, "eagle") != NULL || strcasestr(kind->valuestring, "medusa") != NULL))
        return err_set(err, ERR_WORK, "%s: holds heads that draft for another model (EAGLE, Medusa), and no model",
                       f->path);
    if (cJSON_IsObject(arch_hf_entry(f->config, "quantization")))
        return err_set(
            err, ERR_WORK,
            "%s: its weights are quantised as MLX has it, which is not supported; take the folder in BF16 or F16, "
            "or a GGUF file",
            f->path);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const cJSON *v = arch_hf_entry(f->config, variants[i].key);
        const bool ours = (strcmp(variants[i].key, "use_qk_norm") == 0 && (arch->may >> LAYER_Q_NORM & 1u) != 0) ||
                          (strcmp(variants[i].key, "clip_qkv") == 0 && (arch->traits & ARCH_CLIPS) != 0) ||
                          (strcmp(variants[i].key, "alibi") == 0 && strcmp(arch->hf, "falcon") == 0);
        if (v != NULL && !cJSON_IsFalse(v) && !ours)
            return err_set(err, ERR_WORK, "%s: has %s (%s), which is not supported", f->path, variants[i].what,
                           variants[i].key);
    }
    return true;
}

/* ---- scales ---- */

/* null is no, too, where an entry is there. */
static bool
said_no(const struct hf_folder *f, const char *name)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(f->config, name);
    return cJSON_IsFalse(said) || cJSON_IsNull(said);
}

static bool
read_scales(struct model *m, const struct hf_folder *f, struct err *err)
{
    double v = 0;
    const enum arch_value kind = arch_hf_kind(arch_hf_entry(f->config, "query_pre_attn_scalar"), &v);
    if (kind == VALUE_OTHER || (kind != VALUE_MISSING && !(v > 0 && v < 1e9)))
        return err_set(err, ERR_WORK, "%s: config.json's 'query_pre_attn_scalar' should be a number above 0; " REMEDY,
                       f->path);
    if (kind != VALUE_MISSING)
        m->desc.form.attention_scale = (float)(1 / sqrt(v));
    if (said_no(f, "scale_attn_weights"))
        m->desc.form.attention_scale = 1;
    static const char *const parallel[] = {"use_parallel_residual", "parallel_attn"};
    for (size_t i = 0; i < sizeof parallel / sizeof parallel[0]; i++)
        if (cJSON_GetObjectItemCaseSensitive(f->config, parallel[i]) != NULL)
            m->desc.form.parallel = !said_no(f, parallel[i]);
    if (cJSON_IsTrue(arch_hf_entry(f->config, "new_decoder_architecture"))) /* Falcon's, whatever else it says */
        m->desc.form.parallel = true;
    return true;
}

/* Falcon's first, whose biases are rounded and scaled with the scores; and others that know no positions otherwise. */
static bool
read_alibi(struct model *m, const struct hf_folder *f, const struct arch *arch, struct layer_desc *layers,
           struct err *err)
{
    struct model_desc *d = &m->desc;
    if ((arch->traits & ARCH_LEANS) != 0 && cJSON_IsFalse(arch_hf_entry(f->config, "attn_config.alibi")))
        return err_set(err, ERR_WORK, "%s: has learned positions (attn_config.alibi is false), which is not supported",
                       f->path);
    if (!cJSON_IsTrue(arch_hf_entry(f->config, "alibi")))
        return true;
    d->form.alibi = (struct alibi){.most = 8, .scale = 1 / sqrtf((float)d->head_dim), .in_bf16 = true};
    for (uint32_t l = 0; l < d->n_layers; l++)
        layers[l].form.rope = LAYER_ROPE_NONE;
    return true;
}

/* ---- windows and rotations ---- */

/* As a list of their kinds says it; "sliding_attention" where there is a window. */
static bool
read_layer_types(struct model *m, const struct hf_folder *f, const cJSON *types, struct layer_desc *layers,
                 struct err *err)
{
    const cJSON *type;
    uint32_t l = 0;
    if (cJSON_GetArraySize(types) != (int)m->desc.n_layers)
        return err_set(err, ERR_WORK,
                       "%s: config.json's 'layer_types' are of %d layers, but it has %" PRIu32 "; " REMEDY, f->path,
                       cJSON_GetArraySize(types), m->desc.n_layers);
    cJSON_ArrayForEach(type, types)
    {
        char shown[40];
        const char *kind = cJSON_IsString(type) ? type->valuestring : "?";
        if (strcmp(kind, "full_attention") != 0 && strcmp(kind, "sliding_attention") != 0)
            return err_set(err, ERR_WORK, "%s: a layer's attention is '%s', which is not supported", f->path,
                           printable_line(shown, sizeof shown, kind, strlen(kind)));
        layers[l++].form.sees_all = strcmp(kind, "full_attention") == 0;
    }
    return true;
}

static void
see_all(struct model *m, struct layer_desc *layers, uint32_t first, uint32_t every)
{
    for (uint32_t l = 1; l <= m->desc.n_layers; l++)
        layers[l - 1].form.sees_all = every > 0 ? l % every == 0 : l <= first;
}

/* Qwen's layers by max_window_layers; SmolLM 3's are those that don't rotate. */
static bool
turn_windows(struct model *m, const struct hf_folder *f, const struct arch *arch, struct layer_desc *layers,
             struct err *err)
{
    double n = 28;
    const bool odd = (arch->traits & ARCH_WINDOWS_ODD) != 0;
    for (uint32_t l = 0; l < m->desc.n_layers && arch->unrotated_every > 0; l++)
        layers[l].form.sees_all = layers[l].form.rope != LAYER_ROPE_NONE;
    if ((arch->traits & (ARCH_WINDOWS_LATE | ARCH_WINDOWS_ODD)) == 0)
        return true;
    const enum arch_value kind = arch_hf_kind(arch_hf_entry(f->config, "max_window_layers"), &n);
    if ((kind != VALUE_WHOLE && kind != VALUE_MISSING) || n < 0)
        return err_set(err, ERR_WORK, "%s: config.json's 'max_window_layers' should be a number of layers; " REMEDY,
                       f->path);
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        layers[l].form.sees_all = odd ? l % 2 == 1 || l >= n : l < n;
    return true;
}

/* The window itself. Qwen keeps one in its config even where it is not used. */
static bool
read_window(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    const cJSON *window = cJSON_GetObjectItemCaseSensitive(f->config, "sliding_window"),
                *used = arch_hf_entry(f->config, "use_sliding_window");
    double size = arch->usual_window;
    m->desc.window = 0;
    if (cJSON_IsNull(window) || (used != NULL && !cJSON_IsTrue(used)) ||
        (used == NULL && (arch->traits & ARCH_WINDOWED) == 0))
        return true;
    if (window != NULL && (arch_hf_kind(window, &size) != VALUE_WHOLE || size < 1 || size > UINT32_MAX - 1))
        return err_set(err, ERR_WORK, "%s: config.json's 'sliding_window' should be a whole number of tokens; " REMEDY,
                       f->path);
    m->desc.window = (uint32_t)size;
    return true;
}

/* Which layers have it: layer_types say, or one in a pattern sees everything, or those below max_window_layers (Qwen). */
static bool
read_windows(struct model *m, const struct hf_folder *f, const struct arch *arch, struct layer_desc *layers,
             struct err *err)
{
    const cJSON *types = arch_hf_entry(f->config, "layer_types"),
                *pattern = arch_hf_entry(f->config, "sliding_window_pattern");
    double n = 0;
    if (!read_window(m, f, arch, err))
        return false;
    see_all(m, layers, 0, m->desc.window > 0 ? arch->full_every : 0);
    if (m->desc.window > 0 && cJSON_IsArray(types)) {
        if (!read_layer_types(m, f, types, layers, err))
            return false;
    } else if (m->desc.window > 0 && arch_hf_kind(pattern, &n) == VALUE_WHOLE && n >= 1 && n <= UINT32_MAX) {
        see_all(m, layers, 0, (uint32_t)n);
    } else if (m->desc.window > 0 && cJSON_IsString(pattern) && pattern->valuestring[0] != '\0') { /* "LLLG" */
        see_all(m, layers, 0, (uint32_t)strlen(pattern->valuestring));
    } else if (m->desc.window > 0 && !turn_windows(m, f, arch, layers, err)) {
        return false;
    }
    bool any = false;
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        any = any || !layers[l].form.sees_all;
    if (!any)
        m->desc.window = 0;
    for (uint32_t l = 0; l < m->desc.n_layers; l++)
        layers[l].form.sees_all = layers[l].form.sees_all && m->desc.window > 0;
    return true;
}

/* SmolLM 3's list: 1 for a layer that rotates; or each how many doesn't. */
static bool
read_unrotated(struct model *m, const struct hf_folder *f, struct layer_desc *layers, struct err *err)
{
    const cJSON *list = arch_hf_entry(f->config, "no_rope_layers"), *item;
    uint32_t l = 0;
    double every = 0;
    if (list == NULL && arch_hf_kind(arch_hf_entry(f->config, "no_rope_layer_interval"), &every) == VALUE_WHOLE &&
        every >= 1 && every <= UINT32_MAX)
        for (; l < m->desc.n_layers; l++)
            layers[l].form.rope = (l + 1) % (uint32_t)every != 0 ? LAYER_ROPE_GLOBAL : LAYER_ROPE_NONE;
    if (list == NULL)
        return true;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)m->desc.n_layers)
        return err_set(err, ERR_WORK,
                       "%s: config.json's 'no_rope_layers' should be a list with a number for each layer; " REMEDY,
                       f->path);
    cJSON_ArrayForEach(item, list) layers[l++].form.rope =
        cJSON_IsNumber(item) && item->valuedouble > 0 ? LAYER_ROPE_GLOBAL : LAYER_ROPE_NONE;
    return true;
}

/* What is left open of how experts are chosen and computed. */
static bool
read_routing(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    const cJSON *says = arch_hf_entry(f->config, "norm_topk_prob"),
                *jitter = arch_hf_entry(f->config, "router_jitter_noise"),
                *power = cJSON_GetObjectItemCaseSensitive(arch_hf_entry(f->config, "ffn_config"),
                                                          "moe_normalize_expert_weights");
    static const struct {
        const char *key;
        double value;
    } constants[] = {{"swiglu_alpha", 1.702}, {"swiglu_limit", 7}};
    double least = 0;
    struct experts_form *e = &m->desc.form.experts;
    if (e->n > 0 && arch->experts->says && cJSON_IsBool(says))
        e->renormalised = cJSON_IsTrue(says);
    if (e->n > 0 && e->routing == ROUTE_SPARSEMIXER && cJSON_IsNumber(jitter))
        e->jitter = (float)jitter->valuedouble;
    if (cJSON_IsNull(power)) /* DBRX's weights are divided by a norm of theirs */
        e->renormalised = false;
    else if (power != NULL && !(cJSON_IsNumber(power) && fabs(power->valuedouble - 1) < 1e-9))
        return err_set(err, ERR_WORK,
                       "%s: config.json's 'moe_normalize_expert_weights' is not 1, which is not supported", f->path);
    if (arch_hf_kind(arch_hf_entry(f->config, "moe_norm_min"), &least) != VALUE_MISSING && !(least <= 1e-4))
        return err_set(err, ERR_WORK, "%s: config.json's 'moe_norm_min' is %g, which is not supported; 1e-12 is usual",
                       f->path, least);
    for (size_t i = 0; m->desc.form.activation == ACT_SWIGLU_CLAMPED && i < 2; i++) {
        double v = constants[i].value;
        if (arch_hf_kind(arch_hf_entry(f->config, constants[i].key), &v) != VALUE_MISSING &&
            !(fabs(v - constants[i].value) < 1e-9))
            return err_set(err, ERR_WORK, "%s: config.json's '%s' is %g, not %g, which is not supported", f->path,
                           constants[i].key, v, constants[i].value);
    }
    return true;
}

bool
arch_hf_form(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    struct layer_desc *layers = (struct layer_desc *)m->desc.layers; /* the model's own */
    if (!refuse_variants(f, arch, err) || !read_activation(m, f, err) || !read_scales(m, f, err) ||
        !read_alibi(m, f, arch, layers, err) || !read_routing(m, f, arch, err) || !read_unrotated(m, f, layers, err) ||
        !read_windows(m, f, arch, layers, err))
        return false;
    arch_rotations(m, arch, layers);
    return true;
}
