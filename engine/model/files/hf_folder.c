#include "engine/model/files/hf_folder.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "base/utf8.h"

#define LARGEST_TEXT   ((size_t)256 << 20) /* a large vocabulary's tokenizer.json has 20 MiB */
#define INDEX          "model.safetensors.index.json"
#define SINGLE         "model.safetensors"
#define LARGEST_INDEX  ((size_t)64 << 20) /* the index of a model of 600 billion parameters has 9 MiB */
#define LARGEST_CONFIG ((size_t)16 << 20)

static char *
path_in(const char *folder, const char *file, struct err *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, file) >= 0)
        return path;
    err_set(err, ERR_WORK, "%s: out of memory", folder);
    return NULL;
}

/* Returns true if the folder contains a file of this name. */
static bool
hf_folder_has(const char *folder, const char *file)
{
    char path[PATH_MAX]; /* no file can have a longer path */
    const int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

bool
hf_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool
text_of(const char *folder, const char *file, size_t most, char **text, size_t *len, struct err *err)
{
    *text = NULL;
    *len = 0;
    char *path = path_in(folder, file, err);
    const bool absent = path != NULL && access(path, F_OK) != 0 && errno == ENOENT;
    bool ok = absent || (path != NULL && file_text(path, most, text, len, err));
    if (ok && *text != NULL && lfs_pointer(path, *text, *len, err)) {
        free(*text);
        *text = NULL;
        ok = false;
    }
    free(path);
    return ok;
}

bool
hf_folder_text(const char *folder, const char *file, char **text, size_t *len, struct err *err)
{
    return text_of(folder, file, LARGEST_TEXT, text, len, err);
}

static bool
parse_object(cJSON **out, const char *folder, const char *file, const char *text, size_t len, struct err *err)
{
    if (!json_read_python(out, text, len))
        return err_set(err, ERR_WORK, "%s/%s: out of memory", folder, file);
    if (cJSON_IsObject(*out))
        return true;
    return err_set(err, ERR_WORK, "%s/%s: is no JSON object; fetch it again", folder, file);
}

/* Reads a JSON object from a file of the folder. Sets *out to NULL and succeeds if the file does not exist. */
static bool
read_object(cJSON **out, const char *folder, const char *file, size_t most, struct err *err)
{
    char *text;
    size_t len;
    *out = NULL;
    bool ok = text_of(folder, file, most, &text, &len, err);
    ok = ok && (text == NULL || parse_object(out, folder, file, text, len, err));
    free(text);
    return ok;
}

/* Returns true for entries of a multimodal model's config.json that also apply to its language part. */
static bool
is_of_language(const char *name)
{
    static const char *const names[] = {"tie_word_embeddings", "quantization_config", "vocab_size",
                                        "eos_token_id",        "bos_token_id",        "quantization"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Replaces a multimodal model's configuration by its `text_config`, the configuration of the language part. Entries
 * that the part lacks are copied from the whole if they also apply to it. The head is tied if either configuration ties
 * it; a head that is in the weights is used all the same. */
static bool
take_language_part(struct hf_folder *f, struct err *err)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(f->config, "text_config"), *entry;
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(f->config, "model_type");
    if (!cJSON_IsObject(text) || !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(text, "model_type")))
        return true;
    cJSON *part = cJSON_Duplicate(text, true);
    bool ok = part != NULL;
    cJSON_ArrayForEach(entry, f->config)
    {
        const bool ties = strcmp(entry->string, "tie_word_embeddings") == 0 && cJSON_IsTrue(entry);
        if (!ok || !is_of_language(entry->string) ||
            (cJSON_GetObjectItemCaseSensitive(part, entry->string) != NULL && !ties))
            continue;
        cJSON_DeleteItemFromObjectCaseSensitive(part, entry->string);
        cJSON *copy = cJSON_Duplicate(entry, true);
        ok = copy != NULL && cJSON_AddItemToObject(part, entry->string, copy);
    }
    if (!ok) {
        cJSON_Delete(part);
        return err_set(err, ERR_WORK, "%s: out of memory", f->path);
    }
    printable_line(f->part_of, sizeof f->part_of, cJSON_IsString(type) ? type->valuestring : "?",
                   cJSON_IsString(type) ? strlen(type->valuestring) : 1);
    cJSON_Delete(f->config);
    f->config = part;
    return true;
}

/* ---- tensors ---- */

static int
by_name(const void *a, const void *b)
{
    return strcmp((*(const struct safetensor *const *)a)->name, (*(const struct safetensor *const *)b)->name);
}

static bool
list_tensors(struct hf_folder *f, struct err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_files; i++)
        n += (size_t)f->files[i]->n_tensors;
    f->tensors = calloc(n + 1, sizeof(const struct safetensor *));
    if (f->tensors == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory for %zu tensors", f->path, n);
    for (size_t i = 0; i < f->n_files; i++)
        for (uint64_t k = 0; k < f->files[i]->n_tensors; k++)
            f->tensors[f->n_tensors++] = &f->files[i]->tensors[k];
    qsort(f->tensors, n, sizeof *f->tensors, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&f->tensors[i - 1], &f->tensors[i]) == 0) {
            char name[80];
            return err_set(err, ERR_WORK, "%s: tensor '%s' is in two files; fetch the folder again", f->path,
                           printable_line(name, sizeof name, f->tensors[i]->name, strlen(f->tensors[i]->name)));
        }
    return true;
}

const struct safetensor *const *
hf_folder_find(const struct hf_folder *f, const char *tensor)
{
    const struct safetensor wanted = {.name = tensor}, *key = &wanted;
    return bsearch(&key, f->tensors, f->n_tensors, sizeof *f->tensors, by_name);
}

/* ---- files of weights ---- */

