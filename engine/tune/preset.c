/* Reads and writes presets, one JSON file each. */
#include "engine/tune/preset.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/file_replace.h"
#include "base/json_read.h"

#define MOST   ((size_t)64 << 10) /* largest file, in bytes */
#define SUFFIX ".json"

const char *const preset_sampling[SAMPLING_KNOBS] = {
    [SAMPLING_TEMPERATURE] = "temp", [SAMPLING_TOP_K] = "top-k", [SAMPLING_TOP_P] = "top-p", [SAMPLING_SEED] = "seed"};

static bool
is_name(const char *name, size_t n)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return n > 0 && n < PRESET_NAME && name[0] != '.' && strspn(name, allowed) >= n;
}

static bool
path_of(char *out, size_t size, const char *folder, const char *name, struct err *err)
{
    if (!is_name(name, strlen(name)))
        return err_set(err, ERR_USAGE,
                       "'%.60s' is no name for a preset: letters, digits, '-', '_' and '.' are, %d of them at most",
                       name, PRESET_NAME - 1);
    return (size_t)snprintf(out, size, "%s/%s" SUFFIX, folder, name) < size ||
           err_set(err, ERR_WORK, "the folder of presets has too long a name: %.200s", folder);
}

bool
preset_of_segment(struct preset *p, const struct segment *s, const struct run_info *info)
{
    *p = (struct preset){.n_set = 0};
    if (s->policy >= info->n_policies)
        return false;
    const struct policy_info *policy = &info->policies[s->policy];
    memcpy(p->policy, policy->name, sizeof p->policy);
    memcpy(p->head, s->head, sizeof p->head);
    for (uint32_t k = 0; k < policy->n_knobs; k++) {
        struct preset_knob *set = &p->set[p->n_set++];
        memcpy(set->name, policy->knobs[k].name, sizeof set->name);
        knob_format(&policy->knobs[k], s->value[k], set->text, sizeof set->text);
    }
    for (int i = 0; i < SAMPLING_KNOBS; i++)
        sampling_knob_text(&s->sampling, s->seed, i, p->sampling[i], sizeof p->sampling[i]);
    return true;
}

const char *
preset_setting_text(const struct preset *p, const struct policy_info *info, const char *before, char *out, size_t n)
{
    size_t used = (size_t)snprintf(out, n, "%s", p->policy);
    for (uint32_t i = 0; i < p->n_set && used < n; i++) {
        char usual[32];
        knob_format(&info->knobs[i], info->knobs[i].def, usual, sizeof usual);
        if (strcmp(p->set[i].text, usual) != 0)
            used += (size_t)snprintf(out + used, n - used, "%s%s=%s", before, p->set[i].name, p->set[i].text);
    }
    return out;
}

/* ---- reading ---- */

static bool
take_word(char *out, size_t size, const cJSON *item, const char *path, struct err *err)
{
    if (!cJSON_IsString(item) || item->valuestring[0] == '\0' || strlen(item->valuestring) >= size)
        return err_set(err, ERR_USAGE, "%s: \"%s\" must be a name", path, item->string);
    memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
    return true;
}

static bool
take_knob(struct preset *p, const cJSON *item, const char *path, struct err *err)
{
    const char *text = cJSON_IsString(item) ? item->valuestring : "", *equals = strchr(text, '=');
    struct preset_knob knob = {{0}, {0}};
    if (equals == NULL || equals == text || equals[1] == '\0' || (size_t)(equals - text) >= sizeof knob.name ||
        strlen(equals + 1) >= sizeof knob.text)
        return err_set(err, ERR_USAGE, "%s: \"set\" must be a list of \"KNOB=VALUE\"", path);
    if (p->n_set == POLICY_KNOBS)
        return err_set(err, ERR_USAGE, "%s: more than %d knobs", path, POLICY_KNOBS);
    memcpy(knob.name, text, (size_t)(equals - text));
    memcpy(knob.text, equals + 1, strlen(equals + 1));
    p->set[p->n_set++] = knob;
    return true;
}

