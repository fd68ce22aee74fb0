#include "engine/model/synthetic/synthetic.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/model/model.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"

/* P(standard normal > x) */
static double
above(double x)
{
    return 0.5 * erfc(x * 0.70710678118654752);
}

/* The number that a standard normal one is above with probability p, 0 < p < 1. */
static double
synthetic_quantile(double p)
{
    double low = -40, high = 40;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (above(middle) > p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double
density(double x)
{
    return 0.39894228040143268 * exp(-0.5 * x * x);
}

/* With (x, y) the two logits of one token, r their correlation and s = sqrt(1 - r^2), the probability is
 *   V * integral of f(x, y) * P(X <= x and Y <= y)^(V-1) dx dy,
 * where f(x, y) = density(x) * density((y - r x) / s) / s, and the power is exp((V-1) log(1 - outside)) with
 *   outside = P(X > x) + P(Y > y) - P(X > x and Y > y).
 * The last term, for one y, is an integral over x that grows by a strip as x descends, so a grid costs two functions a
 * point. Trapezes on smooth functions that vanish at both ends: a step of s / 2 is plenty. */
double
synthetic_agreement(uint32_t vocab, double tangent)
{
    const double r = 1 / sqrt(1 + tangent * tangent), s = tangent * r, others = vocab - 1.0;
    const double step = fmin(0.05, s / 2), none = 1e-9;
    double low = -8, high = 0;
    while (others * above(low) > 45 && above(low + step) > 0) /* exp(-45): the largest is above */
        low += step;
    while (vocab * above(high) > none)
        high += step;
    const int steps = (int)ceil((high - low) / step);
    double sum = 0;
    for (int j = 0; j < steps; j++) {
        const double y = low + j * step, y_above = above(y);
        double both = 0, strip_before = 0; /* P(X > x and Y > y) */
        for (int i = 0; i < steps; i++) {
            const double x = high - i * step, z = (y - r * x) / s;
            if (z > 8 && x < y) /* and lower x only raise it: nothing comes any more */
                break;
            const double f = density(x), strip = f * above(z);
            both += 0.5 * (strip + strip_before) * step;
            strip_before = strip;
            const double outside = above(x) + y_above - both;
            if (fabs(z) < 8 && outside < 1)
                sum += f * density(z) / s * exp(others * log1p(-outside));
        }
    }
    return vocab * sum * step * step;
}

double
synthetic_tangent(uint32_t vocab, double acceptance)
{
    double low = 0.004, high = 4;
    while (synthetic_agreement(vocab, 2 * low) > acceptance && 2 * low < high)
        low *= 2; /* from below in steps: a small tangent's grid is fine, and half of it is not needed */
    high = fmin(high, 2 * low);
    for (int i = 0; i < 12; i++) {
        const double middle = sqrt(low * high);
        if (synthetic_agreement(vocab, middle) > acceptance)
            low = middle;
        else
            high = middle;
    }
    int exponent;
    const double fraction = frexp(sqrt(low * high), &exponent);
    return ldexp(nearbyint(ldexp(fraction, 10)), exponent - 10);
}

/* See synthetic.h. */
#define UNIT 8.0 /* standard deviation of the embedding, the residual stream's unit: keeps scales normal in F16 */

#define REACH_SQUARED   1.0 /* what the layers before k add together, and layer k alone, over the embedding's */
#define ATTENTION_LOGIT 6.0
#define ATTENTION_OUT   0.63 /* size of a weighted mean of a few values, of size 1 each */
#define SILU_OUT        0.6  /* of silu(g) * u, sqrt(0.356) */
#define ROUTER_LOGIT    1.0
#define SHARPNESS       3.0

/* Sizes as their owners publish them; all are of Llama's form, whatever else the models have. */
const struct synthetic_shape synthetic_shapes[] = {
    /* layers, width, heads, KV heads, head, FFN, experts, of them used, vocabulary, context, tied, RoPE's base,
     * epsilon */
    {"tiny", 8, 128, 4, 2, 32, 256, 0, 0, 512, 2048, false, 10000, 1e-5f},
    {"tiny-mixture", 8, 128, 4, 2, 32, 96, 8, 2, 512, 2048, false, 10000, 1e-5f},
    {"SmolLM-135M", 30, 576, 9, 3, 64, 1536, 0, 0, 49152, 2048, true, 10000, 1e-5f},
    {"Qwen2.5-0.5B", 24, 896, 14, 2, 64, 4864, 0, 0, 151936, 32768, true, 1000000, 1e-6f},
    {"TinyLlama-1.1B", 22, 2048, 32, 4, 64, 5632, 0, 0, 32000, 2048, false, 10000, 1e-5f},
    {"Gemma-2-2B", 26, 2304, 8, 4, 256, 9216, 0, 0, 256000, 8192, true, 10000, 1e-6f},
    {"Gemma-3-4B", 34, 2560, 8, 4, 256, 10240, 0, 0, 262144, 131072, true, 1000000, 1e-6f},
    {"OLMoE-1B-7B", 16, 2048, 16, 16, 128, 1024, 64, 8, 50304, 4096, false, 10000, 1e-5f},
    {"Llama-2-7B", 32, 4096, 32, 32, 128, 11008, 0, 0, 32000, 4096, false, 10000, 1e-5f},
    {"Qwen2.5-7B", 28, 3584, 28, 4, 128, 18944, 0, 0, 152064, 131072, false, 1000000, 1e-6f},
    {"Llama-3-8B", 32, 4096, 32, 8, 128, 14336, 0, 0, 128256, 8192, false, 500000, 1e-5f},
    {"Gemma-2-9B", 42, 3584, 16, 8, 256, 14336, 0, 0, 256000, 8192, true, 10000, 1e-6f},
    {"Llama-2-13B", 40, 5120, 40, 40, 128, 13824, 0, 0, 32000, 4096, false, 10000, 1e-5f},
    {"CodeLlama-34B", 48, 8192, 64, 8, 128, 22016, 0, 0, 32000, 16384, false, 1000000, 1e-5f},
    {"Qwen3-30B-A3B", 48, 2048, 32, 4, 128, 768, 128, 8, 151936, 40960, false, 1000000, 1e-6f},
    {"Mixtral-8x7B", 32, 4096, 32, 8, 128, 14336, 8, 2, 32000, 32768, false, 1000000, 1e-5f},
    {0},
};

/* ---- what is asked for ---- */

static bool
same_name(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && strncasecmp(name, text, len) == 0;
}

bool
synthetic_find_shape(const char *name, size_t len, const struct synthetic_shape **out, struct err *err)
{
    char known[320] = "";
    size_t n = 0;
    for (const struct synthetic_shape *s = synthetic_shapes; s->name != NULL; s++) {
        *out = s;
        if (same_name(s->name, name, len))
            return true;
        if (n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "", s->name);
    }
    return err_set(err, ERR_USAGE, "no shape is called '%.*s'; there are %s", len < 40 ? (int)len : 40, name, known);
}

bool
synthetic_find_type(const char *name, size_t len, enum weight_type *out, struct err *err)
{
    static const enum weight_type types[] = {WEIGHT_F32,  WEIGHT_F16,  WEIGHT_BF16, WEIGHT_Q8_0,
                                             WEIGHT_Q4_0, WEIGHT_Q4_K, WEIGHT_Q6_K};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *out = types[i];
        if (same_name(tensor_type_name(types[i]), name, len))
            return true;
    }
    return err_set(err, ERR_USAGE,
                   "synthetic weights are not made in '%.*s'; there are f32, f16, bf16, q8_0, q4_0, q4_k and q6_k",
                   len < 20 ? (int)len : 20, name);
}

bool
synthetic_read_exit(const char *text, struct synthetic_spec *spec, struct err *err)
{
    const uint32_t layers = spec->shape->n_layers;
    char *end;
    const unsigned long k = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    if (k < 1 || k >= layers || *end != ',')
        return err_set(err, ERR_USAGE,
                       "'%.40s' should be an exit layer from 1 to %" PRIu32
                       ", a comma and an acceptance, as in %" PRIu32 ",0.75",
                       text, layers - 1, layers / 4);
    const char *second = end + 1;
    const double acceptance = strtod(second, &end);
    if (end == second || *end != '\0' ||
        !(acceptance >= SYNTHETIC_LEAST_ACCEPTANCE && acceptance <= SYNTHETIC_MOST_ACCEPTANCE))
        return err_set(err, ERR_USAGE, "an acceptance of '%.20s' cannot be made; give one from %g to %g", second,
                       SYNTHETIC_LEAST_ACCEPTANCE, SYNTHETIC_MOST_ACCEPTANCE);
    spec->exit = (uint32_t)k;
    spec->acceptance = acceptance;
    return true;
}

bool
synthetic_read_spec(const char *text, struct synthetic_spec *spec, struct err *err)
{
    *spec = (struct synthetic_spec){.type = WEIGHT_Q8_0, .seed = SYNTHETIC_SEED};
    const size_t name = strcspn(text, ":,"), whole = strcspn(text, ",");
    if (text[whole] == '\0')
        return err_set(err, ERR_USAGE, "'%.40s' should be SHAPE[:TYPE],k,acceptance, as in SmolLM-135M:q8_0,8,0.75",
                       text);
    return synthetic_find_shape(text, name, &spec->shape, err) &&
           (name == whole || synthetic_find_type(text + name + 1, whole - name - 1, &spec->type, err)) &&
           synthetic_read_exit(text + whole + 1, spec, err);
}

/* ---- the weights ---- */

struct making {
    struct synthetic_weights *w;
    size_t n_formulas;
    double owed; /* of squares of gains, by rounding */
    double made; /* their sum */
};

static void
list(struct making *m, const char *name, const struct tensor *t, uint32_t planes)
{
    struct synthetic_tensor *to = &m->w->all[m->w->n++];
    snprintf(to->name, sizeof to->name, "%s.weight", name);
    to->tensor = *t;
    to->planes = planes;
}

static void
list_norm(struct making *m, const char *name, const float *values, struct tensor *t)
{
    *t = (struct tensor){.data = values, .type = WEIGHT_F32, .rows = 1, .cols = m->w->desc.width};
    list(m, name, t, 1);
}

/* Elements of this standard deviation, by a formula of their own. */
static struct synthetic *
formula(struct making *m, enum weight_type type, uint32_t rows, uint32_t cols, double deviation, struct tensor *t)
{
    const uint32_t id = (uint32_t)m->n_formulas++;
    struct synthetic *p = &m->w->formulas[id];
    *p = (struct synthetic){.key = synthetic_key(m->w->spec.seed, id),
                            .scale = synthetic_scale(deviation / SYNTHETIC_DEVIATION),
                            .faint_row = rows,
                            .faint_col = cols};
    *t = (struct tensor){.type = type, .rows = rows, .cols = cols, .synthetic = p};
    return p;
}

static struct synthetic *
matrix(struct making *m, const char *name, uint32_t rows, uint32_t cols, double deviation, struct tensor *t)
{
    struct synthetic *p = formula(m, m->w->spec.type, rows, cols, deviation, t);
    list(m, name, t, 1);
    return p;
}

/* Of elements of a sublayer's last matrix, which adds `gain` to the stream when its inputs are of this size. */
static double
output_deviation(struct making *m, uint32_t cols, double inputs, double gain)
{
    const double per_gain = 1 / (inputs * sqrt(cols));
    const double paid = sqrt(fmax(gain * gain + m->owed, 0.25 * gain * gain)), deviation = paid * per_gain;
    const double made = (double)synthetic_scale(deviation / SYNTHETIC_DEVIATION) * SYNTHETIC_DEVIATION / per_gain;
    m->owed += gain * gain - made * made;
    m->made += made * made;
    return deviation;
}

/* Size of the weighted sum of the outputs of a row's experts, each of size 1 and independent: the root of the sum of
 * the weights' squares, about, the row's logits being the quantiles of normal numbers (Blom 1958). */
static double
mixed_size(const struct experts_form *f)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < f->used; i++) {
        const double weight = exp(ROUTER_LOGIT * synthetic_quantile((i + 0.625) / (f->n + 0.25)));
        sum += weight;
        squares += weight * weight;
    }
    return sqrt(squares) / sum;
}

