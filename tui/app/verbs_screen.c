/* Commands that steer the screen. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tui/app/verbs.h"

/* ---- the screen ---- */

bool
run_theme(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] != '\0')
        return screen_theme(&app->screen, rest, app->options.data_dir, err);
    chooser_themes(&app->chooser, app->options.data_dir, app->screen.theme.name);
    app->mode = MODE_CHOOSER;
    return true;
}

bool
run_window(struct app *app, const char *rest, struct err *err)
{
    const enum scope_window now = scope_now(app->run.scope)->window;
    if (rest[0] == '\0' || strcmp(rest, "next") == 0) {
        scope_show_window(app->run.scope, (now + 1) % WINDOWS);
        return true;
    }
    for (int i = 0; i < WINDOWS; i++)
        if (strcmp(rest, window_names[i]) == 0) {
            scope_show_window(app->run.scope, (enum scope_window)i);
            return true;
        }
    return err_set(err, ERR_USAGE, "cannot show window \"%.20s\": there is none; segment, last, run or next", rest);
}

bool
run_drafts(struct app *app, const char *rest, struct err *err)
{
    const bool on = strcmp(rest, "on") == 0;
    if (!on && strcmp(rest, "off") != 0)
        return err_set(err, ERR_USAGE, "drafts: on or off is needed, not \"%.20s\"", rest);
    app->panes.view.no_drafts = !on;
    return true;
}

bool
run_panel(struct app *app, const char *rest, struct err *err)
{
    const bool next = strcmp(rest, "next") == 0;
    if (next || strcmp(rest, "previous") == 0) {
        for (int i = 1; i <= app->panes.n; i++) {
            const int to = (app->panes.focus + (next ? i : app->panes.n - i)) % app->panes.n;
            if (panes_active(&app->panes, to)) {
                app->panes.focus = to;
                return true;
            }
        }
        return true;
    }
    char names[200] = "", digit[12];
    for (int i = 0; i < app->panes.n; i++) {
        snprintf(digit, sizeof digit, "%d", panes_number(&app->panes, i));
        if (strcmp(panel_registry[i]->name, rest) == 0 || strcmp(digit, rest) == 0) {
            if (!panes_active(&app->panes, i))
                return err_set(err, ERR_USAGE, "the %s panel has nothing to show under this policy",
                               panel_registry[i]->name);
            app->panes.focus = i;
            return true;
        }
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", panel_registry[i]->name);
    }
    return err_set(err, ERR_USAGE, "there is no panel \"%.20s\"; there are %s", rest, names);
}

/* Sets *seq to the next sequence with a history in memory, cyclically. */
static bool
neighbour(const struct scope *s, int by, uint32_t *seq)
{
    const uint32_t n = scope_batch(s).tiles, from = scope_tile_index(s, scope_focus(s));
    for (uint32_t i = 1; i < n; i++) {
        const struct scope_tile *t = scope_tile(s, (from + (by > 0 ? i : n - i)) % n);
        *seq = t->seq;
        if (t->held)
            return true;
    }
    return false;
}

bool
run_sequence(struct app *app, const char *rest, struct err *err)
{
    struct scope *s = app->run.scope;
    const struct scope_batch b = scope_batch(s);
    uint32_t seq = 0;
    char *end;
    const bool next = strcmp(rest, "next") == 0;
    if (!scope_is_batch(s) || b.tiles == 0)
        return err_set(err, ERR_USAGE, "this run has one sequence; --batch runs several");
    if (next || strcmp(rest, "previous") == 0) {
        if (!neighbour(s, next ? 1 : -1, &seq))
            return err_set(err, ERR_USAGE, "there is no other sequence yet");
    } else {
        errno = 0;
        const unsigned long number = strtoul(rest, &end, 10);
        if (rest[0] < '0' || rest[0] > '9' || *end != '\0' || errno != 0 || number == 0 || number > UINT32_MAX)
            return err_set(err, ERR_USAGE, "show which sequence? a number from 1, next or previous");
        seq = (uint32_t)number - 1;
    }
    const struct scope_tile *t = scope_tile(s, scope_tile_index(s, seq));
    if (t == NULL)
        return err_set(err, ERR_USAGE, "there is no sequence %u yet; so far there are %u", (unsigned)seq + 1,
                       (unsigned)b.tiles);
    if (!scope_set_focus(s, seq))
        return err_set(err, ERR_USAGE, "sequence %u ended so long ago that it is not held any more; its trace has it",
                       (unsigned)seq + 1);
    app->panes.selection.follow = true;
    return true;
}

