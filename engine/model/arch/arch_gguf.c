/* Reads a model from a GGUF file: contains the names of its numbers and tensors, and reads the metadata on RoPE,
 * windows, activation and routing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/arch/arch_tensors.h"
#include "engine/model/files/gguf.h"

#define REMEDY       "convert the model again"
#define ROPE_FREQS   "rope_freqs.weight"
#define MOST_DIVISOR 1e30f /* of dimensions that do not rotate (Gemma 4) */

static const struct arch_names gguf_names = {
    .embedding = "token_embd.weight",
    .positions = "position_embd.weight",
    .embedding_norm = "token_embd_norm.weight",
    .final_norm = "output_norm.weight",
    .head = "output.weight",
    .layer = "blk.",
    .naming = LAYER_NAMED_GGUF,
    .computable = {"rot_embd", "rope_freqs"},
    .where = "metadata",
    .remedy = REMEDY,
};

/* Returns the largest of a list of whole numbers. */
static enum arch_value
largest(const struct gguf_value *v, double *out)
{
    *out = 0;
    for (uint64_t i = 0; i < v->count; i++)
        *out = fmax(*out, gguf_number(v, i));
    return v->element == GGUF_U32 || v->element == GGUF_I32 ? VALUE_WHOLE : VALUE_OTHER;
}

static enum arch_value
scalar(const struct gguf_value *v, double *out)
{
    *out = gguf_number(v, 0);
    return v->element == GGUF_F32 || v->element == GGUF_F64 ? VALUE_REAL : VALUE_WHOLE;
}

/* Reads an array of equal numbers, one for each layer, as that number. */
static enum arch_value
uniform(const struct gguf_value *v, double *out)
{
    if (v->count == 0 || v->element == GGUF_BOOL || v->element == GGUF_STRING || v->element == GGUF_ARRAY)
        return VALUE_OTHER;
    for (uint64_t i = 1; i < v->count; i++)
        if (!(gguf_number(v, i) == gguf_number(v, 0)))
            return VALUE_OTHER;
    return scalar(v, out);
}

/* Some architectures have a number for each layer (read_own_numbers()); this is then the largest. */
static enum arch_value
number(const struct arch_source *s, enum arch_number which, const char *name, double *out)
{
    const struct gguf_value *v = gguf_find(s->file, name);
    (void)which;
    if (v == NULL)
        return VALUE_MISSING;
    if (v->type == GGUF_ARRAY && ((s->arch->flags & ARCH_KINDS) != 0 || s->arch->attention_every > 0))
        return largest(v, out);
    if (v->type == GGUF_ARRAY)
        return uniform(v, out);
    if (v->type == GGUF_BOOL || v->type == GGUF_STRING)
        return VALUE_OTHER;
    struct gguf_value one = *v; /* read it as an array of one element */
    one.element = v->type;
    return scalar(&one, out);
}

