#include "engine/model/model_open.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/model/arch/arch.h"
#include "engine/model/arch/packed.h"
#include "engine/model/files/gguf.h"
#include "engine/model/files/hf_folder.h"
#include "engine/model/lora/lora.h"
#include "engine/model/memory.h"
#include "engine/model/model.h"
#include "engine/model/synthetic/synthetic.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "kernels/tensor.h"

static const char default_name[] = "default", folder_name[] = "additional_chat_templates", jinja[] = ".jinja";

static bool
read_one(struct tokenizer *t, const char *folder, const char *file, struct slice name, struct err *err)
{
    char *text;
    size_t n;
    const bool ok = hf_folder_text(folder, file, &text, &n, err) &&
                    (text == NULL || tokenizer_add_chat_template(t, name, (struct slice){text, n}, err));
    free(text);
    return ok;
}

/* What a processor was saved with. */
static bool
read_json(struct tokenizer *t, const char *folder, struct err *err)
{
    char *text;
    size_t n;
    if (tokenizer_chat_template(t, default_name).len > 0)
        return true;
    if (!hf_folder_text(folder, "chat_template.json", &text, &n, err))
        return false;
    cJSON *o = NULL;
    bool ok = text == NULL || json_read_python(&o, text, n) || err_set(err, ERR_WORK, "%s: out of memory", folder);
    const char *template = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "chat_template"));
    ok = ok && (template == NULL || tokenizer_add_chat_template(t, slice_of(default_name), slice_of(template), err));
    cJSON_Delete(o);
    free(text);
    return ok;
}

static int
is_template(const struct dirent *e)
{
    const size_t n = strlen(e->d_name), tail = sizeof jinja - 1;
    return n > tail && strcmp(e->d_name + n - tail, jinja) == 0;
}

static bool
read_additional(struct tokenizer *t, const char *folder, struct err *err)
{
    char *path = NULL;
    struct dirent **names = NULL;
    bool ok = true;
    if (asprintf(&path, "%s/%s", folder, folder_name) < 0)
        return err_set(err, ERR_WORK, "%s: out of memory", folder);
    errno = 0;
    const int n = scandir(path, &names, is_template, alphasort); /* -1: there is no such folder */
    if (n < 0 && errno != ENOENT && errno != ENOTDIR)
        ok = err_set(err, ERR_WORK, "%s: cannot be listed: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        const struct slice name = {names[i]->d_name, strlen(names[i]->d_name) - (sizeof jinja - 1)};
        ok = ok && read_one(t, path, names[i]->d_name, name, err);
        free(names[i]);
    }
    free(names);
    free(path);
    return ok;
}

/* chat_template.jinja is the default, additional_chat_templates/NAME.jinja another one; both count more than what
 * tokenizer_config.json has, and chat_template.json less. No file is no error. */
static bool
folder_templates_read(struct tokenizer *t, const char *folder, struct err *err)
{
    return read_json(t, folder, err) && read_one(t, folder, "chat_template.jinja", slice_of(default_name), err) &&
           read_additional(t, folder, err);
}

static bool
read_file(const char *folder, const char *file, struct slice *bytes, struct err *err)
{
    char *text;
    const bool ok = hf_folder_text(folder, file, &text, &bytes->len, err);
    bytes->data = text;
    return ok;
}

static bool
open_files(struct tokenizer **t, struct tokenizer_files *f, const char *folder, struct err *err)
{
    if (!read_file(folder, "tokenizer_config.json", &f->config, err) ||
        !read_file(folder, "added_tokens.json", &f->added, err) ||
        !read_file(folder, "special_tokens_map.json", &f->special_map, err) ||
        !read_file(folder, "tokenizer.json", &f->model, err))
        return false;
    if (f->model.data != NULL)
        return tokenizer_from_json(t, f, folder, err);
    if (!read_file(folder, "tokenizer.model", &f->model, err))
        return false;
    if (f->model.data != NULL)
        return tokenizer_from_sentencepiece(t, f, folder, err);
    return err_set(err, ERR_WORK,
                   "%s: has neither a tokenizer.json nor a tokenizer.model; save the model's tokenizer there with the "
                   "transformers package",
                   folder);
}

