/* Runs commands, and handles keys and the mouse: the focused panel first, then the table of keys, each of which is a
 * command. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tui/app/app_state.h"
#include "tui/app/bars.h"

/* ---- commands and lines ---- */

bool
app_execute(struct app *app, const char *line, struct err *err)
{
    bool unknown;
    app->screen.dirty = true;
    if (command_run(app->verbs, app, line, &unknown, err))
        return true;
    char verb[COMMAND_VERB];
    const char *rest;
    if (!unknown || !command_split(line, verb, &rest) || !panes_command(&app->panes, verb, rest))
        return false;
    *err = (struct err){0};
    return true;
}

bool
app_command(struct app *app, const char *line)
{
    struct err err = {0};
    if (app_execute(app, line, &err))
        return true;
    message_fail(&app->message, &err);
    return false;
}

/* Runs a command whose argument is a text, with all blanks after the one that follows the verb. */
static bool
app_text(struct app *app, const char *line)
{
    struct err err = {0};
    app->screen.dirty = true;
    if (command_run_text(app->verbs, app, line, &err))
        return true;
    message_fail(&app->message, &err);
    return false;
}

void
app_open_line(struct app *app, enum line_use use, const char *text)
{
    if (line_open(&app->line, use, text))
        app->mode = MODE_LINE;
    else
        message_print(&app->message, "out of memory for the line");
}

const char *
app_prompt(const struct app *app)
{
    const struct segments *all = scope_now(app->run.scope)->segments;
    return segments_prompt(all, segments_now(all));
}

bool
app_continues(const struct app *app)
{
    /* a prompt of the list is no turn of the user's conversation, and the sequences of a batch have answers of their
     * own */
    const bool alone = !scope_is_batch(app->run.scope) || scope_now(app->run.scope)->versus != NULL;
    return follow_live(&app->run) && app->run.live->ops->chats(app->run.live) && alone && app->upcoming.own &&
           !app->anew;
}

void
app_choose_scope(struct app *app)
{
    if (!follow_live(&app->run))
        return;
    const struct sweeping *sweeping = &app->run.sweeping;
    app->panes.view.scope = sweeping->shown != NULL ? sweeping->shown : app->run.scope;
    /* a run that is over has no pending settings */
    app->panes.view.requested = sweeping->shown == NULL ? &app->run.requested : NULL;
}

bool
app_changed(const struct app *app)
{
    return app->screen.dirty || screen_outdated(&app->screen) ||
           (app->mode == MODE_MODELS && model_chooser_outdated(&app->model_chooser)) ||
           scope_now(app->run.scope)->version != app->screen.drawn_version;
}

void
app_leave(struct app *app, int exit_status, const struct err *why)
{
    app->quit = true;
    app->exit_status = exit_status;
    if (why != NULL)
        app->failure = *why;
}

/* ---- keys ---- */

static void
complete(struct app *app)
{
    const char *verb = line_verb(&app->line);
    const size_t lead = strlen(verb);
    char text[1024], completed[1024], list[300];
    const int n = snprintf(text, sizeof text, "%s%s", verb, app->line.editor.text);
    if ((app->line.use != LINE_COMMAND && app->line.use != LINE_EXPORT) || n < 0 || (size_t)n >= sizeof text)
        return;
    if (command_complete(app->verbs, app, text, completed, sizeof completed, list, sizeof list) > 1)
        message_show(&app->message, list);
    if (strlen(completed) >= lead)
        editor_replace(&app->line.editor, completed + lead);
}

static void
edit(struct app *app, int key)
{
    char *command = NULL;
    switch (line_key(&app->line, key)) {
    case EDITOR_DONE:
        app->mode = MODE_PANELS;
        if ((command = line_command(&app->line)) != NULL)
            (line_is_text(&app->line) ? app_text : app_command)(app, command);
        free(command);
        break;
    case EDITOR_CANCELLED: app->mode = MODE_PANELS; break;
    case EDITOR_COMPLETE: complete(app); break;
    case EDITOR_OPEN: break;
    }
}

