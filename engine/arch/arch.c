/* A model's numbers: every one checked against the others. */
#include "engine/arch/arch.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/base/printable.h"

/* Far above any model, low enough that no product of two of them overflows 64 bits. */
#define MOST_LAYERS 4096u
#define MOST_UNITS  (1u << 20) /* width, ffn, heads * head_dim */
#define MOST_CTX    (1u << 28)
#define USUAL_CTX   2048u

/* ---- numbers ---- */

#define KEY_SIZE 80

/* "llama.block_count" */
static const char *
key_name(char out[KEY_SIZE], const struct arch_source *s, enum arch_number which)
{
    if (s->names->numbers[which] == NULL)
        return NULL;
    snprintf(out, KEY_SIZE, "%s%s%s", s->prefix != NULL ? s->prefix : "", s->prefix != NULL ? "." : "",
             s->names->numbers[which]);
    return out;
}

static enum arch_value
find_number(const struct arch_source *s, enum arch_number which, double *out)
{
    char key[KEY_SIZE];
    return key_name(key, s, which) == NULL ? VALUE_MISSING : s->number(s, key, out);
}

static bool
missing(const struct arch_source *s, enum arch_number which, struct err *err)
{
    char key[KEY_SIZE];
    return err_set(err, ERR_WORK, "%s: %s '%s' is missing; %s", s->path, s->names->where, key_name(key, s, which),
                   s->names->remedy);
}

/* A number that may be missing: then `otherwise`. */
bool
arch_read_real(const struct arch_source *s, enum arch_number which, double otherwise, double *out, struct err *err)
{
    char key[KEY_SIZE];
    *out = otherwise;
    const enum arch_value kind = find_number(s, which, out);
    if (kind == VALUE_OTHER)
        return err_set(err, ERR_WORK, "%s: %s '%s' should be a real number; %s", s->path, s->names->where,
                       key_name(key, s, which), s->names->remedy);
    if (!(fabs(*out) <= 3.4e38))
        return err_set(err, ERR_WORK, "%s: %s '%s' is not a finite number; %s", s->path, s->names->where,
                       key_name(key, s, which), s->names->remedy);
    return true;
}

/* A whole number from `least` to `most`; otherwise = UINT32_MAX: it has to be there. */
bool
arch_read_whole(const struct arch_source *s, enum arch_number which, uint32_t otherwise, uint32_t least, uint32_t most,
                uint32_t *out, struct err *err)
{
    char key[KEY_SIZE];
    double v = otherwise;
    const enum arch_value kind = find_number(s, which, &v);
    if (kind == VALUE_MISSING && otherwise == UINT32_MAX)
        return missing(s, which, err);
    if (kind == VALUE_REAL || kind == VALUE_OTHER)
        return err_set(err, ERR_WORK, "%s: %s '%s' should be a whole number; %s", s->path, s->names->where,
                       key_name(key, s, which), s->names->remedy);
    if (!(v >= least && v <= most))
        return err_set(err, ERR_WORK, "%s: %s '%s' is %.0f, not between %" PRIu32 " and %" PRIu32 "; %s", s->path,
                       s->names->where, key_name(key, s, which), v, least, most, s->names->remedy);
    *out = (uint32_t)v;
    return true;
}

/* What a config.json may leave out: arch_read_whole()'s word for what has to be there where the architecture has no usual value. */
static uint32_t
usual(const struct arch_source *s, uint32_t value)
{
    return s->names->naming == LAYER_NAMED_HF && value > 0 ? value : UINT32_MAX;
}

