#include "engine/model/lora/lora_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/model/arch/arch_hf.h"
#include "engine/model/files/gguf.h"
#include "engine/model/files/safetensors.h"
#include "engine/model/model.h"

#define LARGEST_CONFIG ((size_t)1 << 20)
#define NAME_SIZE      192
#define MOST_RANK      65536

/* ---- PEFT ---- */

/* Fails if adapter_config.json is not of LoRA, or turns on one of PEFT's features that are not supported. */
static bool
refuse_variants(const struct lora_file *f, struct err *err)
{
    static const struct {
        const char *key, *what;
    } variants[] = {{"use_dora", "weights split into size and direction (DoRA)"},
                    {"modules_to_save", "modules saved whole"},
                    {"alpha_pattern", "an alpha for each module"},
                    {"trainable_token_indices", "tokens trained by themselves"},
                    {"layer_replication", "layers repeated"},
                    {"use_bdlora", "blocks on a diagonal"}};
    const cJSON *type = arch_hf_entry(f->config, "peft_type"), *bias = arch_hf_entry(f->config, "bias");
    char shown[40];
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "LORA") != 0)
        return err_set(err, ERR_WORK, "%s: is an adapter of the kind '%s', which is not supported; LoRA is", f->path,
                       cJSON_IsString(type)
                           ? printable_line(shown, sizeof shown, type->valuestring, strlen(type->valuestring))
                           : "?");
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const cJSON *v = arch_hf_entry(f->config, variants[i].key);
        const bool unset =
            v == NULL || cJSON_IsFalse(v) || ((cJSON_IsArray(v) || cJSON_IsObject(v)) && cJSON_GetArraySize(v) == 0);
        if (!unset)
            return err_set(err, ERR_WORK, "%s: has %s (%s), which is not supported; merge it with PEFT", f->path,
                           variants[i].what, variants[i].key);
    }
    if (cJSON_IsString(bias) && strcmp(bias->valuestring, "none") != 0)
        return err_set(err, ERR_WORK, "%s: has biases (bias), which are not supported; merge it with PEFT", f->path);
    return true;
}

static bool
read_config(struct lora_file *f, struct err *err)
{
    double r = 0, alpha = 0;
    const cJSON *ranks = arch_hf_entry(f->config, "rank_pattern");
    if (!refuse_variants(f, err))
        return false;
    if (arch_hf_kind(arch_hf_entry(f->config, "r"), &r) != VALUE_WHOLE || !(r >= 1 && r <= MOST_RANK) ||
        arch_hf_kind(arch_hf_entry(f->config, "lora_alpha"), &alpha) > VALUE_REAL || !(fabs(alpha) <= 1e6))
        return err_set(err, ERR_WORK, "%s: adapter_config.json's 'r' or 'lora_alpha' make no sense; fetch it again",
                       f->path);
    f->rank = cJSON_GetArraySize(ranks) > 0 ? 0 : (uint32_t)r;
    f->alpha = alpha;
    f->root = cJSON_IsTrue(arch_hf_entry(f->config, "use_rslora"));
    return true;
}

static bool
open_peft(struct lora_file *f, const char *folder, const char *file, struct err *err)
{
    char path[600], *text = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    if (access(path, F_OK) != 0)
        return err_set(err, ERR_WORK, "%s: is no adapter: adapter_config.json is missing beside it", f->path);
    bool ok = file_text(path, LARGEST_CONFIG, &text, &len, err) && !lfs_pointer(path, text, len, err);
    if (ok && !json_read_python(&f->config, text, len))
        ok = err_set(err, ERR_WORK, "%s: out of memory", path);
    free(text);
    if (ok && !cJSON_IsObject(f->config))
        ok = err_set(err, ERR_WORK, "%s: is no JSON object; fetch it again", path);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!ok || !read_config(f, err) || !safetensors_open(&f->tensors, path, err))
        return false;
    f->naming = LAYER_NAMED_HF;
    f->n_tensors = (size_t)f->tensors->n_tensors;
    f->hash = hash_map(HASH_START, f->tensors->map, f->tensors->file_bytes, f->tensors->data_start);
    return true;
}

/* ---- GGUF ---- */

static bool
open_gguf(struct lora_file *f, const char *path, const struct arch *arch, struct err *err)
{
    struct slice kind, type, name;
    char shown[40];
    float alpha;
    if (!gguf_open(&f->gguf, path, err) || !gguf_get_string(f->gguf, "general.type", &kind, err) ||
        !gguf_get_string(f->gguf, "adapter.type", &type, err) ||
        !gguf_get_string(f->gguf, "general.architecture", &name, err) ||
        !gguf_get_f32(f->gguf, "adapter.lora.alpha", 0, &alpha, err))
        return false;
    if (!slice_is(kind, "adapter") || !slice_is(type, "lora"))
        return err_set(err, ERR_WORK, "%s: is a GGUF file, but no LoRA adapter", path);
    if (arch->gguf == NULL || !slice_is(name, arch->gguf))
        return err_set(err, ERR_WORK, "%s: is an adapter of the architecture '%s', but the model is a %s", path,
                       printable_line(shown, sizeof shown, name.data, name.len), arch->hf);
    if (!(fabs((double)alpha) <= 1e6))
        return err_set(err, ERR_WORK, "%s: metadata 'adapter.lora.alpha' makes no sense", path);
    f->naming = LAYER_NAMED_GGUF;
    f->alpha = (double)alpha;
    f->unscaled = !(alpha > 0 || alpha < 0);
    f->n_tensors = (size_t)f->gguf->n_tensors;
    f->hash = hash_map(HASH_START, f->gguf->map, f->gguf->file_bytes, f->gguf->data_start);
    return true;
}