/* What is asked of a layer: its two sublayers together add this square; before k, faint on the second half. */
struct layer_plan {
    uint32_t l;
    double square;
    bool faint;
};

static double
deviation_of(struct making *m, const struct layer_plan *p, enum layer_tensor which, uint32_t cols)
{
    const struct experts_form *f = &m->w->desc.form.experts;
    const double plain = 1 / sqrt(m->w->desc.width), gain = sqrt(p->square / 2);
    switch (which) {
    case LAYER_WQ:
    case LAYER_WK: return plain * sqrt(ATTENTION_LOGIT);
    case LAYER_WO: return output_deviation(m, cols, ATTENTION_OUT, gain);
    case LAYER_DOWN: return output_deviation(m, cols, f->n > 0 ? SILU_OUT * mixed_size(f) : SILU_OUT, gain);
    case LAYER_ROUTER: return plain * ROUTER_LOGIT;
    default: return plain;
    }
}

/* A matrix of each of the layer's experts; in the file they are one tensor. */
static void
make_stack(struct making *m, const char *name, enum expert_tensor which, double deviation, bool faint,
           struct expert_desc *experts)
{
    const struct model_desc *d = &m->w->desc;
    char stack[40];
    uint32_t rows, cols;
    expert_tensor_shape(d, 0, which, &rows, &cols);
    for (uint32_t e = 0; e < d->form.experts.n; e++) {
        struct synthetic *p = formula(m, m->w->spec.type, rows, cols, deviation, &experts[e].all[which]);
        p->faint_row = faint ? d->width / 2 : rows;
    }
    snprintf(stack, sizeof stack, "%s_exps", name);
    list(m, stack, &experts[0].all[which], d->form.experts.n);
}

