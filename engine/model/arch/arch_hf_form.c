/* Reads RoPE and the model's form from config.json: the rotated part of a head, RoPE's scaling, activation, scales,
 * windows and routing. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch_hf.h"
#include "engine/model/arch/arch_tensors.h"

#define REMEDY ARCH_HF_REMEDY
#define TWO_PI 6.283185307179586

struct reading {
    struct model *model;
    const struct arch *arch;
    const cJSON *config, *rope; /* rope may be NULL */
    const char *path;
    struct layer_desc *layers; /* the model's; allocated by arch_make_layers(), so they are writable */
    struct err *err;
};

/* Sets an error that begins with the folder's name, and returns false. */
#define refuse(r, ...) (arch_fill((r)->err, (r)->path, __VA_ARGS__), err_false())

static const cJSON *
entry(const struct reading *r, const char *name)
{
    return arch_hf_entry(r->config, name);
}

static bool
read_real(const struct reading *r, const char *name, double otherwise, double *out)
{
    const cJSON *v = arch_hf_entry(r->rope, name);
    *out = v == NULL ? otherwise : v->valuedouble;
    if ((v != NULL && (!cJSON_IsNumber(v) || isnan(*out))) || !(isnan(*out) || fabs(*out) <= 3.4e38))
        return refuse(r, "config.json's '%s' of RoPE should be a number; " REMEDY, name);
    return true;
}

/* The same for a required number. */
static bool
need_real(const struct reading *r, const char *name, double *out)
{
    if (!read_real(r, name, NAN, out))
        return false;
    return !isnan(*out) || refuse(r, "config.json's '%s' of RoPE should be a number; " REMEDY, name);
}

/* Reads the context of the first training. The entry of config.json itself takes precedence over rope_parameters. */
static bool
read_old(const struct reading *r, double *out)
{
    static const char name[] = "original_max_position_embeddings";
    const bool by_kind = entry(r, ARCH_HF_ROPE_LOCAL) != NULL;
    const enum arch_value kind = arch_hf_kind(entry(r, name), out);
    if (by_kind || kind == VALUE_MISSING)
        return read_real(r, name, r->model->ctx_train, out);
    return kind != VALUE_OTHER || refuse(r, "config.json's '%s' should be a number; " REMEDY, name);
}

/* Reads a number of RoPE's parameters. 0 is the same as missing, as in transformers' Python code. */
static bool
read_above(const struct reading *r, const char *name, double otherwise, double *out)
{
    if (!read_real(r, name, otherwise, out))
        return false;
    if (!(*out < 0) && !(*out > 0))
        *out = otherwise;
    return true;
}

static bool
senseless(const struct reading *r, const char *kind)
{
    return refuse(r, "the factors of its RoPE scaling '%s' make no sense; " REMEDY, kind);
}

/* Llama 3.1's scaling, as divisors of the frequencies. Frequencies with wavelengths above old/low are divided by
 * `factor`, those below old/high are unchanged, and those in between are interpolated. */
static bool
scale_llama3(const struct reading *r, double factor)
{
    struct model_desc *d = &r->model->desc;
    double low, high, old = 0;
    if (!need_real(r, "low_freq_factor", &low) || !need_real(r, "high_freq_factor", &high) || !read_old(r, &old))
        return false;
    if (!(low > 0 && high > low && old >= 1 && factor >= 1e-3 && factor <= 1e6))
        return senseless(r, "llama3");
    float *divisors = arch_divisors(r->model, r->err);
    for (uint32_t i = 0; divisors != NULL && i < d->rope_dims / 2; i++) {
        const double wavelength = TWO_PI * pow(d->rope_base, 2.0 * i / d->rope_dims);
        const double smooth = fmin(1, fmax(0, (old / wavelength - low) / (high - low)));
        divisors[i] = (float)(1 / ((1 - smooth) / factor + smooth));
    }
    return divisors != NULL;
}

