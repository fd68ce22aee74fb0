/* Keys and mouse. Every key is a ':' command; what the focused panel takes comes first. */
#include "tui/app/app_state.h"

#include <math.h>
#include <string.h>

const struct app_key app_keys[] = {
    {'?', "?  F1", "help", "this help"},
    {INPUT_F1, "F1", "help", NULL},
    {' ', "Space", "toggle", "pause and go on; in a replay: play and pause"},
    {'n', "n", "step 1", "one round"},
    {'.', ".", "step token", "one drafted or emitted token"},
    {'r', "r", "restart", "again from the same prompt; in a replay: from its start"},
    {'p', "p", "prompt", "edit the prompt"},
    {'P', "P", "policy", "choose the policy"},
    {'H', "H", "head other", "the layers by the lens, or by their trained heads"},
    {'b', "b", "baseline", "run autoregressively: measures the speedup, checks losslessness"},
    {'x', "x", "extend", "go on for more tokens"},
    {'e', "e", "export", "export the run as CSV"},
    {'<', "<  >", "speed slower", "slower, faster: a live run's tokens a second, a replay's speed"},
    {'>', ">", "speed faster", NULL},
    {INPUT_TAB, "Tab  S-Tab", "panel next", "move the focus"},
    {INPUT_SHIFT_TAB, "S-Tab", "panel previous", NULL},
    {'z', "z", "zoom", "the focused panel alone, and back"},
    {'/', "/", "search", "search the text; N: the next place"},
    {'N', "N", "search-next", NULL},
    {'m', "m", "bookmark", "set or remove a bookmark at the cursor"},
    {'\'', "'", "bookmark next", "to the next bookmark"},
    {'t', "t", "theme", "choose the theme"},
    {':', ":", "command", "a command; Tab completes, arrows bring back earlier ones"},
    {INPUT_CTRL('l'), "Ctrl-L", "redraw", "draw the screen again"},
    {INPUT_CTRL('z'), "Ctrl-Z", "suspend", "back to the shell; fg returns"},
    {'q', "q  Ctrl-C", "quit", "quit; asks when an unsaved run would be lost"},
    {INPUT_CTRL('c'), "Ctrl-C", "quit", NULL},
    {INPUT_NONE, NULL, NULL, NULL},
};

void
app_open_line(struct app *app, enum line_use use, const char *text)
{
    editor_close(&app->editor);
    if (!editor_open(&app->editor, text, use == LINE_PROMPT, &app->history[use])) {
        app_say(app, "out of memory for the line");
        return;
    }
    app->line_use = use;
    app->mode = MODE_LINE;
    offers_begin(app);
}

static void
line_done(struct app *app)
{
    static const char *const verbs[LINE_USES] = {
        [LINE_COMMAND] = "", [LINE_PROMPT] = "prompt ", [LINE_SEARCH] = "search ", [LINE_EXPORT] = "export "};
    char *text = app->editor.text;
    const enum line_use use = app->line_use;
    app->mode = MODE_PANELS;
    if (text[0] == '\0')
        return;
    history_add(&app->history[use], text);
    const size_t lead = strlen(verbs[use]);
    /* The editor's buffer has room for a verb less: a text that long is cut at its end. */
    if (app->editor.length + lead > EDITOR_MAX)
        text[EDITOR_MAX - lead] = '\0';
    memmove(text + lead, text, strlen(text) + 1);
    memcpy(text, verbs[use], lead);
    app->editor.text = NULL; /* ours: the command may open the editor again */
    app_command(app, text);
    struct editor spent = {.text = text};
    editor_close(&spent);
}

static void
line_key(struct app *app, int key)
{
    char completed[512], list[300];
    if (app->line_use == LINE_PROMPT && offers_key(app, key))
        return;
    switch (editor_key(&app->editor, &app->history[app->line_use], key)) {
    case EDITOR_DONE: line_done(app); break;
    case EDITOR_CANCELLED: app->mode = MODE_PANELS; break;
    case EDITOR_COMPLETE:
        if (app->line_use != LINE_COMMAND || app->editor.length >= sizeof completed)
            break;
        if (command_complete(app_verbs, app, app->editor.text, completed, sizeof completed, list, sizeof list) > 1 &&
            strcmp(completed, app->editor.text) == 0)
            app_say(app, "%s", list);
        editor_replace(&app->editor, completed);
        break;
    case EDITOR_KEPT: break;
    }
}

static void
help_key(struct app *app, int key)
{
    const int page = app->grid.rows > 10 ? app->grid.rows - 8 : 1;
    switch (key) {
    case INPUT_UP:
    case 'k': app->help_top--; break;
    case INPUT_DOWN:
    case 'j': app->help_top++; break;
    case INPUT_PAGE_UP: app->help_top -= page; break;
    case INPUT_PAGE_DOWN:
    case ' ': app->help_top += page; break;
    case INPUT_HOME: app->help_top = 0; break;
    case INPUT_END: app->help_top = 10000; break; /* drawing brings it back to the last page */
    default: app->mode = MODE_PANELS; break;
    }
}

