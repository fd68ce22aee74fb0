#include "engine/synthetic/folder_templates.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/files/hf_folder.h"

static const char default_name[] = "default", folder_name[] = "additional_chat_templates", ending[] = ".jinja";

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
    bool ok = text == NULL || json_read(&o, text, n) || err_set(err, ERR_WORK, "%s: out of memory", folder);
    const char *template = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "chat_template"));
    ok = ok && (template == NULL || tokenizer_add_chat_template(t, slice_of(default_name), slice_of(template), err));
    cJSON_Delete(o);
    free(text);
    return ok;
}

static int
is_template(const struct dirent *e)
{
    const size_t n = strlen(e->d_name), tail = sizeof ending - 1;
    return n > tail && strcmp(e->d_name + n - tail, ending) == 0;
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
        const struct slice name = {names[i]->d_name, strlen(names[i]->d_name) - (sizeof ending - 1)};
        ok = ok && read_one(t, path, names[i]->d_name, name, err);
        free(names[i]);
    }
    free(names);
    free(path);
    return ok;
}

bool
folder_templates_read(struct tokenizer *t, const char *folder, struct err *err)
{
    return read_json(t, folder, err) && read_one(t, folder, "chat_template.jinja", slice_of(default_name), err) &&
           read_additional(t, folder, err);
}
