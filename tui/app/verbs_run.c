/* Commands that steer the run: the engine, or a replay. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/program.h"
#include "engine/model/model_locations.h"
#include "tui/app/verbs.h"

/* ---- the run ---- */

bool
verb_only_live(const struct app *app, const char *what, struct err *err)
{
    return follow_live(&app->run) ||
           err_set(err, ERR_USAGE, "a replay cannot %s: it shows a recorded run; start %s MODEL for that", what,
                   program_name());
}

/* Posts a control that starts or continues the run. */
static bool
post_run(struct app *app, enum control_kind kind, const char *text, uint32_t n, struct err *err)
{
    if (!follow_post(&app->run, kind, NULL, text, n, err))
        return false;
    app->run.ended = false;
    app->run.break_round = 0;
    return true;
}

bool
run_set(struct app *app, const char *rest, struct err *err)
{
    char name[16];
    const size_t n = strcspn(rest, " \t=");
    const char *value = rest + n + strspn(rest + n, " \t=");
    if (!verb_only_live(app, "change a knob", err))
        return false;
    if (n == 0 || n >= sizeof name || value[0] == '\0')
        return err_set(err, ERR_USAGE, "set which knob to what? for example :set tau 0.6");
    snprintf(name, sizeof name, "%.*s", (int)n, rest);
    return follow_post(&app->run, CONTROL_KNOB, name, value, 0, err);
}

static bool
choose_policy(struct app *app, struct err *err)
{
    if (!chooser_policies(&app->chooser, app->run.info, scope_policy(app->run.scope)->name))
        return err_set(err, ERR_WORK, "this run declares no policies to choose from");
    app->mode = MODE_CHOOSER;
    return true;
}

bool
run_policy(struct app *app, const char *rest, struct err *err)
{
    if (!verb_only_live(app, "change the policy", err))
        return false;
    if (rest[0] == '\0')
        return choose_policy(app, err);
    return follow_post(&app->run, CONTROL_POLICY, NULL, rest, 0, err);
}

bool
run_pause(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    if (follow_live(&app->run))
        return follow_post(&app->run, CONTROL_PAUSE, NULL, NULL, 0, err);
    replay_play(app->run.source->replay, false);
    return true;
}

bool
run_resume(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    if (follow_live(&app->run))
        return follow_post(&app->run, CONTROL_RESUME, NULL, NULL, 0, err);
    replay_play(app->run.source->replay, true);
    return true;
}

bool
run_toggle(struct app *app, const char *rest, struct err *err)
{
    const bool moving = follow_live(&app->run) ? app->run.live->ops->moving(app->run.live)
                                               : replay_status(app->run.source->replay).playing;
    if (follow_live(&app->run) && app->run.ended) {
        message_print(&app->message, "the run is over: r runs it again, x generates more tokens");
        app->message.of_run = true;
        return true;
    }
    return moving ? run_pause(app, rest, err) : run_resume(app, rest, err);
}

bool
run_step(struct app *app, const char *rest, struct err *err)
{
    uint64_t n = 1;
    if (strcmp(rest, "token") == 0) {
        if (follow_live(&app->run))
            return follow_post(&app->run, CONTROL_STEP_TOKEN, NULL, NULL, 0, err);
        replay_step_token(app->run.source->replay);
        return true;
    }
    if (rest[0] != '\0' && !command_number(rest, "how many rounds to step", 1, UINT32_MAX, &n, err))
        return false;
    if (follow_live(&app->run))
        return follow_post(&app->run, CONTROL_STEP_ROUNDS, NULL, NULL, (uint32_t)n, err);
    replay_step_rounds(app->run.source->replay, (uint32_t)n);
    return true;
}

bool
run_restart(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    if (follow_live(&app->run))
        return post_run(app, CONTROL_RESTART, NULL, 0, err);
    replay_goto(app->run.source->replay, 0);
    return true;
}

/* Moves the cursor to a round, because a live run cannot go back. */
static bool
goto_round_in_view(struct app *app, uint64_t number, struct err *err)
{
    const struct scope_round *round = scope_round_numbered(app->run.scope, (uint32_t)number);
    if (round == NULL || round->run != scope_now(app->run.scope)->run)
        return err_set(err, ERR_USAGE, "round %llu is not in view (this is round %u)", (unsigned long long)number,
                       (unsigned)scope_now(app->run.scope)->round);
    app->panes.selection.pos = round->first_pos;
    app->panes.selection.follow = false;
    return true;
}