bool
folder_tokenizer_open(struct tokenizer **t, const char *folder, struct err *err)
{
    struct tokenizer_files f = {0};
    const struct slice *const texts[] = {&f.model, &f.config, &f.added, &f.special_map};
    *t = NULL;
    const bool ok = open_files(t, &f, folder, err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free((void *)(uintptr_t)texts[i]->data);
    return ok;
}

/* ---- weights that are not numbers ---- */

/* Returns whether n values of a type are finite. Values of other types than those that backends compute with are not
 * looked at. */
static bool
all_finite(enum weight_type type, const unsigned char *data, uint64_t n)
{
    enum { PART = 4096 }; /* values: a multiple of every type's block */
    float values[PART];
    if (type == WEIGHT_TYPES || data == NULL)
        return true;
    for (uint64_t done = 0; done < n; done += PART) {
        const size_t some = n - done < PART ? (size_t)(n - done) : PART;
        tensor_blocks(type, data + tensor_row_bytes(type, (size_t)done), some, values);
        for (size_t i = 0; i < some; i++)
            if (!isfinite(values[i]))
                return false;
    }
    return true;
}

bool
model_broken_tensor(const struct model *m, char *name, size_t size)
{
    const struct gguf *g = m->synthetic == NULL ? m->file : NULL;
    for (uint64_t i = 0; g != NULL && i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        if (!all_finite(gguf_weight_type(t->type), t->data, t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]))
            return printable_line(name, size, t->name.data, t->name.len), true;
    }
    for (size_t i = 0; m->folder != NULL && i < m->folder->n_tensors; i++) {
        const struct safetensor *t = m->folder->tensors[i];
        uint64_t n = 1;
        for (uint32_t k = 0; k < t->n_dims; k++)
            n *= t->dims[k];
        if (!all_finite(t->type, t->data, n))
            return printable_line(name, size, t->name, strlen(t->name)), true;
    }
    return false;
}

#define SHORTEST 512u /* tokens that a context should have */

static void
set_why(struct model_summary *summary, const char *path, const struct err *err)
{
    const size_t n = strlen(path);
    const char *why = strncmp(err->text, path, n) == 0 ? err->text + n + strspn(err->text + n, ":/ ") : err->text;
    printable_line(summary->why, sizeof summary->why, why, strlen(why));
}

static void
fit_context(struct model_summary *summary, const struct model *m, uint64_t available, struct err *err)
{
    for (uint32_t ctx = m->ctx_train; ctx > 0; ctx = ctx > SHORTEST ? ctx / 2 : 0)
        if (memory_fits(m, ctx, false, false, available, 0, err)) {
            summary->ctx = ctx;
            return;
        }
    set_why(summary, m->path, err);
}

