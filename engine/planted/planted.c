#include "engine/planted/planted.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/planted/planted_acceptance.h"
#include "kernels/planted.h"
#include "kernels/tensor.h"

/* See planted.h. */
#define UNIT 8.0 /* standard deviation of the embedding, the residual stream's unit: keeps scales normal in F16 */

#define REACH_SQUARED   1.0 /* what the layers before k add together, and layer k alone, over the embedding's */
#define ATTENTION_LOGIT 6.0
#define ATTENTION_OUT   0.63 /* size of a weighted mean of a few values, of size 1 each */
#define SILU_OUT        0.6  /* of silu(g) * u, sqrt(0.356) */
#define SHARPNESS       3.0

/* Sizes as their owners publish them; all are of Llama's form, whatever else the models have. */
const struct planted_shape planted_shapes[] = {
    /* layers, width, heads, KV heads, head, FFN, vocabulary, context, tied, RoPE's base, epsilon */
    {"tiny", 8, 128, 4, 2, 32, 256, 512, 2048, false, 10000, 1e-5f},
    {"SmolLM-135M", 30, 576, 9, 3, 64, 1536, 49152, 2048, true, 10000, 1e-5f},
    {"Qwen2.5-0.5B", 24, 896, 14, 2, 64, 4864, 151936, 32768, true, 1000000, 1e-6f},
    {"TinyLlama-1.1B", 22, 2048, 32, 4, 64, 5632, 32000, 2048, false, 10000, 1e-5f},
    {"Gemma-2-2B", 26, 2304, 8, 4, 256, 9216, 256000, 8192, true, 10000, 1e-6f},
    {"Gemma-3-4B", 34, 2560, 8, 4, 256, 10240, 262144, 131072, true, 1000000, 1e-6f},
    {"Llama-2-7B", 32, 4096, 32, 32, 128, 11008, 32000, 4096, false, 10000, 1e-5f},
    {"Qwen2.5-7B", 28, 3584, 28, 4, 128, 18944, 152064, 131072, false, 1000000, 1e-6f},
    {"Llama-3-8B", 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, 500000, 1e-5f},
    {"Gemma-2-9B", 42, 3584, 16, 8, 256, 14336, 256000, 8192, true, 10000, 1e-6f},
    {"Llama-2-13B", 40, 5120, 40, 40, 128, 13824, 32000, 4096, false, 10000, 1e-5f},
    {"CodeLlama-34B", 48, 8192, 64, 8, 128, 22016, 32000, 16384, false, 1000000, 1e-5f},
    {0},
};

/* ---- what is asked for ---- */

static bool
same_name(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && strncasecmp(name, text, len) == 0;
}

bool
planted_find_shape(const char *name, size_t len, const struct planted_shape **out, struct err *err)
{
    char known[240] = "";
    size_t n = 0;
    for (const struct planted_shape *s = planted_shapes; s->name != NULL; s++) {
        *out = s;
        if (same_name(s->name, name, len))
            return true;
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "", s->name);
    }
    return err_set(err, ERR_USAGE, "no shape is called '%.*s'; there are %s", len < 40 ? (int)len : 40, name, known);
}

bool
planted_find_type(const char *name, size_t len, enum weight_type *out, struct err *err)
{
    static const enum weight_type types[] = {WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_Q8_0};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *out = types[i];
        if (same_name(tensor_type_name(types[i]), name, len))
            return true;
    }
    return err_set(err, ERR_USAGE, "planted weights are not made in '%.*s'; there are f32, f16, bf16 and q8_0",
                   len < 20 ? (int)len : 20, name);
}

bool
planted_read_exit(const char *text, struct planted_spec *spec, struct err *err)
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
        !(acceptance >= PLANTED_LEAST_ACCEPTANCE && acceptance <= PLANTED_MOST_ACCEPTANCE))
        return err_set(err, ERR_USAGE, "an acceptance of '%.20s' cannot be planted; give one from %g to %g", second,
                       PLANTED_LEAST_ACCEPTANCE, PLANTED_MOST_ACCEPTANCE);
    spec->exit = (uint32_t)k;
    spec->acceptance = acceptance;
    return true;
}