static bool
scale_yarn(const struct reading *r, double factor)
{
    const cJSON *cut = cJSON_GetObjectItemCaseSensitive(r->rope, "truncate");
    struct arch_yarn y = {.whole = cut == NULL || cJSON_IsTrue(cut)};
    double scale, scale_all;
    if (!read_above(r, "beta_fast", 32, &y.fast) || !read_above(r, "beta_slow", 1, &y.slow) || !read_old(r, &y.old) ||
        !read_real(r, "attention_factor", NAN, &y.gain) || !read_above(r, "mscale", NAN, &scale) ||
        !read_above(r, "mscale_all_dim", NAN, &scale_all))
        return false;
    y.factor = factor = isnan(factor) ? r->model->ctx_train / y.old : factor;
    double growth;
    if (!read_real(r, "llama_4_scaling_beta", 0, &growth))
        return false;
    if (!(growth >= 0 && growth <= 1e3 && y.old >= TWO_PI * y.slow && y.old <= UINT32_MAX))
        return senseless(r, "yarn");
    r->model->desc.form.growth = (float)growth;
    r->model->desc.form.growth_every = (uint32_t)y.old;
    const double sharp = factor > 1 ? 0.1 * log(factor) : 0;
    if (isnan(y.gain) && !isnan(scale) && !isnan(scale_all))
        y.gain = (scale * sharp + 1) / (scale_all * sharp + 1);
    return arch_scale_yarn(r->model, &y, r->err);
}

/* LongRoPE: a divisor for each frequency, for short and for long texts. The short ones apply up to the context of the
 * first training, so this program limits the context to that. */
static bool
scale_long(const struct reading *r, double factor)
{
    struct model_desc *d = &r->model->desc;
    double old = 0, gain;
    const cJSON *list = arch_hf_entry(r->rope, "short_factor"), *item;
    if (!read_old(r, &old) || !read_real(r, "attention_factor", NAN, &gain))
        return false;
    if (!cJSON_IsArray(list) || (uint32_t)cJSON_GetArraySize(list) != d->rope_dims / 2 ||
        !(old >= 2 && old <= INT32_MAX))
        return senseless(r, "longrope");
    float *divisors = arch_divisors(r->model, r->err);
    if (divisors == NULL)
        return false;
    uint32_t i = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble < 1e9))
            return senseless(r, "longrope");
        divisors[i++] = (float)item->valuedouble;
    }
    if (isnan(factor))
        factor = r->model->ctx_train / old;
    if (isnan(gain) && !read_real(r, "short_mscale", NAN, &gain)) /* PhiMoE's */
        return false;
    if (isnan(gain))
        gain = factor > 1 ? sqrt(1 + log(factor) / log(old)) : 1;
    d->form.rope_gain = (float)gain;
    if (r->model->ctx_train > old)
        r->model->ctx_train = (uint32_t)old;
    return true;
}

/* Dynamic scaling changes frequencies only when a text is longer than the context, so here they are unchanged. Hunyuan
 * has `alpha`, a factor for the base, instead. */
static bool
scale_dynamic(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    double alpha;
    if (!read_real(r, "alpha", NAN, &alpha))
        return false;
    if (isnan(alpha) || d->rope_dims <= 2)
        return true;
    if (!(alpha > 0 && alpha <= 1e6))
        return senseless(r, "dynamic");
    d->rope_base = (float)(d->rope_base * pow(alpha, d->rope_dims / (d->rope_dims - 2.0)));
    return true;
}

/* Gemma 4's "proportional" RoPE: of the pairs of a whole head the first part rotates, with frequencies relative to the
 * whole; the others have divisors so large that they do not. */
static bool
scale_proportional(const struct reading *r, double factor)
{
    struct model_desc *d = &r->model->desc;
    double part;
    if (!read_real(r, "partial_rotary_factor", 1, &part))
        return false;
    factor = isnan(factor) ? 1 : factor;
    if (!(part >= 0 && part <= 1 && factor > 1e-3 && factor < 1e6))
        return senseless(r, "proportional");
    float *divisors = arch_divisors(r->model, r->err);
    const uint32_t rotated = (uint32_t)(part * d->rope_dims / 2);
    for (uint32_t i = 0; divisors != NULL && i < d->rope_dims / 2; i++)
        divisors[i] = i < rotated ? (float)factor : 1e30f;
    return divisors != NULL;
}

