#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "policies/registry.h"
#include "tui/app/verbs.h"

#define FRAME_US      33333  /* at most 30 frames a second */
#define FRAME_SLOW_US 500000 /* and at least 2, even if they are expensive */
#define EVENTS_MOST   256    /* between frames */
#define FRAME_SHARE   250    /* of a processor's time during decoding: a part of 1/250 */

/* ---- opening and closing ---- */

static bool
host_command(void *user, const char *line)
{
    return app_command(user, line);
}

static void
host_say(void *user, const char *text)
{
    struct app *app = user;
    message_print(&app->message, "%s", text);
}

/* A broken theme shows a message; only lack of memory is fatal. */
static bool
choose_theme(struct app *app, struct err *why)
{
    struct err err = {0};
    if (screen_first_theme(&app->screen, app->options.theme, app->options.data_dir, &err))
        return true;
    if (err.kind == ERR_WORK)
        *why = err;
    else
        message_fail(&app->message, &err);
    return err.kind != ERR_WORK;
}

static bool
open_app(struct app *app, const struct source *source, struct err *err)
{
    const struct app_options *o = &app->options;
    line_begin(&app->line, o->history_path, o->prompts, o->n_prompts);
    app->host = (struct panel_host){.user = app, .command = host_command, .say = host_say};
    if ((o->script != NULL && !script_load(&app->script, o->script, err)) || !follow_open(&app->run, source, err) ||
        !panes_open(&app->panes, app->run.scope, follow_live(&app->run), &app->host, err) ||
        !forecasting_open(&app->forecasting, &app->run, err) ||
        !screen_open(&app->screen, !script_running(&app->script), err))
        return false;
    app->panes.view.sweep = app->run.sweeping.sweep;
    app->panes.view.tuner = app->run.sweeping.tuner;
    app->panes.view.policies = policy_registry;
    app->panes.view.landscape = &app->forecasting.shown;
    app->panes.view.requested = follow_live(&app->run) ? &app->run.requested : NULL;
    app->panes.view.effects = app->forecasting.effects;
    if (app->run.info->prompt != NULL)
        history_add(&app->line.history[LINE_PROMPT], app->run.info->prompt);
    const bool alone = follow_live(&app->run) && !scope_is_batch(app->run.scope);
    upcoming_begin(&app->upcoming, o->prompts, alone ? o->n_prompts : 0,
                   alone && !o->once && !o->quit_at_end && o->script == NULL, app_prompt(app));
    if (o->own_prompt)
        app->upcoming.own = true;
    if (source->note != NULL)
        message_print(&app->message, "%s", source->note);
    if (!choose_theme(app, err))
        return false;
    /* a frame is drawn before the work begins */
    if (!frame_draw(app, err) || !follow_start(&app->run, err))
        return false;
    if (!follow_live(&app->run) && !script_running(&app->script))
        replay_play(source->replay, true);
    return true;
}

static void
close_app(struct app *app)
{
    preset_names_free(&app->presets);
    screen_close(&app->screen);
    panes_close(&app->panes);
    model_list_close(app->models);
    forecasting_close(&app->forecasting);
    follow_close(&app->run);
    globfree(&app->paths);
    free(app->system);
    line_end(&app->line, app->failure.kind == ERR_NONE ? &app->failure : NULL);
    script_close(&app->script);
}

/* ---- the script ---- */

#define WHAT_IF_US 300000000 /* a script waits so long for a forecast that nothing prevents */