static void
choose(struct app *app, int key)
{
    const struct chooser *ch = &app->chooser;
    struct theme theme;
    char line[64];
    switch (chooser_key(&app->chooser, key)) {
    case CHOOSER_STAYS: break;
    case CHOOSER_MOVED:
        if (ch->preview && theme_load(&theme, ch->name[ch->at], app->options.data_dir, NULL))
            paint_theme(&app->screen.paint, &theme);
        break;
    case CHOOSER_CHOSEN:
        app->mode = MODE_PANELS;
        snprintf(line, sizeof line, "%s %s", ch->verb, ch->name[ch->at]);
        app_command(app, line);
        break;
    case CHOOSER_LEFT:
        app->mode = MODE_PANELS;
        if (ch->preview)
            paint_theme(&app->screen.paint, &app->screen.theme);
        break;
    }
}

static void
choose_model(struct app *app, const struct input *in)
{
    struct model_chooser *c = &app->model_chooser;
    char line[PATH_MAX + 8];
    struct err err = {0};
    switch (model_chooser_input(c, in)) {
    case CHOOSER_STAYS:
    case CHOOSER_MOVED: break;
    case CHOOSER_CHOSEN:
        snprintf(line, sizeof line, "open %s", c->list->at[c->at].path);
        app->mode = MODE_PANELS;
        if (app_execute(app, line, &err))
            break;
        app->mode = MODE_MODELS;
        snprintf(c->message, sizeof c->message, "%s", err.text);
        break;
    case CHOOSER_LEFT: app->mode = MODE_PANELS; break;
    }
}

#define END 10000

/* Moves *top, the first line shown of the help or the messages. page: lines of a page. Returns false if the key does
 * not scroll. */
static bool
page_key(int *top, int page, int key)
{
    *top = *top > END ? END : *top; /* the help may not have been drawn since */
    switch (key) {
    case INPUT_UP:
    case 'k': --*top; break;
    case INPUT_DOWN:
    case 'j': ++*top; break;
    case INPUT_PAGE_UP: *top -= page; break;
    case INPUT_PAGE_DOWN:
    case ' ': *top += page; break;
    case INPUT_HOME: *top = 0; break;
    case INPUT_END: *top = END; break; /* drawing limits it to the last page */
    default: return false;
    }
    return true;
}

static void
scroll_page(struct app *app, int key)
{
    const int rows = app->screen.grid.rows;
    if (app->mode == MODE_HELP && help_filter_key(&app->help_filter, key))
        return;
    if (!page_key(&app->page_top, rows > 10 ? rows - 8 : 1, key))
        app->mode = MODE_PANELS;
}

static void
panels_key(struct app *app, int key)
{
    if (panes_key(&app->panes, key))
        return;
    if (key >= '0' && key <= '9') {
        char line[16];
        snprintf(line, sizeof line, "panel %d", key == '0' ? 10 : key - '0');
        app_command(app, line);
        return;
    }
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++) {
        if (k->key == key) {
            app_command(app, k->line);
            return;
        }
    }
    if (key == INPUT_PASTE_BEGIN) {
        app_open_line(app, follow_live(&app->run) ? LINE_PROMPT : LINE_SEARCH, "");
        if (app->mode == MODE_LINE)
            edit(app, key);
    }
}

/* ---- mouse ---- */

static void
go_along_timeline(struct app *app, int x)
{
    const double at = timeline_fraction(&app->run, app->panes.layout.timeline.cols, x);
    char line[32];
    if (isnan(at))
        return;
    snprintf(line, sizeof line, "goto %.2f%%", at * 100);
    app_command(app, line);
}