static bool
scale(const struct reading *r)
{
    char shown[40];
    double factor;
    const cJSON *type = arch_hf_entry(r->rope, "rope_type");
    if (type == NULL)
        type = arch_hf_entry(r->rope, "type"); /* the older name */
    if (!cJSON_IsObject(r->rope) || (type != NULL && !cJSON_IsString(type)))
        return refuse(r, "config.json's RoPE scaling is not understood; " REMEDY);
    const char *name = type == NULL ? "default" : type->valuestring;
    if (strcmp(name, "default") == 0)
        return true;
    const bool long_rope = strcmp(name, "longrope") == 0 || strcmp(name, "su") == 0, yarn = strcmp(name, "yarn") == 0;
    if (!read_real(r, "factor", NAN, &factor))
        return false;
    if (strcmp(name, "proportional") == 0)
        return scale_proportional(r, factor);
    if (isnan(factor) && !long_rope && !(yarn && cJSON_GetObjectItemCaseSensitive(r->rope, "factor") != NULL))
        return need_real(r, "factor", &factor);
    if (strcmp(name, "linear") == 0)
        return arch_scale_linear(r->model, factor, r->err);
    if (strcmp(name, "llama3") == 0)
        return scale_llama3(r, factor);
    if (yarn)
        return scale_yarn(r, factor);
    if (long_rope)
        return scale_long(r, factor);
    if (strcmp(name, "dynamic") == 0)
        return scale_dynamic(r);
    return refuse(r, "RoPE scaling '%s' is not supported; linear, llama3, yarn, longrope and dynamic are",
                  printable_line(shown, sizeof shown, name, strlen(name)));
}

static bool
read_part(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    static const char *const names[] = {"partial_rotary_factor", "rotary_pct"};
    double part = NAN;
    for (size_t i = 0; i < 2 && isnan(part); i++) {
        if (!read_real(r, names[i], NAN, &part))
            return false;
        if (isnan(part) && arch_hf_kind(entry(r, names[i]), &part) == VALUE_OTHER)
            part = -1;
    }
    if (isnan(part))
        return true;
    const uint32_t dims = part > 0 && part <= 1 ? (uint32_t)(d->head_dim * part) : 0;
    if (dims == 0 || dims % 2 != 0)
        return refuse(r, "a partial_rotary_factor of %g of %u dimensions makes no sense; " REMEDY, part,
                      (unsigned)d->head_dim);
    d->rope_dims = dims;
    return true;
}

/* Reads RoPE's base for layers with a window, if the architecture has one. Scaling for them is not supported. */
static bool
read_local(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    const cJSON *local = entry(r, ARCH_HF_ROPE_LOCAL), *type = arch_hf_entry(local, "rope_type");
    double base = 0;
    if (!(r->arch->form.local_base > 0))
        return true;
    type = type == NULL ? arch_hf_entry(local, "type") : type;
    if (type != NULL && (!cJSON_IsString(type) || strcmp(type->valuestring, "default") != 0))
        return refuse(r, "RoPE of layers with a window is scaled, which is not supported");
    const cJSON *v = arch_hf_entry(local, "rope_theta");
    v = v != NULL ? v : entry(r, "rope_local_base_freq");
    const enum arch_value kind = arch_hf_kind(v, &base);
    if (kind == VALUE_OTHER || (kind != VALUE_MISSING && !(base >= 1 && base <= 3e38)))
        return refuse(r, "a RoPE base of %g makes no sense; " REMEDY, base);
    if (kind != VALUE_MISSING)
        d->form.local_base = (float)base;
    return true;
}

static struct reading
reading_of(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    return (struct reading){.model = m,
                            .arch = arch,
                            .config = f->config,
                            .rope = arch_hf_entry(f->config, "rope_parameters"),
                            .path = f->path,
                            .layers = (struct layer_desc *)m->desc.layers,
                            .err = err};
}

bool
arch_hf_read_rope(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    const struct reading r = reading_of(m, f, arch, err);
    return ((arch->flags & ARCH_KINDS) != 0 || read_part(&r)) && read_local(&r) && (r.rope == NULL || scale(&r));
}

/* ---- form ---- */

static bool
read_activation(const struct reading *r)
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
        act = entry(r, keys[i]);
    if (act == NULL || r->model->desc.form.activation == ACT_SWIGLU_CLAMPED)
        return true;
    /* Gemma's first files contain "gelu" but were trained with GELU's tanh form, which transformers also computes. */
    if (strcmp(r->model->arch, "gemma") == 0 && cJSON_IsString(act) && strcmp(act->valuestring, "gelu") == 0)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && cJSON_IsString(act); i++)
        if (strcmp(act->valuestring, known[i].name) == 0) {
            r->model->desc.form.activation = known[i].kind;
            return true;
        }
    return refuse(r, "the activation '%s' is not supported; SiLU, GELU, squared ReLU and xIELU are",
                  cJSON_IsString(act) ? printable_line(shown, sizeof shown, act->valuestring, strlen(act->valuestring))
                                      : "?");
}

