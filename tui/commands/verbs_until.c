/* Letting a run go on until something comes, and jumping to where it came. */
#include "tui/commands/verbs.h"

#include <string.h>

/* A replay runs to it, from where it is. */
static void
search_on(struct app *app)
{
    app->run.searching = true;
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
        return err_set(err, ERR_USAGE, "the run is over: r runs it again, x goes on for more tokens");
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
    return go_on_until(app, err);
}

/* The round that the cursor is in; the newest where it follows. */
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
    app->run.until = wanted;
    const uint32_t round = scope_find_round(app->run.scope, &wanted, round_here(app), back);
    until_print(&wanted, what, sizeof what);
    if (round > 0) {
        selection_to_round(&app->panes.view, round);
        message_say(&app->message, "%s, in round %u", what, (unsigned)round);
        message_is_of_run(&app->message);
        return true;
    }
    if (!back)
        return go_on_until(app, err);
    return err_set(err, ERR_USAGE, "no %s in the rounds before this one that are held", what);
}
