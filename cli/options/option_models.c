#include "cli/options/option_models.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/commands.h"
#include "cli/base/files.h"
#include "engine/model/model_places.h"

#define WITH_MODELS                                                                                                    \
    (COMMAND_SCOPE | COMMAND_RUN | COMMAND_BENCH | COMMAND_TUNE | COMMAND_INFO | COMMAND_TOKENIZE |                    \
     COMMAND_TRAIN_HEADS | COMMAND_TRAIN_ACCEPT | COMMAND_TRAIN_PROFILE)

static bool
find(struct options *o, const char **model, struct err *err)
{
    char path[PATH_MAX];
    if (strcmp(*model, MODEL_BUNDLED) == 0 && !file_exists(MODEL_BUNDLED)) {
        *model = bundled_model_path();
        return true;
    }
    if (!model_find(*model, path, sizeof path, err))
        return false;
    if (strcmp(path, *model) == 0)
        return true;
    if (o->n_owned == sizeof o->owned / sizeof *o->owned || (o->owned[o->n_owned] = strdup(path)) == NULL)
        return err_set(err, ERR_WORK, "out of memory for the name of a model");
    *model = o->owned[o->n_owned++];
    return true;
}

bool
word_is_model(const char *word)
{
    char path[PATH_MAX], config[PATH_MAX], magic[4];
    struct stat about;
    struct err unused;
    const bool cached = strncmp(word, "hf:", 3) == 0 || strncmp(word, "ollama:", 7) == 0;
    if (!cached && !file_exists(word))
        return strcmp(word, MODEL_BUNDLED) == 0;
    if (!model_find(word, path, sizeof path, &unused) || stat(path, &about) != 0)
        return false;
    if (S_ISDIR(about.st_mode))
        return (size_t)snprintf(config, sizeof config, "%s/config.json", path) < sizeof config && file_exists(config);
    FILE *f = S_ISREG(about.st_mode) ? fopen(path, "re") : NULL;
    const bool read = f != NULL && fread(magic, sizeof magic, 1, f) == 1;
    if (f != NULL)
        fclose(f);
    return read && memcmp(magic, "GGUF", sizeof magic) == 0;
}

/* "none" and "self:6" stand for themselves. */
static bool
is_model(const char *helper)
{
    return helper != NULL && strcmp(helper, "none") != 0 && strncmp(helper, "self:", 5) != 0;
}

/* "rnu": a command that there isn't, rather than a model. */
static bool
is_no_command(const struct options *o)
{
    return o->command == COMMAND_SCOPE && strpbrk(o->model, "/.:") == NULL && strcmp(o->model, MODEL_BUNDLED) != 0 &&
           !file_exists(o->model);
}

bool
options_find_models(struct options *o, struct err *err)
{
    if (o->finished || (o->command & WITH_MODELS) == 0)
        return true;
    for (int i = 0; i < HELPERS; i++)
        if (is_model(o->helpers[i]) && !find(o, &o->helpers[i], err))
            return false;
    if (o->model == NULL)
        return true;
    if (is_no_command(o))
        return err_set(err, ERR_USAGE, "'%.60s' is neither a command nor a model that is here; see --help", o->model);
    return find(o, &o->model, err);
}