/* Fails if config.json turns on a feature that is not supported. */
static bool
refuse_variants(const struct reading *r)
{
    static const char *const variants[] = {"use_qk_norm",
                                           "qk_layernorm",
                                           "clip_qkv",
                                           "alibi",
                                           "attn_config.qk_ln",
                                           "attn_config.prefix_lm",
                                           "apply_residual_connection_post_layernorm",
                                           "scale_attn_by_inverse_layer_idx",
                                           "add_cross_attention",
                                           "use_bidirectional_attention",
                                           "conv_bias",
                                           "mamba_proj_bias"};
    const cJSON *kind = cJSON_GetArrayItem(entry(r, "architectures"), 0);
    if (cJSON_IsString(kind) &&
        (strcasestr(kind->valuestring, "eagle") != NULL || strcasestr(kind->valuestring, "medusa") != NULL))
        return refuse(r, "contains heads that draft for another model (EAGLE, Medusa), not a model");
    if (cJSON_IsObject(entry(r, "quantization")))
        return refuse(r, "its weights are quantised in MLX's format, which is not supported; take the folder in BF16 "
                         "or F16, or a GGUF file");
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const char *key = variants[i];
        const cJSON *v = entry(r, key);
        const bool ours = (strcmp(key, "use_qk_norm") == 0 && (r->arch->may >> LAYER_Q_NORM & 1u) != 0) ||
                          (strcmp(key, "clip_qkv") == 0 && (r->arch->flags & ARCH_CLIPS) != 0) ||
                          (strcmp(key, "alibi") == 0 && strcmp(r->arch->hf, "falcon") == 0);
        /* Gemma 4's "vision": only images are read in both directions. */
        const bool seen = cJSON_IsString(v) && strcmp(v->valuestring, "vision") == 0;
        if (v != NULL && !cJSON_IsFalse(v) && !ours && !seen)
            return refuse(r, "config.json's '%s' is not supported for this architecture", key);
    }
    return true;
}

/* ---- scales ---- */

/* Returns true if the entry exists and is false or null. */
static bool
said_no(const struct reading *r, const char *name)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(r->config, name);
    return cJSON_IsFalse(said) || cJSON_IsNull(said);
}

static bool
read_scales(const struct reading *r)
{
    double v = 0;
    const enum arch_value kind = arch_hf_kind(entry(r, "query_pre_attn_scalar"), &v);
    if (kind == VALUE_OTHER || (kind != VALUE_MISSING && !(v > 0 && v < 1e9)))
        return refuse(r, "config.json's 'query_pre_attn_scalar' should be a number above 0; " REMEDY);
    if (kind != VALUE_MISSING)
        r->model->desc.form.attention_scale = (float)(1 / sqrt(v));
    if (said_no(r, "scale_attn_weights"))
        r->model->desc.form.attention_scale = 1;
    static const char *const parallel[] = {"use_parallel_residual", "parallel_attn"};
    for (size_t i = 0; i < sizeof parallel / sizeof parallel[0]; i++)
        if (cJSON_GetObjectItemCaseSensitive(r->config, parallel[i]) != NULL)
            r->model->desc.form.parallel = !said_no(r, parallel[i]);
    if (cJSON_IsTrue(entry(r, "new_decoder_architecture"))) /* Falcon: overrides parallel_attn */
        r->model->desc.form.parallel = true;
    return true;
}

/* Reads the bounds of Mamba-2's step. transformers writes Infinity, or an object for it. */
static void
read_steps(const struct reading *r)
{
    const cJSON *limits = entry(r, "time_step_limit");
    const cJSON *least = cJSON_GetArrayItem(limits, 0), *most = cJSON_GetArrayItem(limits, 1);
    struct recurrent_form *form = &r->model->desc.form.recurrent;
    double low = 0, high = 0;
    const enum arch_value kind = arch_hf_kind(most, &high);
    (void)arch_hf_kind(least, &low);
    form->step_least = (float)low;
    form->step_most = kind == VALUE_WHOLE || kind == VALUE_REAL ? (float)high : low > 0 ? HUGE_VALF : 0;
}

/* Reads ALiBi of the first Falcons, whose biases are rounded to BF16 and scaled with the scores. Fails if another
 * architecture with ALiBi turns it off. */
