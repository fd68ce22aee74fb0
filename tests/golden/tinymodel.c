/* See tinymodel.h. The file is laid out as GGUF wants it: header, metadata, tensor entries, padding, tensor data.
 *
 * Scales are chosen so that a random network behaves: every projection keeps unit variance, the sublayers together
 * add RESIDUAL_GAIN times the embedding's size to the residual stream, and the head's rows make logits of standard
 * deviation `sharpness`. A tied head would mostly predict the input token again, because the stream contains that
 * token's embedding. With a tied head the sublayers therefore add more, which leaves the input token's logit two
 * standard deviations above the mean. */
#include "tests/golden/tinymodel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "engine/model/files/gguf.h"
#include "kernels/half.h"
#include "kernels/tensor.h"
#include "tests/golden/tinyvocab.h"
#include "tests/rigs/gguf_bytes.h"

#define RESIDUAL_GAIN  2.0f
#define ALIGNMENT      32u
#define MAX_FILE_BYTES (1u << 30)

/* A tensor of the file: (rows, cols) normal values of this deviation around `mean`. */
struct entry {
    char name[48];
    uint32_t rows, cols; /* rows 0: a vector */
    enum weight_type type;
    float mean, deviation;
    bool vocabulary; /* rows are tokens: those of byte and control tokens are small */
    uint64_t stream; /* of random numbers: the tensor's index in the whole model */
};

struct plan_of_file {
    struct entry *entries;
    size_t n;
    unsigned turn; /* index of the next of the mixed types */
    uint64_t streams;
};

/* Returns a nearly normal number that is exactly reproducible: the sum of four 16-bit uniforms has variance 4/12 of
 * their range squared. */
static float
normal(uint64_t *state)
{
    uint64_t u = splitmix64(state);
    int32_t sum =
        (int32_t)(u & 0xffff) + (int32_t)(u >> 16 & 0xffff) + (int32_t)(u >> 32 & 0xffff) + (int32_t)(u >> 48);
    return (float)(sum - 131070) * (1.7320508f / 65535.0f);
}

/* Writes 32 values: a half scale d = max/127, then 32 signed bytes. */
static void
put_q8_0(struct gguf_bytes *b, const float *x, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += 32) {
        float largest = 0;
        for (uint32_t i = 0; i < 32; i++)
            largest = fmaxf(largest, fabsf(x[at + i]));
        uint16_t scale = f32_to_f16(largest / 127.0f);
        float d = f16_to_f32(scale);
        signed char quants[32];
        for (uint32_t i = 0; i < 32; i++) {
            float q = d > 0 ? x[at + i] / d : 0;
            quants[i] = (signed char)fminf(127, fmaxf(-127, rintf(q)));
        }
        put_uint(b, scale, 2);
        put_bytes(b, quants, sizeof quants);
    }
}

