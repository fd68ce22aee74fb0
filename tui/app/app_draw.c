/* A frame: layout, panels, bars, overlays, then to the terminal. */
#include "tui/app/app_state.h"

#include <math.h>
#include <string.h>

bool
app_panel_active(const struct app *app, int panel)
{
    const struct panel_ops *ops = panel_registry[panel];
    return ops->active == NULL || ops->active(&app->view);
}

struct canvas
app_canvas(const struct app *app, struct rect r)
{
    /* The grid is written to, the app is not. */
    return (struct canvas){.y = r.y, .x = r.x, .rows = r.rows, .cols = r.cols, .grid = (struct grid *)&app->grid};
}

void
app_arrange(struct app *app)
{
    struct layout_item items[LAYOUT_PANELS];
    for (int i = 0; i < app->panels; i++) {
        const struct panel_ops *ops = panel_registry[i];
        items[i] = (struct layout_item){ops->place, ops->weight, ops->min_cols, app_panel_active(app, i)};
    }
    for (int i = 0; i < app->panels && !items[app->focus].active; i++)
        app->focus = (app->focus + 1) % app->panels;
    layout_compute(&app->layout, app->grid.rows, app->grid.cols, items, app->panels, app->focus, app->zoom);
}

static void
draw_too_small(const struct app *app, const struct canvas *c)
{
    char size[32], here[32];
    snprintf(size, sizeof size, "%d×%d", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS);
    snprintf(here, sizeof here, "this is %d×%d", c->cols, c->rows);
    const char *const line[] = {"specscope needs", size, here, app_moving(app) ? "it goes on" : "it waits"};
    if (c->cols < text_width(line[0]) || c->rows < 4) {
        /* The size is what must be read, however small this is. */
        for (int y = 0, at = 0; y < c->rows && size[at] != '\0'; y++) {
            const size_t n = text_fit(size + at, c->cols, NULL);
            canvas_print(c, y, 0, ROLE_WARN, "%.*s", (int)n, size + at);
            at += n == 0 ? 1 : (int)n;
        }
        return;
    }
    for (int i = 0; i < 4; i++)
        canvas_text(c, (c->rows - 4) / 2 + i, (c->cols - text_width(line[i])) / 2, i == 1 ? ROLE_WARN : ROLE_TEXT,
                    line[i]);
}

static void
draw_panel(struct app *app, int i)
{
    const struct panel_ops *ops = panel_registry[i];
    const struct canvas box = app_canvas(app, app->layout.panel[i]);
    const struct canvas inside = canvas_inside(&box, 1, 1, box.rows - 2, box.cols - 2);
    struct view view = app->view;
    char note[160] = "";
    view.focused = i == app->focus;
    if (ops->note != NULL)
        ops->note(app->panel_state[i], &view, note, (int)sizeof note);
    canvas_box(&box, ops->title, note, view.focused);
    if (inside.rows > 0 && inside.cols > 0)
        ops->draw(app->panel_state[i], &view, &inside);
}

static void
draw_tabs(const struct app *app, const struct canvas *c)
{
    int x = 1;
    for (int i = 1; i < app->panels; i++) {
        if (!app_panel_active(app, i))
            continue;
        const bool shown = app->layout.panel[i].rows > 0;
        x += canvas_print(c, 0, x, shown ? ROLE_FOCUS : ROLE_DIM, shown ? "[%s]" : " %s ", panel_registry[i]->name) + 1;
    }
    canvas_text(c, 0, c->cols - 12, ROLE_DIM, "Tab: next");
}

/* What there is to say when nobody said anything. */
static void
draw_hint(const struct app *app, const struct canvas *c)
{
    static const struct {
        const char *end, *hint;
    } hints[] = {
        {"eos", "the text has come to its end:  r again  p new prompt  x go on  e export"},
        {"tokens", "all tokens that were asked for:  x more  r again  p new prompt  e export"},
        {"context", "the context is full:  r again  p new prompt  e export"},
    };
    const char *end = scope_end(app->scope);
    const struct progress_event *progress = scope_progress(app->scope);
    if (progress != NULL) {
        const int used =
            canvas_print(c, 0, 1, ROLE_STATUS, "%.15s %3.0f%% ", progress->what, (double)progress->done * 100);
        canvas_bar(c, 0, used + 2, 30, (double)progress->done, ROLE_KNOB);
        return;
    }
    if (strncmp(end, "error", 5) == 0) {
        canvas_text(c, 0, 1, ROLE_ERROR, end);
        return;
    }
    for (size_t i = 0; app_live(app) && i < sizeof hints / sizeof hints[0]; i++)
        if (strcmp(end, hints[i].end) == 0)
            canvas_text(c, 0, 1, ROLE_DIM, hints[i].hint);
}