static void
make_layer(struct making *m, const struct layer_plan *plan)
{
    const struct model_desc *d = &m->w->desc;
    const uint32_t n = d->form.experts.n;
    struct layer_desc *to = &m->w->layers[plan->l - 1];
    struct expert_desc *experts = n > 0 ? m->w->experts + (size_t)(plan->l - 1) * n : NULL;
    to->experts = experts;
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        char name[32];
        uint32_t rows, cols;
        if (layer_tensors[i].need == LAYER_OPTIONAL && (n == 0 || i != LAYER_ROUTER))
            continue;
        layer_tensor_shape(d, plan->l, i, &rows, &cols);
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", plan->l - 1, layer_tensors[i].names[LAYER_NAMED_GGUF]);
        if (layer_tensors[i].kind == LAYER_NORM) {
            list_norm(m, name, m->w->norms, &to->all[i]);
            continue;
        }
        const double deviation = deviation_of(m, plan, i, cols);
        const bool faint = plan->faint && (i == LAYER_WO || i == LAYER_DOWN);
        if (n > 0 && (LAYER_MLP >> i & 1u) != 0) { /* in the same order */
            make_stack(m, name, (enum expert_tensor)(i - LAYER_GATE), deviation, faint, experts);
        } else if (i == LAYER_ROUTER) { /* F32, as converters leave it */
            (void)formula(m, WEIGHT_F32, rows, cols, deviation, &to->all[i]);
            list(m, name, &to->all[i], 1);
        } else {
            struct synthetic *p = matrix(m, name, rows, cols, deviation, &to->all[i]);
            p->faint_row = faint ? d->width / 2 : rows;
        }
    }
}