static bool
read_heads(struct model_desc *d, const struct arch_source *s, struct err *err)
{
    double given;
    uint32_t value_dim = 0;
    const uint32_t kv_usual = usual(s, s->arch->usual_kv_heads);
    if (!arch_read_whole(s, ARCH_HEADS, usual(s, s->arch->usual_heads), 1, MOST_UNITS, &d->heads, err) ||
        !arch_read_whole(s, ARCH_KV_HEADS, kv_usual != UINT32_MAX ? kv_usual : d->heads, 1, MOST_UNITS, &d->kv_heads,
                         err))
        return false;
    if (d->heads % d->kv_heads != 0)
        return err_set(err, ERR_WORK, "%s: %" PRIu32 " heads cannot share %" PRIu32 " KV heads evenly; %s", s->path,
                       d->heads, d->kv_heads, s->names->remedy);
    uint32_t dim = s->names->numbers[ARCH_VALUE_DIM] == NULL ? s->arch->usual_head_dim : 0; /* a config.json's */
    if (dim == 0) {
        if (find_number(s, ARCH_HEAD_DIM, &given) == VALUE_MISSING && d->width % d->heads != 0)
            return err_set(err, ERR_WORK, "%s: width %" PRIu32 " cannot be divided among %" PRIu32 " heads; %s",
                           s->path, d->width, d->heads, s->names->remedy);
        dim = d->width / d->heads == 0 ? 1 : d->width / d->heads;
    }
    if (!arch_read_whole(s, ARCH_HEAD_DIM, dim, 1, MOST_UNITS / d->heads, &d->head_dim, err) ||
        !arch_read_whole(s, ARCH_VALUE_DIM, d->head_dim, 1, MOST_UNITS / d->heads, &value_dim, err))
        return false;
    if (value_dim != d->head_dim)
        return err_set(err, ERR_WORK,
                       "%s: keys of %" PRIu32 " and values of %" PRIu32 " dimensions; only equal sizes are supported",
                       s->path, d->head_dim, value_dim);
    return true;
}

static bool
read_rope(struct model_desc *d, const struct arch_source *s, struct err *err)
{
    const bool said = s->names->naming != LAYER_NAMED_HF || !(s->arch->usual_base > 0);
    const double usual_base = said ? 10000 : s->arch->usual_base;
    double base = usual_base;
    const double part = s->arch->usual_part > 0 ? s->arch->usual_part : 1;
    if (!arch_read_whole(s, ARCH_ROPE_DIMS, (uint32_t)(part * d->head_dim), 1, MOST_UNITS, &d->rope_dims, err) ||
        !arch_read_real(s, ARCH_ROPE_BASE, usual_base, &base, err))
        return false;
    if (d->rope_dims % 2 != 0 || d->rope_dims > d->head_dim)
        return err_set(err, ERR_WORK,
                       "%s: RoPE turns %" PRIu32 " dimensions of a head's %" PRIu32
                       "; it takes an even number, no more than there are; %s",
                       s->path, d->rope_dims, d->head_dim, s->names->remedy);
    if (!(base >= 1))
        return err_set(err, ERR_WORK, "%s: a RoPE base of %g makes no sense; %s", s->path, base, s->names->remedy);
    d->rope_base = (float)base;
    d->rope_scale = 1;
    return true;
}

static bool
read_eps(struct model_desc *d, const struct arch_source *s, struct err *err)
{
    double eps = -1;
    const enum arch_number which = find_number(s, ARCH_RMS_EPS, &eps) != VALUE_MISSING ? ARCH_RMS_EPS : ARCH_NORM_EPS;
    const double usual = s->names->naming == LAYER_NAMED_HF ? s->arch->usual_eps : 0;
    if (find_number(s, which, &eps) == VALUE_MISSING && usual <= 0)
        return missing(s, ARCH_RMS_EPS, err);
    if (!arch_read_real(s, which, usual, &eps, err))
        return false;
    if (!(eps >= 0 && eps < 1))
        return err_set(err, ERR_WORK, "%s: a norm's epsilon of %g makes no sense; %s", s->path, eps, s->names->remedy);
    d->rms_eps = (float)eps;
    return true;
}