static const char *const line_leads[LINE_USES] = {
    [LINE_COMMAND] = ":", [LINE_PROMPT] = "", [LINE_SEARCH] = "/", [LINE_EXPORT] = "export to: "};

static void
draw_status(const struct app *app, const struct canvas *c)
{
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, 0, x, ROLE_STATUS, " ");
    if (app->mode == MODE_LINE && app->line_use != LINE_PROMPT)
        editor_draw(&app->editor, c, line_leads[app->line_use]);
    else if (app->mode == MODE_QUIT)
        canvas_text(c, 0, 1, ROLE_WARN,
                    "this run is not exported yet:  q quit and lose it   e export   other keys stay");
    else if (app->status[0] != '\0') {
        const struct canvas room = canvas_inside(c, 0, 1, 1, c->cols - 2);
        canvas_text(&room, 0, 0, app->status_role, app->status);
    } else
        draw_hint(app, c);
}

static void
draw_prompt(const struct app *app, const struct canvas *c)
{
    const int cols = c->cols > 110 ? 100 : c->cols - 6;
    int rows = editor_rows(&app->editor, cols - 4), offers = offers_rows(app);
    if (rows + offers > c->rows - 10)
        offers = 0;
    rows = rows < 3 ? 3 : rows > c->rows - 10 ? c->rows - 10 : rows;
    const struct canvas box =
        canvas_inside(c, (c->rows - rows - offers) / 3, (c->cols - cols) / 2, rows + offers + 2, cols);
    const struct canvas inside = canvas_inside(&box, 1, 2, rows, box.cols - 4),
                        below = canvas_inside(&box, 1 + rows, 2, offers, box.cols - 4);
    canvas_clear(&box);
    canvas_box(&box, "prompt", "Enter starts a run   Ctrl-J breaks the line   ↑ earlier ones   Esc leaves", true);
    editor_draw(&app->editor, &inside, line_leads[LINE_PROMPT]);
    if (offers > 0)
        offers_draw(app, &below);
}

static void
draw(struct app *app)
{
    const struct canvas whole = app_canvas(app, (struct rect){0, 0, app->grid.rows, app->grid.cols});
    app_arrange(app);
    if (app->layout.too_small) {
        draw_too_small(app, &whole);
        return;
    }
    const struct canvas title = app_canvas(app, app->layout.title), measures = app_canvas(app, app->layout.measures),
                        status = app_canvas(app, app->layout.status);
    title_draw(app, &title);
    for (int i = 0; i < app->panels; i++)
        if (app->layout.panel[i].rows > 0)
            draw_panel(app, i);
    if (app->layout.tab_bar.rows > 0) {
        const struct canvas tabs = app_canvas(app, app->layout.tab_bar);
        draw_tabs(app, &tabs);
    }
    if (app->layout.timeline.rows > 0) {
        const struct canvas line = app_canvas(app, app->layout.timeline);
        timeline_draw(app, &line);
    }
    measures_draw(app, &measures);
    draw_status(app, &status);
    if (app->mode == MODE_HELP)
        help_draw(app, &whole);
    else if (app->mode == MODE_CHOOSER)
        chooser_draw(app, &whole);
    else if (app->mode == MODE_LINE && app->line_use == LINE_PROMPT)
        draw_prompt(app, &whole);
}

bool
app_frame(struct app *app)
{
    int rows, cols;
    terminal_size(&rows, &cols);
    if ((app->grid.rows != rows || app->grid.cols != cols) && !grid_open(&app->grid, rows, cols))
        return false;
    app->grid.utf8 = app->terminal.utf8;
    app->grid.mono = app->paint.depth == PAINT_NONE || app->paint.theme.stops == 0;
    app->drawn_version = scope_version(app->scope);
    app->dirty = false;
    grid_clear(&app->grid);
    draw(app);
    if (app->repaint)
        paint_forget(&app->paint);
    if (!paint_show(&app->paint, &app->grid))
        return false;
    terminal_refresh(&app->terminal, app->repaint);
    app->repaint = false;
    app->frame_us = app_now_us();
    return true;
}
