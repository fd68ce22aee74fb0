/* Reads files and lists of prompts, checks outputs, and notices when cJSON runs out of memory. */
#include "cli/options/files.h"

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/json_read.h"
#include "cli/options/commands.h"

static atomic_bool ran_out; /* one for all trees: cJSON's allocator does not get the tree */

static void *
take(size_t n)
{
    void *at = malloc(n);
    if (at == NULL)
        atomic_store(&ran_out, true);
    return at;
}

void
json_memory_watch(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = take, .free_fn = free});
}

bool
json_memory_ran_out(void)
{
    return atomic_load(&ran_out);
}

#define FILE_MOST ((size_t)64 << 20)

bool
file_read(const char *path, char **bytes, size_t *len, struct err *err)
{
    return strcmp(path, "-") == 0 ? file_text_from(STDIN_FILENO, path, FILE_MOST, bytes, len, err)
                                  : file_text_or_pipe(path, FILE_MOST, bytes, len, err);
}

bool
outputs_possible(const char *json, const struct file_kind *json_kind, const char *csv, const struct file_kind *csv_kind,
                 struct err *err)
{
    if (output_same(json, csv))
        return err_set(err, ERR_USAGE, "--json %s and --csv %s: both would be written there; choose two files", json,
                       csv);
    return output_possible(json, json_kind, err) && output_possible(csv, csv_kind, err);
}

bool
prompts_add(struct prompt_list *list, const char *text, const char *category)
{
    char **texts = realloc(list->texts, (list->n + 1) * sizeof *texts);
    list->texts = texts != NULL ? texts : list->texts;
    char **categories = realloc(list->categories, (list->n + 1) * sizeof *categories);
    list->categories = categories != NULL ? categories : list->categories;
    if (texts == NULL || categories == NULL)
        return false;
    texts[list->n] = strdup(text);
    categories[list->n] = strdup(category);
    list->n++;
    return texts[list->n - 1] != NULL && categories[list->n - 1] != NULL;
}

static bool
add_line(struct prompt_list *list, const char *path, size_t line, const char *text, size_t len, struct err *err)
{
    cJSON *root;
    bool starved = !json_read(&root, text, len);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "turns"), 0),
                *category = cJSON_GetObjectItemCaseSensitive(root, "category");
    const bool ok = cJSON_IsString(first);
    if (ok)
        starved = !prompts_add(list, first->valuestring, cJSON_IsString(category) ? category->valuestring : "");
    cJSON_Delete(root);
    if (starved)
        return err_set(err, ERR_WORK, "%s:%zu: out of memory", path, line);
    return ok || err_set(err, ERR_USAGE, "%s:%zu: a JSON object with \"turns\": [\"…\"] is wanted", path, line);
}

bool
prompts_read(const char *path, struct prompt_list *list, struct err *err)
{
    char *text;
    size_t len, line = 0;
    *list = (struct prompt_list){0};
    if (!file_read(path, &text, &len, err))
        return false;
    bool ok = true;
    for (const char *at = text; at < text + len && ok;) {
        const char *end = memchr(at, '\n', (size_t)(text + len - at));
        if (end == NULL)
            end = text + len;
        line++;
        if (end > at && strspn(at, " \t\r") < (size_t)(end - at))
            ok = add_line(list, path, line, at, (size_t)(end - at), err);
        at = end + 1;
    }
    free(text);
    if (ok && list->n == 0)
        ok = err_set(err, ERR_USAGE, "%s: no prompts in it", path);
    if (!ok)
        prompts_free(list);
    return ok;
}

void
prompts_free(struct prompt_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->texts[i]);
        free(list->categories[i]);
    }
    free(list->texts);
    free(list->categories);
    *list = (struct prompt_list){0};
}

bool
prompts_bundled(const char *name, struct prompt_list *list, struct err *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/models/%s.jsonl", data_dir(), name);
    return prompts_read(path, list, err);
}
