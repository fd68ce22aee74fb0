/* Reads a model's numbers and single tensors from a struct arch_source, and checks each against the others. Also
 * contains the RoPE scalings and xIELU's parameters, which GGUF files and config.json share. */
#include "engine/model/arch/arch.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/model/arch/arch_tensors.h"
#include "kernels/tensor.h"

void
arch_fill(struct err *err, const char *path, const char *format, ...)
{
    char why[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    err_fill(err, ERR_WORK, "%s: %s", path, why);
}

const void *
arch_aligned(const struct arch_taking *t, const struct arch_tensor *found, size_t elements)
{
    const size_t size = tensor_block_values(found->type) == 1 ? tensor_block_bytes(found->type) : 1;
    if ((uintptr_t)found->data % size == 0)
        return found->data;
    void *copy = blocks_take(&t->model->blocks, 1, elements * size);
    if (copy == NULL)
        arch_refuse(t, "out of memory for a tensor of %zu values", elements);
    else
        memcpy(copy, found->data, elements * size);
    return copy;
}

bool
arch_fits(const struct arch_taking *t, const char *name, const struct arch_tensor *found, uint64_t planes,
          uint64_t rows, uint64_t cols)
{
    const struct arch_source *s = t->source;
    const uint64_t has = found->planes > 0 ? found->planes : 1;
    char many[32] = "";
    if (found->rows == 0 || (planes == 1 && has > 1))
        return arch_refuse(t, "tensor '%s' has more than two dimensions; %s", name, s->names->remedy);
    if (planes > 1)
        snprintf(many, sizeof many, " x %" PRIu64, planes);
    if (found->cols != cols || found->rows != rows || has != planes)
        return arch_refuse(t, "tensor '%s' is %" PRIu64 " x %" PRIu64 ", but should be %" PRIu64 " x %" PRIu64 "%s; %s",
                           name, found->cols, found->rows, cols, rows, many, s->names->remedy);
    if (found->type == WEIGHT_TYPES)
        return arch_refuse(t,
                           "tensor '%s' is of type %s, which is not supported; F32, F16, BF16, Q8_0, Q4_0 to Q5_1, "
                           "Q2_K to Q6_K, MXFP4, IQ1 to IQ4, TQ1_0 and TQ2_0 are",
                           name, found->type_name);
    return true;
}

void
arch_count(const struct arch_taking *t, const struct tensor *taken)
{
    const uint64_t values = (uint64_t)taken->rows * taken->cols;
    t->model->parameters += values;
    t->model->parameters_of[taken->type] += values;
    t->model->tensors_of[taken->type]++;
}

/* If the architecture has several names for the tensor, returns the first that is in the file, or the last if none
 * is. */
const char *
arch_layer_name(const struct arch_source *s, uint32_t layer, enum layer_tensor which, char name[ARCH_NAME_SIZE])
{
    const struct layer_tensor_info *info = &layer_tensors[which];
    char own[LAYER_NAME_SIZE], end[LAYER_NAME_SIZE];
    struct arch_tensor found;
    bool there = false;
    snprintf(own, sizeof own, "%s", info->names[s->names->naming]);
    for (size_t n = 0; !there; n++) {
        if (!arch_own_name(s->arch, s->names->naming, info->names[LAYER_NAMED_GGUF], n, own) && n > 0)
            break;
        snprintf(name, ARCH_NAME_SIZE, "%s%" PRIu32 ".%s", s->names->layer, layer,
                 layer_tensor_whole_name(end, own, info->kind));
        there = s->tensor(s, name, &found);
    }
    return name;
}

/* Copies the rows of every group from a tensor fused by groups into the model's memory. NULL, with an error, if out of
 * memory. */
static const void *
gather_groups(const struct arch_taking *t, const struct arch_tensor *found, const struct arch_slice *part,
              size_t row_bytes)
{
    const struct arch_span spans[] = {{part->first, part->each}, part->then[0], part->then[1]};
    const size_t stride = part->all / part->groups;
    unsigned char *to = blocks_take(&t->model->blocks, 1, part->n * row_bytes), *at = to;
    for (size_t i = 0; to != NULL && i < sizeof spans / sizeof spans[0]; i++)
        for (uint32_t g = 0; g < part->groups; g++, at += spans[i].each * row_bytes)
            memcpy(at, found->data + (g * stride + spans[i].first) * row_bytes, spans[i].each * row_bytes);
    if (to == NULL)
        arch_refuse(t, "out of memory for a tensor");
    return to;
}

/* Transposes columns of a tensor to rows in the model's memory. NULL, with an error, on a quantised tensor or if out of
 * memory. */
static const void *
transpose(const struct arch_taking *t, const char *name, const struct arch_tensor *found, const struct arch_slice *part,
          uint32_t rows, uint32_t cols)
{
    if (found->type >= WEIGHT_TYPES || tensor_block_values(found->type) != 1) {
        arch_refuse(t, "tensor '%s' is transposed and of type %s; only F32, F16 and BF16 are supported there", name,
                    found->type_name);
        return NULL;
    }
    const size_t size = tensor_block_bytes(found->type), all = (size_t)found->cols;
    unsigned char *to = blocks_take(&t->model->blocks, 1, (size_t)rows * cols * size);
    for (size_t c = 0; to != NULL && c < cols; c++)
        for (size_t r = 0; r < rows; r++)
            memcpy(to + (r * cols + c) * size, found->data + (c * all + part->first + r) * size, size);
    if (to == NULL)
        arch_refuse(t, "out of memory for a tensor");
    return to;
}

bool
arch_take_slice(const struct arch_taking *t, const char *name, uint32_t rows, uint32_t cols,
                const struct arch_slice *part, struct tensor *out)
{
    const struct arch_source *s = t->source;
    struct arch_tensor found;
    if (!s->tensor(s, name, &found))
        return arch_refuse(t, "tensor '%s' is missing; %s", name, s->names->remedy);
    if (rows == 1 && found.planes * found.rows * found.cols == cols) { /* a convolution's (channels, 1, taps) */
        found.planes = found.rows = 1;
        found.cols = cols;
    }
    const bool whole = part == NULL || part->n == 0, vector = rows == 1 && !whole && part->n == cols;
    const bool columns = part != NULL && part->columns;
    const uint32_t there = whole || vector ? rows : part->all, across = vector ? part->all : cols;
    if (!arch_fits(t, name, &found, 1, columns ? across : there, columns ? there : across))
        return false;
    const uint64_t values = (uint64_t)rows * cols;
    *out = (struct tensor){.type = found.type, .rows = rows, .cols = cols};
    const size_t row_bytes = tensor_row_bytes(found.type, vector ? 1 : cols);
    if (columns) {
        out->data = transpose(t, name, &found, part, rows, cols);
    } else if (!whole && part->each > 0) {
        out->data = gather_groups(t, &found, part, row_bytes);
    } else {
        found.data += whole ? 0 : part->first * row_bytes;
        out->data = arch_aligned(t, &found, (size_t)values);
        out->mapped = found.mapped && out->data == found.data;
    }
    t->used[found.index] = true;
    arch_count(t, out);
    return out->data != NULL;
}

bool
arch_take_tensor(const struct arch_taking *t, const char *name, uint32_t rows, uint32_t cols, struct tensor *out)
{
    return arch_take_slice(t, name, rows, cols, NULL, out);
}

bool
arch_take_vector(const struct arch_taking *t, const char *name, uint32_t n, const struct arch_slice *part, float add,
                 struct tensor *out)
{
    struct arch_tensor found;
    if (t->source->tensor(t->source, name, &found) && found.type != WEIGHT_TYPES &&
        tensor_block_values(found.type) != 1)
        return arch_refuse(t, "tensor '%s' is quantised; a vector has to be F32, F16 or BF16; %s", name,
                           t->source->names->remedy);
    if (!arch_take_slice(t, name, 1, n, part, out))
        return false;
    if (out->type == WEIGHT_F32 && !(add > 0))
        return true;
    float *wide = blocks_take(&t->model->blocks, 1, n * sizeof *wide);
    if (wide == NULL)
        return arch_refuse(t, "out of memory for tensor '%s'", name);
    tensor_row(out, 0, wide);
    for (uint32_t i = 0; i < n; i++)
        wide[i] += add;
    *out = (struct tensor){.data = wide, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}

bool
arch_make_ones(const struct arch_taking *t, uint32_t n, struct tensor *out)
{
    float *ones = blocks_take(&t->model->blocks, 1, n * sizeof *ones);
    if (ones == NULL)
        return arch_refuse(t, "out of memory for a norm");
    for (uint32_t i = 0; i < n; i++)
        ones[i] = 1;
    *out = (struct tensor){.data = ones, .type = WEIGHT_F32, .rows = 1, .cols = n};
    return true;
}

/* RoPE scalings that both GGUF files and config.json may contain. */

#define TWO_PI 6.283185307179586

bool
arch_scale_linear(struct model *m, double factor, struct err *err)
{
    if (!(factor >= 1e-3 && factor <= 1e6))
        return err_set(err, ERR_WORK, "%s: a RoPE scaling factor of %g makes no sense; convert the model again",
                       m->path, factor);
    m->desc.rope_scale = 1 / (float)factor;
    return true;
}

float *
arch_divisors(struct model *m, struct err *err)
{
    float *divisors = blocks_take(&m->blocks, 1, (m->desc.rope_dims / 2 + 1u) * sizeof *divisors);
    if (divisors == NULL)
        err_set(err, ERR_WORK, "%s: out of memory", m->path);
    m->desc.rope_factors = divisors;
    return divisors;
}

/* Returns the dimension, as a fraction, whose pair makes `times` rotations within n positions. */
static double
rotations(const struct model_desc *d, double times, double n)
{
    return d->rope_dims * log(n / (times * TWO_PI)) / (2 * log((double)d->rope_base));
}

bool
arch_scale_yarn(struct model *m, const struct arch_yarn *y, struct err *err)
{
    struct model_desc *d = &m->desc;
    if (!(y->fast > y->slow && y->slow > 0 && y->old >= 1 && y->factor >= 1 && y->factor <= 1e6 && d->rope_base > 1))
        return err_set(err, ERR_WORK, "%s: the factors of its RoPE scaling 'yarn' make no sense; fetch the model again",
                       m->path);
    double first = rotations(d, y->fast, y->old), last = rotations(d, y->slow, y->old);
    first = fmax(y->whole ? floor(first) : first, 0);
    last = fmin(y->whole ? ceil(last) : last, d->rope_dims - 1.0);
    last = last > first ? last : first + 0.001;
    float *divisors = arch_divisors(m, err);
    for (uint32_t i = 0; divisors != NULL && i < d->rope_dims / 2; i++) {
        const double stays = 1 - fmin(1, fmax(0, (i - first) / (last - first)));
        divisors[i] = (float)(1 / ((1 - stays) / y->factor + stays));
    }
    d->form.rope_gain = (float)(isnan(y->gain) ? 1 + 0.1 * log(y->factor) : y->gain);
    return divisors != NULL;
}

/* xIELU's parameters differ between layers. The learned alphas are stored before a softplus, which makes them
 * positive. */

static double
softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

bool
arch_set_xielu(struct model *m, uint32_t layer, const double stored[ARCH_XIELU_NUMBERS], struct err *err)
{
    struct layer_desc *layers =
        (struct layer_desc *)m->desc.layers; /* allocated by arch_make_layers(), so it is writable */
    for (size_t i = 0; i < ARCH_XIELU_NUMBERS; i++)
        if (!(fabs(stored[i]) <= 1e6))
            return err_set(err, ERR_WORK,
                           "%s: a number of layer %" PRIu32 "'s activation makes no sense; fetch it again", m->path,
                           layer);
    layers[layer].form.xielu =
        (struct xielu){.alpha_p = (float)softplus(stored[ARCH_XIELU_ALPHA_P]),
                       .alpha_n = (float)(stored[ARCH_XIELU_BETA] + softplus(stored[ARCH_XIELU_ALPHA_N])),
                       .beta = (float)stored[ARCH_XIELU_BETA],
                       .eps = (float)stored[ARCH_XIELU_EPS]};
    return true;
}

/* beta and eps are not trained, so they may be missing. */
bool
arch_take_xielu(const struct arch_taking *t)
{
    static const char *const names[ARCH_XIELU_NUMBERS] = {"alpha_p", "alpha_n", "beta", "eps"};
    const struct arch_source *s = t->source;
    char name[96];
    if (t->model->desc.form.activation != ACT_XIELU)
        return true;
    for (uint32_t l = 0; l < t->model->desc.n_layers; l++) {
        double stored[ARCH_XIELU_NUMBERS] = {[ARCH_XIELU_BETA] = 0.5, [ARCH_XIELU_EPS] = -1e-6};
        for (size_t i = 0; i < ARCH_XIELU_NUMBERS; i++) {
            struct tensor one;
            struct arch_tensor found;
            snprintf(name, sizeof name, "%s%" PRIu32 ".mlp.act_fn.%s", s->names->layer, l, names[i]);
            if (i >= ARCH_XIELU_BETA && !s->tensor(s, name, &found))
                continue;
            if (!arch_take_vector(t, name, 1, NULL, 0, &one))
                return false;
            stored[i] = (double)*(const float *)one.data;
        }
        if (!arch_set_xielu(t->model, l, stored, t->err))
            return false;
    }
    return true;
}

/* Limits far above any model's numbers. The product of any two fits into 64 bits. */
#define MOST_LAYERS 4096u
#define MOST_UNITS  (1u << 20) /* width, ffn, heads * head_dim */
#define MOST_CTX    (1u << 28)
#define MOST_HEADS  (1u << 12) /* of recurrent layers, and their dimensions */
#define USUAL_CTX   2048u

/* ---- numbers ---- */

#define KEY_SIZE 80

const char *const arch_numbers[ARCH_NUMBERS][LAYER_NAMINGS] = {
#define NUMBER(NAME, gguf, hf) [ARCH_##NAME] = {gguf, hf},
    FOR_ARCH_NUMBERS(NUMBER)
#undef NUMBER
};

/* "llama.block_count" */
static const char *
key_name(char out[KEY_SIZE], const struct arch_source *s, enum arch_number which)
{
    const char *name = arch_numbers[which][s->names->naming];
    snprintf(out, KEY_SIZE, "%s%s%.*s", s->prefix != NULL ? s->prefix : "", s->prefix != NULL ? "." : "",
             (int)strcspn(name, " "), name);
    return out;
}

static enum arch_value
find_number(const struct arch_source *s, enum arch_number which, double *out)
{
    char key[KEY_SIZE];
    return arch_numbers[which][s->names->naming][0] == '\0' ? VALUE_MISSING
                                                            : s->number(s, which, key_name(key, s, which), out);
}

static bool
missing(const struct arch_source *s, enum arch_number which, struct err *err)
{
    char key[KEY_SIZE];
    return err_set(err, ERR_WORK, "%s: %s '%s' is missing; %s", s->path, s->names->where, key_name(key, s, which),
                   s->names->remedy);
}

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

static bool
read_heads(struct model_desc *d, const struct arch_source *s, struct err *err)
{
    double given;
    uint32_t value_dim = 0;
    if (!arch_read_whole(s, ARCH_HEADS, UINT32_MAX, 1, MOST_UNITS, &d->heads, err) ||
        !arch_read_whole(s, ARCH_KV_HEADS, d->heads, 1, MOST_UNITS, &d->kv_heads, err))
        return false;
    if (d->heads % d->kv_heads != 0)
        return err_set(err, ERR_WORK, "%s: %" PRIu32 " heads cannot share %" PRIu32 " KV heads evenly; %s", s->path,
                       d->heads, d->kv_heads, s->names->remedy);
    if (find_number(s, ARCH_HEAD_DIM, &given) == VALUE_MISSING && d->width % d->heads != 0)
        return err_set(err, ERR_WORK, "%s: width %" PRIu32 " cannot be divided among %" PRIu32 " heads; %s", s->path,
                       d->width, d->heads, s->names->remedy);
    const uint32_t dim = d->width / d->heads == 0 ? 1 : d->width / d->heads;
    if (!arch_read_whole(s, ARCH_HEAD_DIM, dim, 1, MOST_UNITS / d->heads, &d->head_dim, err) ||
        !arch_read_whole(s, ARCH_VALUE_DIM, d->head_dim, 1, MOST_UNITS / d->heads, &value_dim, err))
        return false;
    if (value_dim != d->head_dim)
        return err_set(err, ERR_WORK,
                       "%s: keys of %" PRIu32 " and values of %" PRIu32 " dimensions; only equal sizes are supported",
                       s->path, d->head_dim, value_dim);
    return true;
}

bool
arch_read_recurrent(struct model *m, const struct arch_source *s, struct err *err)
{
    const struct model_desc *d = &m->desc;
    struct recurrent_form *f = &m->desc.form.recurrent;
    const bool hf = s->names->naming == LAYER_NAMED_HF;
    uint32_t values;
    if (model_recurrent_layers(m) == 0)
        return true;
    if (f->kind == RECURRENCE_CONV) {
        f->value_heads = d->width % d->heads == 0 ? d->heads : 1;
        f->value_dim = d->width / f->value_heads;
        return arch_read_whole(s, ARCH_CONV_TAPS, UINT32_MAX, 2, RECURRENT_TAPS_MOST, &f->taps, err);
    }
    if (!arch_read_whole(s, ARCH_RECURRENT_KEY_HEADS, UINT32_MAX, 1, MOST_HEADS, &f->key_heads, err) ||
        !arch_read_whole(s, ARCH_RECURRENT_VALUE_HEADS, UINT32_MAX, 1, MOST_HEADS, &f->value_heads, err) ||
        !arch_read_whole(s, ARCH_RECURRENT_KEY_DIM, UINT32_MAX, 1, MOST_HEADS, &f->key_dim, err) ||
        !arch_read_whole(s, ARCH_RECURRENT_VALUES, hf ? 0 : UINT32_MAX, hf ? 0 : 1, MOST_UNITS, &values, err) ||
        !arch_read_whole(s, ARCH_RECURRENT_VALUE_DIM, values > 0 ? values / f->value_heads : UINT32_MAX, 1, MOST_HEADS,
                         &f->value_dim, err) ||
        !arch_read_whole(s, ARCH_RECURRENT_TAPS, UINT32_MAX, 2, RECURRENT_TAPS_MOST, &f->taps, err))
        return false;
    if (f->value_heads % f->key_heads != 0 || (values > 0 && values % f->value_heads != 0))
        return err_set(err, ERR_WORK, "%s: %" PRIu32 " value heads cannot share %" PRIu32 " key heads evenly; %s",
                       s->path, f->value_heads, f->key_heads, s->names->remedy);
    f->tiled = s->names->naming == LAYER_NAMED_GGUF && (s->arch->flags & ARCH_RECURRENT_TILED) != 0;
    return true;
}

static bool
read_rope(struct model_desc *d, const struct arch_source *s, struct err *err)
{
    double base = 10000;
    const double part = s->arch->rotated_part > 0 ? s->arch->rotated_part : 1;
    if (!arch_read_whole(s, ARCH_ROPE_DIMS, (uint32_t)(part * d->head_dim), 1, MOST_UNITS, &d->rope_dims, err) ||
        !arch_read_real(s, ARCH_ROPE_BASE, base, &base, err))
        return false;
    if (d->rope_dims % 2 != 0 || d->rope_dims > d->head_dim)
        return err_set(err, ERR_WORK,
                       "%s: RoPE rotates %" PRIu32 " dimensions of a head's %" PRIu32
                       "; the number should be even and at most the head's; %s",
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
    if (find_number(s, which, &eps) == VALUE_MISSING)
        return missing(s, ARCH_RMS_EPS, err);
    if (!arch_read_real(s, which, 0, &eps, err))
        return false;
    if (!(eps >= 0 && eps < 1))
        return err_set(err, ERR_WORK, "%s: a norm's epsilon of %g makes no sense; %s", s->path, eps, s->names->remedy);
    d->rms_eps = (float)eps;
    return true;
}

/* Reads factors and caps. The architecture's values are the defaults. */
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
    if ((s->arch->flags & ARCH_EMBEDDING_BY_WIDTH) != 0)
        d->form.embedding_scale = (float)sqrt(d->width);
    if ((s->arch->flags & ARCH_LOGITS_DIVIDED) != 0 && d->form.logit_scale > 0)
        d->form.logit_scale = 1 / d->form.logit_scale;
    return true;
}

bool
arch_read_numbers(struct model *m, const struct arch_source *s, struct err *err)
{
    struct model_desc *d = &m->desc;
    const bool hf = s->names->naming == LAYER_NAMED_HF;
    const uint32_t tokens = d->vocab, by = (s->arch->flags & ARCH_NO_MLP) != 0 ? 1 : hf ? s->arch->ffn_by_width : 0;
    uint32_t ahead = 0;
    if (!arch_read_whole(s, ARCH_LAYERS, UINT32_MAX, 1, MOST_LAYERS, &d->n_layers, err) ||
        !arch_read_whole(s, ARCH_LAYERS_AHEAD, 0, 0, d->n_layers - 1, &ahead, err) ||
        !arch_read_whole(s, ARCH_CTX, hf ? USUAL_CTX : UINT32_MAX, 1, MOST_CTX, &m->ctx_train, err) ||
        !arch_read_whole(s, ARCH_WIDTH, UINT32_MAX, 1, MOST_UNITS, &d->width, err) ||
        !arch_read_whole(s, ARCH_FFN, by > 0 ? by * d->width : UINT32_MAX, 1, MOST_UNITS, &d->ffn, err) ||
        !arch_read_whole(s, ARCH_VOCAB, tokens != 0 ? tokens : UINT32_MAX, 1, INT32_MAX / 4, &d->vocab, err) ||
        !arch_read_whole(s, ARCH_WINDOW, 0, 0, UINT32_MAX - 1, &d->window, err) || !read_heads(d, s, err) ||
        !read_rope(d, s, err))
        return false;
    if (tokens != 0 && tokens != d->vocab) {
        char key[KEY_SIZE];
        return err_set(err, ERR_WORK, "%s: %s '%s' is %" PRIu32 ", but the tokenizer has %" PRIu32 " tokens; %s",
                       s->path, s->names->where, key_name(key, s, ARCH_VOCAB), d->vocab, tokens, s->names->remedy);
    }
    d->n_layers -= (s->arch->flags & ARCH_LOOKS_AHEAD) != 0 ? ahead : 0;
    return read_eps(d, s, err) && read_form(d, s, err);
}

/* Returns true for every nth layer; layers count from 1. */
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
        f->kind = arch->attention_every == 0 || is_nth(l, arch->attention_every) ? LAYER_ATTENTION : LAYER_RECURRENT;
        f->sees_all = window > 0 && is_nth(l, arch->full_every);
        if (is_nth(l, arch->unrotated_every) || (arch->flags & (ARCH_LEARNED | ARCH_USES_ALIBI)) != 0)
            f->rope = LAYER_ROPE_NONE;
    }
}

