#include "cli/train/train_models.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/options/option_table.h"

static const char *
target_path(const struct options *o)
{
    return o->model != NULL ? o->model : bundled_model_path();
}

static bool
open_engine(const struct options *o, const char *path, struct engine **engine, struct err *err)
{
    const struct engine_options options = {.model_path = path,
                                           .backend = o->backend,
                                           .backend_options = o->backend_options,
                                           .heads = "none",
                                           .ctx = o->answers.prompt + o->answers.response};
    return engine_open(engine, &options, NULL, NULL, err);
}

bool
train_target(const struct options *o, struct engine **engine, struct err *err)
{
    return open_engine(o, target_path(o), engine, err);
}

bool
train_helper(const struct options *o, enum helper_role role, const char *what, struct engine **engine, struct err *err)
{
    const char *given = o->helpers[role], *command = command_row(o->command)->name, *name = helper_names[role];
    if (given != NULL && (strncmp(given, "self:", 5) == 0 || strcmp(given, "none") == 0))
        return err_set(err, ERR_USAGE, "%s: --%s %.24s: a model of its own is wanted", command, name, given);
    char *found = given == NULL ? engine_sibling(target_path(o), role) : NULL;
    const char *path = given != NULL ? given : found;
    const bool ok = path != NULL ? open_engine(o, path, engine, err)
                                 : err_set(err, ERR_USAGE, "%s: --%s MODEL is missing: %s", command, name, what);
    free(found);
    return ok;
}

void
train_settings_model(struct train_settings *s, const char *role, const struct engine *e)
{
    train_settings_add(s, "%s %s %016" PRIx64, role, e->model->name, e->model->hash);
}

void
train_settings_answers(struct train_settings *s, const struct options *o, struct train_prompts *prompts)
{
    const struct sampling *how = &o->answers.sampling;
    train_settings_add(s, "temperature %.6g, top-k %" PRIu32 ", top-p %.6g", (double)how->temperature, how->top_k,
                       (double)how->top_p);
    train_settings_add(s, "answers of %" PRIu32 " tokens, seed %" PRIu64, o->answers.response, o->seed);
    train_settings_add(s, "%zu prompts of %" PRIu32 " tokens, %016" PRIx64, prompts->n, prompts->length,
                       train_prompts_hash(prompts));
}
