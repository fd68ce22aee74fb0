/* :versus, a second setting beside the one in force, or in a replay a second trace beside the first. */
#include "tui/commands/verbs.h"
#include "tui/scope/versus.h"

#include <string.h>

/* All panels look at another scope, at its newest. */
static void
look_anew(struct app *app)
{
    struct selection *sel = &app->panes.selection;
    app->panes.view.scope = app->run.scope;
    *sel = (struct selection){.follow = true};
    app->screen.dirty = true;
}

static bool
another_trace(struct app *app, const char *folder, struct err *err)
{
    char first[32];
    if (folder[0] == '\0')
        return err_set(err, ERR_USAGE, "versus which trace? a replay is compared with the folder of another trace");
    snprintf(first, sizeof first, "%.*s", (int)strcspn(folder, " \t"), folder);
    if (run_info_policy(app->run.info, first) != NULL)
        return err_set(err, ERR_USAGE,
                       "a replay cannot run a second setting; :versus TRACE shows another trace beside this one");
    if (!follow_beside(&app->run, folder, err))
        return false;
    look_anew(app);
    const struct run_info *info = app->run.info;
    message_say(&app->message, "%.80s beside %.80s, in step by token; :versus off", info->beside->saved_as,
                info->saved_as);
    return true;
}

bool
run_versus(struct app *app, const char *rest, struct err *err)
{
    const bool off = strcmp(rest, "off") == 0;
    if (!follow_live(&app->run) && !off)
        return another_trace(app, rest, err);
    if (!follow_live(&app->run)) {
        if (!follow_alone(&app->run, err))
            return false;
        look_anew(app);
        return true;
    }
    if (off && scope_versus(app->run.scope) == NULL)
        return err_set(err, ERR_USAGE,
                       "there is one setting already; :versus POLICY KNOB=VALUE sets another beside it");
    if (!follow_post_of(&app->run, 0, CONTROL_VERSUS, NULL, rest, 0, err))
        return false;
    app->run.ended = false;
    app->run.break_round = 0;
    return true;
}
