#include "engine/llama.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf_types.h"
#include "engine/utf8.h"

/* Far above any model, low enough that no product of two of them overflows 64 bits. */
#define MOST_LAYERS 4096u
#define MOST_UNITS  (1u << 20) /* width, ffn, heads * head_dim */
#define MOST_CTX    (1u << 28)

#define KEY(name) "llama." name
#define RECONVERT "; convert the model again"

struct reading {
    struct model *model;
    const struct gguf *g;
    bool *used; /* (n_tensors) */
    struct err *err;
};

/* ---- hyperparameters ---- */

static bool
read_size(struct reading *r, const char *key, uint32_t otherwise, uint32_t most, uint32_t *out)
{
    if (otherwise == 0 && gguf_find(r->g, key) == NULL)
        return err_set(r->err, ERR_WORK, "%s: metadata '%s' is missing" RECONVERT, r->g->path, key);
    if (!gguf_get_u32(r->g, key, otherwise, out, r->err))
        return false;
    if (*out == 0 || *out > most)
        return err_set(r->err, ERR_WORK, "%s: metadata '%s' is %" PRIu32 ", not between 1 and %" PRIu32 RECONVERT,
                       r->g->path, key, *out, most);
    return true;
}

static bool
read_heads(struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    uint32_t value_dim = 0;
    if (!read_size(r, KEY("attention.head_count"), 0, MOST_UNITS, &d->heads) ||
        !read_size(r, KEY("attention.head_count_kv"), d->heads, MOST_UNITS, &d->kv_heads))
        return false;
    if (d->heads % d->kv_heads != 0)
        return err_set(r->err, ERR_WORK, "%s: %" PRIu32 " heads cannot share %" PRIu32 " KV heads evenly" RECONVERT,
                       r->g->path, d->heads, d->kv_heads);
    if (gguf_find(r->g, KEY("attention.key_length")) == NULL && d->width % d->heads != 0)
        return err_set(r->err, ERR_WORK, "%s: width %" PRIu32 " cannot be divided among %" PRIu32 " heads" RECONVERT,
                       r->g->path, d->width, d->heads);
    const uint32_t usual = d->width / d->heads == 0 ? 1 : d->width / d->heads;
    if (!read_size(r, KEY("attention.key_length"), usual, MOST_UNITS / d->heads, &d->head_dim) ||
        !read_size(r, KEY("attention.value_length"), d->head_dim, MOST_UNITS / d->heads, &value_dim))
        return false;
    if (value_dim != d->head_dim)
        return err_set(r->err, ERR_WORK,
                       "%s: keys of %" PRIu32 " and values of %" PRIu32 " dimensions; only equal sizes are supported",
                       r->g->path, d->head_dim, value_dim);
    return true;
}

static bool
read_rope_scaling(struct reading *r)
{
    struct gguf_string type;
    float factor, old;
    char shown[32];
    if (!gguf_get_string(r->g, KEY("rope.scaling.type"), &type, r->err) ||
        !gguf_get_f32(r->g, KEY("rope.scale_linear"), 1, &old, r->err) || /* how older files say it */
        !gguf_get_f32(r->g, KEY("rope.scaling.factor"), old, &factor, r->err))
        return false;
    if (type.len == 4 && memcmp(type.data, "none", 4) == 0)
        factor = 1;
    else if (type.len != 0 && (type.len != 6 || memcmp(type.data, "linear", 6) != 0))
        return err_set(r->err, ERR_WORK, "%s: RoPE scaling '%s' is not supported; 'linear' and 'none' are", r->g->path,
                       utf8_printable(shown, sizeof shown, type.data, type.len));
    if (!(factor >= 1e-3f && factor <= 1e6f))
        return err_set(r->err, ERR_WORK, "%s: a RoPE scaling factor of %g makes no sense" RECONVERT, r->g->path,
                       (double)factor);
    r->model->desc.rope_scale = 1 / factor;
    return true;
}

static bool
read_rope(struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    if (!read_size(r, KEY("rope.dimension_count"), d->head_dim, MOST_UNITS, &d->rope_dims) ||
        !gguf_get_f32(r->g, KEY("rope.freq_base"), 10000, &d->rope_base, r->err))
        return false;
    if (d->rope_dims % 2 != 0 || d->rope_dims > d->head_dim)
        return err_set(r->err, ERR_WORK,
                       "%s: RoPE turns %" PRIu32 " dimensions of a head's %" PRIu32
                       "; it takes an even number, no more "
                       "than there are" RECONVERT,
                       r->g->path, d->rope_dims, d->head_dim);
    if (!(d->rope_base >= 1))
        return err_set(r->err, ERR_WORK, "%s: a RoPE base of %g makes no sense" RECONVERT, r->g->path,
                       (double)d->rope_base);
    return read_rope_scaling(r);
}