bool
planted_read_spec(const char *text, struct planted_spec *spec, struct err *err)
{
    *spec = (struct planted_spec){.type = WEIGHT_Q8_0, .seed = PLANTED_SEED};
    const size_t name = strcspn(text, ":,"), whole = strcspn(text, ",");
    if (text[whole] == '\0')
        return err_set(err, ERR_USAGE, "'%.40s' should be SHAPE[:TYPE],k,acceptance, as in SmolLM-135M:q8_0,8,0.75",
                       text);
    return planted_find_shape(text, name, &spec->shape, err) &&
           (name == whole || planted_find_type(text + name + 1, whole - name - 1, &spec->type, err)) &&
           planted_read_exit(text + whole + 1, spec, err);
}

/* ---- the weights ---- */

struct making {
    struct planted_weights *w;
    size_t n_formulas;
    double owed; /* of squares of gains, by rounding */
    double made; /* their sum */
};

static void
list(struct making *m, const char *name, const struct tensor *t)
{
    struct planted_tensor *to = &m->w->all[m->w->n++];
    snprintf(to->name, sizeof to->name, "%s.weight", name);
    to->tensor = *t;
}

static void
list_norm(struct making *m, const char *name, const float *values, struct tensor *t)
{
    *t = (struct tensor){.data = values, .type = WEIGHT_F32, .rows = 1, .cols = m->w->desc.width};
    list(m, name, t);
}

/* Elements of this standard deviation. */
static struct planted *
matrix(struct making *m, const char *name, uint32_t rows, uint32_t cols, double deviation, struct tensor *t)
{
    const uint32_t id = (uint32_t)m->n_formulas++;
    struct planted *p = &m->w->formulas[id];
    *p = (struct planted){.key = planted_key(m->w->spec.seed, id),
                          .scale = planted_scale(deviation / PLANTED_DEVIATION),
                          .faint_row = rows,
                          .faint_col = cols};
    *t = (struct tensor){.type = m->w->spec.type, .rows = rows, .cols = cols, .planted = p};
    list(m, name, t);
    return p;
}

/* A sublayer's last matrix: it adds `gain` to the stream when its inputs are of this size. */
static struct planted *
output_matrix(struct making *m, const char *name, uint32_t cols, double inputs, double gain, struct tensor *t)
{
    const double per_gain = 1 / (inputs * sqrt(cols));
    const double paid = sqrt(fmax(gain * gain + m->owed, 0.25 * gain * gain));
    struct planted *p = matrix(m, name, m->w->desc.width, cols, paid * per_gain, t);
    const double made = (double)p->scale * PLANTED_DEVIATION / per_gain;
    m->owed += gain * gain - made * made;
    m->made += made * made;
    return p;
}