static bool
read_alibi(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    if ((r->arch->flags & ARCH_USES_ALIBI) != 0 && cJSON_IsFalse(entry(r, "attn_config.alibi")))
        return refuse(r, "has learned positions (attn_config.alibi is false), which is not supported");
    if (!cJSON_IsTrue(entry(r, "alibi")))
        return true;
    d->form.alibi = (struct alibi){.most = 8, .scale = 1 / sqrtf((float)d->head_dim), .in_bf16 = true};
    for (uint32_t l = 0; l < d->n_layers; l++)
        r->layers[l].form.rope = LAYER_ROPE_NONE;
    return true;
}

/* ---- windows and rotations ---- */

static bool
wrong_types(const struct reading *r, const cJSON *types)
{
    return refuse(r, "config.json's 'layer_types' are of %d layers, but it has %" PRIu32 "; " REMEDY,
                  cJSON_GetArraySize(types), r->model->desc.n_layers);
}

/* Reads the windows from layer_types, a list with "sliding_attention" for layers with a window. */
static bool
read_layer_types(const struct reading *r, const cJSON *types)
{
    const cJSON *type;
    uint32_t l = 0;
    if (cJSON_GetArraySize(types) != (int)r->model->desc.n_layers)
        return wrong_types(r, types);
    cJSON_ArrayForEach(type, types)
    {
        char shown[40];
        const char *kind = cJSON_IsString(type) ? type->valuestring : "?";
        if (strcmp(kind, "full_attention") != 0 && strcmp(kind, "sliding_attention") != 0)
            return refuse(r, "a layer's attention is '%s', which is not supported",
                          printable_line(shown, sizeof shown, kind, strlen(kind)));
        r->layers[l++].form.sees_all = strcmp(kind, "full_attention") == 0;
    }
    return true;
}

/* Reads which layers are recurrent: from layer_types, from the indices of the other ones, or from their interval. */
static bool
read_kinds(const struct reading *r)
{
    static const char *const names[RECURRENCES] = {"linear_attention", "mamba", "conv"};
    const cJSON *types = entry(r, "layer_types"), *type;
    const cJSON *indices = cJSON_IsArray(types) ? NULL : entry(r, "full_attn_idxs");
    indices = indices != NULL || cJSON_IsArray(types) ? indices : entry(r, "attn_layer_indices");
    double every = r->arch->attention_every;
    uint32_t l = 0;
    if (r->arch->attention_every == 0)
        return true;
    const enum arch_value kind = arch_hf_kind(entry(r, "full_attention_interval"), &every);
    if (kind == VALUE_REAL || kind == VALUE_OTHER || !(every >= 1 && every <= UINT32_MAX))
        return refuse(r, "config.json's 'full_attention_interval' should be a number of layers; " REMEDY);
    if (cJSON_IsArray(types) && cJSON_GetArraySize(types) != (int)r->model->desc.n_layers)
        return wrong_types(r, types);
    for (; !cJSON_IsArray(types) && l < r->model->desc.n_layers; l++)
        r->layers[l].form.kind =
            cJSON_IsArray(indices) || (l + 1) % (uint32_t)every != 0 ? LAYER_RECURRENT : LAYER_ATTENTION;
    cJSON_ArrayForEach(type, indices)
    {
        if (!cJSON_IsNumber(type) || !(type->valuedouble >= 0 && type->valuedouble < r->model->desc.n_layers))
            return refuse(r, "config.json's indices of attention should be numbers of layers; " REMEDY);
        r->layers[(uint32_t)type->valuedouble].form.kind = LAYER_ATTENTION;
    }
    cJSON_ArrayForEach(type, types)
    {
        char shown[40];
        const char *name = cJSON_IsString(type) ? type->valuestring : "?";
        const bool recurrent =
            strcmp(name, names[r->model->desc.form.recurrent.kind]) == 0 || strcmp(name, names[0]) == 0;
        if (!recurrent && strcmp(name, "full_attention") != 0 && strcmp(name, "attention") != 0)
            return refuse(r, "a layer's attention is '%s', which is not supported",
                          printable_line(shown, sizeof shown, name, strlen(name)));
        r->layers[l++].form.kind = recurrent ? LAYER_RECURRENT : LAYER_ATTENTION;
    }
    return true;
}