static bool
tensor(const struct arch_source *s, const char *name, struct arch_tensor *out)
{
    const struct gguf *g = s->file;
    const struct gguf_tensor *t = gguf_find_tensor(g, name);
    if (t == NULL)
        return false;
    *out = (struct arch_tensor){
        .data = t->data, .mapped = g->mapped, .type_name = gguf_type_name(t->type), .type = gguf_weight_type(t->type)};
    out->index = (size_t)(t - g->tensors);
    if (t->dims[3] == 1) {
        out->cols = t->dims[0];
        out->rows = t->dims[1];
        out->planes = t->dims[2];
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

/* ---- metadata besides sizes ---- */

struct reading {
    struct model *model;
    const struct gguf *gguf;
    const struct arch *arch;
    bool *used;
    char *key; /* (KEY_SIZE) the last key that key_of() wrote */
    struct err *err;
};

#define KEY_SIZE 96

static const char *
key_of(const struct reading *r, const char *name)
{
    snprintf(r->key, KEY_SIZE, "%.32s.%s", r->arch->gguf, name);
    return r->key;
}

static bool
read_f32(const struct reading *r, const char *name, float otherwise, float *out)
{
    return gguf_get_f32(r->gguf, key_of(r, name), otherwise, out, r->err);
}

static bool
read_yarn(const struct reading *r, double factor)
{
    float fast, slow, old, gain, all, growth, attention, sharp = factor > 1 ? (float)(1 + 0.1 * log(factor)) : 1;
    uint32_t before = r->model->ctx_train;
    if (!gguf_get_u32(r->gguf, key_of(r, "rope.scaling.original_context_length"), before, &before, r->err))
        return false;
    old = (float)before;
    if (!read_f32(r, "rope.scaling.yarn_beta_fast", 32, &fast) ||
        !read_f32(r, "rope.scaling.yarn_beta_slow", 1, &slow) || !read_f32(r, "rope.scaling.attn_factor", 1, &gain) ||
        !read_f32(r, "rope.scaling.yarn_log_multiplier", 0, &all) ||
        !read_f32(r, "rope.scaling.yarn_attn_factor", 0, &attention) ||
        !read_f32(r, "attention.temperature_scale", 0, &growth))
        return false;
    const bool whole = (r->arch->flags & ARCH_YARN_IN_PART) == 0;
    if (!(growth >= 0 && growth <= 1e3f && all >= 0 && all <= 1e3f))
        return err_set(r->err, ERR_WORK, "%s: the factors of its RoPE scaling 'yarn' make no sense; " REMEDY,
                       r->model->path);
    r->model->desc.form.growth = growth;
    r->model->desc.form.growth_every = before;
    if (all > 0 && factor > 1) /* the gain is divided by mscale_all_dim's, as in arch_hf_form.c */
        sharp /= 1 + 0.1f * all * logf((float)factor);
    if (attention > 0) /* config.json's attention_factor, which replaces the gain */
        sharp = attention;
    const struct arch_yarn y = {factor, (double)fast, (double)slow, (double)old, (double)(gain * sharp), whole};
    return arch_scale_yarn(r->model, &y, r->err);
}

static bool
read_scaling(const struct reading *r)
{
    struct slice type;
    float factor, old;
    char shown[32];
    if (!gguf_get_string(r->gguf, key_of(r, "rope.scaling.type"), &type, r->err) ||
        !read_f32(r, "rope.scale_linear", 1, &old) || /* the key in older files */
        !read_f32(r, "rope.scaling.factor", old, &factor))
        return false;
    if (slice_is(type, "yarn"))
        return read_yarn(r, (double)factor);
    if (slice_is(type, "none") || slice_is(type, "longrope")) /* longrope's divisors are tensors */
        factor = 1;
    else if (type.len != 0 && !slice_is(type, "linear"))
        return err_set(r->err, ERR_WORK, "%s: RoPE scaling '%s' is not supported; linear, yarn, longrope and none are",
                       r->model->path, printable_line(shown, sizeof shown, type.data, type.len));
    return arch_scale_linear(r->model, (double)factor, r->err);
}

/* Reads a divisor for each of RoPE's frequencies, as in Llama 3.1 and later and in LongRoPE. */
static bool
read_divisors(const struct reading *r, const char *name, const struct gguf_tensor *t)
{
    struct model_desc *d = &r->model->desc;
    const uint32_t n = d->rope_dims / 2;
    if (gguf_weight_type(t->type) != WEIGHT_F32 || t->dims[0] != n || t->dims[1] != 1 || t->dims[2] != 1 ||
        t->dims[3] != 1)
        return err_set(r->err, ERR_WORK, "%s: tensor '%s' should be %u F32 values; " REMEDY, r->model->path, name,
                       (unsigned)n);
    for (uint32_t i = 0; i < n; i++) {
        float factor;
        memcpy(&factor, t->data + 4 * (size_t)i, sizeof factor);
        if (!(factor > 0 && factor <= MOST_DIVISOR))
            return err_set(r->err, ERR_WORK,
                           "%s: tensor '%s' contains %g, which is not a divisor of a frequency; " REMEDY,
                           r->model->path, name, (double)factor);
    }
    d->rope_factors = (const float *)(const void *)t->data; /* the parser has checked the alignment */
    r->used[t - r->gguf->tensors] = true;
    return true;
}

/* LongRoPE has divisors for short and for long texts. The short ones apply up to the context of the first training, so
 * this program limits the context to that. */
static bool
read_long(const struct reading *r)
{
    static const char shorts[] = "rope_factors_short.weight", longs[] = "rope_factors_long.weight";
    const struct gguf_tensor *t = gguf_find_tensor(r->gguf, shorts), *other = gguf_find_tensor(r->gguf, longs);
    float gain;
    if (t == NULL)
        return true;
    if (other != NULL)
        r->used[other - r->gguf->tensors] = true;
    uint32_t old = r->model->ctx_train;
    if (!gguf_get_u32(r->gguf, key_of(r, "rope.scaling.original_context_length"), old, &old, r->err))
        return false;
    if (old >= 1 && old < r->model->ctx_train)
        r->model->ctx_train = old;
    if (!read_f32(r, "rope.scaling.attn_factor", 1, &gain))
        return false;
    r->model->desc.form.rope_gain = gain;
    return read_divisors(r, shorts, t);
}

static bool
read_rope(const struct reading *r)
{
    const struct gguf_tensor *t = gguf_find_tensor(r->gguf, ROPE_FREQS);
    float local = r->model->desc.form.local_base;
    if (!read_scaling(r) || !read_long(r) || (t != NULL && !read_divisors(r, ROPE_FREQS, t)))
        return false;
    if ((r->arch->flags & ARCH_WINDOWS_PLAIN) != 0 && r->model->desc.window > 0)
        local = r->model->desc.rope_base;
    if (local > 0 && !read_f32(r, "rope.freq_base_swa", local, &local))
        return false;
    r->model->desc.form.local_base = local;
    return true;
}

/* Finds a list with a number for each layer. Only xIELU's keys have this form, without the architecture's prefix. */
static bool
read_list(const struct reading *r, const char *key, const struct gguf_value **out)
{
    const struct gguf_value *v = *out = gguf_find(r->gguf, key);
    return (v != NULL && v->type == GGUF_ARRAY && v->count == r->model->desc.n_layers && v->element == GGUF_F32) ||
           err_set(r->err, ERR_WORK, "%s: metadata '%s' should be a list with a number for each layer; " REMEDY,
                   r->model->path, key);
}

/* Reads the entries of the form that config.json stores in another way: parallel residuals and xIELU's numbers. */
static bool
read_form(const struct reading *r)
{
    static const char *const names[ARCH_XIELU_NUMBERS] = {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"};
    struct model_desc *d = &r->model->desc;
    const struct gguf_value *lists[ARCH_XIELU_NUMBERS];
    if (!gguf_get_bool(r->gguf, key_of(r, "use_parallel_residual"), d->form.parallel, &d->form.parallel, r->err))
        return false;
    if (d->form.activation != ACT_XIELU)
        return true;
    for (size_t i = 0; i < ARCH_XIELU_NUMBERS; i++)
        if (!read_list(r, names[i], &lists[i]))
            return false;
    for (uint32_t l = 0; l < d->n_layers; l++) {
        double stored[ARCH_XIELU_NUMBERS];
        for (size_t i = 0; i < ARCH_XIELU_NUMBERS; i++)
            stored[i] = gguf_number(lists[i], l);
        if (!arch_set_xielu(r->model, l, stored, r->err))
            return false;
    }
    return true;
}

/* Reads how experts are chosen. The architecture's routing is the default. */
static bool
read_routing(const struct reading *r)
{
    struct experts_form *f = &r->model->desc.form.experts;
    uint32_t how = f->routing == ROUTE_SIGMOID ? 2 : 1;
    if (f->n == 0)
        return true;
    if (!gguf_get_bool(r->gguf, key_of(r, "expert_weights_norm"), f->renormalised, &f->renormalised, r->err) ||
        !gguf_get_u32(r->gguf, key_of(r, "expert_gating_func"), how, &how, r->err))
        return false;
    if (f->routing == ROUTE_SPARSEMIXER)
        return true;
    if (how < 1 || how > 3)
        return err_set(r->err, ERR_WORK, "%s: metadata '%s' is %u: a way to choose experts that is not supported",
                       r->model->path, r->key, (unsigned)how);
    f->routing = how == 2 ? ROUTE_SIGMOID : ROUTE_SOFTMAX;
    f->renormalised = f->renormalised || how == 3; /* 3: a softmax over the chosen experts */
    return true;
}

/* Reads which layers have a window, from a list with true for each layer that has one, and sets the layers'
 * rotations. */
static bool
read_windows(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* allocated by arch_make_layers(), so it is writable */
    const struct gguf_value *v = gguf_find(r->gguf, key_of(r, "attention.sliding_window_pattern"));
    if (v != NULL && v->type == GGUF_ARRAY && d->window > 0) {
        if (v->element != GGUF_BOOL || v->count != d->n_layers)
            return err_set(r->err, ERR_WORK, "%s: metadata '%s' should be a list with a switch for each layer; " REMEDY,
                           r->model->path, r->key);
        for (uint32_t l = 0; l < d->n_layers; l++)
            layers[l].form.sees_all = !(gguf_number(v, l) > 0);
    }
    /* The largest Gemmas scale scores by 1 / sqrt(width / heads), which is not in the metadata. */
    const bool largest = (strcmp(r->arch->gguf, "gemma2") == 0 && d->n_layers == 46) ||
                         (strcmp(r->arch->gguf, "gemma3") == 0 && d->n_layers == 62);
    if (largest)
        d->form.attention_scale = 1 / sqrtf((float)(d->width / d->heads));
    arch_rotations(r->model, r->arch, layers);
    return true;
}

/* Reads the KV heads and the width of the MLP of layers, from lists with a number for each layer. */
static bool
read_own_numbers(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* allocated by arch_make_layers(), so it is writable */
    for (size_t i = 0; i < 2 && (r->arch->flags & ARCH_KINDS) != 0; i++) {
        const struct gguf_value *v =
            gguf_find(r->gguf, key_of(r, arch_numbers[i == 0 ? ARCH_KV_HEADS : ARCH_FFN][LAYER_NAMED_GGUF]));
        if (v == NULL || v->type != GGUF_ARRAY)
            continue;
        if (v->count != d->n_layers)
            return err_set(r->err, ERR_WORK, "%s: metadata '%s' should be a list with a number for each layer; " REMEDY,
                           r->model->path, r->key);
        for (uint32_t l = 0; l < d->n_layers; l++) {
            const double n = gguf_number(v, l);
            if (!(n >= 1))
                return err_set(r->err, ERR_WORK, "%s: metadata '%s' has %g, which makes no sense; " REMEDY,
                               r->model->path, r->key, n);
            *(i == 0 ? &layers[l].form.kv_heads : &layers[l].form.ffn) = (uint32_t)n;
        }
    }
    return true;
}

/* Reads which layers are recurrent: from a list with true for each or with their KV heads, which are 0, or from the
 * interval of the other ones. */
static bool
read_recurrent_layers(const struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    struct layer_desc *layers = (struct layer_desc *)d->layers; /* allocated by arch_make_layers(), so it is writable */
    uint32_t every = r->arch->attention_every;
    bool rotates = true;
    if (every == 0)
        return true;
    if (!gguf_get_u32(r->gguf, key_of(r, "full_attention_interval"), every, &every, r->err) ||
        !gguf_get_bool(r->gguf, key_of(r, "rope.scaling.finetuned"), true, &rotates, r->err))
        return false;
    const struct gguf_value *heads = gguf_find(r->gguf, key_of(r, arch_numbers[ARCH_KV_HEADS][LAYER_NAMED_GGUF]));
    const struct gguf_value *v = gguf_find(r->gguf, key_of(r, "attention.recurrent_layers"));
    const bool listed = v != NULL && v->type == GGUF_ARRAY, by_heads = heads != NULL && heads->type == GGUF_ARRAY;
    if (by_heads && heads->count < d->n_layers)
        return err_set(r->err, ERR_WORK, "%s: metadata '%s' should be a list with a number for each layer; " REMEDY,
                       r->model->path, key_of(r, arch_numbers[ARCH_KV_HEADS][LAYER_NAMED_GGUF]));
    if (every == 0 || (listed && (v->element != GGUF_BOOL || v->count < d->n_layers)))
        return err_set(r->err, ERR_WORK, "%s: metadata '%s' should be a list with a switch for each layer; " REMEDY,
                       r->model->path, r->key);
    for (uint32_t l = 0; l < d->n_layers; l++) {
        const bool recurrent = listed     ? gguf_number(v, l) > 0
                               : by_heads ? !(gguf_number(heads, l) > 0)
                                          : (l + 1) % every != 0;
        layers[l].form.kind = recurrent ? LAYER_RECURRENT : LAYER_ATTENTION;
        if (!rotates && d->form.recurrent.kind == RECURRENCE_MAMBA) /* Granite's converter writes this */
            layers[l].form.rope = LAYER_ROPE_NONE;
    }
    return true;
}

static struct arch_source
source_of(const struct model *m, const struct gguf *g, const struct arch *arch)
{
    return (struct arch_source){.path = m->path,
                                .prefix = arch->gguf,
                                .arch = arch,
                                .names = &gguf_names,
                                .file = g,
                                .n_tensors = (size_t)g->n_tensors,
                                .number = number,
                                .tensor = tensor,
                                .tensor_name = tensor_name};
}

bool
arch_read_gguf(struct model *m, const struct gguf *g, const struct arch *arch, struct err *err)
{
    struct arch_source s = source_of(m, g, arch);
    struct arch_names names = gguf_names;
    bool *used = blocks_take(&m->blocks, s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", m->path);
    char key[KEY_SIZE];
    const struct reading r = {.model = m, .gguf = g, .arch = arch, .used = used, .key = key, .err = err};
    arch_own_names(arch, &names);
    s.names = &names;
    m->desc.rope = arch_rope(arch, LAYER_NAMED_GGUF);
    return arch_read_numbers(m, &s, err) && arch_make_layers(m, &s, err) && read_rope(&r) && read_form(&r) &&
           read_windows(&r) && arch_read_kinds(m, &s, (struct layer_desc *)m->desc.layers, err) &&
           read_own_numbers(&r) && read_recurrent_layers(&r) && arch_read_recurrent(m, &s, err) &&
           arch_read_experts(m, &s, err) && read_routing(&r) &&
           arch_read_tensors(m, &s, gguf_find_tensor(g, gguf_names.head) == NULL, used, err);
}

/* ---- EAGLE-3 heads and block drafters ---- */

const char *
arch_gguf_head(const struct gguf *g)
{
    static const char *const names[] = {"eagle3", "dflash"};
    struct slice arch;
    if (!gguf_get_string(g, "general.architecture", &arch, NULL))
        return NULL;
    return slice_is(arch, names[0]) ? names[0] : slice_is(arch, names[1]) ? names[1] : NULL;
}

/* Reads the target's layers, from the key of today's converters or the one before. */
static bool
read_head_layers(const struct reading *r, struct arch_head *h)
{
    const struct gguf_value *v = gguf_find(r->gguf, key_of(r, "target_layers"));
    if (v == NULL)
        v = gguf_find(r->gguf, key_of(r, "extract_layers"));
    if (v == NULL)
        return true;
    if (v->type != GGUF_ARRAY || v->count == 0 || v->count > MODEL_FEATURES || v->element == GGUF_STRING)
        return err_set(r->err, ERR_WORK, "%s: metadata '%s' should list one to %d layers; " REMEDY, r->model->path,
                       r->key, MODEL_FEATURES);
    h->layers = (uint32_t)v->count;
    for (uint32_t i = 0; i < h->layers; i++) {
        const double layer = gguf_number(v, i);
        if (!(layer >= 0 && layer <= INT32_MAX))
            return err_set(r->err, ERR_WORK,
                           "%s: metadata '%s' contains %g, which is not the number of a layer; " REMEDY, r->model->path,
                           r->key, layer);
        h->layer[i] = (uint32_t)layer;
    }
    return true;
}

/* Sets the size of the target's vocabulary, by the metadata or the shape of a tensor that covers all of it. */
static bool
read_head_vocabulary(const struct reading *r, const struct model *target)
{
    struct model_desc *d = &r->model->desc;
    const struct gguf_tensor *own = gguf_find_tensor(r->gguf, gguf_names.embedding);
    if (own == NULL && gguf_find_tensor(r->gguf, "d2t") == NULL)
        own = gguf_find_tensor(r->gguf, gguf_names.head);
    d->vocab = own != NULL && own->dims[1] <= INT32_MAX / 4 ? (uint32_t)own->dims[1] : target->desc.vocab;
    return gguf_get_u32(r->gguf, key_of(r, "vocab_size"), d->vocab, &d->vocab, r->err);
}

static bool
read_eagle_form(const struct reading *r, struct arch_head *h)
{
    *h = (struct arch_head){
        .absolute = true, .norm = "enc.output_norm.weight", .feature_norm = "blk.0.attn_norm_2.weight"};
    return read_head_layers(r, h) &&
           gguf_get_u32(r->gguf, key_of(r, "target_hidden_size"), 0, &h->target_width, r->err) &&
           gguf_get_bool(r->gguf, key_of(r, "norm_before_residual"), false, &h->input_normed, r->err) &&
           gguf_get_bool(r->gguf, key_of(r, "norm_before_fc"), gguf_find_tensor(r->gguf, h->norm) != NULL,
                         &h->norms_features, r->err);
}

/* Fails if the drafter has a form that llama.cpp reads and this program does not. */
static bool
refuse_block_forms(const struct reading *r)
{
    static const char *const others[][2] = {{"selector_rank", "a selector (DFlash2)"},
                                            {"conv_kernel_size", "convolutions (DFlash2)"},
                                            {"hyper_connection.count", "hyper connections (DeepSeek-V4)"}};
    struct slice act;
    float scale;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        uint32_t n;
        if (!gguf_get_u32(r->gguf, key_of(r, others[i][0]), 0, &n, r->err))
            return false;
        if (n > 0)
            return err_set(r->err, ERR_WORK, "%s: is a block drafter with %s, which is not supported", r->model->path,
                           others[i][1]);
    }
    if (!read_f32(r, "attention.value_scale", 1, &scale) ||
        !gguf_get_string(r->gguf, key_of(r, "hidden_activation"), &act, r->err))
        return false;
    if (scale < 1 || scale > 1 || (act.len > 0 && !slice_is(act, "silu")))
        return err_set(r->err, ERR_WORK, "%s: is a block drafter with %s, which is not supported", r->model->path,
                       act.len > 0 && !slice_is(act, "silu") ? "another activation than SiLU" : "scaled values");
    return true;
}

/* The keys of llama.cpp's converter. Without sample_from_anchor the first row of a block predicts a draft only with a
 * Markov head, as llama.cpp runs it. */
static bool
read_block_form(const struct reading *r, struct arch_head *h)
{
    *h = (struct arch_head){.is_block = true,
                            .absolute = true,
                            .tied = true,
                            .feature_norm = "enc.output_norm.weight",
                            .markov = "markov_",
                            .confidence = "conf_proj"};
    const bool markov = gguf_find_tensor(r->gguf, "markov_w1.weight") != NULL;
    return refuse_block_forms(r) && read_head_layers(r, h) &&
           gguf_get_u32(r->gguf, key_of(r, "block_size"), 16, &h->block, r->err) &&
           gguf_get_u32(r->gguf, "tokenizer.ggml.mask_token_id", UINT32_MAX, &h->mask, r->err) &&
           gguf_get_bool(r->gguf, key_of(r, "attention.causal"), false, &h->causal, r->err) &&
           gguf_get_bool(r->gguf, key_of(r, "sample_from_anchor"), markov, &h->from_anchor, r->err);
}

bool
arch_read_gguf_head(struct model *m, const struct gguf *g, const struct model *target, struct err *err)
{
    static const struct arch eagle = {.gguf = "eagle3", .hf = "eagle3", .flags = ARCH_GGUF_ADJACENT};
    const bool is_block = strcmp(arch_gguf_head(g), arch_block.gguf) == 0;
    const struct arch *arch = is_block ? &arch_block : &eagle;
    const struct arch_source s = source_of(m, g, arch);
    bool *used = blocks_take(&m->blocks, s.n_tensors + 1, sizeof *used);
    if (used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", m->path);
    char key[KEY_SIZE];
    const struct reading r = {.model = m, .gguf = g, .arch = arch, .used = used, .key = key, .err = err};
    const struct arch_taking taking = {.model = m, .source = &s, .used = used, .err = err};
    struct arch_head h;
    if (!(is_block ? read_block_form(&r, &h) : read_eagle_form(&r, &h)) || !read_head_vocabulary(&r, target))
        return false;
    m->desc.rope = arch_rope(arch, LAYER_NAMED_GGUF);
    return arch_read_numbers(m, &s, err) && arch_make_layers(m, &s, err) && read_rope(&r) &&
           (!is_block || read_windows(&r)) && arch_take_head(&taking, &h, target);
}