/* Returns true if the event that the script waits for has come; fills err if it cannot come any more. */
static bool
wait_over(const struct script *script, const struct followed *run, const struct forecasting *forecasting,
          struct err *err)
{
    const bool live = follow_live(run);
    const struct replay_status status = live ? (struct replay_status){0} : replay_status(run->source->replay);
    switch (script->wait) {
    case WAIT_NOTHING: return true;
    case WAIT_IDLE: return follow_idle(run);
    case WAIT_SWEEP: return sweeping_done(&run->sweeping) >= script->wait_round || !sweeping_now(&run->sweeping);
    case WAIT_END: return live ? run->ended : status.at_end && !status.seeking;
    case WAIT_WHAT_IF:
        if (forecasting_there(forecasting, run) && (!follow_idle(run) || forecasting_complete(forecasting, run)))
            return true;
        if (forecasting->off)
            err_set(err, ERR_WORK, "what-if never came: it is off");
        else if (forecasting->shown.why[0] != '\0' && follow_idle(run) && forecasting_complete(forecasting, run))
            err_set(err, ERR_WORK, "what-if never came: %s", forecasting->shown.why);
        else if (clock_us() - script->wait_round > WHAT_IF_US)
            err_set(err, ERR_WORK,
                    "what-if never came: it wants greedy decoding, a policy that can tell, a few tokens, and rest");
        return false;
    case WAIT_ROUND: break;
    }
    if (live ? run->break_round >= script->wait_round : !status.seeking && status.round >= script->wait_round)
        return true;
    if (live ? run->ended : status.at_end && !status.seeking)
        err_set(err, ERR_WORK, "round %llu never came: the run ended (%.60s) in round %llu",
                (unsigned long long)script->wait_round, scope_now(run->scope)->end,
                (unsigned long long)(live ? scope_now(run->scope)->round : status.round));
    return false;
}

static void
script_failed(struct app *app, const struct err *err)
{
    struct err where;
    err_set(&where, err->kind, "%s:%u: %s", app->script.name, app->script.line, err->text);
    app_leave(app, err->kind == ERR_USAGE ? 2 : 1, &where);
}

/* Runs the script up to its next wait. */
static void
script_run(struct app *app)
{
    struct err err = {0};
    const char *line;
    while (!app->quit) {
        if (app->run.broken.kind != ERR_NONE) {
            app_leave(app, 1, &app->run.broken);
            return;
        }
        if (!wait_over(&app->script, &app->run, &app->forecasting, &err) ||
            (app->script.wait != WAIT_NOTHING && !follow_live(&app->run) &&
             !forecasting_complete(&app->forecasting, &app->run))) {
            if (err.kind != ERR_NONE)
                script_failed(app, &err);
            return;
        }
        app->script.wait = WAIT_NOTHING;
        if ((line = script_next(&app->script)) == NULL)
            break;
        /* a script's commands, like a user's, refer to what is on the screen */
        if ((app_changed(app) && !frame_draw(app, &err)) || !app_execute(app, line, &err)) {
            script_failed(app, &err);
            return;
        }
    }
    script_close(&app->script);
    if (app->screen.terminal.fd < 0)
        app->quit = true; /* no key can be pressed */
}

/* ---- the loop ---- */

static bool
flat_out(const struct app *app)
{
    return follow_live(&app->run) && (app->options.pace == 0 || sweeping_now(&app->run.sweeping)) &&
           follow_moving(&app->run) && !script_running(&app->script);
}

/* Returns the least time between frames. A frame after the user's input is drawn at once. During decoding at full speed
 * frames wait for the screen's share of the processor, because they take time from the engine. */
static uint64_t
frame_interval_us(const struct app *app)
{
    const uint64_t wanted = flat_out(app) && !app->screen.dirty ? app->screen.frame_cost_us * FRAME_SHARE : FRAME_US;
    return wanted < FRAME_US ? FRAME_US : wanted > FRAME_SLOW_US ? FRAME_SLOW_US : wanted;
}

static uint64_t
own_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void
draw_frame(struct app *app)
{
    const uint64_t start = own_cpu_us();
    struct err err = {0};
    if (!frame_draw(app, &err))
        app_leave(app, 1, &err);
    app->screen.frame_cost_us = (3 * app->screen.frame_cost_us + (own_cpu_us() - start)) / 4;
}

#define BETWEEN_RUNS_MS 5 /* a sweep's next run is not kept waiting */

static int
patience_ms(const struct app *app)
{
    if (app->forecasting.working || app->forecasting.surveying || app->forecasting.comparing)
        return 0;
    const bool sweeping = sweeping_now(&app->run.sweeping);
    if (app_changed(app)) {
        const uint64_t since = clock_us() - app->screen.frame_us, interval = frame_interval_us(app);
        const int due = since >= interval ? 0 : (int)((interval - since + 999) / 1000);
        return sweeping && due > BETWEEN_RUNS_MS ? BETWEEN_RUNS_MS : due;
    }
    if (!follow_live(&app->run) && replay_status(app->run.source->replay).seeking)
        return 0;
    if (sweeping || script_running(&app->script))
        return BETWEEN_RUNS_MS;
    return follow_moving(&app->run) ? FRAME_US / 1000 : 100;
}