void
model_summary(struct model_summary *summary, const char *path, uint64_t available)
{
    struct model *m;
    struct err err = {0};
    *summary = (struct model_summary){0};
    if (!model_open_with(&m, path, &(struct model_options){.glance = true}, &err)) {
        set_why(summary, path, &err);
        return;
    }
    summary->runs = true;
    memcpy(summary->name, m->name, sizeof summary->name);
    memcpy(summary->arch, m->arch, sizeof summary->arch);
    memcpy(summary->types, m->types, sizeof summary->types);
    snprintf(summary->tokenizer, sizeof summary->tokenizer, "%s", tokenizer_description(m->tokenizer));
    summary->layers = m->desc.n_layers;
    summary->vocab = m->desc.vocab;
    summary->ctx_train = m->ctx_train;
    summary->bytes = m->file_bytes;
    summary->parameters = m->parameters;
    fit_context(summary, m, available, &err);
    summary->chats = tokenizer_chat_template_name(m->tokenizer, 0) != NULL;
    model_close(m);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weights are used as they lie in the file: little-endian");

#define WEIGHT_ALIGNMENT 32u /* what backends may count on in a GGUF file */
#define MOST_STOP_TOKENS 256

/* ---- what both formats share ---- */

static struct model *
new_model(const char *path, struct err *err)
{
    struct model *m = calloc(1, sizeof *m);
    if (m != NULL && (m->path = strdup(path)) != NULL)
        return m;
    free(m);
    err_set(err, ERR_WORK, "%s: out of memory", path);
    return NULL;
}

/* "Q8_0, F32": the type of most parameters first. */
static void
name_types(struct model *m)
{
    uint64_t left[WEIGHT_TYPES];
    memcpy(left, m->parameters_of, sizeof left);
    size_t used = 0;
    for (int i = 0; i < WEIGHT_TYPES && used < sizeof m->types; i++) {
        int most = 0;
        for (int t = 1; t < WEIGHT_TYPES; t++)
            if (left[t] > left[most])
                most = t;
        if (left[most] == 0)
            break;
        left[most] = 0;
        used += (size_t)snprintf(m->types + used, sizeof m->types - used, "%s%s", used > 0 ? ", " : "",
                                 tensor_type_name((enum weight_type)most));
    }
}

/* The file's name without folder and ending. */
static void
name_by_file(struct model *m)
{
    static const char ending[] = ".gguf";
    const char *slash = strrchr(m->path, '/'), *name = slash != NULL ? slash + 1 : m->path;
    size_t n = strlen(name);
    if (n > sizeof ending - 1 && strcmp(name + n - (sizeof ending - 1), ending) == 0)
        n -= sizeof ending - 1;
    printable_line(m->name, sizeof m->name, name, n);
}

/* The folder's name; in the cache of the hub's own tools, where it is …/models--OWNER--NAME/snapshots/REVISION,
 * NAME. */
static void
name_by_folder(struct model *m)
{
    char real[PATH_MAX], *slash = realpath(m->path, real) == NULL ? NULL : strrchr(real, '/'), *owner;
    const char *name = slash != NULL ? slash + 1 : m->path;
    static const char snapshots[] = "/snapshots";
    if (slash != NULL && (size_t)(slash - real) >= sizeof snapshots - 1 &&
        memcmp(slash - (sizeof snapshots - 1), snapshots, sizeof snapshots - 1) == 0) {
        *(slash - (sizeof snapshots - 1)) = '\0';
        slash = strrchr(real, '/');
        owner = slash != NULL && strncmp(slash + 1, "models--", 8) == 0 ? strstr(slash + 9, "--") : NULL;
        name = owner != NULL ? owner + 2 : name;
    }
    printable_line(m->name, sizeof m->name, name, strlen(name));
}

uint32_t
model_positions(const struct model *m, uint32_t ctx, uint32_t sequences)
{
    const uint64_t each = ctx != 0 ? ctx : m->ctx_train, all = each * (sequences > 0 ? sequences : 1);
    return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

static bool
finish(struct model **out, struct model *m, const struct model_options *options, struct err *err)
{
    const uint32_t ctx = model_positions(m, options->ctx, options->sequences), learned = m->desc.positions.rows;
    if (learned > 0 && options->ctx > learned)
        return err_set(err, ERR_WORK,
                       "%s: has learned positions up to %" PRIu32 " and knows none beyond; a context (-c) of %" PRIu32
                       " is too much",
                       m->path, learned, options->ctx);
    if (options->available != 0 &&
        !memory_fits(m, ctx, options->exact, options->quantize, options->available, options->taken, err))
        return false;
    for (size_t i = 0; i < options->n_lora && !m->vocabulary_only; i++)
        if (!lora_merge(m, options->lora[i], options->exact, err))
            return false;
    if (options->n_lora > 0 && options->available != 0 && /* matrices in blocks have grown */
        !memory_fits(m, ctx, options->exact, options->quantize, options->available, options->taken, err))
        return false;
    if (options->quantize && !m->vocabulary_only) {
        if (!model_quantize(m, err))
            return false;
        if (m->quantized) /* what is in Q8_0 stays as it is, and so do the files that were made for it */
            m->hash = hash_bytes(m->hash, "Q8_0", 4);
    }
    name_types(m);
    *out = m;
    return true;
}

static bool
refuse_vocabulary(const struct model *m, const struct model_options *options, struct err *err)
{
    return options->vocabulary ||
           err_set(err, ERR_WORK, "%s: holds a vocabulary and no weights; it is good for `info` and `tokenize` only",
                   m->path);
}

static bool
refuse_head(const struct model *m, struct err *err)
{
    return err_set(err, ERR_WORK, "%s: is %s, which drafts for a model; give the model, and this with --draft", m->path,
                   strcmp(m->arch, "eagle3") == 0 ? "an EAGLE-3 head" : "a block drafter");
}

/* ---- GGUF ---- */

static bool
read_gguf(struct model *m, const struct model_options *options, struct err *err)
{
    const struct gguf *g = m->file;
    struct slice arch, name;
    if (!gguf_get_string(g, "general.architecture", &arch, err) || !gguf_get_string(g, "general.name", &name, err))
        return false;
    if (arch.len == 0)
        return err_set(err, ERR_WORK,
                       "%s: does not say what it is (metadata 'general.architecture'); convert the model again",
                       m->path);
    printable_line(m->arch, sizeof m->arch, arch.data, arch.len);
    if (name.len == 0)
        name_by_file(m);
    else
        printable_line(m->name, sizeof m->name, name.data, name.len);
    m->vocabulary_only = g->n_tensors == 0;
    if (m->vocabulary_only) {
        char key[64];
        snprintf(key, sizeof key, "%s.context_length", m->arch);
        return refuse_vocabulary(m, options, err) && tokenizer_open(&m->tokenizer, g, err) &&
               gguf_get_u32(g, key, 0, &m->ctx_train, err);
    }
    struct slice kind;
    if (!gguf_get_string(g, "general.type", &kind, err))
        return false;
    if (slice_is(kind, "adapter"))
        return err_set(err, ERR_WORK, "%s: is an adapter (LoRA), and no model; give its model, and this with --lora",
                       m->path);
    const bool head = arch_gguf_head(g) != NULL;
    const struct arch *known = head ? NULL : arch_of_gguf(m->path, arch, err);
    if (head ? options->target == NULL && !refuse_head(m, err) : known == NULL)
        return false;
    if (g->alignment % WEIGHT_ALIGNMENT != 0)
        return err_set(err, ERR_WORK,
                       "%s: its tensors are aligned to %" PRIu64 " bytes; %u are needed, convert the model again",
                       m->path, g->alignment, WEIGHT_ALIGNMENT);
    if (head)
        return arch_read_gguf_head(m, g, options->target, err);
    if (!tokenizer_open(&m->tokenizer, g, err))
        return false;
    m->desc.vocab = tokenizer_size(m->tokenizer);
    return arch_read_gguf(m, g, known, err);
}

static bool
model_read_with(struct model **out, struct gguf *file, const struct model_options *options, struct err *err)
{
    struct model *m = new_model(file->path, err);
    *out = NULL;
    if (m == NULL) {
        gguf_close(file);
        return false;
    }
    m->file = file;
    m->file_bytes = file->file_bytes;
    m->hash = hash_map(HASH_START, file->map, file->file_bytes, file->data_start);
    for (uint32_t i = 0; i < file->n_parts; i++) {
        const struct gguf *part = file->parts[i];
        m->file_bytes += part->file_bytes;
        m->hash = hash_map(m->hash, part->map, part->file_bytes, part->data_start);
    }
    if (read_gguf(m, options, err)) {
        if (m->tokenizer != NULL)
            m->desc.vocab = tokenizer_size(m->tokenizer);
        if (finish(out, m, options, err))
            return true;
    }
    model_close(m);
    return false;
}

bool
model_read(struct model **out, struct gguf *file, struct err *err)
{
    return model_read_with(out, file, &(struct model_options){0}, err);
}

/* ---- Hugging Face ---- */

static bool
read_tokenizer(struct model *m, struct err *err)
{
    return folder_tokenizer_open(&m->tokenizer, m->folder->path, err) &&
           folder_templates_read(m->tokenizer, m->folder->path, err);
}

static bool
add_stop_token(struct model *m, const cJSON *id, const char *file, struct err *err)
{
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < tokenizer_size(m->tokenizer)) ||
        floor(id->valuedouble) < id->valuedouble)
        return err_set(err, ERR_WORK,
                       "%s: an eos_token_id in %s is no token of the tokenizer's %" PRIu32 "; fetch the folder again",
                       m->path, file, tokenizer_size(m->tokenizer));
    tokenizer_add_end(m->tokenizer, (token_t)id->valuedouble);
    return true;
}

