/* Random weights of a naive model, in a file's types and as the numbers that these types store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/tensor.h"
#include "tests/rigs/block_scales.h"
#include "tests/rigs/naive_model_internal.h"

static double
gaussian(uint64_t seed, uint32_t tensor, uint32_t i)
{
    const struct rng_key a = {.seed = seed, .seq = tensor, .pos = i},
                         b = {.seed = seed, .seq = tensor, .pos = i, .index = 1};
    return sqrt(-2 * log(1 - rng_uniform(&a))) * cos(2 * 3.14159265358979323846 * rng_uniform(&b));
}

/* Returns the F16 bits of x with the mantissa truncated; x is small and normal here, or 0. */
static uint16_t
half_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t exponent = (int32_t)((bits >> 23) & 0xff) - 127 + 15;
    if (exponent <= 0)
        return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) | ((uint32_t)exponent << 10) | (bits >> 13 & 0x3ff));
}

static double
half_value(uint16_t h)
{
    const int exponent = h >> 10 & 0x1f;
    const double mantissa = exponent > 0 ? 1024 + (h & 0x3ff) : 0;
    return (h & 0x8000 ? -1 : 1) * ldexp(mantissa, exponent - 25);
}

static void *
keep(struct naive_model *m, void *memory)
{
    if (memory == NULL || m->n_memory == sizeof m->memory / sizeof m->memory[0]) {
        m->failed = true;
        free(memory);
        return NULL;
    }
    return m->memory[m->n_memory++] = memory;
}

/* Writes row values x (cols) in the tensor's type to out and replaces them with what was stored. */
static void
store_row(enum weight_type type, double *x, uint32_t cols, unsigned char *out)
{
    for (uint32_t i = 0; i < cols; i++) {
        const float f = (float)x[i];
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        if (type == WEIGHT_F32) {
            memcpy(out + 4 * i, &f, 4);
            x[i] = (double)f;
        } else if (type == WEIGHT_F16) {
            const uint16_t h = half_bits(f);
            memcpy(out + 2 * i, &h, 2);
            x[i] = half_value(h);
        } else if (type == WEIGHT_BF16) {
            const uint16_t b = (uint16_t)(bits >> 16);
            float cut;
            bits &= 0xffff0000u;
            memcpy(&cut, &bits, sizeof cut);
            memcpy(out + 2 * i, &b, 2);
            x[i] = (double)cut;
        }
    }
    if (type != WEIGHT_Q8_0)
        return;
    for (uint32_t block = 0; block < cols / 32; block++) { /* 34 bytes: an F16 scale, 32 signed bytes */
        double max = 0;
        for (uint32_t i = 0; i < 32; i++)
            max = fmax(max, fabs(x[32 * block + i]));
        const uint16_t scale = half_bits((float)(max / 126)); /* truncated, so there are up to 126.1 of them */
        memcpy(out + 34 * block, &scale, 2);
        for (uint32_t i = 0; i < 32; i++) {
            double *at = &x[32 * block + i];
            const int8_t q = (int8_t)(half_value(scale) > 0 ? lrint(*at / half_value(scale)) : 0);
            memcpy(out + 34 * block + 2 + i, &q, 1);
            *at = q * half_value(scale);
        }
    }
}

/* The ratio of the second scale to the first, for types that have one, at which the values' mean is about 0. */
static const double second_scales[WEIGHT_TYPES] = {
    [WEIGHT_Q4_1] = -7.5, [WEIGHT_Q5_1] = -15.5, [WEIGHT_Q2_K] = 1.5, [WEIGHT_Q4_K] = 7.5, [WEIGHT_Q5_K] = 15.5};

/* For types whose table has a mean other than 0, every other row has scales of the other sign. Otherwise all outputs
 * would follow the mean of the inputs. */
static void
set_scales(enum weight_type type, uint32_t r, unsigned char *row, size_t bytes, double scale)
{
    const uint16_t sign = type > WEIGHT_MXFP4 && r % 2 == 1 ? 0x8000 : 0;
    const uint16_t d = half_bits((float)scale) | sign, second = half_bits((float)(scale * second_scales[type]));
    for (unsigned char *b = row; b < row + bytes; b += tensor_block_bytes(type))
        block_set_scales(type, b, d, second);
}

/* Makes random blocks of a type that this file does not encode, scaled so that the values deviate from 0 by
 * `deviation`. The values are read back with tensor_blocks(), which tests/unit/kernels/test_tensor.c compares with
 * other programs. */
