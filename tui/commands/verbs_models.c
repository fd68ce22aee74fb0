/* :open, another model in the place of this one: the app is left, and whoever runs it opens that. */
#include "tui/commands/verbs.h"

#include <string.h>

#include "engine/model/model_places.h"

static bool
list_models(struct app *app, struct err *err)
{
    model_list_close(app->models);
    if (!model_list_open(&app->models, app->options.bundled, err))
        return false;
    model_chooser_begin(&app->model_chooser, app->models);
    app->mode = MODE_MODELS;
    return true;
}

bool
run_open(struct app *app, const char *rest, struct err *err)
{
    struct app_opening *opening = app->options.opening;
    struct app_opening next;
    struct model_look look;
    if (opening == NULL)
        return err_set(err, ERR_USAGE,
                       "a replay cannot open a model: it shows a recorded run; start specscope MODEL for that");
    if (rest[0] == '\0')
        return list_models(app, err);
    if (script_running(&app->script))
        return err_set(err, ERR_USAGE, "a script stays with its model; start another one with specscope MODEL");
    if (strcmp(rest, MODEL_BUNDLED) == 0)
        snprintf(next.path, sizeof next.path, "%s", app->options.bundled);
    else if (!model_find(rest, next.path, sizeof next.path, err))
        return false;
    model_look(&look, next.path, UINT64_MAX); /* what is in memory now goes before it comes */
    if (!look.runs)
        return err_set(err, ERR_WORK, "%.100s: %.280s", rest, look.why);
    *opening = next;
    return run_quit(app, "", err);
}