static void
see_all(const struct reading *r, uint32_t first, uint32_t every)
{
    for (uint32_t l = 1; l <= r->model->desc.n_layers; l++)
        r->layers[l - 1].form.sees_all = every > 0 && (l - 1) % every == first;
}

/* Sets the windows from max_window_layers (Qwen). In SmolLM 3 the layers without rotation have the window. */
static bool
rotate_windows(const struct reading *r)
{
    double n = 28;
    const bool odd = (r->arch->flags & ARCH_WINDOWS_ODD) != 0;
    for (uint32_t l = 0; l < r->model->desc.n_layers && r->arch->unrotated_every > 0; l++)
        r->layers[l].form.sees_all = r->layers[l].form.rope != LAYER_ROPE_NONE;
    if ((r->arch->flags & (ARCH_WINDOWS_LATE | ARCH_WINDOWS_ODD)) == 0)
        return true;
    const enum arch_value kind = arch_hf_kind(entry(r, "max_window_layers"), &n);
    if ((kind != VALUE_WHOLE && kind != VALUE_MISSING) || n < 0)
        return refuse(r, "config.json's 'max_window_layers' should be a number of layers; " REMEDY);
    for (uint32_t l = 0; l < r->model->desc.n_layers; l++)
        r->layers[l].form.sees_all = odd ? l % 2 == 1 || l >= n : l < n;
    return true;
}

/* Reads the window's size. Qwen's config.json contains one even if use_sliding_window is false. */
static bool
read_window(const struct reading *r)
{
    const cJSON *window = cJSON_GetObjectItemCaseSensitive(r->config, "sliding_window"),
                *used = entry(r, "use_sliding_window");
    double size = 0;
    r->model->desc.window = 0;
    if (cJSON_IsNull(window) || (used != NULL && !cJSON_IsTrue(used)) ||
        (used == NULL && (r->arch->flags & ARCH_WINDOWED) == 0))
        return true;
    if (window != NULL && (arch_hf_kind(window, &size) != VALUE_WHOLE || size < 1 || size > UINT32_MAX - 1))
        return refuse(r, "config.json's 'sliding_window' should be a whole number of tokens; " REMEDY);
    r->model->desc.window = (uint32_t)size;
    return true;
}

/* Reads which layers have a window: from layer_types, from a pattern whose last layer has none, or from
 * max_window_layers (Qwen). */
static bool
read_windows(const struct reading *r)
{
    const cJSON *types = entry(r, "layer_types"), *pattern = entry(r, "sliding_window_pattern");
    double n = 0;
    if (!read_window(r))
        return false;
    const uint32_t last =
        r->arch->full_every > 0 && (r->arch->flags & ARCH_FULL_FIRST) == 0 ? r->arch->full_every - 1 : 0;
    see_all(r, last, r->model->desc.window > 0 ? r->arch->full_every : 0);
    if (r->model->desc.window > 0 && cJSON_IsArray(types)) {
        if (!read_layer_types(r, types))
            return false;
    } else if (r->model->desc.window > 0 && arch_hf_kind(pattern, &n) == VALUE_WHOLE && n >= 1 && n <= UINT32_MAX) {
        see_all(r, (uint32_t)n - 1, (uint32_t)n);
    } else if (r->model->desc.window > 0 && cJSON_IsString(pattern) && pattern->valuestring[0] != '\0') { /* "LLLG" */
        see_all(r, (uint32_t)strlen(pattern->valuestring) - 1, (uint32_t)strlen(pattern->valuestring));
    } else if (r->model->desc.window > 0 && !rotate_windows(r)) {
        return false;
    }
    if ((r->arch->flags & ARCH_KINDS) != 0) /* as transformers has it */
        r->layers[r->model->desc.n_layers - 1].form.sees_all = true;
    bool any = false;
    for (uint32_t l = 0; l < r->model->desc.n_layers; l++)
        any = any || !r->layers[l].form.sees_all;
    if (!any)
        r->model->desc.window = 0;
    for (uint32_t l = 0; l < r->model->desc.n_layers; l++)
        r->layers[l].form.sees_all = r->layers[l].form.sees_all && r->model->desc.window > 0;
    return true;
}

/* Reads which layers rotate (SmolLM 3): from a list that has 1 for each rotating layer, or from the interval of the
 * other ones. */