static void
random_blocks(struct naive_model *m, enum weight_type type, uint32_t tensor, uint32_t r, uint32_t cols,
              double deviation, unsigned char *row, double *x)
{
    const size_t bytes = tensor_row_bytes(type, cols);
    float *values = calloc(cols, sizeof *values);
    if (values == NULL) {
        m->failed = true;
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        const struct rng_key key = {.seed = m->seed, .seq = tensor, .pos = r, .purpose = 7, .index = (uint32_t)i};
        row[i] = (unsigned char)(rng_uniform(&key) * 256);
        if (type == WEIGHT_TQ2_0) /* a pair with both bits set would be 2, which is no ternary digit */
            row[i] &= (unsigned char)~(row[i] << 1 & 0xaa);
    }
    set_scales(type, r, row, bytes, 1.0 / 16);
    tensor_blocks(type, row, cols, values);
    double squares = 0;
    for (uint32_t i = 0; i < cols; i++)
        squares += (double)values[i] * (double)values[i];
    set_scales(type, r, row, bytes, deviation / 16 / sqrt(squares / cols));
    tensor_blocks(type, row, cols, values);
    for (uint32_t i = 0; i < cols; i++)
        x[i] = (double)values[i];
    free(values);
}

/* Makes a random tensor, mean + deviation * N(0, 1), as stored and in double. */
static struct tensor
random_tensor(struct naive_model *m, enum weight_type type, uint32_t rows, uint32_t cols, double mean, double deviation,
              struct naive_matrix *doubles)
{
    const size_t row_bytes = tensor_row_bytes(type, cols);
    double *x = keep(m, calloc((size_t)rows * cols, sizeof *x));
    unsigned char *data = keep(m, aligned_alloc(64, ((size_t)rows * row_bytes + 63) / 64 * 64));
    const uint32_t tensor = m->n_tensors++;
    *doubles = (struct naive_matrix){x, rows, cols};
    if (m->failed)
        return (struct tensor){.rows = rows, .cols = cols};
    for (uint32_t r = 0; r < rows; r++) {
        if (type > WEIGHT_Q8_0) {
            random_blocks(m, type, tensor, r, cols, deviation, data + r * row_bytes, x + (size_t)r * cols);
            continue;
        }
        for (uint32_t i = 0; i < cols; i++)
            x[(size_t)r * cols + i] = mean + deviation * gaussian(m->seed, tensor, r * cols + i);
        store_row(type, x + (size_t)r * cols, cols, data + r * row_bytes);
    }
    return (struct tensor){.data = data, .type = type, .rows = rows, .cols = cols};
}

static void
random_experts(struct naive_model *m, const struct naive_shape *s, struct layer_desc *to, struct naive_layer *doubles)
{
    const enum weight_type second = s->second != WEIGHT_F32 ? s->second : s->type;
    const uint32_t n = experts_listed(&m->desc);
    struct expert_desc *experts = keep(m, calloc(n, sizeof *experts));
    struct naive_expert *naive = keep(m, calloc(n, sizeof *naive));
    to->experts = experts;
    doubles->experts = naive;
    for (uint32_t e = 0; !m->failed && e < n; e++)
        for (enum expert_tensor i = 0; i < EXPERT_TENSORS; i++) {
            const bool matrix = i < EXPERT_MATRICES;
            uint32_t rows, cols;
            if ((!matrix && (!s->expert_biases || e == m->desc.form.experts.n)) ||
                (i == EXPERT_GATE && (s->lacks >> LAYER_GATE & 1u) != 0))
                continue;
            expert_tensor_shape(&m->desc, e, i, &rows, &cols);
            experts[e].all[i] = random_tensor(m,
                                              !matrix            ? WEIGHT_F32
                                              : i == EXPERT_DOWN ? second
                                                                 : s->type,
                                              rows, cols, 0, matrix ? 1 / sqrt(cols) : 0.3, &naive[e].all[i]);
        }
}

static void
random_layer(struct naive_model *m, const struct naive_shape *s, bool sparse, uint32_t l, struct layer_desc *to,
             struct naive_layer *doubles)
{
    const enum weight_type second = s->second != WEIGHT_F32 ? s->second : s->type;
    const bool beside = (s->optional & LAYER_BESIDE) != 0, reads = to->form.kv_layer > 0;
    const bool recurrent = to->form.kind == LAYER_RECURRENT;
    const layer_set_t without = (!sparse  ? LAYER_ROUTING
                                 : beside ? 0
                                          : LAYER_MLP) |
                                (reads ? LAYER_KEYS_VALUES : (layer_set_t)0) | layer_others(&m->desc.form, &to->form);
    if (sparse)
        random_experts(m, s, to, doubles);
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        const struct layer_tensor_info *info = &layer_tensors[i];
        /* These deviations keep queries and keys at about 1.5, so that attention clearly prefers some positions. */
        const double gain = i == LAYER_WO ? 0.7 : i == LAYER_DOWN ? 1.0 : 1.5;
        uint32_t rows, cols;
        const bool asked = (s->optional >> i & 1u) != 0 || (sparse && i == LAYER_ROUTER) ||
                           (recurrent && (LAYER_OF_RECURRENT >> i & 1u) != 0);
        if ((info->need == LAYER_OPTIONAL && !asked) || (s->lacks >> i & 1u) != 0 || (without >> i & 1u) != 0)
            continue;
        layer_tensor_shape(&m->desc, l, i, &rows, &cols);
        if (i == LAYER_ROUTER)
            to->all[i] = random_tensor(m, WEIGHT_F32, rows, cols, 0, 2 / sqrt(cols), &doubles->all[i]);
        else if (i == LAYER_RECURRENT_CONV || i == LAYER_RECURRENT_DECAY)
            to->all[i] = random_tensor(m, WEIGHT_F32, 1, cols, i == LAYER_RECURRENT_DECAY ? -0.4 : 0,
                                       i == LAYER_RECURRENT_DECAY ? 0.1 : 0.5, &doubles->all[i]);
        else if (info->kind == LAYER_MATRIX)
            to->all[i] = random_tensor(m, i == LAYER_WV || i == LAYER_DOWN ? second : s->type, rows, cols, 0,
                                       gain / sqrt(cols), &doubles->all[i]);
        else if (info->kind == LAYER_NORM)
            to->all[i] = random_tensor(m, WEIGHT_F32, 1, cols, i == LAYER_Q_NORM ? 1.5 : 1, 0.1, &doubles->all[i]);
        else
            to->all[i] = random_tensor(m, WEIGHT_F32, 1, cols, 0, 0.3, &doubles->all[i]);
    }
}