static bool
ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return n > n_end && strcasecmp(name + n - n_end, end) == 0;
}

bool
run_save_screen(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] == '\0')
        return err_set(err, ERR_USAGE, "save the screen to which file? for example :save-screen screen.txt");
    const struct file_kind *kind = ends_in(rest, ".svg") ? &svg_file : &screen_text_file;
    /* Draws first, so that the file contains the current state. */
    follow_events(&app->run, &app->panes.selection, &app->message);
    if (!frame_draw(app, err))
        return false;
    struct output file;
    if (!output_open(&file, rest, kind, err))
        return false;
    const struct grid *grid = &app->screen.grid;
    const struct theme *theme = &app->screen.paint.theme;
    const bool whole = kind == &svg_file ? grid_write_svg(grid, theme, file.f) : grid_write(grid, file.f);
    if (!whole && ferror(file.f) == 0)
        err_set(err, ERR_WORK, "%.200s: out of memory for the screen", rest);
    if (!output_close(&file, whole || ferror(file.f) != 0, err))
        return false;
    if (!script_running(&app->script))
        message_print(&app->message, "screen saved to %.300s", rest);
    return true;
}

/* Passes the search to the panel that shows the text; the app stores only the searched words. */
static bool
search(struct app *app, const char *verb, struct err *err)
{
    return panes_command(&app->panes, verb, app->panes.search) ||
           err_set(err, ERR_USAGE, "\"%.100s\" is not in the text", app->panes.search);
}

bool
run_search(struct app *app, const char *rest, struct err *err)
{
    if (rest[0] == '\0') {
        app_open_line(app, LINE_SEARCH, "");
        return true;
    }
    snprintf(app->panes.search, sizeof app->panes.search, "%s", rest);
    app->panes.search[strlen(app->panes.search) - text_incomplete(app->panes.search, strlen(app->panes.search))] = '\0';
    return search(app, "search", err);
}

bool
run_search_next(struct app *app, const char *rest, struct err *err)
{
    return app->panes.search[0] == '\0' ? run_search(app, rest, err) : search(app, "search", err);
}

bool
run_search_back(struct app *app, const char *rest, struct err *err)
{
    return app->panes.search[0] == '\0' ? run_search(app, rest, err) : search(app, "search-back", err);
}

bool
run_help(struct app *app, const char *rest, struct err *err)
{
    (void)err;
    app->mode = MODE_HELP;
    app->page_top = 0;
    app->help_filter = (struct help_filter){.text = ""};
    snprintf(app->help_filter.text, sizeof app->help_filter.text, "%s", rest);
    return true;
}

bool
run_messages(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    app->mode = MODE_MESSAGES;
    app->page_top = INT_MAX; /* the newest */
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
    app->panes.zoom = !app->panes.zoom;
    return true;
}

bool
run_redraw(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    app->screen.repaint = true;
    return true;
}

bool
run_suspend(struct app *app, const char *rest, struct err *err)
{
    (void)rest;
    (void)err;
    terminal_suspend(&app->screen.terminal);
    app->screen.repaint = true;
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
    const bool unsaved = follow_live(&app->run) && !app->run.source->saved && scope_rounds(app->run.scope) > 0 &&
                         app->run.event_us > app->run.saved_us && app->run.source->export_to != NULL;
    if (unsaved && !script_running(&app->script))
        app->mode = MODE_QUIT;
    else
        app->quit = true;
    return true;
}