/* 0 on the first half; on the second what makes logits of the wanted size at k, of whose stream's square that half has
 * the share `seen`, while the head's elements there have this standard deviation. */
static void
make_final_norm(float *norm, const struct model_desc *d, double seen, double head_deviation)
{
    const double size = SHARPNESS * sqrt(2 * log(d->vocab));
    for (uint32_t i = 0; i < d->width; i++)
        norm[i] = i < d->width / 2 ? 0 : (float)(size / (head_deviation * sqrt(d->width * seen)));
}

static void
make_all(struct making *m)
{
    struct synthetic_weights *w = m->w;
    struct model_desc *d = &w->desc;
    const struct synthetic_shape *s = w->spec.shape;
    const uint32_t k = w->spec.exit == 0 ? d->n_layers : w->spec.exit; /* no exit: the last layer decides */
    const double tangent = w->spec.exit == 0 ? 0 : synthetic_tangent(s->vocab, w->spec.acceptance);
    const double reach = UNIT * UNIT * REACH_SQUARED, before = k > 1 ? REACH_SQUARED : 0;
    float *final = w->norms + d->width;
    struct synthetic *embedding = matrix(m, "token_embd", d->vocab, d->width, UNIT, &d->embedding);
    embedding->faint_col = d->width / 2;
    for (uint32_t l = 1; l < k; l++)
        make_layer(m, &(struct layer_plan){l, reach / (k - 1), true});
    m->owed = m->made = 0;
    make_layer(m, &(struct layer_plan){k, reach, false});
    const double turn = tangent * tangent * m->made;
    m->owed = 0;
    for (uint32_t l = k + 1; l <= d->n_layers; l++)
        make_layer(m, &(struct layer_plan){l, turn / (d->n_layers - k), false});
    list_norm(m, "output_norm", final, &d->final_norm);
    d->head = d->embedding;
    if (!s->tied)
        matrix(m, "output", d->vocab, d->width, 1 / sqrt(d->width), &d->head);
    for (uint32_t i = 0; i < d->width; i++)
        w->norms[i] = 1;
    make_final_norm(final, d, REACH_SQUARED / (1 + before + 2 * REACH_SQUARED),
                    s->tied ? (double)embedding->scale : 1 / sqrt(d->width)); /* tied: n is 1 or -1 there */
}