/* Reads a number, or a string for a number that JSON's numbers cannot represent. */
static bool
take_number(char *out, size_t size, const cJSON *item, const char *path, struct err *err)
{
    if (cJSON_IsString(item))
        return take_word(out, size, item, path, err);
    if (!cJSON_IsNumber(item))
        return err_set(err, ERR_USAGE, "%s: \"%s\" must be a number", path, item->string);
    snprintf(out, size, "%.15g", item->valuedouble);
    return true;
}

static int
sampling_named(const char *name)
{
    int i = 0;
    while (i < SAMPLING_KNOBS && strcmp(preset_sampling[i], name) != 0)
        i++;
    return i;
}

static bool
take_item(struct preset *p, const cJSON *item, const char *path, struct err *err)
{
    if (strcmp(item->string, "policy") == 0)
        return take_word(p->policy, sizeof p->policy, item, path, err);
    if (strcmp(item->string, "head") == 0)
        return take_word(p->head, sizeof p->head, item, path, err);
    const int sampling = sampling_named(item->string);
    if (sampling < SAMPLING_KNOBS)
        return take_number(p->sampling[sampling], sizeof p->sampling[sampling], item, path, err);
    if (strcmp(item->string, "set") != 0)
        return err_set(err, ERR_USAGE,
                       "%s: \"%.40s\" is not known; a preset has policy, set, head, temp, top-k, top-p and seed", path,
                       item->string);
    if (!cJSON_IsArray(item))
        return err_set(err, ERR_USAGE, "%s: \"set\" must be a list of \"KNOB=VALUE\"", path);
    for (const cJSON *knob = item->child; knob != NULL; knob = knob->next)
        if (!take_knob(p, knob, path, err))
            return false;
    return true;
}

bool
preset_parse(struct preset *p, const char *path, const char *json, size_t n, struct err *err)
{
    size_t wrong;
    cJSON *root;
    *p = (struct preset){.n_set = 0};
    if (!json_read_typed(&root, json, n, &wrong))
        return err_set(err, ERR_WORK, "%s: out of memory", path);
    if (wrong > 0)
        return err_set(err, ERR_USAGE, "%s: not valid JSON in line %zu; correct it, or save the preset anew", path,
                       wrong);
    bool ok = cJSON_IsObject(root) || err_set(err, ERR_USAGE, "%s: not a JSON object", path);
    for (const cJSON *item = ok ? root->child : NULL; item != NULL && ok; item = item->next)
        ok = take_item(p, item, path, err);
    if (ok && p->policy[0] == '\0')
        ok = err_set(err, ERR_USAGE, "%s: it names no \"policy\"", path);
    cJSON_Delete(root);
    return ok;
}

static bool
name_preset(const char *folder, const char *name, struct err *err)
{
    struct preset_names names = {NULL, 0};
    char list[400] = "";
    preset_list(&names, folder, NULL);
    for (size_t i = 0, used = 0; i < names.n && used + PRESET_NAME < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names.name[i]);
    preset_names_free(&names);
    if (list[0] == '\0')
        return err_set(err, ERR_USAGE,
                       "there is no preset '%.60s', nor any other in %.200s; :preset save NAME makes one", name,
                       folder);
    return err_set(err, ERR_USAGE, "there is no preset '%.60s'; there are %s", name, list);
}

bool
preset_read(struct preset *p, const char *folder, const char *name, struct err *err)
{
    char path[1024], *text;
    size_t n;
    if (!path_of(path, sizeof path, folder, name, err))
        return false;
    if (access(path, F_OK) != 0)
        return name_preset(folder, name, err);
    if (!file_text(path, MOST, &text, &n, err))
        return false;
    const bool ok = preset_parse(p, path, text, n, err);
    free(text);
    return ok;
}

