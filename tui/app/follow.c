/* Following the source: its events go into the scope; waits of a script come to an end. */
#include "tui/app/app_state.h"

#include <stdlib.h>
#include <string.h>

#define SLICE_US 12000  /* taking events in never holds the keys up for longer */
#define QUIET_US 150000 /* so long without an event, and everything asked for has been done */

static void
control_seen(struct app *app, const struct control_event *c)
{
    if (strcmp(c->name, "run") == 0) {
        app->ended = false;
        app->break_round = 0;
        app->selection.follow = true;
    } else if (strcmp(c->name, "break") == 0) {
        app->break_round = (uint32_t)strtoul(c->new_text, NULL, 10);
    } else if (strcmp(c->name, "end") == 0) {
        app->ended = true;
        app->baseline_asked = app->baseline_asked && strncmp(c->new_text, "error", 5) != 0;
    } else if (strcmp(c->name, "baseline") == 0 && app->baseline_asked) {
        app_say(app, "autoregressive: %.0f tokens/s on the same prompt", strtod(c->new_text, NULL));
    } else if (strcmp(c->name, "lossless") == 0) {
        const bool asked = app->baseline_asked;
        app->baseline_asked = false;
        if (asked && strncmp(c->new_text, "no:", 3) == 0) {
            struct err err = {0};
            err_set(&err, ERR_WORK, "not lossless: the autoregressive run differs (%.60s)", c->new_text);
            app_fail(app, &err);
        } else if (asked && strncmp(c->new_text, "nothing", 7) == 0) {
            app_say(app, "baseline: %.60s", c->new_text);
        }
    }
}

static void
event_seen(struct app *app, const struct event *e)
{
    scope_event(app->scope, e);
    app->event_us = app_now_us();
    app->run_us = e->t_us;
    if (e->type == EVENT_CONTROL)
        control_seen(app, &e->control);
}

static void
follow_session(struct app *app, uint64_t until)
{
    const struct event *e;
    for (int i = 1; (e = event_reader_next(app->reader)) != NULL; i++) {
        event_seen(app, e);
        if (i % 64 == 0 && app_now_us() > until)
            break;
    }
    const uint64_t lost = event_reader_lost(app->reader);
    if (lost > app->lost) {
        scope_lost(app->scope, lost - app->lost);
        app->lost = lost;
    }
    const char *trouble =
        app->source->trouble != NULL && !app->trouble_said ? app->source->trouble(app->source->user) : NULL;
    if (trouble != NULL) {
        struct err err = {0};
        err_set(&err, ERR_WORK, "the trace stopped, the run goes on: %s", trouble);
        app_fail(app, &err);
        app->trouble_said = true;
    }
}

static void
follow_replay(struct app *app, uint64_t until)
{
    struct replay *replay = app->source->replay;
    const struct event *e = NULL;
    struct err err = {0};
    if (replay_rewound(replay)) {
        scope_reset(app->scope);
        app->ended = false;
    }
    for (int i = 1; replay_next(replay, app_now_us(), &e, &err) && e != NULL; i++) {
        event_seen(app, e);
        if (i % 64 == 0 && app_now_us() > until)
            break;
    }
    if (err.kind != ERR_NONE && !app->trouble_said) {
        app_fail(app, &err);
        app->trouble_said = true;
        if (app->scripted) {
            app->failure = err;
            app->exit_status = 1;
            app->quit = true;
        }
    }
    if (replay_status(replay).playing)
        app->dirty = true; /* the time line moves */
}

void
app_follow(struct app *app)
{
    const uint64_t until = app_now_us() + SLICE_US;
    if (app_live(app))
        follow_session(app, until);
    else
        follow_replay(app, until);
}

bool
app_idle(const struct app *app)
{
    if (app_moving(app))
        return false;
    const uint64_t last = app->event_us > app->post_us ? app->event_us : app->post_us;
    return !app_live(app) || app_now_us() - last >= QUIET_US;
}

/* True when what the script waits for has come; fills err when it never will. */
static bool
wait_over(struct app *app, struct err *err)
{
    const bool live = app_live(app);
    const struct replay_status status = live ? (struct replay_status){0} : replay_status(app->source->replay);
    switch (app->wait) {
    case WAIT_NOTHING: return true;
    case WAIT_IDLE: return app_idle(app);
    case WAIT_END: return live ? app->ended : status.at_end && !status.seeking;
    case WAIT_ROUND: break;
    }
    if (live ? app->break_round >= app->wait_round : !status.seeking && status.round >= app->wait_round)
        return true;
    if (live ? app->ended : status.at_end && !status.seeking)
        err_set(err, ERR_WORK, "round %llu never came: the run ended (%.60s) in round %llu",
                (unsigned long long)app->wait_round, scope_end(app->scope),
                (unsigned long long)(live ? scope_round_number(app->scope) : status.round));
    return false;
}

static void
script_failed(struct app *app, const struct err *err)
{
    err_set(&app->failure, err->kind, "%s:%u: %s", app->script.name, app->script.line, err->text);
    app->exit_status = err->kind == ERR_USAGE ? 2 : 1;
    app->quit = true;
}

void
app_run_script(struct app *app)
{
    struct err err = {0};
    while (!app->quit) {
        if (!wait_over(app, &err)) {
            if (err.kind != ERR_NONE)
                script_failed(app, &err);
            return;
        }
        app->wait = WAIT_NOTHING;
        const char *line = script_next(&app->script);
        if (line == NULL)
            break;
        /* like a person's, a script's commands mean what is on screen */
        if ((app->dirty || scope_version(app->scope) != app->drawn_version) && !app_frame(app))
            err_set(&err, ERR_WORK, "out of memory for the screen");
        if (err.kind != ERR_NONE || !app_execute(app, line, &err)) {
            script_failed(app, &err);
            return;
        }
    }
    app->scripted = false;
    if (app->terminal.fd < 0)
        app->quit = true; /* nobody is there to press a key */
}