static void
random_inputs(struct naive_model *m, const struct naive_shape *s)
{
    if (s->form.per_layer == 0)
        return;
    m->desc.input_embedding =
        random_tensor(m, s->type, s->vocab, s->n_layers * s->form.per_layer, 0, 1, &m->input_embedding);
    m->desc.input_norm = random_tensor(m, WEIGHT_F32, 1, s->form.per_layer, 1, 0.1, &m->input_norm);
}

struct naive_model *
naive_model_random(const struct naive_shape *s, uint64_t seed)
{
    struct naive_model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->seed = seed;
    m->layers = calloc(s->n_layers, sizeof *m->layers);
    m->doubles = calloc(s->n_layers, sizeof *m->doubles);
    if (m->layers == NULL || m->doubles == NULL) {
        naive_model_free(m);
        return NULL;
    }
    m->desc = (struct model_desc){.n_layers = s->n_layers,
                                  .width = s->width,
                                  .heads = s->heads,
                                  .kv_heads = s->kv_heads,
                                  .head_dim = s->head_dim,
                                  .ffn = s->ffn,
                                  .vocab = s->vocab,
                                  .rope_dims = s->rope_dims > 0 ? s->rope_dims : s->head_dim,
                                  .rope = s->rope,
                                  .rope_base = 10000,
                                  .rope_scale = 1,
                                  .rms_eps = 1e-5f,
                                  .window = s->window,
                                  .form = s->form,
                                  .layers = m->layers};
    m->desc.embedding = random_tensor(m, s->type, s->vocab, s->width, 0, 1, &m->embedding);
    m->desc.final_norm = random_tensor(m, WEIGHT_F32, 1, s->width, 1, 0.1, &m->final_norm);
    m->desc.head = random_tensor(m, s->second != WEIGHT_F32 ? s->second : s->type, s->vocab, s->width, 0,
                                 2 / sqrt(s->width), &m->head);
    if (s->end_biases) {
        m->desc.final_norm_bias = random_tensor(m, WEIGHT_F32, 1, s->width, 0, 0.3, &m->final_norm_bias);
        m->desc.head_bias = random_tensor(m, WEIGHT_F32, 1, s->vocab, 0, 0.3, &m->head_bias);
    }
    if (s->early_norm) {
        m->desc.embedding_norm = random_tensor(m, WEIGHT_F32, 1, s->width, 1, 0.1, &m->embedding_norm);
        m->desc.embedding_norm_bias = random_tensor(m, WEIGHT_F32, 1, s->width, 0, 0.3, &m->embedding_norm_bias);
    }
    random_inputs(m, s);
    if (s->positions > 0)
        m->desc.positions = random_tensor(m, WEIGHT_F32, s->positions, s->width, 0, 1, &m->positions);
    for (uint32_t l = 0; l < s->n_layers; l++) {
        struct layer_form *form = &m->layers[l].form;
        if (s->attention_every > 0 && (l + 1) % s->attention_every != 0)
            form->kind = LAYER_RECURRENT;
        if (s->every > 0 && l > 0 && l % s->every == 0)
            *form = s->layer_form;
        form->xielu = s->xielu;
        for (uint32_t from = s->n_layers - s->shared; l >= s->n_layers - s->shared && from > 0 && form->kv_layer == 0;
             from--)
            form->kv_layer = m->layers[from - 1].form.rope == form->rope ? from : 0;
        random_layer(m, s, s->form.experts.n > 0 && l >= s->dense, l + 1, &m->layers[l], &m->doubles[l]);
    }
    if (m->failed) {
        naive_model_free(m);
        return NULL;
    }
    return m;
}

void
naive_model_free(struct naive_model *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_memory; i++)
        free(m->memory[i]);
    free(m->layers);
    free(m->doubles);
    free(m);
}