static void
panels_mouse(struct app *app, const struct input *in)
{
    const struct rect *track = &app->panes.layout.timeline;
    if (in->mouse == MOUSE_PRESS || in->mouse == MOUSE_DOUBLE)
        app->timeline_held = !follow_live(&app->run) && track->rows > 0 && in->y == track->y;
    if (!app->timeline_held || in->mouse == MOUSE_WHEEL_UP || in->mouse == MOUSE_WHEEL_DOWN)
        panes_mouse(&app->panes, &app->screen.grid, in);
    else
        go_along_timeline(app, in->x);
    if (in->mouse == MOUSE_RELEASE)
        app->timeline_held = false;
}

static void
mouse(struct app *app, const struct input *in)
{
    const bool wheel = in->mouse == MOUSE_WHEEL_UP || in->mouse == MOUSE_WHEEL_DOWN;
    const bool press = in->mouse == MOUSE_PRESS || in->mouse == MOUSE_DOUBLE;
    const char *line = press ? clicks_find(&app->clicks, in->y, in->x) : NULL;
    if (press)
        app->message.text[0] = '\0'; /* it was read */
    if (line != NULL && (app->mode == MODE_PANELS || in->y == app->panes.layout.status.y))
        app_command(app, line);
    else if (app->mode == MODE_PANELS)
        panels_mouse(app, in);
    else if ((app->mode == MODE_HELP || app->mode == MODE_MESSAGES) && wheel)
        page_key(&app->page_top, 3, in->mouse == MOUSE_WHEEL_UP ? INPUT_PAGE_UP : INPUT_PAGE_DOWN);
    else if (app->mode == MODE_MODELS)
        choose_model(app, in);
    else if (app->mode == MODE_CHOOSER && wheel)
        choose(app, in->mouse == MOUSE_WHEEL_UP ? INPUT_UP : INPUT_DOWN);
    else if (in->mouse == MOUSE_PRESS && (app->mode == MODE_HELP || app->mode == MODE_MESSAGES))
        app->mode = MODE_PANELS;
}

static bool
takes_text(const struct app *app)
{
    return app->mode == MODE_LINE || app->mode == MODE_MODELS || (app->mode == MODE_HELP && app->help_filter.typing);
}

void
app_key(struct app *app, const struct input *in)
{
    app->screen.dirty = true;
    if (in->key != INPUT_RESIZE)
        app->upcoming.held = true;
    if (in->key == INPUT_LOST) {
        app_leave(app, 128 + SIGHUP, NULL); /* the caller closes the trace */
        return;
    }
    if (in->key == INPUT_RESIZE) {
        app->screen.repaint = true;
        return;
    }
    if (in->key == INPUT_MOUSE) {
        mouse(app, in);
        return;
    }
    if (in->pasted && !takes_text(app)) /* never a command */
        return;
    app->message.text[0] = '\0'; /* it was read */
    if (in->key == INPUT_CTRL('z')) {
        app_command(app, "suspend");
        return;
    }
    const bool escape = in->key == INPUT_ESCAPE;
    if (app->mode == MODE_PANELS && follow_busy(&app->run) && (escape || in->key == INPUT_CTRL('c')) &&
        !(escape && panes_key(&app->panes, in->key))) {
        app_command(app, app->run.scorer.runs                 ? "score stop"
                         : sweeping_races(&app->run.sweeping) ? "tune stop"
                                                              : "sweep stop");
        return;
    }
    switch (app->mode) {
    case MODE_PANELS: panels_key(app, in->key); break;
    case MODE_LINE: edit(app, in->key); break;
    case MODE_HELP:
    case MODE_MESSAGES: scroll_page(app, in->key); break;
    case MODE_CHOOSER: choose(app, in->key); break;
    case MODE_MODELS: choose_model(app, in); break;
    case MODE_QUIT:
        app->mode = MODE_PANELS;
        if (in->key == 'q' || in->key == 'y' || in->key == INPUT_CTRL('c'))
            app_leave(app, 0, NULL);
        else if (app->options.opening != NULL)
            app->options.opening->path[0] = '\0';
        if (in->key == 'e')
            app_command(app, "export");
        break;
    }
}