/* generation_config.json contains the end tokens, one or a list; if it does not, config.json does. */
static bool
read_stop_tokens(struct model *m, struct err *err)
{
    const struct hf_folder *f = m->folder;
    const char *file = "generation_config.json";
    const cJSON *stop = cJSON_GetObjectItemCaseSensitive(f->generation, "eos_token_id"), *one;
    if (stop == NULL || cJSON_IsNull(stop)) {
        file = "config.json";
        stop = cJSON_GetObjectItemCaseSensitive(f->config, "eos_token_id");
    }
    if (stop == NULL || cJSON_IsNull(stop))
        return true;
    if (!cJSON_IsArray(stop))
        return add_stop_token(m, stop, file, err);
    if (cJSON_GetArraySize(stop) > MOST_STOP_TOKENS)
        return err_set(err, ERR_WORK, "%s: %s lists more than %d stop tokens", m->path, file, MOST_STOP_TOKENS);
    cJSON_ArrayForEach(one, stop)
    {
        if (!add_stop_token(m, one, file, err))
            return false;
    }
    return true;
}

/* A vocabulary only: of config.json what there is, whatever the architecture. */
static void
describe_vocabulary(struct model *m)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(m->folder->config, "model_type");
    const cJSON *ctx = cJSON_GetObjectItemCaseSensitive(m->folder->config, "max_position_embeddings");
    const char *arch = cJSON_IsString(type) ? type->valuestring : "unknown";
    printable_line(m->arch, sizeof m->arch, arch, strlen(arch));
    if (cJSON_IsNumber(ctx) && ctx->valuedouble >= 1 && ctx->valuedouble <= UINT32_MAX)
        m->ctx_train = (uint32_t)ctx->valuedouble;
}