static bool
read_unrotated(const struct reading *r)
{
    const cJSON *list = entry(r, "no_rope_layers"), *item;
    uint32_t l = 0;
    double every = 0;
    if (list == NULL && arch_hf_kind(entry(r, "no_rope_layer_interval"), &every) == VALUE_WHOLE && every >= 1 &&
        every <= UINT32_MAX)
        for (; l < r->model->desc.n_layers; l++)
            r->layers[l].form.rope = (l + 1) % (uint32_t)every != 0 ? LAYER_ROPE_GLOBAL : LAYER_ROPE_NONE;
    if (list == NULL)
        return true;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)r->model->desc.n_layers)
        return refuse(r, "config.json's 'no_rope_layers' should be a list with a number for each layer; " REMEDY);
    cJSON_ArrayForEach(item, list) r->layers[l++].form.rope =
        cJSON_IsNumber(item) && item->valuedouble > 0 ? LAYER_ROPE_GLOBAL : LAYER_ROPE_NONE;
    return true;
}

/* Reads how experts are chosen and computed. Fails on values that are not supported. */
static bool
read_routing(const struct reading *r)
{
    const cJSON *declares = entry(r, "norm_topk_prob"), *jitter = entry(r, "router_jitter_noise"),
                *power = cJSON_GetObjectItemCaseSensitive(entry(r, "ffn_config"), "moe_normalize_expert_weights");
    static const struct {
        const char *key;
        double value;
    } constants[] = {{"swiglu_alpha", 1.702}, {"swiglu_limit", 7}};
    double least = 0, noise = 0;
    struct experts_form *e = &r->model->desc.form.experts;
    if (e->n > 0 && r->arch->experts->declares && cJSON_IsBool(declares))
        e->renormalised = cJSON_IsTrue(declares);
    if (e->n > 0 && e->routing == ROUTE_SPARSEMIXER && cJSON_IsNumber(jitter) &&
        arch_hf_kind(jitter, &noise) != VALUE_OTHER)
        e->jitter = (float)noise;
    if (cJSON_IsNull(power)) /* null: DBRX's weights are not divided by their norm */
        e->renormalised = false;
    else if (power != NULL && !(cJSON_IsNumber(power) && fabs(power->valuedouble - 1) < 1e-9))
        return refuse(r, "config.json's 'moe_normalize_expert_weights' is not 1, which is not supported");
    if (arch_hf_kind(entry(r, "moe_norm_min"), &least) != VALUE_MISSING && !(least <= 1e-4))
        return refuse(r, "config.json's 'moe_norm_min' is %g, which is not supported; 1e-12 is usual", least);
    for (size_t i = 0; r->model->desc.form.activation == ACT_SWIGLU_CLAMPED && i < 2; i++) {
        double v = constants[i].value;
        if (arch_hf_kind(entry(r, constants[i].key), &v) != VALUE_MISSING && !(fabs(v - constants[i].value) < 1e-9))
            return refuse(r, "config.json's '%s' is %g, not %g, which is not supported", constants[i].key, v,
                          constants[i].value);
    }
    return true;
}

bool
arch_hf_form(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    const struct reading r = reading_of(m, f, arch, err);
    if (!refuse_variants(&r) || !read_activation(&r) || !read_scales(&r) || !read_alibi(&r) || !read_routing(&r) ||
        !read_unrotated(&r) || !read_windows(&r) || !read_kinds(&r))
        return false;
    if (m->desc.form.recurrent.kind == RECURRENCE_MAMBA)
        read_steps(&r);
    if (cJSON_IsTrue(entry(&r, "linear_allow_neg_eigval")))
        m->desc.form.recurrent.beta = 2;
    arch_rotations(m, arch, r.layers);
    return true;
}

/* Layers that read the keys and values of others have MLPs of twice the width with use_double_wide_mlp. */
void
arch_hf_widen(struct model *m, const struct hf_folder *f)
{
    struct layer_desc *layers = (struct layer_desc *)m->desc.layers; /* as above */
    const uint32_t ffn = m->desc.ffn;
    if (!cJSON_IsTrue(arch_hf_entry(f->config, "use_double_wide_mlp")))
        return;
    for (uint32_t l = 0; l < m->desc.n_layers; l++) {
        layers[l].form.ffn = layers[l].form.kv_layer > 0 ? 2 * ffn : ffn;
        m->desc.ffn = layers[l].form.ffn > m->desc.ffn ? layers[l].form.ffn : m->desc.ffn;
    }
}