static bool
check_spec(const struct synthetic_spec *s, struct err *err)
{
    const size_t block = tensor_block_values(s->type);
    if (s->shape->width % block != 0 || s->shape->ffn % block != 0 ||
        (size_t)s->shape->heads * s->shape->head_dim % block != 0)
        return err_set(err, ERR_USAGE, "%s: %s needs rows of a multiple of %zu numbers; choose another type or shape",
                       s->shape->name, tensor_type_name(s->type), block);
    if (s->exit >= s->shape->n_layers)
        return err_set(err, ERR_USAGE, "%s: has %" PRIu32 " layers, so none follows the exit after %" PRIu32,
                       s->shape->name, s->shape->n_layers, s->exit);
    if (s->exit > 0 && !(s->acceptance >= SYNTHETIC_LEAST_ACCEPTANCE && s->acceptance <= SYNTHETIC_MOST_ACCEPTANCE))
        return err_set(err, ERR_USAGE, "%s: an acceptance of %g cannot be made; give one from %g to %g", s->shape->name,
                       s->acceptance, SYNTHETIC_LEAST_ACCEPTANCE, SYNTHETIC_MOST_ACCEPTANCE);
    return true;
}

bool
synthetic_weights_make(struct synthetic_weights **out, const struct synthetic_spec *spec, struct err *err)
{
    const struct synthetic_shape *s = spec->shape;
    *out = NULL;
    if (!check_spec(spec, err))
        return false;
    struct synthetic_weights *w = calloc(1, sizeof *w);
    if (w != NULL) {
        const size_t n = s->n_layers;
        w->layers = blocks_take(&w->blocks, n, sizeof *w->layers);
        w->experts = blocks_take(&w->blocks, n * s->experts + 1, sizeof *w->experts);
        w->formulas =
            blocks_take(&w->blocks, n * (LAYER_TENSORS + s->experts * EXPERT_MATRICES) + 2, sizeof *w->formulas);
        w->norms = blocks_take(&w->blocks, (size_t)s->width * 2, sizeof *w->norms);
        w->all = blocks_take(&w->blocks, n * LAYER_TENSORS + 3, sizeof *w->all);
    }
    if (w == NULL || w->blocks.starved) {
        synthetic_weights_free(w);
        return err_set(err, ERR_WORK, "%s: out of memory for a synthetic model's description", s->name);
    }
    w->spec = *spec;
    w->desc = (struct model_desc){.n_layers = s->n_layers,
                                  .width = s->width,
                                  .heads = s->heads,
                                  .kv_heads = s->kv_heads,
                                  .head_dim = s->head_dim,
                                  .ffn = s->ffn,
                                  .vocab = s->vocab,
                                  .rope_dims = s->head_dim,
                                  .rope = ROPE_ADJACENT,
                                  .rope_base = s->rope_base,
                                  .rope_scale = 1,
                                  .rms_eps = s->rms_eps,
                                  .layers = w->layers};
    if (s->experts > 0)
        w->desc.form.experts =
            (struct experts_form){.n = s->experts, .used = s->used, .ffn = s->ffn, .renormalised = true};
    make_all(&(struct making){.w = w});
    *out = w;
    return true;
}

