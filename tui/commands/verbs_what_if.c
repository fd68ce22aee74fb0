/* :what-if, the landscape of the knobs: its share of the time, and the grid of two of them. */
#include "tui/commands/verbs.h"

#include <string.h>

static bool
open_grid(struct app *app, const char *first, const char *second, struct err *err)
{
    const struct policy_info *policy = scope_policy(app->run.scope);
    const int across = policy_knob_index(policy, first), up = policy_knob_index(policy, second);
    if (across < 0 || up < 0)
        return err_set(err, ERR_USAGE, "what-if: %s has no knob \"%.16s\"", policy->name, across < 0 ? first : second);
    if (across == up)
        return err_set(err, ERR_USAGE, "what-if wants two different knobs");
    if (app->foretell.shown.why[0] != '\0')
        return err_set(err, ERR_USAGE, "no forecast: %s", app->foretell.shown.why);
    if (app->foretell.shown.tokens == 0 || strcmp(app->foretell.shown.policy, policy->name) != 0)
        return err_set(err, ERR_USAGE, "no forecast yet: what-if needs a few generated tokens");
    foretell_grid(&app->foretell, (uint32_t)across, (uint32_t)up);
    return true;
}

bool
run_what_if(struct app *app, const char *rest, struct err *err)
{
    char first[COMMAND_VERB];
    const char *second;
    if (strcmp(rest, "close") == 0) {
        foretell_grid_close(&app->foretell);
        return true;
    }
    if (rest[0] == '\0') /* of the knob that is chosen there */
        return app_command(app, "panel knobs") && panes_command(&app->panes, "what-if", "");
    if (!command_split(rest, first, &second))
        return err_set(err, ERR_USAGE,
                       "what-if takes a share of the time, as 5%%, off, or two knobs: what-if tau d_max");
    if (second[0] != '\0')
        return open_grid(app, first, second, err);
    if (!follow_live(&app->run) && strcmp(first, "off") != 0 && strcmp(first, "on") != 0)
        return err_set(
            err, ERR_USAGE,
            "a replay cannot set what-if's share of the time: it has no engine; what-if on, off, or two knobs");
    if (follow_live(&app->run) && !follow_post(&app->run, CONTROL_WHAT_IF, NULL, first, 0, err))
        return false;
    foretell_turn(&app->foretell, strcmp(first, "off") != 0);
    return true;
}
