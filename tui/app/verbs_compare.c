/* Commands that compare settings: sweeps, two settings side by side, forecasts. */
#include <stdio.h>
#include <string.h>

#include "engine/tune/results.h"
#include "tui/app/verbs.h"

/* ---- :sweep, a run at every point of a grid of knobs ---- */

static bool
there_is_one(const struct app *app, struct err *err)
{
    return app->run.sweeping.sweep->n_points > 0 ||
           err_set(err, ERR_USAGE, "there was no sweep yet; for example :sweep tau=0.3:0.9:0.1 d_max=3:8:1");
}

bool
verb_stop(struct app *app, bool is_under_way, const char *what, const char *resume, struct err *err)
{
    char text[300];
    struct sweeping *sw = &app->run.sweeping;
    if (!is_under_way)
        return err_set(err, ERR_USAGE, "no %s", what);
    if (!sweeping_stop(sw, err))
        return false;
    sweeping_summary(sw, text, sizeof text);
    message_print(&app->message, "%s%s", text, resume);
    return true;
}

static bool
write_csv(struct app *app, const char *path, struct err *err)
{
    struct output out;
    if (!there_is_one(app, err))
        return false;
    if (path[0] == '\0')
        return err_set(err, ERR_USAGE, "write the sweep to which file? for example :sweep csv sweep.csv");
    if (!output_open(&out, path, &results_csv_file, err))
        return false;
    sweep_csv(app->run.sweeping.sweep, out.f);
    if (!output_close(&out, true, err))
        return false;
    message_print(&app->message, "the sweep's %u points are in %.300s", sweep_measured(app->run.sweeping.sweep), path);
    return true;
}

/* Sets the knobs of a point in one change. */
static bool
set_point(struct app *app, const char *text, struct err *err)
{
    struct sweeping *sw = &app->run.sweeping;
    uint64_t number;
    char point[160];
    if (!there_is_one(app, err) || !command_number(text, "the sweep's point", 1, sw->sweep->n_points, &number, err))
        return false;
    const uint32_t n = sw->sweep->n_axes;
    if (strcmp(sw->sweep->policy->name, scope_policy(app->run.scope)->name) != 0)
        return err_set(err, ERR_USAGE, "that sweep was of policy %s; choose it first", sw->sweep->policy->name);
    bool ok = true;
    changes_group(&app->run.changes, true);
    for (uint32_t i = 0; i < n && ok; i++) {
        const struct knob *k = sw->sweep->knob[i];
        char value[32];
        knob_format(k, sweep_value(sw->sweep, (uint32_t)number - 1, i), value, sizeof value);
        ok = follow_post(&app->run, CONTROL_KNOB, k->name, value, 0, err);
    }
    changes_group(&app->run.changes, false);
    if (!ok)
        return false;
    sweep_text(sw->sweep, (uint32_t)number - 1, point, sizeof point);
    message_print(&app->message, "%s, as the sweep had it", point);
    return true;
}

/* Removes the word from the line; returns false if the line does not contain it. */
static bool
cut_word(char *line, const char *word)
{
    const size_t n = strlen(word);
    for (char *at = line; (at = strstr(at, word)) != NULL; at += n)
        if ((at == line || at[-1] == ' ' || at[-1] == '\t') && (at[n] == '\0' || at[n] == ' ' || at[n] == '\t')) {
            memmove(at, at + n, strlen(at + n) + 1);
            return true;
        }
    return false;
}

