/* The race of `:tune`: a row for each setting, the fastest first, with its interval; the result on held-out prompts;
 * the options of other engines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tune/tuner.h"
#include "tui/panels/panel.h"

#define NUMBERS   12  /* columns of a speed and its place before the axis */
#define WIDE      140 /* columns from which categories are beside the axis, */
#define BESIDE    40  /* in so many columns, */
#define DROPPED   22  /* or the heat in which a setting was dropped, from NARROW columns on */
#define NARROW    100
#define NAME_MOST 40 /* columns of a name beside an axis */

struct tune_panel {
    uint32_t candidate; /* the cursor */
    bool moved;         /* false: it is on the fastest setting */
    bool flags;         /* shows the options of other engines, */
    uint32_t engine;    /* from this one on */
    int top, rows, header;
};

static bool
active_tune(const struct view *v)
{
    return v->tuner != NULL && v->tuner->phase != TUNE_NOTHING;
}

static bool
has_rows(const struct view *v)
{
    return active_tune(v) && v->tuner->n_candidates > 0;
}

/* Returns the number of settings, and puts the cursor on one of them, at first on the fastest one; *row is its row. */
static uint32_t
ranked(struct tune_panel *p, const struct view *v, struct race_standing all[RACE_CANDIDATES], uint32_t *row)
{
    const uint32_t n = race_standings(v->tuner->race, all);
    p->moved = p->moved && p->candidate < n;
    if (!p->moved)
        p->candidate = tuner_winner(v->tuner);
    for (*row = 0; *row + 1 < n && all[*row].candidate != p->candidate;)
        ++*row;
    return n;
}

/* ---- drawing ---- */

/* As tune_interval() has it. */
static bool
is_known(struct comparison c)
{
    return c.n >= RACE_HEATS && !isnan(c.low);
}

static void
draw_row(const struct tune_panel *p, const struct view *v, const struct canvas *c, int y, int rank, int name_cols,
         const struct speed_axis *a, const struct race_standing *s)
{
    char name[160], text[64];
    const bool here = s->candidate == p->candidate, runs = s->candidate == tuner_at(v->tuner);
    const enum role role = here ? ROLE_FOCUS : s->dropped > 0 ? ROLE_DIM : ROLE_TEXT;
    if (here)
        canvas_text(c, y, 0, ROLE_FOCUS, "▸");
    canvas_print(c, y, 1, runs ? ROLE_KNOB_PENDING : ROLE_DIM, "%2d", rank);
    canvas_word(c, y, 4, name_cols, role, MARK_NONE, tuner_name(v->tuner, s->candidate, " ", name, sizeof name));
    if (s->heats == 0)
        return;
    canvas_print(c, y, 5 + name_cols, s->dropped > 0 ? ROLE_DIM : ROLE_TEXT, "%5.2f", s->speed.value);
    if (a == NULL)
        return;
    /* the speed of plain decoding is 1 */
    speed_axis_interval(a, c, y, s->speed, is_known(s->speed) && s->candidate != 0,
                        s->dropped > 0 ? ROLE_DIM : ROLE_SERIES_1);
    if (s->dropped > 0)
        snprintf(text, sizeof text, "dropped in heat %u", s->dropped);
    else
        tuner_extremes(v->tuner, s->candidate, text, sizeof text);
    canvas_fit(c, y, a->x + a->cols + 2, ROLE_DIM, "%s", text);
}

/* "1.54 × ar, 1.46 to 1.62" */
static void
speed_text(struct comparison c, const char *of, char *out, size_t n)
{
    char interval[40];
    snprintf(out, n, "%.2f × ar, %s", c.value, tune_interval(c, of, interval, sizeof interval));
}

/* Draws the result on held-out prompts, by category where it fits. */
static void
draw_held_out(const struct view *v, const struct canvas *c, uint32_t candidate, int y)
{
    char name[120], speed[48];
    const struct race *r = v->tuner->race;
    const struct comparison all = race_held_out(r, candidate, 0, NULL);
    speed_text(all, "prompts", speed, sizeof speed);
    int x = canvas_text(c, y, 0, ROLE_TITLE, "held out");
    x += 2 +
         canvas_print(c, y, x + 2, ROLE_TEXT, "%s  %s", tuner_name(v->tuner, candidate, " ", name, sizeof name), speed);
    const char *verdict = tune_verdict(all), *category;
    if (x + 2 + (int)strlen(verdict) > c->cols)
        return;
    x += 2 + canvas_text(c, y, x + 2, speed_role(all), verdict);
    for (uint32_t i = 0; (category = tuner_category(v->tuner, i)) != NULL; i++) {
        const struct comparison of = race_held_out(r, candidate, 0, category);
        if (of.n > 1 && of.n < all.n)
            x += canvas_fit(c, y, x, ROLE_DIM, "  %.30s %.2f", category, of.value);
    }
}