bool
run_goto(struct app *app, const char *rest, struct err *err)
{
    uint64_t number;
    const size_t n = strlen(rest);
    if (n > 1 && rest[n - 1] == '%' && !follow_live(&app->run)) {
        char *end = NULL;
        const double percent = strtod(rest, &end);
        if (end != rest + n - 1 || !(percent >= 0 && percent <= 100))
            return err_set(err, ERR_USAGE, "goto takes a round, or 0%% to 100%% of the time, not \"%.20s\"", rest);
        replay_goto_fraction(app->run.source->replay, percent / 100);
        return true;
    }
    if (!command_number(rest, "the round to go to", 0, UINT32_MAX, &number, err))
        return false;
    if (follow_live(&app->run))
        return goto_round_in_view(app, number, err);
    replay_goto(app->run.source->replay, number);
    return true;
}

/* Sets a live run's speed in tokens per second; "max", and faster than PACE_FASTEST, is unlimited. */
#define PACE_SLOWEST 1.0
#define PACE_FASTEST 1000.0

static bool
set_pace(struct app *app, const char *rest, struct err *err)
{
    double pace = app->options.pace;
    char *end = NULL;
    if (strcmp(rest, "faster") == 0) {
        pace = pace > 0 && pace * 2 <= PACE_FASTEST ? pace * 2 : 0;
    } else if (strcmp(rest, "slower") == 0) {
        pace = pace > 0 ? fmax(pace / 2, PACE_SLOWEST) : PACE_FASTEST / 2;
    } else if (strcmp(rest, "max") == 0) {
        pace = 0;
    } else {
        pace = strtod(rest, &end);
        if (end == rest || *end != '\0' || !(pace >= PACE_SLOWEST && pace <= 1e9))
            return err_set(err, ERR_USAGE, "pace takes tokens a second from 1, or max, faster, slower");
    }
    char text[32];
    snprintf(text, sizeof text, "%g", pace);
    if (!follow_post(&app->run, CONTROL_PACE, NULL, text, 0, err))
        return false;
    app->options.pace = pace;
    if (pace > 0)
        message_print(&app->message, "at most %g tokens a second", pace);
    else
        message_print(&app->message, "as fast as it goes");
    return true;
}

bool
run_pace(struct app *app, const char *rest, struct err *err)
{
    if (follow_live(&app->run))
        return set_pace(app, rest, err);
    const double now = replay_status(app->run.source->replay).speed;
    double speed;
    char *end = NULL;
    if (strcmp(rest, "faster") == 0) {
        speed = now * 2;
    } else if (strcmp(rest, "slower") == 0) {
        speed = now / 2;
    } else {
        speed = strtod(rest, &end);
        if (end == rest || *end != '\0' || !(speed >= REPLAY_SLOWEST && speed <= REPLAY_FASTEST))
            return err_set(err, ERR_USAGE, "pace takes a replay's speed from 0.25 to 64, or faster, or slower");
    }
    replay_set_speed(app->run.source->replay, speed);
    return true;
}

bool
run_export(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] == '\0') {
        char name[64] = "specscope-trace";
        const time_t now = time(NULL);
        struct tm parts;
        if (localtime_r(&now, &parts) != NULL)
            strftime(name, sizeof name, "specscope-%Y%m%d-%H%M%S", &parts);
        app_open_line(app, LINE_EXPORT, name);
        return true;
    }
    if (app->run.source->export_to == NULL)
        return err_set(err, ERR_USAGE, "%s",
                       follow_live(&app->run)
                           ? "no trace of this run is kept, so there is nothing to export; start with --trace DIR"
                           : "a replay cannot export: its run is a trace already");
    if (!app->run.source->export_to(app->run.source->user, rest, err))
        return false;
    app->run.saved_us = clock_us();
    message_print(&app->message, "exported to %.300s", rest);
    return true;
}

bool
run_probe(struct app *app, const char *rest, struct err *err)
{
    return verb_only_live(app, "probe layers", err) && follow_post(&app->run, CONTROL_PROBE, NULL, rest, 0, err);
}

bool
run_head(struct app *app, const char *rest, struct err *err)
{
    const char *now = follow_live(&app->run) ? app->run.live->ops->head(app->run.live, &app->run.requested)
                                             : scope_head(app->run.scope);
    const char *wanted = strcmp(rest, "other") != 0 ? rest : strcmp(now, "trained") == 0 ? "lens" : "trained";
    if (follow_live(&app->run)) /* the source refuses it without trained heads */
        return follow_post(&app->run, CONTROL_HEAD, NULL, wanted, 0, err);
    if (now[0] == '\0')
        return err_set(err, ERR_USAGE, "this run had no trained heads");
    if (strcmp(wanted, "lens") != 0 && strcmp(wanted, "trained") != 0)
        return err_set(err, ERR_USAGE, "in a replay there are lens and trained");
    scope_show_head(app->run.scope, wanted[0] == 't');
    return true;
}