/* Sets which earlier layer the last `shared` layers read: the last one of their kind that has keys and values. */
static bool
share_keys(struct model *m, uint32_t shared, struct layer_desc *layers, struct err *err)
{
    const uint32_t first = m->desc.n_layers - shared;
    for (uint32_t l = first; l < m->desc.n_layers; l++) {
        for (uint32_t from = first; from > 0 && layers[l].form.kv_layer == 0; from--)
            if (layers[from - 1].form.rope == layers[l].form.rope)
                layers[l].form.kv_layer = from;
        if (layers[l].form.kv_layer == 0)
            return err_set(err, ERR_WORK,
                           "%s: layer %" PRIu32 " shares keys and values, but no earlier layer of its kind has any",
                           m->path, l + 1);
    }
    return true;
}

bool
arch_read_kinds(struct model *m, const struct arch_source *s, struct layer_desc *layers, struct err *err)
{
    struct model_desc *d = &m->desc;
    uint32_t dim, local_dim, local_rotated, kv_heads, shared;
    if ((s->arch->flags & ARCH_KINDS) == 0)
        return true;
    const uint32_t most = MOST_UNITS / d->heads;
    if (!arch_read_whole(s, ARCH_GLOBAL_HEAD_DIM, d->head_dim, 2, most, &dim, err) ||
        !arch_read_whole(s, ARCH_LOCAL_HEAD_DIM, d->head_dim, 2, most, &local_dim, err) ||
        !arch_read_whole(s, ARCH_LOCAL_ROPE_DIMS, local_dim, 0, local_dim, &local_rotated, err) ||
        !arch_read_whole(s, ARCH_GLOBAL_KV_HEADS, d->kv_heads, 1, MOST_UNITS, &kv_heads, err) ||
        !arch_read_whole(s, ARCH_KV_SHARED, 0, 0, d->n_layers - 1, &shared, err) ||
        !arch_read_whole(s, ARCH_PER_LAYER, 0, 0, MOST_UNITS, &d->form.per_layer, err))
        return false;
    for (uint32_t l = 0; l < d->n_layers; l++) {
        struct layer_form *f = &layers[l].form;
        const bool local = f->rope == LAYER_ROPE_LOCAL;
        f->head_dim = local ? local_dim : dim;
        f->kv_heads = local ? d->kv_heads : kv_heads;
    }
    d->rope_dims = s->names->naming == LAYER_NAMED_HF ? dim : d->rope_dims;
    d->form.local_dims = local_rotated;
    d->head_dim = dim > local_dim ? dim : local_dim;
    d->kv_heads = kv_heads > d->kv_heads ? kv_heads : d->kv_heads;
    return share_keys(m, shared, layers, err);
}

void
arch_rotations(struct model *m, const struct arch *arch, struct layer_desc *layers)
{
    for (uint32_t l = 1; l <= m->desc.n_layers; l++) {
        struct layer_form *f = &layers[l - 1].form;
        if (f->sees_all && (arch->flags & ARCH_WINDOWS_ROTATE) != 0)
            f->rope = LAYER_ROPE_NONE;
        if (!f->sees_all && m->desc.window > 0 && m->desc.form.local_base > 0)
            f->rope = LAYER_ROPE_LOCAL;
    }
}