/* A layer whose two sublayers together add this square; before k, faint on the second half. */
static void
make_layer(struct making *m, uint32_t l, double square, bool faint, struct layer_desc *to)
{
    const struct model_desc *d = &m->w->desc;
    const double plain = 1 / sqrt(d->width), sharp = plain * sqrt(ATTENTION_LOGIT), gain = sqrt(square / 2);
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        if (layer_tensors[i].need == LAYER_OPTIONAL)
            continue;
        struct planted *last = NULL;
        char name[32];
        uint32_t rows, cols;
        layer_tensor_shape(d, i, &rows, &cols);
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", l - 1, layer_tensors[i].names[LAYER_NAMED_GGUF]);
        if (layer_tensors[i].kind == LAYER_NORM)
            list_norm(m, name, m->w->norms, &to->all[i]);
        else if (i == LAYER_WO || i == LAYER_DOWN)
            last = output_matrix(m, name, cols, i == LAYER_WO ? ATTENTION_OUT : SILU_OUT, gain, &to->all[i]);
        else
            matrix(m, name, rows, cols, i == LAYER_WQ || i == LAYER_WK ? sharp : plain, &to->all[i]);
        if (last != NULL && faint)
            last->faint_row = d->width / 2;
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
    struct planted_weights *w = m->w;
    struct model_desc *d = &w->desc;
    const struct planted_shape *s = w->spec.shape;
    const uint32_t k = w->spec.exit == 0 ? d->n_layers : w->spec.exit; /* nothing planted: the last layer says it all */
    const double tangent = w->spec.exit == 0 ? 0 : planted_tangent(s->vocab, w->spec.acceptance);
    const double reach = UNIT * UNIT * REACH_SQUARED, before = k > 1 ? REACH_SQUARED : 0;
    float *final = w->norms + d->width;
    struct planted *embedding = matrix(m, "token_embd", d->vocab, d->width, UNIT, &d->embedding);
    embedding->faint_col = d->width / 2;
    for (uint32_t l = 1; l < k; l++)
        make_layer(m, l, reach / (k - 1), true, &w->layers[l - 1]);
    m->owed = m->made = 0;
    make_layer(m, k, reach, false, &w->layers[k - 1]);
    const double turn = tangent * tangent * m->made;
    m->owed = 0;
    for (uint32_t l = k + 1; l <= d->n_layers; l++)
        make_layer(m, l, turn / (d->n_layers - k), false, &w->layers[l - 1]);
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
check_spec(const struct planted_spec *s, struct err *err)
{
    if (s->type == WEIGHT_Q8_0 && (s->shape->width % PLANTED_Q8_BLOCK != 0 || s->shape->ffn % PLANTED_Q8_BLOCK != 0 ||
                                   s->shape->heads * s->shape->head_dim % PLANTED_Q8_BLOCK != 0))
        return err_set(err, ERR_USAGE, "%s: Q8_0 needs rows of a multiple of %u", s->shape->name, PLANTED_Q8_BLOCK);
    if (s->exit >= s->shape->n_layers)
        return err_set(err, ERR_USAGE, "%s: has %" PRIu32 " layers, none after %" PRIu32 " to plant", s->shape->name,
                       s->shape->n_layers, s->exit);
    if (s->exit > 0 && !(s->acceptance >= PLANTED_LEAST_ACCEPTANCE && s->acceptance <= PLANTED_MOST_ACCEPTANCE))
        return err_set(err, ERR_USAGE, "%s: an acceptance of %g cannot be planted; give one from %g to %g",
                       s->shape->name, s->acceptance, PLANTED_LEAST_ACCEPTANCE, PLANTED_MOST_ACCEPTANCE);
    return true;
}

bool
planted_weights_make(struct planted_weights **out, const struct planted_spec *spec, struct err *err)
{
    const struct planted_shape *s = spec->shape;
    *out = NULL;
    if (!check_spec(spec, err))
        return false;
    struct planted_weights *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->layers = calloc(s->n_layers, sizeof *w->layers);
        w->formulas = calloc((size_t)s->n_layers * LAYER_TENSORS + 2, sizeof *w->formulas);
        w->norms = calloc((size_t)s->width * 2, sizeof *w->norms);
        w->all = calloc((size_t)s->n_layers * LAYER_TENSORS + 3, sizeof *w->all);
    }
    if (w == NULL || w->layers == NULL || w->formulas == NULL || w->norms == NULL || w->all == NULL) {
        planted_weights_free(w);
        return err_set(err, ERR_WORK, "%s: out of memory for a planted model's description", s->name);
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
    make_all(&(struct making){.w = w});
    *out = w;
    return true;
}

void
planted_weights_free(struct planted_weights *w)
{
    if (w == NULL)
        return;
    free(w->layers);
    free(w->formulas);
    free(w->norms);
    free(w->all);
    free(w);
}