static bool
begin(struct app *app, const char *rest, struct err *err)
{
    struct sweeping *sw = &app->run.sweeping;
    const struct app_options *o = &app->options;
    const bool again = rest[0] == '\0' && sw->sweep->n_points > 0;
    char grid[SWEEP_AXES * 80];
    if (again)
        sweep_grid(sw->sweep, grid, sizeof grid);
    else if (snprintf(grid, sizeof grid, "%s", rest) >= (int)sizeof grid)
        return err_set(err, ERR_USAGE, ":sweep is longer than %d knobs can be", SWEEP_AXES);
    const bool list = cut_word(grid, "prompts") || (again && sw->sweep->n_prompts > 0);
    if (scope_now(app->run.scope)->versus != NULL)
        return err_set(err, ERR_USAGE, "a sweep is of one setting; end the two with :versus off");
    if (list && scope_is_batch(app->run.scope))
        return err_set(err, ERR_USAGE, "a batch is swept with the prompts that it has; leave \"prompts\" out");
    if (list && o->n_prompts == 0)
        return err_set(err, ERR_USAGE, "there is no list of prompts; start with --prompts FILE.jsonl");
    const struct scope_now *now = scope_now(app->run.scope);
    const bool paused = !now->running && now->end[0] == '\0';
    if (!follow_accepts(&app->run, err) ||
        !sweeping_begin(sw, grid, o->prompts, list ? o->n_prompts : 0, app_prompt(app), paused, o->pace, err))
        return false;
    app->run.ended = false;
    return run_panel(app, "sweep", err);
}

bool
run_sweep(struct app *app, const char *rest, struct err *err)
{
    char verb[COMMAND_VERB];
    const char *argument;
    if (!verb_only_live(app, "sweep a knob", err))
        return false;
    if (command_split(rest, verb, &argument)) {
        if (strcmp(verb, "stop") == 0)
            return verb_stop(app, sweeping_now(&app->run.sweeping), "sweep is under way", "; :sweep resumes it", err);
        if (strcmp(verb, "csv") == 0)
            return write_csv(app, argument, err);
        if (strcmp(verb, "take") == 0)
            return set_point(app, argument, err);
    }
    return begin(app, rest, err);
}

/* ---- :versus, a second setting beside the current one ---- */

bool
run_versus(struct app *app, const char *rest, struct err *err)
{
    if (!verb_only_live(app, "run a second setting", err))
        return false;
    if (strcmp(rest, "off") == 0 && scope_now(app->run.scope)->versus == NULL)
        return err_set(err, ERR_USAGE,
                       "there is one setting already; :versus POLICY KNOB=VALUE sets another beside it");
    if (!follow_post_of(&app->run, 0, CONTROL_VERSUS, NULL, rest, 0, err))
        return false;
    app->run.ended = false;
    app->run.break_round = 0;
    return true;
}

/* ---- :what-if, the forecasts of the knobs: on, off, and the grid of two of them ---- */

static bool
open_grid(struct app *app, const char *first, const char *second, struct err *err)
{
    const struct policy_info *policy = scope_policy(app->run.scope);
    const int across = policy_knob_index(policy, first), up = policy_knob_index(policy, second);
    if (across < 0 || up < 0)
        return err_set(err, ERR_USAGE, "what-if: %s has no knob \"%.16s\"", policy->name, across < 0 ? first : second);
    if (across == up)
        return err_set(err, ERR_USAGE, "what-if wants two different knobs");
    if (app->forecasting.shown.why[0] != '\0')
        return err_set(err, ERR_USAGE, "no forecast: %s", app->forecasting.shown.why);
    if (app->forecasting.shown.tokens == 0 || strcmp(app->forecasting.shown.policy, policy->name) != 0)
        return err_set(err, ERR_USAGE, "no forecast yet: what-if needs a few generated tokens");
    forecasting_grid(&app->forecasting, (uint32_t)across, (uint32_t)up);
    return true;
}

bool
run_what_if(struct app *app, const char *rest, struct err *err)
{
    char first[COMMAND_VERB];
    const char *second;
    if (strcmp(rest, "close") == 0) {
        forecasting_grid_close(&app->forecasting);
        return true;
    }
    if (rest[0] == '\0') /* of the knob that the panel has selected */
        return app_command(app, "panel knobs") && panes_command(&app->panes, "what-if", "");
    if (!command_split(rest, first, &second) ||
        (second[0] == '\0' && strcmp(first, "off") != 0 && strcmp(first, "on") != 0))
        return err_set(err, ERR_USAGE, "what-if takes on, off, or two knobs: what-if tau d_max");
    if (second[0] != '\0')
        return open_grid(app, first, second, err);
    forecasting_enable(&app->forecasting, strcmp(first, "off") != 0);
    return true;
}