static bool
wait_round(struct app *app, const char *text, struct err *err)
{
    if (!command_number(text, "the round to wait for", 1, UINT32_MAX, &app->script.wait_round, err))
        return false;
    if (!follow_live(&app->run)) {
        if (replay_status(app->run.source->replay).round != app->script.wait_round)
            replay_goto(app->run.source->replay, app->script.wait_round);
        return true;
    }
    app->run.break_round = 0;
    /* The engine itself stops exactly there, even if the screen is slow. */
    return follow_post(&app->run, CONTROL_BREAK, NULL, NULL, (uint32_t)app->script.wait_round, err) &&
           follow_post(&app->run, CONTROL_RESUME, NULL, NULL, 0, err);
}

#define WAIT_WANTS "wait for what? :wait round N, :wait sweep N, :wait end, :wait idle or :wait what-if"

bool
run_wait(struct app *app, const char *rest, struct err *err)
{
    char what[COMMAND_VERB];
    const char *number;
    if (!script_running(&app->script))
        return err_set(err, ERR_USAGE, "wait is for scripts (--script FILE); here the keys wait for you");
    if (!command_split(rest, what, &number)) {
        what[0] = '\0';
        number = "";
    }
    if (strcmp(what, "round") == 0) {
        if (!wait_round(app, number, err))
            return false;
        app->script.wait = WAIT_ROUND;
    } else if (strcmp(what, "sweep") == 0 && sweeping_now(&app->run.sweeping)) {
        if (!command_number(number, "how many points to wait for", 1, KNOB_GRID_MOST, &app->script.wait_round, err))
            return false;
        app->script.wait = WAIT_SWEEP;
    } else if (number[0] != '\0') {
        return err_set(err, ERR_USAGE, WAIT_WANTS);
    } else if (strcmp(what, "end") == 0) {
        if (!follow_live(&app->run))
            replay_goto(app->run.source->replay, UINT64_MAX);
        else if (!app->run.ended && !follow_post(&app->run, CONTROL_RESUME, NULL, NULL, 0, err))
            return false;
        app->script.wait = WAIT_END;
    } else if (strcmp(what, "idle") == 0) {
        app->script.wait = WAIT_IDLE;
    } else if (strcmp(what, "what-if") == 0) {
        app->script.wait = WAIT_WHAT_IF;
        app->script.wait_round = clock_us();
    } else {
        return err_set(err, ERR_USAGE, WAIT_WANTS);
    }
    return true;
}

bool
run_baseline(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    if (!verb_only_live(app, "run a baseline", err) || !follow_post(&app->run, CONTROL_BASELINE, NULL, NULL, 0, err))
        return false;
    app->run.baseline_asked = true;
    return true;
}

bool
run_note(struct app *app, const char *rest, struct err *err)
{
    const struct selection *at = &app->panes.selection;
    const uint32_t length = scope_now(app->run.scope)->committed;
    if (!follow_live(&app->run))
        return err_set(err, ERR_USAGE, "a replay cannot add a note: its trace is complete; :note works in a live run");
    const uint32_t pos = at->follow ? (length == 0 ? 0 : length - 1) : at->pos;
    if (!follow_post_of(&app->run, scope_focus(app->run.scope), CONTROL_NOTE, NULL, rest, pos, err))
        return false;
    if (rest[0] != '\0')
        message_print(&app->message, "noted at %u: ' comes back", (unsigned)pos);
    else
        message_print(&app->message, "nothing is noted at %u any more", (unsigned)pos);
    return true;
}

bool
run_note_next(struct app *app, const char *rest, struct err *err)
{
    const struct scope_note *note = scope_now(app->run.scope)->notes, *next = NULL;
    struct selection *at = &app->panes.selection;
    (void)rest;
    for (uint32_t i = 0; i < scope_now(app->run.scope)->n_notes; i++) { /* sorted: the next, else the first */
        const bool after = !at->follow && note[i].pos > at->pos;
        if (note[i].seq == scope_focus(app->run.scope) && (next == NULL || (after && next->pos <= at->pos)))
            next = &note[i];
    }
    if (next == NULL)
        return err_set(err, ERR_USAGE, "there is no note yet; m writes one at the cursor");
    at->pos = next->pos;
    at->follow = false;
    return true;
}

#define EXTEND_TOKENS 128 /* that `x` adds */

bool
run_extend(struct app *app, const char *rest, struct err *err)
{
    uint64_t n = EXTEND_TOKENS;
    if (!verb_only_live(app, "generate more tokens", err) ||
        (rest[0] != '\0' && !command_number(rest, "how many tokens more", 1, UINT32_MAX, &n, err)))
        return false;
    return post_run(app, CONTROL_EXTEND, NULL, (uint32_t)n, err);
}