static bool
read_sizes(struct reading *r)
{
    struct model_desc *d = &r->model->desc;
    uint32_t experts = 0, declared = 0;
    if (!gguf_get_u32(r->g, KEY("expert_count"), 0, &experts, r->err))
        return false;
    if (experts != 0)
        return err_set(r->err, ERR_WORK, "%s: is a mixture of %" PRIu32 " experts; only dense models are supported",
                       r->g->path, experts);
    if (!read_size(r, KEY("block_count"), 0, MOST_LAYERS, &d->n_layers) ||
        !read_size(r, KEY("context_length"), 0, MOST_CTX, &r->model->ctx_train) ||
        !read_size(r, KEY("embedding_length"), 0, MOST_UNITS, &d->width) ||
        !read_size(r, KEY("feed_forward_length"), 0, MOST_UNITS, &d->ffn) ||
        !read_size(r, KEY("vocab_size"), d->vocab, UINT32_MAX, &declared) || !read_heads(r) || !read_rope(r))
        return false;
    if (declared != d->vocab)
        return err_set(r->err, ERR_WORK,
                       "%s: metadata '" KEY("vocab_size") "' is %" PRIu32 ", but the tokenizer has %" PRIu32
                                                          " tokens" RECONVERT,
                       r->g->path, declared, d->vocab);
    if (gguf_find(r->g, KEY("attention.layer_norm_rms_epsilon")) == NULL)
        return err_set(r->err, ERR_WORK,
                       "%s: metadata '" KEY("attention.layer_norm_rms_epsilon") "' is missing" RECONVERT, r->g->path);
    if (!gguf_get_f32(r->g, KEY("attention.layer_norm_rms_epsilon"), 0, &d->rms_eps, r->err))
        return false;
    if (!(d->rms_eps >= 0 && d->rms_eps < 1))
        return err_set(r->err, ERR_WORK, "%s: an RMS norm epsilon of %g makes no sense" RECONVERT, r->g->path,
                       (double)d->rms_eps);
    return true;
}

/* ---- tensors ---- */

static bool
weight_type(uint32_t file_type, enum weight_type *out)
{
    switch (file_type) {
    case GGUF_TENSOR_F32: *out = WEIGHT_F32; return true;
    case GGUF_TENSOR_F16: *out = WEIGHT_F16; return true;
    case GGUF_TENSOR_BF16: *out = WEIGHT_BF16; return true;
    case GGUF_TENSOR_Q8_0: *out = WEIGHT_Q8_0; return true;
    default: return false;
    }
}

/* rows 1: a vector. */
static bool
read_tensor(struct reading *r, const char *name, uint32_t rows, uint32_t cols, struct tensor *out)
{
    const struct gguf_tensor *t = gguf_find_tensor(r->g, name);
    if (t == NULL)
        return err_set(r->err, ERR_WORK, "%s: tensor '%s' is missing" RECONVERT, r->g->path, name);
    if (t->dims[0] != cols || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1)
        return err_set(r->err, ERR_WORK,
                       "%s: tensor '%s' is %" PRIu64 " x %" PRIu64 ", but the metadata asks for %" PRIu32
                       " x %" PRIu32 RECONVERT,
                       r->g->path, name, t->dims[0], t->dims[1], cols, rows);
    if (!weight_type(t->type, &out->type))
        return err_set(r->err, ERR_WORK,
                       "%s: tensor '%s' is of type %s; F32, F16, BF16 and Q8_0 are supported, take the model in one of "
                       "those",
                       r->g->path, name, gguf_type_name(t->type));
    out->data = t->data;
    out->rows = rows;
    out->cols = cols;
    r->used[t - r->g->tensors] = true;
    const uint64_t values = (uint64_t)rows * cols;
    r->model->parameters += values;
    r->model->parameters_of[out->type] += values;
    r->model->tensors_of[out->type]++;
    return true;
}

static bool
read_norm(struct reading *r, const char *name, struct tensor *out)
{
    if (!read_tensor(r, name, 1, r->model->desc.width, out))
        return false;
    if (out->type == WEIGHT_Q8_0)
        return err_set(r->err, ERR_WORK, "%s: tensor '%s' is Q8_0; a norm has to be F32, F16 or BF16" RECONVERT,
                       r->g->path, name);
    return true;
}

