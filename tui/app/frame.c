/* A frame: layout, panels, bars and overlays, sent to the terminal. */
#include "base/clock.h"
#include "base/utf8.h"
#include "tui/app/app_state.h"
#include "tui/app/bars.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the help and the messages ---- */

/* The meaning of each number of the bars and panels. docs/methods.md has the formulas. */
static const struct glossary {
    const char *name, *what;
} glossary[] = {
    {"tokens/round", "emitted tokens ÷ rounds: accepted drafts and the target's own token"},
    {"segment, last 32 rounds, run",
     "the rounds that all numbers on the screen describe; a segment: those since the last change of a setting (v)"},
    {"acceptance", "accepted drafts ÷ verified drafts"},
    {"eTPL", "emitted tokens ÷ layers loaded; a load reads one layer's weights once"},
    {"discard", "discarded drafts per emitted token"},
    {"eq. 5", "SpecBound's equation 5: the speedup predicted from acceptance and depth"},
    {"modelled ×", "weights that autoregressive decoding reads for the same tokens ÷ weights that were read; times are "
                   "not part of it"},
    {"measured of modelled",
     "measured speedup by the modelled one; below 1 is time that reading weights does not explain"},
    {"draft heads verify probe",
     "where the rounds' time went; draft is without its head calls, probe is the scope's own"},
    {"waited, learned", "time paused within rounds; passes that a policy learns in (SWIFT's search)"},
    {"tok/s", "emitted tokens ÷ time of drafting and verifying"},
    {"12 ±3", "one standard error over the rounds of the number; that of × ar includes the baseline's"},
    {"25/s shown · 410 engine", "the speed that the screen shows, and the speed of the engine in its rounds"},
    {"goodput", "tok/s of a batch: tokens of all its sequences ÷ the rounds' time"},
    {"a tile's tok/s",
     "its tokens ÷ the whole time of the rounds that it took part in: the speed that its reader sees"},
    {"× ar", "tok/s ÷ tok/s of autoregressive decoding. b measures these on the same text; then short slices of it run "
             "between rounds, in at most a ninth of the time"},
    {"~1.2× ar", "approximate: too few slices ran between these rounds, and the machine may have been faster or slower "
                 "when b was pressed"},
    {"no gain: 12% of tested drafts accepted, 31% needed",
     "a draft is tested if those before it were accepted; needed: the share of accepted ones at which the policy would "
     "be as fast as plain decoding"},
    {"no gain: at most 0.89×", "the speed if every draft were accepted: below 1, drafting itself takes longer than it "
                               "can save. A probe is a head call on one row"},
    {"no gain: 8 rows cost 2.1×", "the time of a verification of 8 rows ÷ that of one row"},
    {"next: P suffix 1.2×", "what to do where there is no gain, with its forecast, × plain decoding; a click does it"},
    {"lossless ✓ 214", "the autoregressive tokens were generated too and are the same, one by one, so many of them"},
    {"┊", "a knob, a policy or a head was changed before this round"},
    {"p, H, KL, rank", "of a layer's prediction: confidence; entropy in nats; divergence from the last layer's; the "
                       "rank that it gives the last layer's token, of which 1 is the best"},
    {"▒ exited, ▓ spurious",
     "layers after the exit; confident and wrong: confidence above the threshold, but not the last layer's token"},
    {"S 4096 + 312, ∉",
     "the draft vocabulary: so many tokens by rank, and tokens of the text; a layer's likeliest token that it lacks"},
    {"a12, w12, r12", "a model of several kinds of layers: attention, attention within a window, a recurrent layer"},
    {"experts a layer", "of a mixture of experts: how many of a layer's experts a verification reads, on average over "
                        "layers. Several rows use more experts than one row, so verifying many drafts costs more"},
    {"ECE", "how far acceptance was from confidence, on average over drafts; 0: accepted as often as confident"},
    {"✓ ✗ ◆ + ◌",
     "a draft accepted, rejected; a correction; a bonus token; a draft not yet verified. The number is its exit layer"},
    {NULL, NULL},
};

struct page {                    /* writes lines; the visible ones reach the screen */
    const struct canvas *canvas; /* NULL: lines are only counted */
    int cols, line, top;
    int column;         /* of the text beside a key */
    const char *filter; /* only rows that contain it are written; "": all */
};

/* Draws a key and its meaning, which is wrapped beside it, or below a key that is too long for the column; or a heading
 * (right: NULL). */
static void
row(struct page *p, enum role left_role, const char *left, enum role role, const char *right)
{
    const int x = p->column;
    const bool below = text_width(left) + 2 > x;
    bool first = true;
    if (p->filter[0] != '\0' &&
        (right == NULL || (strcasestr(left, p->filter) == NULL && strcasestr(right, p->filter) == NULL)))
        return;
    do {
        const int y = p->line++ - p->top;
        const size_t n = right == NULL || (first && below) ? 0 : text_wrap(right, p->cols - x);
        if (p->canvas != NULL && y >= 0 && y < p->canvas->rows) {
            canvas_word(p->canvas, y, 1, p->cols - 1, left_role, MARK_NONE, first ? left : "");
            canvas_print(p->canvas, y, x, role, "%.*s", (int)n, right == NULL ? "" : right);
        }
        right = right == NULL ? NULL : right + n + strspn(right + n, " ");
        first = false;
    } while (right != NULL && right[0] != '\0');
}