/* ---- another model: the app ends, and its caller opens the model ---- */

static bool
list_models(struct app *app, struct err *err)
{
    model_list_close(app->models);
    if (!model_list_open(&app->models, app->options.bundled, err))
        return false;
    app->model_chooser = (struct model_chooser){.list = app->models};
    app->mode = MODE_MODELS;
    return true;
}

bool
run_open(struct app *app, const char *rest, struct err *err)
{
    struct app_opening *opening = app->options.opening;
    struct app_opening next;
    struct model_summary summary;
    if (opening == NULL)
        return err_set(err, ERR_USAGE, "%s; start %s MODEL for that",
                       follow_live(&app->run) ? "a server has one model"
                                              : "a replay cannot open a model: it shows a recorded run",
                       program_name());
    if (rest[0] == '\0')
        return list_models(app, err);
    if (script_running(&app->script))
        return err_set(err, ERR_USAGE, "a script stays with its model; start another one with %s MODEL",
                       program_name());
    if (strcmp(rest, MODEL_BUNDLED) == 0)
        snprintf(next.path, sizeof next.path, "%s", app->options.bundled);
    else if (!model_find(rest, next.path, sizeof next.path, err))
        return false;
    model_summary(&summary, next.path, UINT64_MAX); /* the current model leaves memory first */
    if (!summary.runs)
        return err_set(err, ERR_WORK, "%.100s: %.280s", rest, summary.why);
    *opening = next;
    return run_quit(app, "", err);
}

/* ---- running until something occurs, and jumps to where it occurred ---- */

/* Starts a replay's search from its current position; one that is not over yet searches for one place more. */
static void
search_on(struct app *app)
{
    app->run.searching++;
    app->run.found = false;
    app->panes.selection.follow = true;
    replay_goto(app->run.source->replay, UINT64_MAX);
}

static bool
go_on_until(struct app *app, struct err *err)
{
    const struct until *u = &app->run.until;
    char text[UNTIL_TEXT_MOST + 16];
    if (!follow_live(&app->run)) {
        if (replay_status(app->run.source->replay).at_end)
            return err_set(err, ERR_USAGE, "the replay is at its end; [ goes back, r begins again");
        search_on(app);
        return true;
    }
    if (app->run.ended)
        return err_set(err, ERR_USAGE, "the run is over: r runs it again, x generates more tokens");
    until_print(u, text, sizeof text);
    app->panes.selection.follow = true;
    return follow_post(&app->run, CONTROL_UNTIL, NULL, text, 0, err) &&
           (u->kind != UNTIL_ROUND || follow_post(&app->run, CONTROL_RESUME, NULL, NULL, 0, err));
}

bool
run_until(struct app *app, const char *rest, struct err *err)
{
    struct until wanted;
    if (!until_parse(rest, &wanted, err))
        return false;
    app->run.until = wanted;
    app->run.searching = 0;
    return go_on_until(app, err);
}

/* Returns the cursor's round, or the newest if the cursor follows the run. */
static uint32_t
round_here(const struct app *app)
{
    const struct selection *sel = &app->panes.selection;
    const struct scope_column *c = sel->follow ? NULL : scope_column(app->run.scope, sel->pos);
    if (c != NULL)
        return c->fate == FATE_PROMPT || c->fate == FATE_PREFILL ? 0 : c->round;
    return scope_now(app->run.scope)->round;
}

bool
run_jump(struct app *app, const char *rest, struct err *err)
{
    char what[UNTIL_TEXT_MOST + 16];
    const size_t n = strcspn(rest, " \t");
    const bool back = n == 8 && strncmp(rest, "previous", n) == 0;
    const char *until = rest + n + strspn(rest + n, " \t");
    struct until wanted = app->run.until;
    if (!back && !(n == 4 && strncmp(rest, "next", n) == 0))
        return err_set(err, ERR_USAGE, "jump where? next or previous, and to what (reject, text WORD, …)");
    if (wanted.kind == UNTIL_NOTHING)
        wanted.kind = UNTIL_REJECT;
    if (until[0] != '\0' && !until_parse(until, &wanted, err))
        return false;
    if (until[0] != '\0' || back)
        app->run.searching = 0;
    app->run.until = wanted;
    struct scope_place place;
    const uint32_t round = scope_find_round(app->run.scope, &wanted, round_here(app), back, &place);
    until_print(&wanted, what, sizeof what);
    if (round > 0) {
        selection_to_place(&app->panes.selection, &place);
        message_print(&app->message, "%s, in round %u", what, (unsigned)round);
        app->message.of_run = true;
        return true;
    }
    if (!back)
        return go_on_until(app, err);
    return err_set(err, ERR_USAGE, "no %s in the rounds before this one that are held", what);
}