static void
put_row(struct gguf_bytes *b, enum weight_type type, const float *x, uint32_t n)
{
    if (type == WEIGHT_Q8_0) {
        put_q8_0(b, x, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if (type == WEIGHT_F32)
            put_u32(b, bits);
        else if (type == WEIGHT_F16)
            put_uint(b, f32_to_f16(x[i]), 2);
        else
            put_uint(b, (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, 2);
    }
}

static uint64_t
padded_bytes(const struct entry *e)
{
    uint64_t bytes = tensor_row_bytes(e->type, e->cols) * (uint64_t)(e->rows == 0 ? 1 : e->rows);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool
shape_possible(const struct tinymodel *m, struct err *err)
{
    if (m->n_layers > 1024 || m->width > 16384 || m->ffn > 65536 || m->vocab > TINYVOCAB_MAX ||
        m->padding > TINYVOCAB_MAX || m->head_dim > 1024)
        return err_set(err, ERR_USAGE, "tiny model: that is not tiny; choose smaller sizes");
    if (m->vocab < TINYMODEL_MIN_VOCAB)
        return err_set(err, ERR_USAGE, "tiny model: vocabulary %u is below %u", m->vocab, TINYMODEL_MIN_VOCAB);
    if (m->heads % m->kv_heads != 0)
        return err_set(err, ERR_USAGE, "tiny model: %u heads cannot share %u KV heads", m->heads, m->kv_heads);
    if (m->head_dim == 0 || m->head_dim % 2 != 0 || m->rope_dims % 2 != 0 || m->rope_dims > m->head_dim)
        return err_set(err, ERR_USAGE, "tiny model: head size %u with %u rotated dimensions: both must be even",
                       m->head_dim, m->rope_dims);
    if (m->version != 2 && m->version != 3)
        return err_set(err, ERR_USAGE, "tiny model: GGUF version %u cannot be written, only 2 and 3", m->version);
    const bool attention = m->attention == WEIGHT_Q8_0 && (m->width % 32 || m->heads * m->head_dim % 32);
    const bool mlp = m->mlp == WEIGHT_Q8_0 && (m->width % 32 || m->ffn % 32);
    const bool head = (m->embedding == WEIGHT_Q8_0 || m->head == WEIGHT_Q8_0) && m->width % 32;
    if (!m->mixed && (attention || mlp || head))
        return err_set(err, ERR_USAGE, "tiny model: Q8_0 needs rows of a multiple of 32");
    return true;
}

static struct tinymodel
with_defaults(const struct tinymodel *given)
{
    struct tinymodel m = *given;
    m.n_layers = m.n_layers ? m.n_layers : 4;
    m.width = m.width ? m.width : 64;
    if (m.heads == 0 && m.kv_heads == 0)
        m.kv_heads = 2;
    m.heads = m.heads ? m.heads : 2 * m.kv_heads;
    m.kv_heads = m.kv_heads ? m.kv_heads : m.heads;
    m.head_dim = m.head_dim ? m.head_dim : m.width / m.heads;
    m.ffn = m.ffn ? m.ffn : 2 * m.width;
    m.vocab = m.vocab ? m.vocab : 320;
    m.ctx = m.ctx ? m.ctx : 512;
    m.rope_dims = m.rope_dims ? m.rope_dims : m.head_dim;
    m.rope_base = m.rope_base > 0 ? m.rope_base : 10000;
    m.rope_linear = m.rope_linear > 0 ? m.rope_linear : 1;
    m.sharpness = m.sharpness > 0 ? m.sharpness : 4;
    m.version = m.version ? m.version : 3;
    m.arch = m.arch ? m.arch : "llama";
    return m;
}

static struct entry *
add(struct plan_of_file *plan, const char *name, uint32_t rows, uint32_t cols, enum weight_type type, float deviation)
{
    struct entry *e = &plan->entries[plan->n++];
    *e = (struct entry){.rows = rows, .cols = cols, .type = type, .deviation = deviation, .stream = plan->streams++};
    snprintf(e->name, sizeof e->name, "%s.weight", name);
    return e;
}

static void
add_norm(struct plan_of_file *plan, const char *name, uint32_t width)
{
    add(plan, name, 0, width, WEIGHT_F32, 0.1f)->mean = 1;
}

static void
add_matrix(struct plan_of_file *plan, const struct tinymodel *m, const char *name, uint32_t rows, uint32_t cols,
           enum weight_type type, float gain)
{
    if (m->mixed) {
        type = (enum weight_type)(plan->turn++ % (WEIGHT_Q8_0 + 1));
        if (type == WEIGHT_Q8_0 && cols % 32 != 0)
            type = WEIGHT_F16;
    }
    add(plan, name, rows, cols, type, gain / sqrtf((float)cols));
}

static void
plan_layer(struct plan_of_file *plan, const struct tinymodel *m, uint32_t l, float gain)
{
    const float gains[LAYER_TENSORS] = {[LAYER_WQ] = 2,
                                        [LAYER_WK] = 1,
                                        [LAYER_WV] = 1,
                                        [LAYER_WO] = gain,
                                        [LAYER_GATE] = 1,
                                        [LAYER_UP] = 1,
                                        [LAYER_DOWN] = gain / 0.6f}; /* silu(g)·u has size 0.6 */
    const struct model_desc d = {
        .width = m->width, .heads = m->heads, .kv_heads = m->kv_heads, .head_dim = m->head_dim, .ffn = m->ffn};
    for (enum layer_tensor i = 0; i < LAYER_TENSORS; i++) {
        char name[40];
        uint32_t rows, cols;
        if (layer_tensors[i].need == LAYER_OPTIONAL)
            continue;
        layer_tensor_shape(&d, 1, i, &rows, &cols);
        snprintf(name, sizeof name, "blk.%u.%s", l, layer_tensors[i].names[LAYER_NAMED_GGUF]);
        if (layer_tensors[i].kind == LAYER_MATRIX)
            add_matrix(plan, m, name, rows, cols, i < LAYER_FFN_NORM ? m->attention : m->mlp, gains[i]);
        else
            add_norm(plan, name, cols);
    }
}

static uint32_t
layers_kept(const struct tinymodel *m)
{
    return m->first_layers > 0 && m->first_layers < m->n_layers ? m->first_layers : m->n_layers;
}

static void
plan_layers(struct plan_of_file *plan, const struct tinymodel *m, float residual)
{
    for (uint32_t l = 0; l < m->n_layers; l++) {
        const float gain = residual / sqrtf(2.0f * (float)m->n_layers);
        const size_t before = plan->n;
        plan_layer(plan, m, l, m->calm_after != 0 && l >= m->calm_after ? gain * m->calm : gain);
        if (l >= layers_kept(m))
            plan->n = before;
    }
}

static bool
plan_tensors(struct plan_of_file *plan, const struct tinymodel *m, struct err *err)
{
    plan->entries = calloc(4 + LAYER_TENSORS * (size_t)m->n_layers, sizeof *plan->entries);
    if (plan->entries == NULL)
        return err_set(err, ERR_WORK, "tiny model: out of memory");
    const float head = m->sharpness / sqrtf((float)m->width);
    const float residual = m->tied ? head * sqrtf((float)m->width) / 2 : RESIDUAL_GAIN;
    const enum weight_type embedding = m->mixed ? WEIGHT_F16 : m->embedding;
    add(plan, "token_embd", m->vocab + m->padding, m->width, embedding, m->tied ? head : 1)->vocabulary = m->tied;
    if (m->rope_factors)
        add(plan, "rope_freqs", 0, m->rope_dims / 2, WEIGHT_F32, 0);
    plan_layers(plan, m, residual);
    add_norm(plan, "output_norm", m->width);
    if (!m->tied)
        add(plan, "output", m->vocab + m->padding, m->width, m->mixed ? WEIGHT_BF16 : m->head, head)->vocabulary = true;
    return true;
}

static void
put_metadata(struct gguf_bytes *b, const struct tinymodel *m, uint64_t n_tensors)
{
    const bool linear = m->rope_linear != 1;
    char key[96];
#define ARCH_KEY(rest) (snprintf(key, sizeof key, "%.32s." rest, m->arch), key)
    put_header(b, m->version, n_tensors,
               12 + (linear ? 2u : 0u) + (m->chat_template != NULL ? 1u : 0u) + TINYVOCAB_KEYS);
    put_key_text(b, "general.architecture", m->arch);
    put_key_text(b, "general.name", m->nasty ? "tiny \x1b[31mnasty\x1b[0m" : "tiny");
    put_key_u32(b, ARCH_KEY("block_count"), layers_kept(m));
    put_key_u32(b, ARCH_KEY("context_length"), m->ctx);
    put_key_u32(b, ARCH_KEY("embedding_length"), m->width);
    put_key_u32(b, ARCH_KEY("feed_forward_length"), m->ffn);
    put_key_u32(b, ARCH_KEY("attention.head_count"), m->heads);
    put_key_u32(b, ARCH_KEY("attention.head_count_kv"), m->kv_heads);
    put_key_u32(b, ARCH_KEY("attention.key_length"), m->head_dim);
    put_key_f32(b, ARCH_KEY("attention.layer_norm_rms_epsilon"), 1e-5f);
    put_key_u32(b, ARCH_KEY("rope.dimension_count"), m->rope_dims);
    put_key_f32(b, ARCH_KEY("rope.freq_base"), m->rope_base);
    if (linear) {
        put_key_text(b, ARCH_KEY("rope.scaling.type"), "linear");
        put_key_f32(b, ARCH_KEY("rope.scaling.factor"), m->rope_linear);
    }
#undef ARCH_KEY
    tinyvocab_put(b, m->vocab, m->padding, m->nasty, !m->no_space_prefix);
    if (m->chat_template != NULL)
        put_key_text(b, "tokenizer.chat_template", m->chat_template);
}

static bool
put_data(struct gguf_bytes *b, const struct plan_of_file *plan, const struct tinymodel *m)
{
    uint32_t longest = 0;
    for (size_t i = 0; i < plan->n; i++)
        longest = plan->entries[i].cols > longest ? plan->entries[i].cols : longest;
    float *row = malloc(longest * sizeof *row);
    if (row == NULL)
        return false;
    for (size_t i = 0; i < plan->n; i++) {
        const struct entry *e = &plan->entries[i];
        uint64_t state =
            m->seed * 0x2545f4914f6cdd1du + e->stream; /* a stream per tensor: types do not change values */
        splitmix64(&state);
        for (uint32_t r = 0; r < (e->rows == 0 ? 1 : e->rows); r++) {
            const float size = e->vocabulary && !tinyvocab_is_text(m->vocab, r) ? 0.25f : 1.0f;
            for (uint32_t c = 0; c < e->cols; c++)
                row[c] = e->mean + size * e->deviation * normal(&state);
            if (strcmp(e->name, "rope_freqs.weight") == 0)
                for (uint32_t c = 0; c < e->cols; c++)
                    row[c] = 1 + 7 * (float)c / (float)e->cols;
            put_row(b, e->type, row, e->cols);
        }
        put_padding(b, ALIGNMENT);
    }
    free(row);
    return true;
}

bool
tinymodel_build(const struct tinymodel *given, unsigned char **bytes, size_t *len, struct err *err)
{
    struct tinymodel m = with_defaults(given);
    struct plan_of_file plan = {0};
    struct gguf_bytes b = {0};
    if (!shape_possible(&m, err) || !plan_tensors(&plan, &m, err))
        return false;
    uint64_t total = 0;
    for (size_t i = 0; i < plan.n; i++)
        total += padded_bytes(&plan.entries[i]);
    bool ok = total <= MAX_FILE_BYTES;
    if (ok) {
        put_metadata(&b, &m, plan.n);
        uint64_t offset = 0;
        for (size_t i = 0; i < plan.n; i++) {
            const struct entry *e = &plan.entries[i];
            put_tensor(&b, e->name, e->cols, e->rows, gguf_type_of(e->type), offset);
            offset += padded_bytes(e);
        }
        put_padding(&b, ALIGNMENT);
        ok = put_data(&b, &plan, &m) && !b.failed;
    }
    free(plan.entries);
    if (!ok) {
        free(b.data);
        return err_set(err, ERR_WORK, "tiny model: out of memory (%llu bytes of tensors)", (unsigned long long)total);
    }
    *bytes = b.data;
    *len = b.len;
    return true;
}

static bool
write_bytes(int fd, const char *path, const unsigned char *bytes, size_t len, struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, bytes + done, len - done);
        if (n < 0 && errno != EINTR)
            return err_set(err, ERR_WORK, "%s: cannot write: %s", path, strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool
tinymodel_write(const char *path, const struct tinymodel *m, struct err *err)
{
    unsigned char *bytes;
    size_t len;
    if (!tinymodel_build(m, &bytes, &len, err))
        return false;
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && write_bytes(fileno(file), path, bytes, len, err);
    if (file == NULL)
        err_set(err, ERR_WORK, "%s: cannot create: %s", path, strerror(errno));
    else if (fclose(file) != 0 && ok)
        ok = err_set(err, ERR_WORK, "%s: cannot write: %s", path, strerror(errno));
    free(bytes);
    return ok;
}

bool
tinymodel_write_temp(char *path, size_t size, const struct tinymodel *m, struct err *err)
{
    const char *dir = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/tinymodel-XXXXXX.gguf", dir != NULL && dir[0] != '\0' ? dir : "/tmp");
    if (n < 0 || (size_t)n >= size)
        return err_set(err, ERR_USAGE, "tiny model: the name of $TMPDIR is too long");
    int fd = mkstemps(path, 5);
    if (fd < 0)
        return err_set(err, ERR_WORK, "%s: cannot create: %s", path, strerror(errno));
    unsigned char *bytes = NULL;
    size_t len = 0;
    bool ok = tinymodel_build(m, &bytes, &len, err) && write_bytes(fd, path, bytes, len, err);
    free(bytes);
    close(fd);
    if (!ok)
        unlink(path);
    return ok;
}