/* Factors and caps; what the file doesn't say is the architecture's. */
static bool
read_form(struct model_desc *d, const struct arch_source *s, struct err *err)
{
    d->form = s->arch->form;
    const struct {
        enum arch_number which;
        float *to;
    } reals[] = {{ARCH_ATTENTION_CAP, &d->form.attention_cap},
                 {ARCH_LOGIT_CAP, &d->form.logit_cap},
                 {ARCH_EMBEDDING_SCALE, &d->form.embedding_scale},
                 {ARCH_RESIDUAL_SCALE, &d->form.residual_scale},
                 {ARCH_ATTENTION_SCALE, &d->form.attention_scale},
                 {ARCH_LOGIT_SCALE, &d->form.logit_scale},
                 {ARCH_CLIP, &d->form.clip},
                 {ARCH_ALIBI, &d->form.alibi.most}};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        char key[KEY_SIZE];
        double v = 0;
        if (find_number(s, reals[i].which, &v) == VALUE_MISSING)
            continue;
        if (!arch_read_real(s, reals[i].which, 0, &v, err))
            return false;
        if (v < 0)
            return err_set(err, ERR_WORK, "%s: %s '%s' is negative; %s", s->path, s->names->where,
                           key_name(key, s, reals[i].which), s->names->remedy);
        *reals[i].to = (float)v;
    }
    if ((s->arch->traits & ARCH_EMBEDDING_BY_WIDTH) != 0)
        d->form.embedding_scale = (float)sqrt(d->width);
    if ((s->arch->traits & ARCH_LOGITS_DIVIDED) != 0 && d->form.logit_scale > 0)
        d->form.logit_scale = 1 / d->form.logit_scale;
    return true;
}

bool
arch_read_numbers(struct model *m, const struct arch_source *s, struct err *err)
{
    struct model_desc *d = &m->desc;
    const uint32_t tokens = d->vocab;
    uint32_t ahead = 0;
    if (!arch_read_whole(s, ARCH_LAYERS, UINT32_MAX, 1, MOST_LAYERS, &d->n_layers, err) ||
        !arch_read_whole(s, ARCH_LAYERS_AHEAD, 0, 0, d->n_layers - 1, &ahead, err) ||
        !arch_read_whole(s, ARCH_CTX, usual(s, s->arch->usual_ctx > 0 ? s->arch->usual_ctx : USUAL_CTX), 1, MOST_CTX,
                         &m->ctx_train, err) ||
        !arch_read_whole(s, ARCH_WIDTH, UINT32_MAX, 1, MOST_UNITS, &d->width, err) ||
        !arch_read_whole(s, ARCH_FFN, usual(s, s->arch->ffn_by_width * d->width), 1, MOST_UNITS, &d->ffn, err) ||
        !arch_read_whole(s, ARCH_VOCAB, tokens != 0 ? tokens : usual(s, s->arch->usual_vocab), 1, INT32_MAX / 4,
                         &d->vocab, err) ||
        !arch_read_whole(s, ARCH_WINDOW, 0, 0, UINT32_MAX - 1, &d->window, err) || !read_heads(d, s, err) ||
        !read_rope(d, s, err))
        return false;
    if (tokens != 0 && tokens != d->vocab) {
        char key[KEY_SIZE];
        return err_set(err, ERR_WORK, "%s: %s '%s' is %" PRIu32 ", but the tokenizer has %" PRIu32 " tokens; %s",
                       s->path, s->names->where, key_name(key, s, ARCH_VOCAB), d->vocab, tokens, s->names->remedy);
    }
    d->n_layers -= (s->arch->traits & ARCH_LOOKS_AHEAD) != 0 ? ahead : 0;
    return read_eps(d, s, err) && read_form(d, s, err);
}

/* Of layers counted from 1. */
static bool
is_nth(uint32_t layer, uint32_t every)
{
    return every > 0 && layer % every == 0;
}

void
arch_usual_layers(struct model *m, const struct arch *arch, struct layer_desc *layers)
{
    const uint32_t window = m->desc.window;
    for (uint32_t l = 1; l <= m->desc.n_layers; l++) {
        struct layer_form *f = &layers[l - 1].form;
        f->sees_all = window > 0 && is_nth(l, arch->full_every);
        if (is_nth(l, arch->unrotated_every) || (arch->traits & (ARCH_LEARNED | ARCH_LEANS)) != 0)
            f->rope = LAYER_ROPE_NONE;
    }
}

void
arch_rotations(struct model *m, const struct arch *arch, struct layer_desc *layers)
{
    for (uint32_t l = 1; l <= m->desc.n_layers; l++) {
        struct layer_form *f = &layers[l - 1].form;
        if (f->sees_all && (arch->traits & ARCH_WINDOWS_TURN) != 0)
            f->rope = LAYER_ROPE_NONE;
        if (!f->sees_all && m->desc.window > 0 && m->desc.form.local_base > 0)
            f->rope = LAYER_ROPE_LOCAL;
    }
}