/* Begins a section whose keys are up to `widest` columns wide. */
static void
heading(struct page *p, const char *text, int widest)
{
    const int most = p->cols < 60 ? 12 : 26;
    p->column = widest + 3 < most ? widest + 3 : most;
    if (p->line > 0)
        row(p, ROLE_TEXT, "", ROLE_TEXT, NULL);
    row(p, ROLE_TITLE, text, ROLE_TEXT, NULL);
}

static int
wider(int widest, const char *keys)
{
    const int width = text_width(keys);
    return width > widest ? width : widest;
}

/* Writes the keys of a panel that is on the screen. */
static void
write_panel(struct page *p, const struct panes *panes, int i)
{
    const struct panel_ops *ops = panel_registry[i];
    char text[80];
    int widest = 0;
    if (!panes_active(panes, i) || ops->keys == NULL || ops->keys[0].keys == NULL)
        return;
    for (const struct key_help *k = ops->keys; k->keys != NULL; k++)
        widest = wider(widest, k->keys);
    snprintf(text, sizeof text, "In %s%s", ops->title_now != NULL ? ops->title_now(&panes->view) : ops->title,
             i == panes->focus ? " (focused)" : "");
    heading(p, text, widest);
    for (const struct key_help *k = ops->keys; k->keys != NULL; k++)
        row(p, ROLE_KEY, k->keys, ROLE_TEXT, k->what);
}

/* The keys of the panels on the screen, those of the focused one first, the meaning of the marks, the commands. */
static void
write_help(struct page *p, const struct app *app)
{
    const struct panes *panes = &app->panes;
    int widest = text_width("mouse");
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++)
        widest = k->what != NULL ? wider(widest, k->keys) : widest;
    write_panel(p, panes, panes->focus);
    heading(p, "Keys everywhere", widest);
    for (const struct app_key *k = app_keys; k->key != INPUT_NONE; k++)
        if (k->what != NULL)
            row(p, ROLE_KEY, k->keys, ROLE_TEXT, k->what);
    row(p, ROLE_KEY, "mouse", ROLE_TEXT, "click focuses, wheel scrolls, drag moves knobs and the time line");
    for (int i = 0; i < panes->n; i++)
        if (i != panes->focus)
            write_panel(p, panes, i);
    heading(p, "Measures and marks", p->cols);
    for (const struct glossary *g = glossary; g->name != NULL; g++)
        row(p, ROLE_KEY, g->name, ROLE_TEXT, g->what);
    heading(p, "Commands, after ':' (Tab completes)", p->cols);
    for (const struct verb *v = app->verbs; v->name != NULL; v++) {
        char usage[100];
        if (v->what == NULL)
            continue;
        snprintf(usage, sizeof usage, ":%s %s", v->name, v->arguments);
        row(p, ROLE_KEY, usage, ROLE_TEXT, v->what);
    }
}

/* The messages so far, the oldest first. */
static void
write_messages(struct page *p, const struct app *app)
{
    const struct message *m = &app->message;
    p->column = 3;
    for (uint32_t i = m->n > MESSAGES_KEPT ? m->n - MESSAGES_KEPT : 0; i < m->n; i++)
        row(p, ROLE_DIM, "·", m->said[i % MESSAGES_KEPT].role, m->said[i % MESSAGES_KEPT].text);
    if (m->n == 0)
        row(p, ROLE_DIM, "no messages yet", ROLE_TEXT, NULL);
}

/* Draws a page in a box over the frame. Moves app->page_top, the first line shown, to a line that exists. */
static void
page_draw(struct app *app, const char *title, void (*write)(struct page *, const struct app *), const struct canvas *c)
{
    const struct help_filter *filter = &app->help_filter;
    const int cols = c->cols > 96 ? 92 : c->cols - 4, most = c->rows - 5;
    struct page page = {.cols = cols - 2, .filter = app->mode == MODE_HELP ? filter->text : ""};
    char note[100];
    write(&page, app);
    const int n = page.line, rows = n < 1 ? 1 : n < most ? n : most, last = n - rows;
    const struct canvas box = canvas_inside(c, (c->rows - rows - 2) / 3, (c->cols - cols) / 2, rows + 2, cols);
    const struct canvas inside = canvas_inside(&box, 1, 1, rows, cols - 2);
    app->page_top = app->page_top > last ? last : app->page_top;
    app->page_top = app->page_top < 0 ? 0 : app->page_top;
    if (page.filter[0] == '\0' && !filter->typing)
        snprintf(note, sizeof note, last > 0 ? "arrows scroll, any other key closes" : "any key closes");
    else if (filter->typing)
        snprintf(note, sizeof note, "/%s_", filter->text);
    else
        snprintf(note, sizeof note, "%s \"%s\"", n > 0 ? "rows with" : "no row has", filter->text);
    canvas_clear(&box);
    canvas_box(&box, title, note, true);
    page = (struct page){.canvas = &inside, .cols = cols - 2, .top = app->page_top, .filter = page.filter};
    write(&page, app);
}