void
synthetic_weights_free(struct synthetic_weights *w)
{
    if (w == NULL)
        return;
    blocks_free(&w->blocks);
    free(w);
}

/* A synthetic model opened as if from a file: the matrices stay formulas, which backends compute as they load. */

static void
count_tensors(struct model *m, const struct synthetic_weights *w)
{
    const struct model_desc *d = &w->desc;
    const uint64_t head = (uint64_t)d->vocab * d->width;
    for (size_t i = 0; i < w->n; i++) {
        const struct tensor *t = &w->all[i].tensor;
        const uint64_t values = (uint64_t)t->rows * t->cols * w->all[i].planes;
        m->parameters += values;
        m->file_bytes += (uint64_t)t->rows * w->all[i].planes * tensor_row_bytes(t->type, t->cols);
        m->parameters_of[t->type] += values;
        m->tensors_of[t->type] += w->all[i].planes;
    }
    m->tied = w->spec.shape->tied;
    const uint64_t active = m->parameters - model_idle_parameters(m) - d->width - head * (m->tied ? 1 : 2);
    m->rho = (double)head / ((double)active / d->n_layers);
}

/* Hashes the name, which contains the shape, and every formula. */
static void
hash_synthetic(struct model *m, const struct synthetic_weights *w)
{
    m->hash = hash_bytes(HASH_START, m->name, strlen(m->name));
    for (size_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; w->all[i].tensor.synthetic != NULL && k < w->all[i].planes; k++) {
            const struct synthetic *p = synthetic_plane(&w->all[i], k).synthetic;
            m->hash = hash_bytes(m->hash, &p->key, sizeof p->key);
            m->hash = hash_bytes(m->hash, &p->scale, sizeof p->scale);
        }
}

bool
synthetic_describe(struct model *m, struct err *err)
{
    const struct synthetic_weights *w = m->synthetic;
    struct layer_desc *layers = calloc(w->desc.n_layers, sizeof *layers);
    if (layers == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", m->path);
    memcpy(layers, w->layers, w->desc.n_layers * sizeof *layers);
    m->desc = w->desc;
    m->desc.layers = layers;
    m->ctx_train = w->spec.shape->ctx;
    snprintf(m->arch, sizeof m->arch, "llama");
    snprintf(m->name, sizeof m->name, "%s synthetic %u, %g", w->spec.shape->name, w->spec.exit, w->spec.acceptance);
    snprintf(m->types, sizeof m->types, "%s%s", tensor_type_name(w->spec.type),
             w->spec.type == WEIGHT_F32 ? "" : ", F32");
    count_tensors(m, w);
    hash_synthetic(m, w);
    return true;
}