/* Ids of added tokens may be larger than the embedding (padding, or infilling that a model of this size lacks): a
 * prompt that contains one is refused. Tokens of plain text must have rows in the embedding. */
static bool
check_vocabulary(const struct model *m, struct err *err)
{
    for (uint32_t id = m->desc.vocab; id < tokenizer_size(m->tokenizer); id++) {
        const enum token_kind kind = tokenizer_kind(m->tokenizer, (token_t)id);
        if (kind != TOKEN_CONTROL && kind != TOKEN_USER && kind != TOKEN_UNUSED)
            return err_set(err, ERR_WORK,
                           "%s: the tokenizer has %" PRIu32 " tokens, the model's embedding only %" PRIu32
                           "; fetch the folder again",
                           m->path, tokenizer_size(m->tokenizer), m->desc.vocab);
    }
    return true;
}

static bool
read_folder(struct model *m, const struct model_options *options, struct err *err)
{
    const struct hf_folder *f = m->folder;
    m->vocabulary_only = f->n_tensors == 0;
    if (m->vocabulary_only) {
        if (!refuse_vocabulary(m, options, err) || !read_tokenizer(m, err))
            return false;
        describe_vocabulary(m);
        m->desc.vocab = tokenizer_size(m->tokenizer);
        return read_stop_tokens(m, err);
    }
    if (arch_hf_head(f) != NULL) {
        snprintf(m->arch, sizeof m->arch, "%s", arch_hf_head(f));
        return options->target != NULL ? arch_read_hf_head(m, f, options->target, err) : refuse_head(m, err);
    }
    struct packed_options unpacking = {.exact = options->exact, .glance = options->glance};
    unpacking.room = options->available == 0               ? UINT64_MAX
                     : options->available > options->taken ? options->available - options->taken
                                                           : 0;
    struct packed *packed;
    if (!packed_open(&packed, m, f, &unpacking, err))
        return false;
    const bool ok = arch_read_hf(m, f, packed, err) && read_tokenizer(m, err);
    packed_close(packed);
    if (!ok)
        return false;
    return check_vocabulary(m, err) && read_stop_tokens(m, err);
}

static bool
model_read_folder(struct model **out, struct hf_folder *folder, const struct model_options *options, struct err *err)
{
    struct model *m = new_model(folder->path, err);
    if (m == NULL) {
        hf_folder_close(folder);
        return false;
    }
    m->folder = folder;
    m->hash = HASH_START;
    char *config = cJSON_PrintUnformatted(folder->config);
    if (config == NULL) { /* the hash would be another model's */
        err_set(err, ERR_WORK, "%s: out of memory", folder->path);
        model_close(m);
        return false;
    }
    m->hash = hash_bytes(m->hash, config, strlen(config));
    cJSON_free(config);
    for (size_t i = 0; i < folder->n_files; i++) {
        const struct safetensors *part = folder->files[i];
        m->file_bytes += part->file_bytes;
        m->hash = hash_map(m->hash, part->map, part->file_bytes, part->data_start);
    }
    name_by_folder(m);
    if (read_folder(m, options, err) && finish(out, m, options, err))
        return true;
    model_close(m);
    return false;
}

