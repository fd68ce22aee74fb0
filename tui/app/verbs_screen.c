/* Commands that steer the screen. */
#include "tui/app/verbs.h"

#include <errno.h>
#include <string.h>

bool
run_theme(struct app *app, const char *rest, struct err *err)
{
    struct theme theme;
    if (rest[0] == '\0')
        return chooser_open_themes(app);
    if (!theme_load(&theme, rest, app->options.data_dir, err))
        return false;
    app->theme = theme;
    paint_theme(&app->paint, &theme);
    return true;
}

bool
run_panel(struct app *app, const char *rest, struct err *err)
{
    const bool next = strcmp(rest, "next") == 0;
    if (next || strcmp(rest, "previous") == 0) {
        for (int i = 1; i <= app->panels; i++) {
            const int to = (app->focus + (next ? i : app->panels - i)) % app->panels;
            if (app_panel_active(app, to)) {
                app->focus = to;
                return true;
            }
        }
        return true;
    }
    char names[160] = "";
    for (int i = 0; i < app->panels; i++) {
        if (strcmp(panel_registry[i]->name, rest) == 0) {
            if (!app_panel_active(app, i))
                return err_set(err, ERR_USAGE, "the %s panel has nothing to show under this policy", rest);
            app->focus = i;
            return true;
        }
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", panel_registry[i]->name);
    }
    return err_set(err, ERR_USAGE, "there is no panel \"%.20s\"; there are %s", rest, names);
}

bool
run_save_screen(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] == '\0')
        return err_set(err, ERR_USAGE, "save the screen to which file? for example :save-screen screen.txt");
    app_follow(app); /* what is on the terminal is made to be what is known now */
    if (!app_frame(app))
        return err_set(err, ERR_WORK, "out of memory for the screen");
    FILE *file = fopen(rest, "w");
    if (file == NULL)
        return err_set(err, ERR_WORK, "the screen could not be saved to %.200s: %s", rest, strerror(errno));
    const bool written = grid_write(&app->grid, file);
    const int why = errno;
    if (fclose(file) != 0 || !written)
        return err_set(err, ERR_WORK, "the screen could not be saved to %.200s: %s", rest,
                       strerror(written ? errno : why));
    if (!app->scripted)
        app_say(app, "screen saved to %.300s", rest);
    return true;
}

/* The search belongs to the panel that shows the text: the app only remembers what was looked for. */
static bool
search(struct app *app, struct err *err)
{
    for (int i = 0; i < app->panels; i++) {
        const struct panel_ops *ops = panel_registry[i];
        if (ops->command != NULL && ops->command(app->panel_state[i], &app->view, "search", app->search))
            return true;
    }
    return err_set(err, ERR_USAGE, "\"%.100s\" is not in the text", app->search);
}

bool
run_search(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] == '\0') {
        app_open_line(app, LINE_SEARCH, app->search);
        return true;
    }
    snprintf(app->search, sizeof app->search, "%s", rest);
    app->search[strlen(app->search) - text_incomplete(app->search, strlen(app->search))] = '\0';
    return search(app, err);
}

bool
run_search_next(struct app *app, const char *rest, struct err *err)
{
    return app->search[0] == '\0' ? run_search(app, rest, err) : search(app, err);
}

static bool
bookmark_next(struct app *app, struct err *err)
{
    const uint32_t n = app->view.n_bookmarks;
    if (n == 0)
        return err_set(err, ERR_USAGE, "there is no bookmark yet; m sets one at the cursor");
    uint32_t i = 0; /* sorted: the first one behind the cursor, else the first of all */
    while (i < n && (app->selection.follow || app->bookmark[i] <= app->selection.pos))
        i++;
    app->selection.pos = app->bookmark[i == n ? 0 : i];
    app->selection.follow = false;
    return true;
}

bool
run_bookmark(struct app *app, const char *rest, struct err *err)
{
    if (strcmp(rest, "next") == 0)
        return bookmark_next(app, err);
    const uint32_t length = scope_length(app->scope);
    const uint32_t pos = app->selection.follow ? (length == 0 ? 0 : length - 1) : app->selection.pos;
    uint32_t n = app->view.n_bookmarks, i = 0;
    while (i < n && app->bookmark[i] < pos)
        i++;
    if (i < n && app->bookmark[i] == pos) {
        memmove(&app->bookmark[i], &app->bookmark[i + 1], (n - i - 1) * sizeof app->bookmark[0]);
        app->view.n_bookmarks = n - 1;
        app_say(app, "bookmark at %u removed", (unsigned)pos);
        return true;
    }
    if (n == BOOKMARKS)
        return err_set(err, ERR_USAGE, "there are %d bookmarks already; m on one of them removes it", BOOKMARKS);
    memmove(&app->bookmark[i + 1], &app->bookmark[i], (n - i) * sizeof app->bookmark[0]);
    app->bookmark[i] = pos;
    app->view.n_bookmarks = n + 1;
    app_say(app, "bookmark at %u: ' comes back", (unsigned)pos);
    return true;
}

bool
run_help(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    app->mode = MODE_HELP;
    app->help_top = 0;
    return true;
}

bool
run_command(struct app *app, const char *rest, struct err *err)
{
    (void)err;
    app_open_line(app, LINE_COMMAND, rest);
    return true;
}

bool
run_zoom(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    app->zoom = !app->zoom;
    return true;
}

bool
run_redraw(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    app->repaint = true;
    return true;
}

bool
run_suspend(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    terminal_suspend(&app->terminal);
    app->repaint = true;
    return true;
}

bool
run_key(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] == '\0')
        return err_set(err, ERR_USAGE, "press which keys? for example :key Tab S-Left q");
    if (app->key_depth >= 4)
        return err_set(err, ERR_USAGE, "keys that press keys that press keys: this goes too deep");
    app->key_depth++;
    bool fine = true;
    while (fine && rest[0] != '\0') {
        char name[32];
        const size_t n = strcspn(rest, " \t");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), rest);
        const struct input in = {.key = input_named(name)};
        if (in.key == INPUT_NONE)
            fine = err_set(err, ERR_USAGE,
                           "there is no key \"%s\"; Enter, Tab, Esc, Up, S-Left, PageUp, F1, C-l, x are some", name);
        else
            app_key(app, &in);
        rest += n + strspn(rest + n, " \t");
    }
    app->key_depth--;
    return fine;
}

bool
run_quit(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    const bool unsaved = app_live(app) && !app->source->saved && scope_rounds(app->scope) > 0 &&
                         app->event_us > app->saved_us && app->source->export_to != NULL;
    if (unsaved && !app->scripted)
        app->mode = MODE_QUIT;
    else
        app->quit = true;
    return true;
}
