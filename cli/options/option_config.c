/* The config file: a JSON object of options by their long names. */
#include "cli/options/option_config.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "cli/options/option_table.h"
#include "engine/base/json_read.h"

static bool
set_value(struct options *o, const struct option_row *row, const cJSON *value, const char *path, struct err *err)
{
    char number[32];
    const char *text = NULL;
    if (row->argument == NULL) {
        if (!cJSON_IsBool(value))
            return err_set(err, ERR_USAGE, "%s: \"%s\" must be true or false", path, row->name);
        return cJSON_IsTrue(value) ? option_set(o, row, NULL, err) : true;
    }
    if (cJSON_IsNumber(value)) {
        snprintf(number, sizeof number, "%.15g", value->valuedouble);
        text = number;
    } else if (cJSON_IsString(value)) {
        text = value->valuestring;
    }
    if (text == NULL)
        return err_set(err, ERR_USAGE, "%s: \"%s\" must be a string or a number", path, row->name);
    if (o->n_owned == sizeof o->owned / sizeof *o->owned || (o->owned[o->n_owned] = strdup(text)) == NULL)
        return err_set(err, ERR_WORK, "%s: too many entries", path);
    struct err inner = {0};
    if (!option_set(o, row, o->owned[o->n_owned++], &inner))
        return err_set(err, inner.kind, "%s: %.300s", path, inner.text);
    return true;
}

/* Options of those commands that read the file: one file serves them all, and each passes over the others' options. */
static bool
set_item(struct options *o, const cJSON *item, const char *path, struct err *err)
{
    unsigned commands = 0;
    for (size_t i = 0; i < n_command_rows; i++)
        commands |= command_rows[i].config ? (unsigned)command_rows[i].command : 0;
    const struct option_row *row = option_find(item->string, commands);
    if (row == NULL || row->type == OPTION_SAY)
        return err_set(err, ERR_USAGE, "%s: \"%.40s\" is no option; the names are those of --help", path, item->string);
    row = option_find(item->string, o->command);
    if (row == NULL)
        return true;
    if (!cJSON_IsArray(item))
        return set_value(o, row, item, path, err);
    for (const cJSON *value = item->child; value != NULL; value = value->next)
        if (!set_value(o, row, value, path, err))
            return false;
    return true;
}

bool
options_config(struct options *o, const char *path, const char *json, size_t len, struct err *err)
{
    size_t wrong;
    cJSON *root;
    if (!json_read_typed(&root, json, len, &wrong))
        return err_set(err, ERR_WORK, "%s: out of memory", path);
    if (wrong > 0)
        return err_set(err, ERR_USAGE, "%s: not valid JSON in line %zu; correct it there", path, wrong);
    bool ok = cJSON_IsObject(root) || err_set(err, ERR_USAGE, "%s: not a JSON object; see `man specscope`", path);
    for (const cJSON *item = ok ? root->child : NULL; item != NULL && ok; item = item->next)
        ok = set_item(o, item, path, err);
    cJSON_Delete(root);
    return ok;
}

bool
options_config_file(struct options *o, struct err *err)
{
    char path[1024];
    if (config_path(path, sizeof path, "config.json") == NULL)
        return true;
    if (!file_exists(path))
        return true;
    char *json;
    size_t len;
    if (!file_read(path, &json, &len, err))
        return false;
    const bool ok = options_config(o, path, json, len, err);
    free(json);
    o->n_config_set = o->n_set;
    return ok;
}
