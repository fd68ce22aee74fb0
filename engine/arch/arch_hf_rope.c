/* RoPE as config.json gives it: base, part of a head that turns, and the ways to segment it. */
#include <math.h>
#include <string.h>

#include "engine/arch/arch_hf.h"
#include "engine/base/printable.h"

#define REMEDY ARCH_HF_REMEDY
#define TWO_PI 6.283185307179586

struct reading {
    struct model *model;
    const struct hf_folder *folder;
    const cJSON *rope; /* or NULL */
    struct err *err;
};

static bool
read_real(const struct reading *r, const char *name, double otherwise, double *out)
{
    const cJSON *v = arch_hf_entry(r->rope, name);
    *out = v == NULL ? otherwise : v->valuedouble;
    if ((v != NULL && !cJSON_IsNumber(v)) || !(isnan(*out) || fabs(*out) <= 3.4e38))
        return err_set(r->err, ERR_WORK, "%s: config.json's '%s' of RoPE should be a number; " REMEDY, r->folder->path,
                       name);
    return true;
}

/* One that has to be there. */
static bool
need_real(const struct reading *r, const char *name, double *out)
{
    if (!read_real(r, name, NAN, out))
        return false;
    return !isnan(*out) || err_set(r->err, ERR_WORK, "%s: config.json's '%s' of RoPE should be a number; " REMEDY,
                                   r->folder->path, name);
}

/* How far the first training went: what stands beside RoPE's parameters goes before what stands among them. */
static bool
read_old(const struct reading *r, double *out)
{
    static const char name[] = "original_max_position_embeddings";
    const bool by_kind = arch_hf_entry(r->folder->config, ARCH_HF_ROPE_LOCAL) != NULL;
    const enum arch_value kind = arch_hf_kind(arch_hf_entry(r->folder->config, name), out);
    if (by_kind || kind == VALUE_MISSING)
        return read_real(r, name, r->model->ctx_train, out);
    return kind != VALUE_OTHER ||
           err_set(r->err, ERR_WORK, "%s: config.json's '%s' should be a number; " REMEDY, r->folder->path, name);
}

/* A number of RoPE's that counts only above 0, as Python has it: 0 is as if it were missing. */
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
    return err_set(r->err, ERR_WORK, "%s: the factors of its RoPE scaling '%s' make no sense; " REMEDY, r->folder->path,
                   kind);
}

/* Llama 3.1's scaling: wavelengths above old/low turn slower by `factor`, those below old/high as they did, those
 * between are interpolated. As divisors of the frequencies. */
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

/* LongRoPE: a divisor for each frequency, of short texts and of long ones. The short ones are right up to the length that
 * the model was first trained with, which is as far as this program goes. */
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

/* Frequencies that segment as a text outgrows the context: within it they are as trained. Hunyuan's have a factor of the
 * base instead. */
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

static bool
scale(const struct reading *r)
{
    char shown[40];
    double factor;
    const cJSON *type = arch_hf_entry(r->rope, "rope_type");
    if (type == NULL)
        type = arch_hf_entry(r->rope, "type"); /* as it was called first */
    if (!cJSON_IsObject(r->rope) || (type != NULL && !cJSON_IsString(type)))
        return err_set(r->err, ERR_WORK, "%s: config.json's RoPE scaling is not understood; " REMEDY, r->folder->path);
    const char *name = type == NULL ? "default" : type->valuestring;
    if (strcmp(name, "default") == 0)
        return true;
    const bool long_rope = strcmp(name, "longrope") == 0 || strcmp(name, "su") == 0, yarn = strcmp(name, "yarn") == 0;
    if (!read_real(r, "factor", NAN, &factor))
        return false;
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
    return err_set(r->err, ERR_WORK,
                   "%s: RoPE scaling '%s' is not supported; linear, llama3, yarn, longrope and dynamic are",
                   r->folder->path, printable_line(shown, sizeof shown, name, strlen(name)));
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
        if (isnan(part) && arch_hf_kind(arch_hf_entry(r->folder->config, names[i]), &part) == VALUE_OTHER)
            part = -1;
    }
    if (isnan(part))
        return true;
    const uint32_t dims = part > 0 && part <= 1 ? (uint32_t)(d->head_dim * part) : 0;
    if (dims == 0 || dims % 2 != 0)
        return err_set(r->err, ERR_WORK, "%s: a partial_rotary_factor of %g of %u dimensions makes no sense; " REMEDY,
                       r->folder->path, part, (unsigned)d->head_dim);
    d->rope_dims = dims;
    return true;
}

/* Of layers that see a window only, where they turn otherwise: as far as their base goes. */
static bool
read_local(const struct reading *r, const struct arch *arch)
{
    struct model_desc *d = &r->model->desc;
    const cJSON *local = arch_hf_entry(r->folder->config, ARCH_HF_ROPE_LOCAL),
                *type = arch_hf_entry(local, "rope_type");
    double base = 0;
    if (!(arch->form.local_base > 0))
        return true;
    type = type == NULL ? arch_hf_entry(local, "type") : type;
    if (type != NULL && (!cJSON_IsString(type) || strcmp(type->valuestring, "default") != 0))
        return err_set(r->err, ERR_WORK, "%s: RoPE of layers with a window is scaled, which is not supported",
                       r->folder->path);
    const cJSON *v = arch_hf_entry(local, "rope_theta");
    v = v != NULL ? v : arch_hf_entry(r->folder->config, "rope_local_base_freq");
    const enum arch_value kind = arch_hf_kind(v, &base);
    if (kind == VALUE_OTHER || (kind != VALUE_MISSING && !(base >= 1 && base <= 3e38)))
        return err_set(r->err, ERR_WORK, "%s: a RoPE base of %g makes no sense; " REMEDY, r->folder->path, base);
    if (kind != VALUE_MISSING)
        d->form.local_base = (float)base;
    return true;
}

bool
arch_hf_read_rope(struct model *m, const struct hf_folder *f, const struct arch *arch, struct err *err)
{
    const struct reading r = {.model = m, .folder = f, .rope = arch_hf_entry(f->config, "rope_parameters"), .err = err};
    return read_part(&r) && read_local(&r, arch) && (r.rope == NULL || scale(&r));
}
