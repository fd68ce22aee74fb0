#include "tui/frame/frame.h"
#include "engine/base/clock.h"
#include "engine/base/printable.h"
#include "tui/frame/bars.h"
#include "tui/widgets/key_row.h"

#include <math.h>
#include <string.h>

static void
draw_too_small(const struct followed *run, const struct canvas *c)
{
    char size[32], here[32];
    snprintf(size, sizeof size, "%d×%d", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS);
    snprintf(here, sizeof here, "this is %d×%d", c->cols, c->rows);
    const char *const line[] = {"specscope needs", size, here, follow_moving(run) ? "it goes on" : "it waits"};
    if (c->cols < text_width(line[0]) || c->rows < 4) {
        /* The size must be readable on any screen. */
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
fill(const struct canvas *c, enum role role)
{
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, 0, x, role, " ");
}

static void
draw_sweeping(const struct knob_sweep *s, const struct canvas *c)
{
    const uint32_t done = sweep_done(s), points = sweep_points(s);
    const double left = sweep_left_s(s);
    int x = 1 + canvas_print(c, 0, 1, ROLE_STATUS, "sweep %u of %u%s ", done + 1 < points ? done + 1 : points, points,
                             sweep_at(s) == points ? ", ar" : "");
    canvas_bar(c, 0, x, 24, (double)done / points, ROLE_KNOB);
    x += 25;
    if (!isnan(left))
        x += 2 + canvas_print(c, 0, x, ROLE_STATUS, "%.0f s left", ceil(left));
    x += 1 + canvas_text(c, 0, x, ROLE_KEY, "Esc");
    canvas_text(c, 0, x, ROLE_DIM, "stop");
}

/* Draws the progress of a sweep or another long step, or the run's error, if there is any. */
static void
draw_progress(const struct followed *run, const struct canvas *c)
{
    const char *end = scope_now(run->scope)->end;
    const struct progress_event *progress = scope_progress(run->scope);
    const bool failed = strncmp(end, "error", 5) == 0;
    if (sweeping_now(&run->sweeping) || progress != NULL || failed)
        fill(c, ROLE_STATUS);
    if (sweeping_now(&run->sweeping)) {
        draw_sweeping(run->sweeping.sweep, c);
    } else if (progress != NULL) {
        const int used =
            canvas_print(c, 0, 1, ROLE_STATUS, "%.15s %3.0f%% ", progress->what, (double)progress->done * 100);
        canvas_bar(c, 0, used + 2, 30, (double)progress->done, ROLE_KNOB);
    } else if (failed) {
        canvas_text(c, 0, 1, ROLE_ERROR, end);
    }
}

static void
draw_message(const struct app *app, const struct canvas *c)
{
    fill(c, ROLE_STATUS);
    canvas_word(c, 0, 1, c->cols - 2, app->message.role, MARK_NONE, app->message.text);
}

/* Draws the prompt that starts by itself; returns false if none does. */
static bool
draw_upcoming(const struct app *app, const struct canvas *c)
{
    const int seconds = upcoming_seconds(&app->upcoming, clock_us());
    const char *next = seconds > 0 ? upcoming_next(&app->upcoming, app_prompt(app)) : NULL;
    char text[200];
    if (next == NULL)
        return false;
    fill(c, ROLE_STATUS);
    printable_text(next, strlen(next), text, sizeof text);
    int x = 1 + canvas_print(c, 0, 1, ROLE_WARN, "next prompt in %d s", seconds) + 2;
    x += canvas_text(c, 0, x, ROLE_KEY, "F") + 1;
    x += canvas_text(c, 0, x, ROLE_STATUS, "now") + 2;
    x += canvas_text(c, 0, x, ROLE_STATUS, "any other key: stay") + 3;
    canvas_word(c, 0, x, c->cols - x - 1, ROLE_DIM, MARK_NONE, text);
    return true;
}

/* Draws the message above the key bar, in place of the time line or, on a low screen, of the measures. */
static void
draw_notice(const struct app *app, const struct canvas *c)
{
    if (app->mode == MODE_PANELS && draw_upcoming(app, c))
        return;
    if (app->message.text[0] != '\0')
        draw_message(app, c);
    else
        draw_progress(&app->run, c);
}

static void
draw_status(struct app *app, const struct canvas *c)
{
    static const char *const over[] = {[MODE_PANELS] = NULL,
                                       [MODE_HELP] = "↑ ↓ scroll  / search  n next  N previous  Esc close",
                                       [MODE_MESSAGES] = "↑ ↓ scroll  Esc close",
                                       [MODE_CHOOSER] = "Enter choose  ↑ ↓ move  Esc leave",
                                       [MODE_MODELS] = "Esc leave",
                                       [MODE_LINE] = "Enter run  Esc leave  ↑ earlier  Tab offers  Ctrl-J new line",
                                       [MODE_QUIT] = NULL};
    const struct canvas room = canvas_inside(c, 0, 1, 1, c->cols - 2);
    if (app->mode == MODE_LINE && app->line.use != LINE_PROMPT) {
        fill(c, ROLE_STATUS);
        line_draw(&app->line, c);
    } else if (app->mode == MODE_QUIT) {
        fill(c, ROLE_STATUS);
        canvas_print(&room, 0, 0, ROLE_WARN,
                     "this run is not exported yet:  q %s and lose it   e export   other keys stay",
                     app->options.opening != NULL && app->options.opening->path[0] != '\0' ? "open the other" : "quit");
    } else if (over[app->mode] != NULL) {
        key_row_say(over[app->mode], c, &app->clicks);
    } else {
        key_bar_draw(&app->panes, &app->run, c, &app->clicks);
    }
}

static void
draw(struct app *app)
{
    struct grid *g = &app->screen.grid;
    const struct layout *l = &app->panes.layout;
    const struct canvas whole = layout_canvas((struct rect){0, 0, g->rows, g->cols}, g);
    app->clicks.n = 0;
    panes_arrange(&app->panes, g->rows, g->cols, scope_now(app->run.scope)->device[0] != '\0');
    if (l->too_small) {
        draw_too_small(&app->run, &whole);
        return;
    }
    const struct canvas title = layout_canvas(l->title, g), timeline = layout_canvas(l->timeline, g),
                        measures = layout_canvas(l->measures, g), device = layout_canvas(l->device, g),
                        status = layout_canvas(l->status, g);
    title_draw(&app->run, &title, &app->clicks);
    panes_draw(&app->panes, g);
    if (timeline.rows > 0)
        timeline_draw(&app->run, &timeline);
    measures_draw(app->run.scope, &measures);
    if (l->device.rows > 0)
        device_draw(app->run.scope, &device);
    draw_status(app, &status);
    draw_notice(app, timeline.rows > 0 ? &timeline : &measures);
    if (app->mode == MODE_HELP)
        help_draw(&app->help_top, &app->help_search, &app->panes, app->verbs, &whole);
    else if (app->mode == MODE_MESSAGES)
        messages_draw(&app->message, &app->help_top, &whole);
    else if (app->mode == MODE_CHOOSER)
        chooser_draw(&app->chooser, &whole);
    else if (app->mode == MODE_MODELS)
        model_chooser_draw(&app->model_chooser, &whole);
    else if (app->mode == MODE_LINE && app->line.use == LINE_PROMPT)
        line_draw_prompt(&app->line, &whole);
}

bool
frame_draw(struct app *app, struct err *err)
{
    if (screen_begin(&app->screen)) {
        app->screen.drawn_version = scope_now(app->run.scope)->version;
        draw(app);
        if (screen_show(&app->screen))
            return true;
    }
    return err_set(err, ERR_WORK, "out of memory for the screen");
}
