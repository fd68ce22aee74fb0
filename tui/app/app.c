#include "engine/base/printable.h"
#include "tui/app/app_state.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t
app_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

bool
app_live(const struct app *app)
{
    return app->source->session != NULL;
}

bool
app_moving(const struct app *app)
{
    if (app_live(app))
        return (scope_running(app->scope) && !app->ended) || app->baseline_asked || scope_progress(app->scope) != NULL;
    const struct replay_status status = replay_status(app->source->replay);
    return (status.playing && !status.at_end) || status.seeking;
}

static void
say(struct app *app, enum role role, const char *text)
{
    printable_text(text, strlen(text), app->status, sizeof app->status);
    app->status_role = role;
    app->dirty = true;
}

void
app_say(struct app *app, const char *format, ...)
{
    char text[sizeof app->status];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    say(app, ROLE_STATUS, text);
}

void
app_fail(struct app *app, const struct err *err)
{
    say(app, ROLE_ERROR, err->text);
}

bool
app_execute(struct app *app, const char *line, struct err *err)
{
    bool unknown;
    app->dirty = true;
    if (command_run(app_verbs, app, line, &unknown, err))
        return true;
    if (!unknown)
        return false;
    char verb[COMMAND_VERB];
    const char *rest;
    command_split(line, verb, &rest);
    for (int i = 0; i < app->panels; i++) {
        const struct panel_ops *ops = panel_registry[i];
        if (ops->command != NULL && app_panel_active(app, i) &&
            ops->command(app->panel_state[i], &app->view, verb, rest)) {
            *err = (struct err){0};
            return true;
        }
    }
    return false;
}

bool
app_command(struct app *app, const char *line)
{
    struct err err = {0};
    if (app_execute(app, line, &err))
        return true;
    app_fail(app, &err);
    return false;
}

bool
app_post(struct app *app, enum control_kind kind, const char *name, const char *text, uint32_t n, struct err *err)
{
    struct control control = {.kind = kind, .text = text, .n = n};
    if (name != NULL)
        snprintf(control.name, sizeof control.name, "%s", name);
    app->post_us = app_now_us();
    return session_post(app->source->session, &control, err);
}

static bool
host_command(void *user, const char *line)
{
    return app_command(user, line);
}

static void
host_say(void *user, const char *text)
{
    say(user, ROLE_STATUS, text);
}

/* ---- opening and closing ---- */

static bool
open_panels(struct app *app, struct err *err)
{
    while (panel_registry[app->panels] != NULL && app->panels < LAYOUT_PANELS) {
        const struct panel_ops *ops = panel_registry[app->panels];
        if (ops->open != NULL && (app->panel_state[app->panels] = ops->open()) == NULL)
            return err_set(err, ERR_WORK, "out of memory for the %s panel", ops->name);
        app->panels++;
    }
    return true;
}

static void
choose_theme(struct app *app)
{
    struct err err = {0};
    const char *name = app->options.theme == NULL ? THEME_DEFAULT : app->options.theme;
    if (!theme_load(&app->theme, name, app->options.data_dir, &err)) {
        theme_builtin(&app->theme);
        app_fail(app, &err);
    }
    paint_theme(&app->paint, &app->theme);
}

