/* :versus, a second setting beside the one in force. */
#include "tui/app/verbs.h"
#include "tui/scope/versus.h"

#include <string.h>

bool
run_versus(struct app *app, const char *rest, struct err *err)
{
    const bool off = strcmp(rest, "off") == 0;
    if (!verb_only_live(app, "the setting", err))
        return false;
    if (off && scope_versus(app->run.scope) == NULL)
        return err_set(err, ERR_USAGE,
                       "there is one setting already; :versus POLICY KNOB=VALUE sets another beside it");
    if (!follow_post_of(&app->run, 0, CONTROL_VERSUS, NULL, rest, 0, err))
        return false;
    turns_other_second(&app->run.turns);
    app->run.ended = false;
    app->run.break_round = 0;
    return true;
}