/* ---- either ---- */

bool
model_open_synthetic(struct model **out, const char *text, const struct model_options *options, struct err *err)
{
    struct synthetic_spec spec;
    *out = NULL;
    if (!synthetic_read_spec(text, &spec, err))
        return false;
    if (options->quantize)
        return err_set(err, ERR_USAGE, "%s: synthetic weights are made in the type that is asked for: say %s:q8_0",
                       text, spec.shape->name);
    struct model *m = new_model(text, err);
    bool ok = m != NULL && synthetic_weights_make(&m->synthetic, &spec, err) && synthetic_describe(m, err);
    const uint32_t ctx = ok ? model_positions(m, options->ctx, options->sequences) : 0;
    ok = ok &&
         (options->available == 0 ||
          memory_fits(m, ctx, options->exact, false, options->available, options->taken, err)) &&
         tokenizer_synthetic(&m->tokenizer, m->desc.vocab, m->path, err);
    if (!ok) {
        model_close(m);
        return false;
    }
    *out = m;
    return true;
}

bool
model_open_with(struct model **out, const char *path, const struct model_options *options, struct err *err)
{
    *out = NULL;
    struct hf_folder *folder;
    struct gguf *file;
    if (hf_is_folder(path))
        return hf_folder_open(&folder, path, !options->vocabulary, err) && model_read_folder(out, folder, options, err);
    return gguf_open(&file, path, err) && model_read_with(out, file, options, err);
}

bool
model_open_ahead(struct model **out, const struct model *target, const struct model_options *options, struct err *err)
{
    const struct model_ahead *ahead = target->ahead;
    struct model *m = new_model(target->path, err);
    if (m == NULL)
        return false;
    struct layer_desc *layer = calloc(1, sizeof *layer);
    struct drafter_desc *form = blocks_take(&m->blocks, 1, sizeof *form);
    if (layer == NULL || form == NULL) {
        free(layer);
        model_close(m);
        return err_set(err, ERR_WORK, "%s: out of memory", target->path);
    }
    *layer = ahead->layer;
    *form = ahead->form;
    snprintf(m->name, sizeof m->name, "MTP layer");
    snprintf(m->arch, sizeof m->arch, "%s", target->arch);
    m->hash = hash_bytes(target->hash, "MTP", 3);
    m->ctx_train = target->ctx_train;
    m->desc = target->desc;
    m->desc.n_layers = 1;
    m->desc.layers = layer;
    m->desc.drafter = form;
    if (layer->form.kind == LAYER_ATTENTION)
        m->desc.form.recurrent = (struct recurrent_form){0}; /* the drafter has no states, unlike its target */
    m->desc.embedding = ahead->embedding;
    m->desc.final_norm = ahead->final_norm;
    m->desc.head = ahead->head;
    m->n_features = 1;
    m->features[0] = target->desc.n_layers;
    m->parameters = ahead->parameters;
    memcpy(m->parameters_of, ahead->parameters_of, sizeof m->parameters_of);
    memcpy(m->tensors_of, ahead->tensors_of, sizeof m->tensors_of);
    const uint64_t used = m->parameters - model_idle_parameters(m);
    m->rho = (double)m->desc.head.rows * m->desc.width / (double)used;
    if (finish(out, m, options, err))
        return true;
    model_close(m);
    return false;
}

bool
model_open(struct model **out, const char *path, struct err *err)
{
    return model_open_with(out, path, &(struct model_options){0}, err);
}

void
model_close(struct model *m)
{
    if (m == NULL)
        return;
    tokenizer_close(m->tokenizer);
    free((void *)m->desc.layers);
    synthetic_weights_free(m->synthetic);
    gguf_close(m->file);
    hf_folder_close(m->folder);
    blocks_free(&m->blocks);
    free(m->path);
    free(m);
}