static bool
start_source(struct app *app, struct err *err)
{
    if (!app_live(app))
        return true;
    app->reader = event_reader_open(session_log(app->source->session));
    if (app->reader == NULL)
        return err_set(err, ERR_WORK, "out of memory for reading the event log");
    /* Signals are for this thread: the session's inherits a mask without them. */
    sigset_t block, before;
    sigemptyset(&block);
    const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        sigaddset(&block, ours[i]);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    const bool started = session_start(app->source->session, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static bool
open_app(struct app *app, struct err *err)
{
    app->info = app_live(app) ? session_info(app->source->session) : replay_info(app->source->replay);
    app->captured = -1;
    app->selection.follow = true;
    for (int i = 0; i < LINE_USES; i++)
        history_open(&app->history[i], i == LINE_PROMPT ? app->options.history_path : NULL);
    if (app->info->prompt != NULL)
        history_add(&app->history[LINE_PROMPT], app->info->prompt);
    if (app->options.script != NULL) {
        if (!script_load(&app->script, app->options.script, err))
            return false;
        app->scripted = true;
    }
    if (!scope_open(&app->scope, app->info, err) || !open_panels(app, err))
        return false;
    app->host = (struct panel_host){.user = app, .command = host_command, .say = host_say};
    app->view = (struct view){.scope = app->scope,
                              .info = app->info,
                              .host = &app->host,
                              .live = app_live(app),
                              .selection = &app->selection,
                              .search = app->search,
                              .bookmarks = app->bookmark};
    if (!terminal_open(&app->terminal, !app->scripted, err))
        return false;
    paint_open(&app->paint, app->terminal.utf8);
    if (app->source->note != NULL)
        app_say(app, "%s", app->source->note);
    choose_theme(app);
    app->dirty = true;
    /* The frame comes before the work: something is seen at once. */
    if (!app_frame(app))
        return err_set(err, ERR_WORK, "out of memory for the screen");
    if (!start_source(app, err))
        return false;
    if (!app_live(app) && !app->scripted)
        replay_play(app->source->replay, true);
    return true;
}

static void
close_app(struct app *app)
{
    if (app->reader != NULL)
        event_reader_close(app->reader);
    paint_close(&app->paint);
    terminal_close(&app->terminal);
    for (int i = 0; i < app->panels; i++)
        if (panel_registry[i]->close != NULL)
            panel_registry[i]->close(app->panel_state[i]);
    if (app->scope != NULL)
        scope_close(app->scope);
    for (int i = 0; i < LINE_USES; i++)
        history_close(&app->history[i], app->failure.kind == ERR_NONE ? &app->failure : NULL);
    editor_close(&app->editor);
    offers_begin(app);
    script_close(&app->script);
    grid_close(&app->grid);
}

/* ---- the loop ---- */

/* A frame in answer to the user comes at once. One that only follows an engine running flat out waits until the screen's
 * share of the processor allows it: every core is the engine's, and what the screen takes is missing there. */
static uint64_t
frame_interval_us(const struct app *app)
{
    const bool flat_out = app_live(app) && app->options.pace == 0 && app_moving(app) && !app->dirty && !app->scripted;
    const uint64_t wanted = flat_out ? app->frame_cost_us * FRAME_SHARE : FRAME_US;
    return wanted < FRAME_US ? FRAME_US : wanted > FRAME_SLOW_US ? FRAME_SLOW_US : wanted;
}

static uint64_t
own_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool
draw_frame(struct app *app)
{
    const uint64_t start = own_cpu_us();
    const bool ok = app_frame(app);
    app->frame_cost_us = (3 * app->frame_cost_us + (own_cpu_us() - start)) / 4;
    return ok;
}

static int
patience_ms(const struct app *app)
{
    if (app->dirty || scope_version(app->scope) != app->drawn_version) {
        const uint64_t since = app_now_us() - app->frame_us, interval = frame_interval_us(app);
        return since >= interval ? 0 : (int)((interval - since + 999) / 1000);
    }
    if (!app_live(app) && replay_status(app->source->replay).seeking)
        return 0;
    if (app->scripted)
        return 5;
    return app_moving(app) ? FRAME_US / 1000 : 100;
}

static void
obey_signals(struct app *app)
{
    const int number = terminal_ended_by();
    if (number != 0 && !app->quit) {
        app->quit = true;
        app->exit_status = 128 + number;
    }
    if (terminal_suspend_wanted()) {
        terminal_suspend(&app->terminal);
        app->repaint = app->dirty = true;
    }
}

static void
loop(struct app *app)
{
    while (!app->quit) {
        struct input in = terminal_read(&app->terminal, patience_ms(app));
        for (int i = 0; i < 256 && in.key != INPUT_NONE && !app->quit; i++) {
            app_key(app, &in);
            in = terminal_read(&app->terminal, 0);
        }
        obey_signals(app);
        app_follow(app);
        if (app->scripted && !app->quit)
            app_run_script(app);
        const bool over = app_live(app) ? app->ended && app_idle(app) : replay_status(app->source->replay).at_end;
        if (app->options.quit_at_end && over && !app->scripted)
            app->quit = true;
        const bool changed = app->dirty || scope_version(app->scope) != app->drawn_version;
        if (changed && app_now_us() - app->frame_us >= frame_interval_us(app) && !draw_frame(app)) {
            err_set(&app->failure, ERR_WORK, "out of memory for the screen");
            app->exit_status = 1;
            app->quit = true;
        }
    }
}

int
app_run(const struct source *source, const struct app_options *options, struct err *err)
{
    struct app *app = calloc(1, sizeof *app);
    if (app == NULL) {
        err_set(err, ERR_WORK, "out of memory");
        return 1;
    }
    app->source = source;
    app->options = *options;
    if (open_app(app, &app->failure))
        loop(app);
    else
        app->exit_status = app->failure.kind == ERR_USAGE ? 2 : 1;
    if (app->exit_status == 0 && app_live(app) && session_failed(source->session, &app->failure))
        app->exit_status = 1;
    close_app(app);
    if (err != NULL)
        *err = app->failure;
    const int status = app->exit_status;
    free(app);
    return status;
}