static void
handle_signals(struct app *app)
{
    const int number = terminal_ended_by();
    if (number != 0 && !app->quit)
        app_leave(app, 128 + number, NULL);
    if (terminal_suspend_wanted()) {
        terminal_suspend(&app->screen.terminal);
        app->screen.repaint = app->screen.dirty = true;
    }
}

static bool
over(const struct followed *run)
{
    return follow_live(run) ? run->ended && follow_idle(run) : replay_status(run->source->replay).at_end;
}

/* Continues with the next prompt at the end of a text, unless the user is doing something else. */
static void
go_on_by_itself(struct app *app)
{
    static const char *const ends[] = {"eos", "tokens", "context"};
    struct upcoming *u = &app->upcoming;
    const struct scope_now *now = scope_now(app->run.scope);
    bool ended = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        ended = ended || strcmp(now->end, ends[i]) == 0;
    upcoming_look(u, now->run, ended, follow_busy(&app->run), clock_us());
    if (!follow_idle(&app->run))
        u->since_us = clock_us();
    if (app->mode != MODE_PANELS)
        u->held = true;
    const int seconds = upcoming_seconds(u, clock_us());
    if (seconds == 0 && (upcoming_next(u, app_prompt(app)) == NULL || !app_command(app, "next")))
        u->held = true;
    app->screen.dirty = app->screen.dirty || seconds != u->shown_s;
    u->shown_s = seconds;
}

void
app_cycle(struct app *app, int patience)
{
    for (int i = 0; i < EVENTS_MOST && !app->quit; i++) {
        const struct input in = terminal_read(&app->screen.terminal, i == 0 ? patience : 0);
        if (in.key == INPUT_NONE)
            break;
        app_key(app, &in);
    }
    handle_signals(app);
    if (follow_events(&app->run, &app->panes.selection, &app->message))
        app->screen.dirty = true;
    app_choose_scope(app);
    if (!follow_busy(&app->run) && /* a frame would disturb its measurements */
        forecasting_step(&app->forecasting, &app->run, flat_out(app)))
        app->screen.dirty = true;
    if (app->upcoming.by_itself)
        go_on_by_itself(app);
    if (script_running(&app->script) && !app->quit)
        script_run(app);
    if (app->options.quit_at_end && over(&app->run) && !script_running(&app->script))
        app->quit = true;
    if (app_changed(app) && clock_us() - app->screen.frame_us >= frame_interval_us(app))
        draw_frame(app);
}

bool
app_begin(struct app *app, const struct source *source, const struct app_options *options)
{
    memset(app, 0, sizeof *app);
    app->options = *options;
    app->verbs = app_verbs;
    if (open_app(app, source, &app->failure))
        return true;
    app->exit_status = app->failure.kind == ERR_USAGE ? 2 : 1;
    return false;
}

int
app_end(struct app *app, struct err *err)
{
    if (app->exit_status == 0 && follow_live(&app->run) && app->run.live->ops->failed(app->run.live, &app->failure))
        app->exit_status = 1;
    if (app->exit_status == 0 && app->failure.kind == ERR_NONE && app->run.starved.kind != ERR_NONE) {
        app->failure = app->run.starved;
        app->exit_status = 1;
    }
    close_app(app);
    if (app->exit_status == 0 && terminal_ended_by() != 0)
        app->exit_status = 128 + terminal_ended_by(); /* the signal came during shutdown: no other model is opened */
    if (err != NULL)
        *err = app->failure;
    return app->exit_status;
}

int
app_run(const struct source *source, const struct app_options *options, struct err *err)
{
    struct app *app = calloc(1, sizeof *app);
    if (app == NULL) {
        err_set(err, ERR_WORK, "out of memory");
        return 1;
    }
    if (app_begin(app, source, options))
        while (!app->quit)
            app_cycle(app, patience_ms(app));
    const int status = app_end(app, err);
    free(app);
    return status;
}