static void
panels_key(struct app *app, int key)
{
    const struct panel_ops *ops = panel_registry[app->focus];
    struct view view = app->view;
    view.focused = true;
    if (ops->key != NULL && !app->layout.too_small && ops->key(app->panel_state[app->focus], &view, key))
        return;
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++) {
        if (k->key == key) {
            app_command(app, k->line);
            return;
        }
    }
    if (key == INPUT_PASTE_BEGIN) { /* what is pasted is text, never commands */
        app_open_line(app, app_live(app) ? LINE_PROMPT : LINE_SEARCH, "");
        if (app->mode == MODE_LINE)
            line_key(app, key);
    }
}

/* ---- mouse ---- */

static int
tab_at(const struct app *app, int x)
{
    int from = 1;
    for (int i = 1; i < app->panels; i++) {
        if (!app_panel_active(app, i))
            continue;
        const int width = text_width(panel_registry[i]->name) + 3; /* as draw_tabs() spaces them */
        if (x >= from && x < from + width)
            return i;
        from += width;
    }
    return -1;
}

static void
to_panel(struct app *app, int panel, const struct input *in)
{
    const struct panel_ops *ops = panel_registry[panel];
    const struct canvas box = app_canvas(app, app->layout.panel[panel]);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    struct view view = app->view;
    view.focused = panel == app->focus;
    if (ops->mouse != NULL)
        ops->mouse(app->panel_state[panel], &view, &inside, in->y - inside.y, in->x - inside.x, in->mouse);
}

static void
timeline_mouse(struct app *app, int x)
{
    const double at = timeline_fraction(app, x);
    char line[32];
    if (isnan(at))
        return;
    snprintf(line, sizeof line, "goto %.2f%%", at * 100);
    app_command(app, line);
}

static void
panels_mouse(struct app *app, const struct input *in)
{
    const struct rect *track = &app->layout.timeline, *tabs = &app->layout.tab_bar;
    const int panel = layout_at(&app->layout, app->panels, in->y, in->x);
    switch (in->mouse) {
    case MOUSE_PRESS:
    case MOUSE_DOUBLE:
        app->captured = panel;
        app->timeline_held = !app_live(app) && track->rows > 0 && in->y == track->y;
        if (app->timeline_held)
            timeline_mouse(app, in->x);
        else if (tabs->rows > 0 && in->y == tabs->y && tab_at(app, in->x) >= 0)
            app->focus = tab_at(app, in->x);
        else if (panel >= 0) {
            app->focus = panel;
            to_panel(app, panel, in);
        }
        break;
    case MOUSE_DRAG:
    case MOUSE_RELEASE:
        if (app->timeline_held)
            timeline_mouse(app, in->x);
        else if (app->captured >= 0 && app->layout.panel[app->captured].rows > 0)
            to_panel(app, app->captured, in);
        if (in->mouse == MOUSE_RELEASE) {
            app->captured = -1;
            app->timeline_held = false;
        }
        break;
    case MOUSE_WHEEL_UP:
    case MOUSE_WHEEL_DOWN:
        if (panel >= 0)
            to_panel(app, panel, in);
        break;
    }
}

static void
mouse(struct app *app, const struct input *in)
{
    const bool wheel = in->mouse == MOUSE_WHEEL_UP || in->mouse == MOUSE_WHEEL_DOWN;
    if (app->mode == MODE_PANELS)
        panels_mouse(app, in);
    else if (app->mode == MODE_HELP && wheel)
        app->help_top += in->mouse == MOUSE_WHEEL_UP ? -3 : 3;
    else if (app->mode == MODE_CHOOSER && wheel)
        chooser_key(app, in->mouse == MOUSE_WHEEL_UP ? INPUT_UP : INPUT_DOWN);
    else if (in->mouse == MOUSE_PRESS && app->mode == MODE_HELP)
        app->mode = MODE_PANELS;
}

void
app_key(struct app *app, const struct input *in)
{
    app->dirty = true;
    if (in->key == INPUT_LOST) {
        app->quit = true; /* the trace is closed by whoever owns it */
        app->exit_status = 128 + 1;
        return;
    }
    if (in->key == INPUT_RESIZE) {
        app->repaint = true;
        return;
    }
    if (in->key == INPUT_MOUSE) {
        mouse(app, in);
        return;
    }
    app->status[0] = '\0'; /* it was read */
    switch (app->mode) {
    case MODE_PANELS: panels_key(app, in->key); break;
    case MODE_LINE: line_key(app, in->key); break;
    case MODE_HELP: help_key(app, in->key); break;
    case MODE_CHOOSER: chooser_key(app, in->key); break;
    case MODE_QUIT:
        app->mode = MODE_PANELS;
        if (in->key == 'q' || in->key == 'y' || in->key == INPUT_CTRL('c'))
            app->quit = true;
        else if (in->key == 'e')
            app_command(app, "export");
        break;
    }
}
