#include "tui/state/app_state.h"

bool
app_execute(struct app *app, const char *line, struct err *err)
{
    bool unknown;
    app->screen.dirty = true;
    if (command_run(app->verbs, app, line, &unknown, err))
        return true;
    char verb[COMMAND_VERB];
    const char *rest;
    if (!unknown || !command_split(line, verb, &rest) || !panes_command(&app->panes, verb, rest))
        return false;
    *err = (struct err){0};
    return true;
}

bool
app_command(struct app *app, const char *line)
{
    struct err err = {0};
    if (app_execute(app, line, &err))
        return true;
    message_fail(&app->message, &err);
    return false;
}

bool
app_text(struct app *app, const char *line)
{
    struct err err = {0};
    app->screen.dirty = true;
    if (command_run_text(app->verbs, app, line, &err))
        return true;
    message_fail(&app->message, &err);
    return false;
}

void
app_open_line(struct app *app, enum line_use use, const char *text)
{
    if (line_open(&app->line, use, text))
        app->mode = MODE_LINE;
    else
        message_print(&app->message, "out of memory for the line");
}

const char *
app_prompt(const struct app *app)
{
    const struct segments *all = scope_segments(app->run.scope);
    return segments_prompt(all, segments_now(all));
}

bool
app_continues(const struct app *app)
{
    /* a prompt of the list is no turn of the user's conversation, and the sequences of a batch have answers of their own */
    const bool alone = !scope_is_batch(app->run.scope) || scope_versus(app->run.scope) != NULL;
    return follow_live(&app->run) && session_chats(app->run.source->session) && alone && app->upcoming.own &&
           !app->anew;
}

void
app_choose_scope(struct app *app)
{
    if (!follow_live(&app->run))
        return;
    app->panes.view.scope = sweeping_scope(&app->run.sweeping);
    /* a run that is over has no pending settings */
    app->panes.view.requested = app->run.sweeping.shown == NULL ? &app->run.requested : NULL;
}

bool
app_changed(const struct app *app)
{
    return app->screen.dirty || screen_outdated(&app->screen) ||
           (app->mode == MODE_MODELS && model_chooser_outdated(&app->model_chooser)) ||
           scope_now(app->run.scope)->version != app->screen.drawn_version;
}

void
app_leave(struct app *app, int exit_status, const struct err *why)
{
    app->quit = true;
    app->exit_status = exit_status;
    if (why != NULL)
        app->failure = *why;
}