/* ---- both formats ---- */

bool
lora_file_open(struct lora_file *f, const char *path, const struct arch *arch, struct err *err)
{
    static const char ending[] = ".safetensors";
    const size_t n = strlen(path), e = sizeof ending - 1;
    *f = (struct lora_file){.alpha = 0};
    snprintf(f->path, sizeof f->path, "%s", path);
    bool ok;
    if (hf_is_folder(path)) {
        ok = open_peft(f, path, "adapter_model.safetensors", err);
    } else if (n > e && n < sizeof f->path && strcmp(path + n - e, ending) == 0) {
        char folder[sizeof f->path] = ".";
        const char *slash = strrchr(path, '/');
        if (slash != NULL)
            snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        ok = open_peft(f, folder[0] != '\0' ? folder : "/", slash != NULL ? slash + 1 : path, err);
    } else {
        ok = open_gguf(f, path, arch, err);
    }
    f->used = ok ? calloc(f->n_tensors + 1, sizeof *f->used) : NULL;
    if (ok && f->used == NULL)
        ok = err_set(err, ERR_WORK, "%s: out of memory", path);
    if (!ok)
        lora_file_close(f);
    return ok;
}

void
lora_file_close(struct lora_file *f)
{
    safetensors_close(f->tensors);
    gguf_close(f->gguf);
    cJSON_Delete(f->config);
    free(f->used);
    *f = (struct lora_file){.alpha = 0};
}

static bool
find(struct lora_file *f, const char *name, struct arch_tensor *out)
{
    const struct gguf_tensor *g = f->gguf != NULL ? gguf_find_tensor(f->gguf, name) : NULL;
    const struct safetensor *t = f->tensors != NULL ? safetensors_find(f->tensors, name) : NULL;
    if (g != NULL) {
        *out = (struct arch_tensor){
            .data = g->data, .type = gguf_weight_type(g->type), .rows = g->dims[1], .cols = g->dims[0]};
        out->planes = g->dims[2];
        if (g->dims[3] != 1)
            out->rows = 0;
        out->index = (size_t)(g - f->gguf->tensors);
    } else if (t != NULL) {
        *out = (struct arch_tensor){.data = t->data, .type = t->type, .planes = 1, .rows = t->rows, .cols = t->cols};
        out->index = (size_t)(t - f->tensors->tensors);
    }
    return g != NULL || t != NULL;
}

/* PEFT's names contain the model's name of the tensor. Older files also contain the adapter's name, "default". */
static bool
find_half(struct lora_file *f, const char *stem, bool a, struct arch_tensor *out)
{
    char name[NAME_SIZE];
    if (f->naming == LAYER_NAMED_GGUF) {
        snprintf(name, sizeof name, "%s.weight.lora_%s", stem, a ? "a" : "b");
        return find(f, name, out);
    }
    snprintf(name, sizeof name, "base_model.model.%s.lora_%s.weight", stem, a ? "A" : "B");
    if (find(f, name, out))
        return true;
    snprintf(name, sizeof name, "base_model.model.%s.lora_%s.default.weight", stem, a ? "A" : "B");
    return find(f, name, out);
}

bool
lora_file_pair(struct lora_file *f, const char *stem, uint64_t planes, uint64_t of, struct lora_pair *p, bool *there,
               struct err *err)
{
    const bool a = find_half(f, stem, true, &p->a), b = find_half(f, stem, false, &p->b);
    *there = a && b;
    if (a != b)
        return err_set(err, ERR_WORK, "%s: has only one of the two matrices that add to '%s'; fetch it again", f->path,
                       stem);
    if (!*there)
        return true;
    f->used[p->a.index] = f->used[p->b.index] = true;
    if (p->a.type >= WEIGHT_TYPES || p->b.type >= WEIGHT_TYPES || p->a.planes != planes || p->b.planes != planes ||
        p->a.rows == 0 || p->a.rows % of != 0 || p->a.rows / of > MOST_RANK || p->b.cols != p->a.rows ||
        (f->rank > 0 && p->a.rows != of * f->rank))
        return err_set(err, ERR_WORK,
                       "%s: what adds to '%s' is of another rank than the adapter, or of an unknown type", f->path,
                       stem);
    return true;
}

double
lora_file_factor(const struct lora_file *f, uint32_t rank)
{
    return f->unscaled ? 1 : f->alpha / (f->root ? sqrt(rank) : rank);
}

const char *
lora_file_leftover(const struct lora_file *f, char *shown, size_t n)
{
    for (size_t i = 0; i < f->n_tensors; i++) {
        if (f->used[i])
            continue;
        if (f->gguf != NULL)
            return printable_line(shown, n, f->gguf->tensors[i].name.data, f->gguf->tensors[i].name.len);
        return printable_line(shown, n, f->tensors->tensors[i].name, strlen(f->tensors->tensors[i].name));
    }
    return NULL;
}