static bool
open_file(struct hf_folder *f, const char *file, const char *why, struct err *err)
{
    char *path = path_in(f->path, file, err);
    if (path == NULL)
        return false;
    struct safetensors **more = realloc(f->files, (f->n_files + 1) * sizeof(struct safetensors *));
    bool ok = more != NULL;
    if (ok)
        f->files = more;
    else
        err_set(err, ERR_WORK, "%s: out of memory", f->path);
    if (ok && access(path, F_OK) != 0 && errno == ENOENT)
        ok = err_set(err, ERR_WORK, "%s: is missing, but %s; fetch it too", path, why);
    ok = ok && safetensors_open(&f->files[f->n_files], path, err);
    f->n_files += ok;
    free(path);
    return ok;
}

static bool
is_open(const struct hf_folder *f, const char *file)
{
    for (size_t i = f->n_files; i > 0; i--) /* the tensors of a file mostly follow one another */
        if (strcmp(strrchr(f->files[i - 1]->path, '/') + 1, file) == 0)
            return true;
    return false;
}

/* Opens every file of an index, which maps each tensor to its file. Fails if a name leads out of the folder. */
static bool
open_indexed(struct hf_folder *f, const cJSON *index, struct err *err)
{
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(index, "weight_map"), *entry;
    char shown[80];
    if (!cJSON_IsObject(map))
        return err_set(err, ERR_WORK, "%s/" INDEX ": has no weight_map; fetch it again", f->path);
    cJSON_ArrayForEach(entry, map)
    {
        if (!cJSON_IsString(entry) || entry->valuestring[0] == '\0' || entry->valuestring[0] == '.' ||
            strchr(entry->valuestring, '/') != NULL)
            return err_set(err, ERR_WORK, "%s/" INDEX ": '%s' is mapped to no file of this folder", f->path,
                           printable_line(shown, sizeof shown, entry->string, strlen(entry->string)));
        if (!is_open(f, entry->valuestring) && !open_file(f, entry->valuestring, "the index names it", err))
            return false;
    }
    return list_tensors(f, err);
}

/* Returns whether the index does not belong to the model.safetensors beside it: it is from before the weights were
 * saved in one file. */
static bool
is_stale(const struct hf_folder *f, const cJSON *index)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(index, "weight_map"))
    {
        if (cJSON_IsString(entry) && strcmp(entry->valuestring, SINGLE) == 0)
            return false;
    }
    return hf_folder_has(f->path, SINGLE);
}

static bool
open_weights(struct hf_folder *f, bool needed, struct err *err)
{
    cJSON *index;
    if (!read_object(&index, f->path, INDEX, LARGEST_INDEX, err)) {
        cJSON_Delete(index);
        return false;
    }
    bool ok = true;
    if (index != NULL && !is_stale(f, index))
        ok = open_indexed(f, index, err);
    else if (hf_folder_has(f->path, SINGLE))
        ok = open_file(f, SINGLE, "it holds the weights", err) && list_tensors(f, err);
    else if (!needed)
        ok = list_tensors(f, err);
    else
        ok = err_set(err, ERR_WORK, "%s: holds no weights (" SINGLE " or " INDEX "); fetch them too", f->path);
    cJSON_Delete(index);
    return ok;
}

/* ---- the folder ---- */

static struct hf_folder *
new_folder(const char *path, struct err *err)
{
    char *copy;
    struct hf_folder *f = file_struct(sizeof *f, path, &copy, err);
    if (f == NULL)
        return NULL;
    f->path = copy;
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    return f;
}

bool
hf_folder_open(struct hf_folder **out, const char *path, bool weights, struct err *err)
{
    *out = NULL;
    struct hf_folder *f = new_folder(path, err);
    if (f == NULL)
        return false;
    bool ok = read_object(&f->config, f->path, "config.json", LARGEST_CONFIG, err);
    if (ok && f->config == NULL && hf_folder_has(f->path, "adapter_config.json"))
        ok = err_set(err, ERR_WORK, "%s: holds an adapter (LoRA) and no model; give its model, and this with --lora",
                     path);
    if (ok && f->config == NULL)
        ok = err_set(err, ERR_WORK, "%s: is a folder without config.json; give a .gguf file or a Hugging Face folder",
                     f->path);
    ok = ok && take_language_part(f, err) &&
         read_object(&f->generation, f->path, "generation_config.json", LARGEST_CONFIG, err) &&
         open_weights(f, weights, err);
    if (!ok) {
        hf_folder_close(f);
        return false;
    }
    *out = f;
    return true;
}

bool
hf_folder_parse(struct hf_folder **out, const char *name, const char *config, size_t n_config, const char *generation,
                size_t n_generation, struct safetensors *file, struct err *err)
{
    *out = NULL;
    struct hf_folder *f = new_folder(name, err);
    if (f != NULL)
        f->files = malloc(sizeof(struct safetensors *));
    if (f == NULL || f->files == NULL) {
        safetensors_close(file);
        hf_folder_close(f);
        return err_set(err, ERR_WORK, "%s: out of memory", name);
    }
    f->files[f->n_files++] = file;
    if (!parse_object(&f->config, name, "config.json", config, n_config, err) || !take_language_part(f, err) ||
        (generation != NULL &&
         !parse_object(&f->generation, name, "generation_config.json", generation, n_generation, err)) ||
        !list_tensors(f, err)) {
        hf_folder_close(f);
        return false;
    }
    *out = f;
    return true;
}

void
hf_folder_close(struct hf_folder *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->n_files; i++)
        safetensors_close(f->files[i]);
    free(f->files);
    free(f->tensors);
    cJSON_Delete(f->config);
    cJSON_Delete(f->generation);
    free(f->path);
    free(f);
}