static bool
read_layer(struct reading *r, uint32_t layer, struct layer_desc *out)
{
    const struct model_desc *d = &r->model->desc;
    const uint32_t heads = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    const struct part {
        const char *name;
        struct tensor *to;
        uint32_t rows, cols; /* rows 0: a norm */
    } parts[] = {
        {"attn_norm", &out->attn_norm, 0, 0},       {"attn_q", &out->wq, heads, d->width},
        {"attn_k", &out->wk, kv, d->width},         {"attn_v", &out->wv, kv, d->width},
        {"attn_output", &out->wo, d->width, heads}, {"ffn_norm", &out->ffn_norm, 0, 0},
        {"ffn_gate", &out->gate, d->ffn, d->width}, {"ffn_up", &out->up, d->ffn, d->width},
        {"ffn_down", &out->down, d->width, d->ffn},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[48];
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s.weight", layer, parts[i].name);
        if (parts[i].rows == 0 ? !read_norm(r, name, parts[i].to)
                               : !read_tensor(r, name, parts[i].rows, parts[i].cols, parts[i].to))
            return false;
    }
    return true;
}

/* Llama 3.1 and later: each frequency has a divisor of its own. */
static bool
read_rope_factors(struct reading *r)
{
    static const char name[] = "rope_freqs.weight";
    struct model_desc *d = &r->model->desc;
    const struct gguf_tensor *t = gguf_find_tensor(r->g, name);
    if (t == NULL)
        return true;
    if (t->type != GGUF_TENSOR_F32 || t->dims[0] != d->rope_dims / 2 || t->dims[1] != 1 || t->dims[2] != 1 ||
        t->dims[3] != 1)
        return err_set(r->err, ERR_WORK, "%s: tensor '%s' should be %" PRIu32 " F32 values" RECONVERT, r->g->path, name,
                       d->rope_dims / 2);
    for (uint32_t i = 0; i < d->rope_dims / 2; i++) {
        float factor;
        memcpy(&factor, t->data + 4 * (size_t)i, sizeof factor);
        if (!(factor > 0 && factor < 1e9f))
            return err_set(r->err, ERR_WORK, "%s: tensor '%s' holds %g, which is no divisor" RECONVERT, r->g->path,
                           name, (double)factor);
    }
    r->used[t - r->g->tensors] = true;
    d->rope_factors = (const float *)(const void *)t->data; /* the alignment was checked */
    return true;
}

/* Some converters leave tables here that can be computed; anything else would change what the model says. */
static bool
refuse_leftovers(const struct reading *r)
{
    for (uint64_t i = 0; i < r->g->n_tensors; i++) {
        const struct gguf_string name = r->g->tensors[i].name;
        char shown[80];
        if (r->used[i] || memmem(name.data, name.len, "rot_embd", 8) != NULL ||
            memmem(name.data, name.len, "rope_freqs", 10) != NULL)
            continue;
        return err_set(r->err, ERR_WORK,
                       "%s: tensor '%s' is no part of a plain Llama; a model that needs it is not supported",
                       r->g->path, utf8_printable(shown, sizeof shown, name.data, name.len));
    }
    return true;
}

static bool
read_tensors(struct reading *r)
{
    struct model *m = r->model;
    struct model_desc *d = &m->desc;
    if (d->n_layers > r->g->n_tensors)
        return err_set(r->err, ERR_WORK, "%s: %" PRIu32 " layers, but only %" PRIu64 " tensors" RECONVERT, r->g->path,
                       d->n_layers, r->g->n_tensors);
    struct layer_desc *layers = calloc(d->n_layers, sizeof *layers);
    d->layers = layers;
    if (layers == NULL)
        return err_set(r->err, ERR_WORK, "%s: out of memory for %" PRIu32 " layers", r->g->path, d->n_layers);
    if (!read_tensor(r, "token_embd.weight", d->vocab, d->width, &d->embedding) || !read_rope_factors(r))
        return false;
    const uint64_t before = m->parameters;
    for (uint32_t l = 0; l < d->n_layers; l++)
        if (!read_layer(r, l, &layers[l]))
            return false;
    m->rho = (double)d->vocab * d->width / ((double)(m->parameters - before) / d->n_layers);
    if (!read_norm(r, "output_norm.weight", &d->final_norm))
        return false;
    m->tied = gguf_find_tensor(r->g, "output.weight") == NULL;
    d->head = d->embedding;
    return (m->tied || read_tensor(r, "output.weight", d->vocab, d->width, &d->head)) && refuse_leftovers(r);
}

bool
llama_read(struct model *m, const struct gguf *g, enum rope_layout rope, struct err *err)
{
    m->desc.rope = rope;
    struct reading r = {.model = m, .g = g, .err = err};
    r.used = calloc((size_t)g->n_tensors + 1, sizeof *r.used);
    if (r.used == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", g->path);
    bool ok = read_sizes(&r) && read_tensors(&r);
    free(r.used);
    return ok;
}