/* Draws the measures of the cursor's row. */
static void
draw_details(const struct view *v, const struct canvas *c, const struct race_standing *s, int y)
{
    char name[160], speed[48], more[64] = "";
    if (s->heats > 0)
        speed_text(s->speed, "heats", speed, sizeof speed);
    else
        snprintf(speed, sizeof speed, "no heat yet");
    if (s->dropped > 0)
        snprintf(more, sizeof more, ", dropped in heat %u", s->dropped);
    const int x = canvas_word(c, y, 0, c->cols / 2, ROLE_FOCUS, MARK_NONE,
                              tuner_name(v->tuner, s->candidate, " ", name, sizeof name));
    char text[160];
    snprintf(text, sizeof text, "%s, %u heat%s%s", speed, s->heats, s->heats == 1 ? "" : "s", more);
    canvas_word(c, y, x + 2, c->cols - x - 2, ROLE_TEXT, MARK_NONE, text);
}

static void
draw_race(struct tune_panel *p, const struct view *v, const struct canvas *c)
{
    struct race_standing all[RACE_CANDIDATES];
    uint32_t row, held;
    const int n = (int)ranked(p, v, all, &row);
    const struct race *r = v->tuner->race;
    const bool result = race_held_out_runs(r, &held) >= 2 && c->rows > 5;
    const bool runner_up = r->finalist[RACE_RUNNER_UP] != 0 && tuner_winner(v->tuner) == r->finalist[RACE_RUNNER_UP];
    const uint32_t first = runner_up ? r->finalist[RACE_RUNNER_UP] : r->finalist[RACE_WINNER],
                   next = runner_up ? r->finalist[RACE_WINNER] : r->finalist[RACE_RUNNER_UP];
    const bool second = result && next != 0 && next != first && (c->rows > 10 || c->rows - n > 2);
    const bool details = c->rows > 4 && (p->moved || c->rows > 10 || c->rows - n > 1 + result + second);
    const int below = details + result + second;
    p->header = c->rows > 3 ? 1 : 0;
    p->rows = c->rows - p->header - below < n ? c->rows - p->header - below : n;
    p->top = panel_scroll(p->top, (int)row, n, p->rows);
    int name_cols = 4;
    for (int i = 0; i < n; i++) {
        char name[160];
        const int width = text_width(tuner_name(v->tuner, all[i].candidate, " ", name, sizeof name));
        name_cols = width > name_cols ? width : name_cols;
    }
    name_cols = name_cols > NAME_MOST ? NAME_MOST : name_cols;
    const int axis_x = 5 + name_cols + NUMBERS - 4, room = c->cols - axis_x -
                                                           (c->cols > WIDE     ? BESIDE
                                                            : c->cols > NARROW ? DROPPED
                                                                               : 1);
    struct speed_axis a = {axis_x, room, SPEED_AXIS_LOW, SPEED_AXIS_HIGH};
    for (int i = 0; i < n; i++) /* all speeds, and the intervals of settings that are left */
        speed_axis_include(&a, all[i].speed, is_known(all[i].speed) && all[i].dropped == 0);
    const bool plain = room < SPEED_AXIS_LEAST;
    if (plain)
        name_cols = c->cols - NUMBERS;
    if (p->header > 0) {
        canvas_text(c, 0, 4, ROLE_DIM, "setting");
        canvas_text(c, 0, 5 + name_cols + 1, ROLE_DIM, "× ar");
        if (!plain)
            speed_axis_draw(&a, c);
    }
    for (int i = 0; i < p->rows; i++)
        draw_row(p, v, c, p->header + i, p->top + i + 1, name_cols, plain ? NULL : &a, &all[p->top + i]);
    int y = p->header + p->rows;
    if (details)
        draw_details(v, c, &all[row], y++);
    if (result)
        draw_held_out(v, c, first, y++);
    if (second)
        draw_held_out(v, c, next, y);
}

/* Draws the cursor's setting as commands of other engines. */
static void
draw_flags(struct tune_panel *p, const struct view *v, const struct canvas *c)
{
    char name[160], text[PANEL_COMMAND];
    struct race_standing all[RACE_CANDIDATES];
    uint32_t row;
    int y = 1;
    ranked(p, v, all, &row);
    canvas_word(c, 0, 0, c->cols, ROLE_FOCUS, MARK_NONE, tuner_name(v->tuner, p->candidate, " ", name, sizeof name));
    for (enum other_engine e = p->engine; e < ENGINES && y < c->rows; e++)
        y = panel_engine(c, y, e, tuner_engine_command(v->tuner, e, p->candidate, false, text, sizeof text));
}

static void
draw_tune(void *state, const struct view *v, const struct canvas *c)
{
    struct tune_panel *p = state;
    char text[300];
    if (!active_tune(v))
        return;
    if (!has_rows(v))
        canvas_paragraph(c, ROLE_DIM,
                         v->tuner->phase == TUNE_RECORDS
                             ? "plain decoding of a few prompts comes first: its speed, and the layers' predictions "
                               "for the forecasts that candidates are chosen by"
                             : tuner_progress(v->tuner, text, sizeof text));
    else if (p->flags)
        draw_flags(p, v, c);
    else
        draw_race(p, v, c);
}

