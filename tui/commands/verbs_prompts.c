/* :next, the prompts of a list one after another. */
#include "tui/commands/verbs.h"
#include "tui/scope/batch.h"
#include "tui/scope/versus.h"

bool
run_next(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    if (!verb_only_live(app, "run another prompt", err))
        return false;
    if (scope_is_batch(app->run.scope) && scope_versus(app->run.scope) == NULL)
        return err_set(err, ERR_USAGE, "a batch has its prompts already; the next one comes when a sequence ends");
    const char *next = upcoming_next(&app->upcoming, app_prompt(app));
    if (next == NULL)
        return err_set(err, ERR_USAGE, "there is no other prompt; start with --prompts FILE.jsonl, or press p");
    if (!run_prompt(app, next, err))
        return false;
    upcoming_take(&app->upcoming, next);
    return true;
}
