#include "engine/training/eagle_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/blocks.h"
#include "base/file_replace.h"
#include "base/little_endian.h"
#include "engine/model/files/gguf.h"
#include "engine/model/files/safetensors.h"
#include "engine/model/tokenizer/tokenizer.h"

#define ARCHITECTURE "eagle3"
#define FOLDER_CLASS "LlamaForCausalLMEagle3"
#define ALIGNMENT    32u
#define PATH_SIZE    4096

/* The architecture's name follows its key, which is the first. */
static const struct file_kind gguf_kind = {.what = "an EAGLE-3 head in GGUF", .skipped = 64, .begins = ARCHITECTURE};
static const struct file_kind config_kind = {
    .what = "the config.json of an EAGLE-3 head", .begins = "", .holds = {FOLDER_CLASS}};
static const struct file_kind weights_kind = {
    .what = "an EAGLE-3 head", .skipped = 8, .begins = "{\"__metadata__\":{\"format\":\"pt\"},\"fc.weight\""};

static const struct {
    const char *gguf, *folder;
} names[EAGLE_PARTS] = {
    [EAGLE_FC] = {"fc", "fc"},
    [EAGLE_TOKEN_NORM] = {"blk.0.attn_norm", "midlayer.input_layernorm"},
    [EAGLE_FEATURE_NORM] = {"blk.0.attn_norm_2", "midlayer.hidden_norm"},
    [EAGLE_Q] = {"blk.0.attn_q", "midlayer.self_attn.q_proj"},
    [EAGLE_K] = {"blk.0.attn_k", "midlayer.self_attn.k_proj"},
    [EAGLE_V] = {"blk.0.attn_v", "midlayer.self_attn.v_proj"},
    [EAGLE_O] = {"blk.0.attn_output", "midlayer.self_attn.o_proj"},
    [EAGLE_FFN_NORM] = {"blk.0.ffn_norm", "midlayer.post_attention_layernorm"},
    [EAGLE_GATE] = {"blk.0.ffn_gate", "midlayer.mlp.gate_proj"},
    [EAGLE_UP] = {"blk.0.ffn_up", "midlayer.mlp.up_proj"},
    [EAGLE_DOWN] = {"blk.0.ffn_down", "midlayer.mlp.down_proj"},
    [EAGLE_FINAL_NORM] = {"output_norm", "norm"},
    [EAGLE_HEAD] = {"output", "lm_head"},
};

static bool
is_gguf(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}

static void
file_in(const char *folder, const char *name, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s/%s", folder, name);
}

bool
eagle_file_possible(const char *path, struct err *err)
{
    static const struct {
        const char *name;
        const struct file_kind *kind;
    } files[] = {{"model.safetensors", &weights_kind}, {"config.json", &config_kind}};
    char file[PATH_SIZE];
    struct stat about;
    if (is_gguf(path))
        return file_replaceable(AT_FDCWD, path, &gguf_kind, err) && file_replace_possible(AT_FDCWD, path, err);
    if (stat(path, &about) == 0 && !S_ISDIR(about.st_mode))
        return err_set(err, ERR_USAGE, "%s: is a file; name a new folder, or a file that ends with .gguf", path);
    file_in(path, "", file);
    if (!file_folders_make(file, err))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        file_in(path, files[i].name, file);
        if (!file_replaceable(AT_FDCWD, file, files[i].kind, err) || !file_replace_possible(AT_FDCWD, file, err))
            return false;
    }
    return true;
}

/* ---- GGUF ---- */

/* A file in two passes: the first one counts its values. */
struct writing {
    FILE *f; /* NULL: only counts */
    uint64_t values, at;
};

static void
put(struct writing *w, const void *bytes, size_t n)
{
    if (w->f != NULL)
        fwrite(bytes, 1, n, w->f);
    w->at += n;
}

static void
put_number(struct writing *w, uint64_t value, size_t bytes)
{
    unsigned char stored[8];
    put_little_endian(stored, bytes, value);
    put(w, stored, bytes);
}

static void
put_text(struct writing *w, const char *text)
{
    put_number(w, strlen(text), 8);
    put(w, text, strlen(text));
}

static void
put_key(struct writing *w, const char *key, enum gguf_type type)
{
    put_text(w, key);
    put_number(w, type, 4);
    w->values++;
}

static void
put_whole(struct writing *w, const char *key, uint32_t value)
{
    put_key(w, key, GGUF_U32);
    put_number(w, value, 4);
}

static void
put_real(struct writing *w, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, key, GGUF_F32);
    put_number(w, bits, 4);
}

static void
put_string(struct writing *w, const char *key, const char *value)
{
    put_key(w, key, GGUF_STRING);
    put_text(w, value);
}

/* Copies the entries of the target's tokenizer as they are. An entry ends where the next one, or the first tensor,
 * begins with the length of its name. */
