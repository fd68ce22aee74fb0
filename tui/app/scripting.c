#include "tui/app/scripting.h"

#include "engine/base/clock.h"
#include "tui/frame/frame.h"

#define WHAT_IF_US 300000000 /* after so long a forecast without an obstacle will not come either */

/* True when what the script waits for has come; fills err when it never will. */
static bool
wait_over(const struct script *script, const struct followed *run, const struct forecasting *foretold, struct err *err)
{
    const bool live = follow_live(run);
    const struct replay_status status = live ? (struct replay_status){0} : replay_status(run->source->replay);
    switch (script->wait) {
    case WAIT_NOTHING: return true;
    case WAIT_IDLE: return follow_idle(run);
    case WAIT_SWEEP: return sweep_done(run->sweeping.sweep) >= script->wait_round || !sweeping_now(&run->sweeping);
    case WAIT_END: return live ? run->ended : status.at_end && !status.seeking;
    case WAIT_WHAT_IF:
        if (forecasting_there(foretold, run) && (!follow_idle(run) || forecasting_settled(foretold, run)))
            return true;
        if (foretold->off)
            err_set(err, ERR_WORK, "what-if never came: it is off");
        else if (foretold->shown.why[0] != '\0' && follow_idle(run) && forecasting_settled(foretold, run))
            err_set(err, ERR_WORK, "what-if never came: %s", foretold->shown.why);
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

void
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
             !forecasting_settled(&app->forecasting, &app->run))) {
            if (err.kind != ERR_NONE)
                script_failed(app, &err);
            return;
        }
        app->script.wait = WAIT_NOTHING;
        if ((line = script_next(&app->script)) == NULL)
            break;
        /* like a person's, a script's commands mean what is on screen */
        if ((app_changed(app) && !frame_draw(app, &err)) || !app_execute(app, line, &err)) {
            script_failed(app, &err);
            return;
        }
    }
    script_close(&app->script);
    if (app->screen.terminal.fd < 0)
        app->quit = true; /* nobody is there to press a key */
}