static void
note_tune(void *state, const struct view *v, char *out, int n)
{
    char name[120];
    (void)state;
    if (!active_tune(v) || (!has_rows(v) && !tuner_running(v->tuner))) /* the panel itself has this text */
        return;
    tuner_progress(v->tuner, out, (size_t)n);
    const size_t used = strlen(out);
    const bool over = v->tuner->phase == TUNE_OVER;
    if (!has_rows(v) || v->tuner->race->heat == 0)
        return;
    if (over && tuner_winner(v->tuner) > 0 && !tuner_clear(v->tuner))
        snprintf(out + used, (size_t)n - used, " · none is clearly faster");
    else
        snprintf(out + used, (size_t)n - used, " · fastest%s: %s", over ? "" : " so far",
                 tuner_name(v->tuner, tuner_winner(v->tuner), " ", name, sizeof name));
}

/* ---- keys ---- */

static void
choose(struct tune_panel *p, const struct view *v, long row)
{
    struct race_standing all[RACE_CANDIDATES];
    uint32_t before;
    const long n = (long)ranked(p, v, all, &before);
    row = row < 0 ? 0 : row >= n ? n - 1 : row;
    p->candidate = all[row].candidate;
    p->moved = true;
    panel_command(v, "tune show %ld", row + 1);
}

static bool
key_tune(void *state, const struct view *v, int key)
{
    struct tune_panel *p = state;
    struct race_standing all[RACE_CANDIDATES];
    uint32_t row;
    if (!has_rows(v))
        return false;
    ranked(p, v, all, &row);
    const struct step by = input_step(key, p->rows > 1 ? p->rows - 1 : 1);
    if (by.down != 0 && p->flags) {
        p->engine = by.down < 0 ? p->engine - (p->engine > 0) : p->engine + (p->engine + 1 < ENGINES);
        return true;
    }
    if (by.down != 0) {
        choose(p, v, (long)row + by.down);
        return true;
    }
    switch (key) {
    case INPUT_ESCAPE:
        if (!p->flags)
            return false;
        p->flags = false;
        return true;
    case INPUT_HOME:
        p->moved = false;
        panel_command(v, "tune show now");
        return true;
    case INPUT_ENTER: panel_command(v, "tune take %u", row + 1); return true;
    case 's': panel_command(v, "command tune save %u ", row + 1); return true;
    case 'y': panel_command(v, "tune copy %u", row + 1); return true;
    case 'f':
        p->flags = !p->flags;
        p->engine = 0;
        return true;
    default: return false;
    }
}

static bool
mouse_tune(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct tune_panel *p = state;
    struct race_standing all[RACE_CANDIDATES];
    uint32_t at;
    const int row = y - p->header;
    (void)c, (void)x;
    if (has_rows(v) && p->flags && mouse_wheel(action) != 0)
        return key_tune(state, v, mouse_wheel(action) < 0 ? INPUT_UP : INPUT_DOWN);
    if (!has_rows(v) || p->flags)
        return false;
    ranked(p, v, all, &at);
    if (mouse_wheel(action) != 0) {
        choose(p, v, (long)at + mouse_wheel(action));
        return true;
    }
    if ((action != MOUSE_PRESS && action != MOUSE_DOUBLE) || row < 0 || row >= p->rows)
        return false;
    choose(p, v, p->top + row);
    return action == MOUSE_DOUBLE ? key_tune(state, v, INPUT_ENTER) : true;
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn",
     "choose a setting; the other panels show its last run. Home: the fastest one, and the current run"},
    {"Enter", "take the setting; double click; :tune take N"},
    {"s", "save it as a preset; :tune save N NAME"},
    {"y", "copy it as a command line; :tune copy N"},
    {"f", "options of other engines for it; ↑ ↓ go from engine to engine; f or Esc: the race again"},
    {"├─●─┤", "the mean over prompts with its 95% interval, in multiples of plain decoding (ar)"},
    {"dropped", "slower than the fastest one on the same prompts, or in the slower half when time was short"},
    {"held out", "the result: speed on prompts that took no part in the race"},
    {"Esc", "close the options; stop the race, and the settings are again those from before"},
    {NULL, NULL},
};

const struct panel_ops panel_tune = {
    .name = "tune",
    .title = "tune",
    .brief = "Enter take  s save  y copy  f flags",
    .place = PANEL_BOTTOM,
    .weight = 6,
    .min_cols = 100,
    .active = active_tune,
    .keys = keys,
    .state_size = sizeof(struct tune_panel),
    .draw = draw_tune,
    .note = note_tune,
    .key = key_tune,
    .mouse = mouse_tune,
};