static void
put_tokenizer(struct writing *w, const struct gguf *g)
{
    static const char prefix[] = "tokenizer.";
    for (uint64_t i = 0; g != NULL && g->n_tensors > 0 && i < g->n_values; i++) {
        const struct slice *key = &g->values[i].key;
        if (key->len < sizeof prefix - 1 || memcmp(key->data, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *end = i + 1 < g->n_values ? g->values[i + 1].key.data : g->tensors[0].name.data;
        put(w, key->data - 8, (size_t)(end - key->data));
        w->values++;
    }
}

static void
put_values(struct writing *w, const struct eagle_head *h, const struct model *target)
{
    char name[sizeof target->name + sizeof "-eagle"];
    snprintf(name, sizeof name, "%s-eagle", target->name);
    put_string(w, "general.architecture", ARCHITECTURE);
    put_string(w, "general.name", name);
    put_whole(w, ARCHITECTURE ".block_count", 1);
    put_whole(w, ARCHITECTURE ".context_length", h->ctx);
    put_whole(w, ARCHITECTURE ".embedding_length", h->width);
    put_whole(w, ARCHITECTURE ".feed_forward_length", h->ffn);
    put_whole(w, ARCHITECTURE ".attention.head_count", h->heads);
    put_whole(w, ARCHITECTURE ".attention.head_count_kv", h->kv_heads);
    put_whole(w, ARCHITECTURE ".attention.key_length", h->head_dim);
    put_whole(w, ARCHITECTURE ".attention.value_length", h->head_dim);
    put_real(w, ARCHITECTURE ".attention.layer_norm_rms_epsilon", h->eps);
    put_whole(w, ARCHITECTURE ".rope.dimension_count", h->head_dim);
    put_real(w, ARCHITECTURE ".rope.freq_base", h->rope_base);
    put_whole(w, ARCHITECTURE ".vocab_size", h->target_vocab);
    put_whole(w, ARCHITECTURE ".target_hidden_size", h->width);
    put_key(w, ARCHITECTURE ".norm_before_residual", GGUF_BOOL);
    put_number(w, 0, 1);
    put_key(w, ARCHITECTURE ".target_layers", GGUF_ARRAY);
    put_number(w, GGUF_U32, 4);
    put_number(w, h->n_features, 8);
    for (uint32_t i = 0; i < h->n_features; i++)
        put_number(w, h->layers[i], 4);
    put_tokenizer(w, target->file);
}

static enum weight_type
type_of(const struct eagle_head *h, enum eagle_part part)
{
    uint32_t rows, cols;
    eagle_part_shape(h, part, &rows, &cols);
    return rows > 1 && cols % MODEL_Q8_BLOCK == 0 ? WEIGHT_Q8_0 : WEIGHT_F32;
}

static uint64_t
bytes_of(const struct eagle_head *h, enum eagle_part part)
{
    uint32_t rows, cols;
    eagle_part_shape(h, part, &rows, &cols);
    const uint64_t values = (uint64_t)rows * cols;
    return type_of(h, part) == WEIGHT_Q8_0 ? values / MODEL_Q8_BLOCK * (2 + MODEL_Q8_BLOCK) : values * sizeof(float);
}

static void
put_padding(struct writing *w)
{
    while (w->at % ALIGNMENT != 0)
        put_number(w, 0, 1);
}

/* Entries of the tensors; their data follow in the same order, at multiples of the alignment. */
static void
put_tensors(struct writing *w, const struct eagle_head *h)
{
    uint64_t offset = 0;
    char name[64];
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        eagle_part_shape(h, part, &rows, &cols);
        snprintf(name, sizeof name, "%s.weight", names[part].gguf);
        put_text(w, name);
        put_number(w, rows > 1 ? 2 : 1, 4);
        put_number(w, cols, 8);
        if (rows > 1)
            put_number(w, rows, 8);
        put_number(w, gguf_type_of(type_of(h, part)), 4);
        put_number(w, offset, 8);
        offset += (bytes_of(h, part) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    put_text(w, "d2t");
    put_number(w, 1, 4);
    put_number(w, h->vocab, 8);
    put_number(w, 27, 4); /* I64 */
    put_number(w, offset, 8);
}

static bool
put_row(struct writing *w, const float *values, uint32_t cols, bool quantised)
{
    unsigned char block[2 + MODEL_Q8_BLOCK];
    bool ok = true;
    if (!quantised)
        put(w, values, cols * sizeof *values);
    for (uint32_t i = 0; quantised && i < cols; i += MODEL_Q8_BLOCK) {
        ok = ok && model_quantize_block(values + i, block);
        put(w, block, sizeof block);
    }
    return ok;
}

static bool
put_data(struct writing *w, const struct eagle_head *h)
{
    bool ok = true;
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        uint32_t rows, cols;
        eagle_part_shape(h, part, &rows, &cols);
        put_padding(w);
        for (uint32_t i = 0; i < rows; i++)
            ok = put_row(w, eagle_part(h, part) + (size_t)eagle_stored_row(h, part, i) * cols, cols,
                         type_of(h, part) == WEIGHT_Q8_0) &&
                 ok;
    }
    put_padding(w);
    for (uint32_t i = 0; i < h->vocab; i++)
        put_number(w, (uint64_t)h->tokens[i], 8);
    put_padding(w);
    return ok;
}

static bool
write_gguf(const struct eagle_head *h, const struct model *target, const char *path, struct err *err)
{
    struct output o;
    struct writing counted = {0};
    if (!output_open(&o, path, &gguf_kind, err))
        return false;
    put_values(&counted, h, target);
    struct writing w = {.f = o.f};
    put(&w, "GGUF", 4);
    put_number(&w, 3, 4);
    put_number(&w, EAGLE_PARTS + 1, 8);
    put_number(&w, counted.values, 8);
    put_values(&w, h, target);
    put_tensors(&w, h);
    const bool finite =
        put_data(&w, h) || err_set(err, ERR_WORK, "%s: the head has weights that are not finite numbers", path);
    return output_close(&o, finite, err);
}

/* ---- a folder ---- */

static bool
write_weights(const struct eagle_head *h, const char *path, struct err *err)
{
    struct safetensors_part parts[EAGLE_PARTS + 2] = {0};
    const struct safetensors_note note = {"format", "pt"};
    struct blocks blocks = {0};
    int64_t *d2t = blocks_take(&blocks, h->vocab, sizeof *d2t);
    unsigned char *t2d = blocks_take(&blocks, h->target_vocab, 1);
    if (blocks.starved) {
        blocks_free(&blocks);
        return err_set(err, ERR_WORK, "out of memory writing %s", path);
    }
    for (uint32_t i = 0; i < h->vocab; i++) {
        d2t[i] = (int64_t)h->tokens[i] - i;
        t2d[h->tokens[i]] = 1;
    }
    for (enum eagle_part part = 0; part < EAGLE_PARTS; part++) {
        struct safetensors_part *p = &parts[part];
        eagle_part_shape(h, part, &p->rows, &p->cols);
        p->rows = p->rows > 1 ? p->rows : 0;
        p->values = eagle_part(h, part);
        snprintf(p->name, sizeof p->name, "%s.weight", names[part].folder);
    }
    parts[EAGLE_PARTS] = (struct safetensors_part){.name = "d2t", .cols = h->vocab, .values = d2t, .dtype = "I64"};
    parts[EAGLE_PARTS + 1] =
        (struct safetensors_part){.name = "t2d", .cols = h->target_vocab, .values = t2d, .dtype = "BOOL"};
    const bool ok = safetensors_write(path, &note, 1, parts, EAGLE_PARTS + 2, err);
    blocks_free(&blocks);
    return ok;
}

/* As text, so that floats are written with as many digits as they have. */
static bool
write_config(const struct eagle_head *h, const char *path, struct err *err)
{
    char text[2048], layers[128] = "";
    for (uint32_t i = 0; i < h->n_features; i++) /* SpecForge counts a layer's output from 0 */
        snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "%s%" PRIu32, i > 0 ? ", " : "",
                 h->layers[i] - 1);
    const int n = snprintf(text, sizeof text,
                           "{\n"
                           "  \"architectures\": [\"" FOLDER_CLASS "\"],\n"
                           "  \"model_type\": \"llama\",\n"
                           "  \"hidden_size\": %" PRIu32 ",\n"
                           "  \"intermediate_size\": %" PRIu32 ",\n"
                           "  \"num_hidden_layers\": 1,\n"
                           "  \"num_attention_heads\": %" PRIu32 ",\n"
                           "  \"num_key_value_heads\": %" PRIu32 ",\n"
                           "  \"head_dim\": %" PRIu32 ",\n"
                           "  \"hidden_act\": \"silu\",\n"
                           "  \"attention_bias\": false,\n"
                           "  \"mlp_bias\": false,\n"
                           "  \"rms_norm_eps\": %.9g,\n"
                           "  \"rope_theta\": %.9g,\n"
                           "  \"max_position_embeddings\": %" PRIu32 ",\n"
                           "  \"vocab_size\": %" PRIu32 ",\n"
                           "  \"draft_vocab_size\": %" PRIu32 ",\n"
                           "  \"target_hidden_size\": %" PRIu32 ",\n"
                           "  \"tie_word_embeddings\": false,\n"
                           "  \"torch_dtype\": \"float32\",\n"
                           "  \"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [%s], "
                           "\"use_aux_hidden_state\": true}\n"
                           "}\n",
                           h->width, h->ffn, h->heads, h->kv_heads, h->head_dim, (double)h->eps, (double)h->rope_base,
                           h->ctx, h->target_vocab, h->vocab, h->width, layers);
    return file_replace_text(AT_FDCWD, path, 0666, text, (size_t)n, err);
}

bool
eagle_file_write(const struct eagle_head *h, const struct model *target, const char *path, struct err *err)
{
    char weights[PATH_SIZE], config[PATH_SIZE];
    if (is_gguf(path))
        return write_gguf(h, target, path, err);
    file_in(path, "model.safetensors", weights);
    file_in(path, "config.json", config);
    return write_weights(h, weights, err) && write_config(h, config, err);
}