/* ---- the frame ---- */

static void
draw_too_small(const struct followed *run, const struct canvas *c)
{
    char text[120];
    snprintf(text, sizeof text, "specscope needs %d×%d, this is %d×%d; it %s", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS,
             c->cols, c->rows, follow_moving(run) ? "continues" : "waits");
    canvas_paragraph(c, ROLE_WARN, text);
}

static void
fill(const struct canvas *c, enum role role)
{
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, 0, x, role, " ");
}

static void
draw_tuning(const struct tuner *t, const struct canvas *c)
{
    char text[80];
    const double left = tuner_left_s(t);
    int x = 1 + canvas_print(c, 0, 1, ROLE_STATUS, "tune  %s ", tuner_progress(t, text, sizeof text));
    const int bar = c->cols < 100 ? 12 : 24;
    canvas_bar(c, 0, x, bar, tuner_done(t), ROLE_KNOB);
    x += bar + 2;
    if (!isnan(left))
        x += 2 + canvas_print(c, 0, x, ROLE_STATUS, "at most %s left", tune_time_text(left, text, sizeof text));
    x += 1 + canvas_text(c, 0, x, ROLE_KEY, "Esc");
    canvas_text(c, 0, x, ROLE_DIM, "stop");
}

static void
draw_sweeping(const struct knob_sweep *s, const struct canvas *c)
{
    const uint32_t done = sweep_done(s), points = s->n_points;
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
    const struct progress_event *progress = scope_now(run->scope)->progress;
    const bool failed = strncmp(end, "error", 5) == 0;
    if (follow_busy(run) || progress != NULL || failed)
        fill(c, ROLE_STATUS);
    if (run->scorer.runs) {
        canvas_text(c, 0, 1, ROLE_STATUS, "the run is paused while texts are scored; Esc stops scoring");
    } else if (sweeping_races(&run->sweeping)) {
        draw_tuning(run->sweeping.tuner, c);
    } else if (sweeping_now(&run->sweeping)) {
        draw_sweeping(run->sweeping.sweep, c);
    } else if (progress != NULL) {
        const int used =
            canvas_print(c, 0, 1, ROLE_STATUS, "%.15s %3.0f%% ", progress->what, (double)progress->done * 100);
        canvas_bar(c, 0, used + 2, 30, (double)progress->done, ROLE_KNOB);
    } else if (failed) {
        canvas_text(c, 0, 1, ROLE_ERROR, end);
    }
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
    if (app->message.text[0] == '\0') {
        draw_progress(&app->run, c);
        return;
    }
    fill(c, ROLE_STATUS);
    canvas_word(c, 0, 1, c->cols - 2, app->message.role, MARK_NONE, app->message.text);
}

static void
draw_status(struct app *app, const struct canvas *c)
{
    static const char *const over[] = {[MODE_PANELS] = NULL,
                                       [MODE_HELP] = "↑ ↓ scroll  / filter  Esc close",
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
        key_row_draw_pairs(over[app->mode], c, &app->clicks);
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
    panes_arrange(&app->panes, g->rows, g->cols, app->forecasting.reason_line.n > 0,
                  scope_now(app->run.scope)->device[0] != '\0');
    if (l->too_small) {
        draw_too_small(&app->run, &whole);
        return;
    }
    const struct canvas title = layout_canvas(l->title, g), timeline = layout_canvas(l->timeline, g),
                        measures = layout_canvas(l->measures, g), device = layout_canvas(l->device, g),
                        status = layout_canvas(l->status, g);
    title_draw(&app->run, &app->forecasting.shown, &app->forecasting.reason, &title, &app->clicks);
    panes_draw(&app->panes, g);
    const struct reason_line *why = &app->forecasting.reason_line;
    const bool instead = why->n > 0 && l->reason.rows == 0 && follow_live(&app->run); /* of the time line */
    const struct canvas reason = layout_canvas(instead ? l->timeline : l->reason, g);
    if (timeline.rows > 0 && !instead)
        timeline_draw(&app->run, &timeline);
    measures_draw(app->run.scope, &app->forecasting.shown, &measures);
    if (reason.rows > 0)
        reason_draw(why, &reason, &app->clicks);
    if (l->device.rows > 0)
        device_draw(app->run.scope, &device);
    draw_status(app, &status);
    draw_notice(app, timeline.rows > 0 ? &timeline : &measures);
    if (app->mode == MODE_HELP)
        page_draw(app, "help", write_help, &whole);
    else if (app->mode == MODE_MESSAGES)
        page_draw(app, "messages", write_messages, &whole);
    else if (app->mode == MODE_CHOOSER)
        chooser_draw(&app->chooser, &whole);
    else if (app->mode == MODE_MODELS)
        model_chooser_draw(&app->model_chooser, &whole);
    else if (app->mode == MODE_LINE && app->line.use == LINE_PROMPT)
        line_draw_prompt(&app->line, app_continues(app) ? "next turn of the conversation" : "prompt", &whole);
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