/* ---- writing ---- */

static bool
add_knob(cJSON *set, const struct preset_knob *knob)
{
    char text[64];
    snprintf(text, sizeof text, "%s=%s", knob->name, knob->text);
    cJSON *item = cJSON_CreateString(text);
    if (cJSON_AddItemToArray(set, item))
        return true;
    cJSON_Delete(item);
    return false;
}

static bool
add_sampling(cJSON *root, const char *name, const char *text)
{
    const double value = strtod(text, NULL);
    if (text[0] == '\0')
        return true;
    return (value <= 1e15 ? cJSON_AddNumberToObject(root, name, value) : cJSON_AddStringToObject(root, name, text)) !=
           NULL;
}

/* Returns the preset as JSON; NULL: out of memory. */
static cJSON *
to_json(const struct preset *p)
{
    cJSON *root = cJSON_CreateObject();
    bool ok = cJSON_AddStringToObject(root, "policy", p->policy) != NULL;
    cJSON *set = cJSON_AddArrayToObject(root, "set");
    ok = ok && set != NULL;
    for (uint32_t i = 0; i < p->n_set && ok; i++)
        ok = add_knob(set, &p->set[i]);
    ok = ok && (p->head[0] == '\0' || cJSON_AddStringToObject(root, "head", p->head) != NULL);
    for (int i = 0; i < SAMPLING_KNOBS && ok; i++)
        ok = add_sampling(root, preset_sampling[i], p->sampling[i]);
    if (ok)
        return root;
    cJSON_Delete(root);
    return NULL;
}

bool
preset_exists(const char *folder, const char *name)
{
    char path[1024];
    return path_of(path, sizeof path, folder, name, NULL) && access(path, F_OK) == 0;
}

bool
preset_possible(const char *folder, const char *name, struct err *err)
{
    char path[1024];
    return path_of(path, sizeof path, folder, name, err) && file_folders_make(path, err) &&
           file_replace_possible(AT_FDCWD, path, err);
}

bool
preset_write(const struct preset *p, const char *folder, const char *name, struct err *err)
{
    char path[1024];
    if (!path_of(path, sizeof path, folder, name, err) || !file_folders_make(path, err))
        return false;
    cJSON *json = to_json(p);
    char *text = json != NULL ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    if (text == NULL)
        return err_set(err, ERR_WORK, "out of memory for the preset");
    struct file_replace file;
    const bool ok =
        file_replace_begin(&file, AT_FDCWD, path, 0666, err) &&
        file_replace_end(
            &file, file_replace_put(&file, text, strlen(text), err) && file_replace_put(&file, "\n", 1, err), err);
    cJSON_free(text);
    return ok;
}

/* ---- which there are ---- */

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool
preset_list(struct preset_names *names, const char *folder, struct err *err)
{
    DIR *dir = opendir(folder);
    bool ok = true;
    preset_names_free(names);
    for (const struct dirent *entry; dir != NULL && ok && (entry = readdir(dir)) != NULL;) {
        const size_t n = strlen(entry->d_name), suffix = strlen(SUFFIX);
        if (n <= suffix || strcmp(entry->d_name + n - suffix, SUFFIX) != 0 || !is_name(entry->d_name, n - suffix))
            continue;
        char(*more)[PRESET_NAME] = realloc(names->name, (names->n + 1) * sizeof *more);
        ok = more != NULL || err_set(err, ERR_WORK, "out of memory for the presets' names");
        if (ok) {
            names->name = more;
            memcpy(more[names->n], entry->d_name, n - suffix);
            more[names->n++][n - suffix] = '\0';
        }
    }
    if (dir != NULL)
        closedir(dir);
    if (names->n > 0)
        qsort(names->name, names->n, sizeof *names->name, by_name);
    return ok;
}

void
preset_names_free(struct preset_names *names)
{
    free(names->name);
    *names = (struct preset_names){NULL, 0};
}
