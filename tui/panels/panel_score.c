/* The panel of `:score`: a row for each drafter, the fastest first, with its best setting, its tokens per round and its
 * forecast speed on finished texts; the options of other engines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tune/score_report.h"
#include "tui/panels/judge.h"
#include "tui/panels/panel.h"

#define RATE    13 /* columns of tokens per round, */
#define SPEED   6  /* and of a speed */
#define UP_TO   "  up to n sequences"
#define DETAILS 2 /* rows below the drafters */
/* The table of acceptances: columns before those for numbers of sequences, and of each of these */
#define NEEDS_AT 23
#define NEED     6

struct score_panel {
    const struct score_report *report;
    const struct score_row *row[SCORE_ROWS]; /* (n) of the report */
    uint32_t n, at;                          /* at: the cursor's */
    uint32_t depth, category; /* shows answers of this range of depths, or of this category, from 1; 0: all */
    int shows; /* 'f': options of other engines for the cursor's row; 'b': the acceptance that drafters need; 0: speeds */
    int top, rows;
    int setting, rate, speed, up_to; /* where columns begin; up_to 0: there is none */
    struct speed_axis axis;          /* cols 0: none */
};

static bool
active_score(const struct view *v)
{
    return v->score != NULL;
}

/* Reads the rows, and keeps the cursor on one of them. Returns false if there are none. */
static bool
update(struct score_panel *p, const struct view *v)
{
    p->report = v->score;
    p->n = active_score(v) ? score_order(v->score, p->row) : 0;
    p->at = p->at < p->n ? p->at : 0;
    return p->n > 0;
}

static const struct score_part *
part_of(const struct score_panel *p, const struct score_row *row)
{
    return p->category > 0 ? &row->category[p->category - 1] : p->depth > 0 ? &row->depth[p->depth - 1] : &row->all;
}

/* ---- drawing ---- */

/* In a narrow panel the last column is dropped first, then the axis. */
static void
place_columns(struct score_panel *p, int cols)
{
    const int up_to = (int)strlen(UP_TO), names = cols < 90 ? cols - 4 - RATE - SPEED : cols * 11 / 30;
    p->setting = names * 6 / 11 + 2;
    p->rate = names + 4;
    p->speed = p->rate + RATE;
    p->axis = (struct speed_axis){p->speed + SPEED, cols - p->speed - SPEED - 1, SPEED_AXIS_LOW, SPEED_AXIS_HIGH};
    p->up_to = p->axis.cols >= SPEED_AXIS_LEAST + up_to ? cols - 1 - up_to : 0;
    p->axis.cols -= p->up_to > 0 ? up_to : p->axis.cols < SPEED_AXIS_LEAST ? p->axis.cols : 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->row[i]->kind != SCORE_NOT && !isnan(part_of(p, p->row[i])->speedup.low))
            speed_axis_include(&p->axis, part_of(p, p->row[i])->speedup, true);
}

/* Draws the measured acceptance, and the one at which the speedup with so many sequences at a time is 1. */
static void
draw_needs(const struct score_panel *p, const struct canvas *c, int y, const struct score_row *row)
{
    char text[16];
    canvas_text(c, y, p->setting + 2, ROLE_TEXT, judge_number((double)row->acceptance, text));
    for (int i = 0; i < SCORE_SEQUENCES; i++) {
        const char *need = row->need_at[i] >= 1 ? "never" : judge_number((double)row->need_at[i], text);
        canvas_text(c, y, p->setting + NEEDS_AT + NEED * (i + 1) - text_width(need),
                    row->acceptance > row->need_at[i] ? ROLE_OK : ROLE_DIM, need);
    }
}

static void
draw_row(const struct score_panel *p, const struct canvas *c, int y, uint32_t rank)
{
    char text[300];
    const struct score_row *row = p->row[rank];
    const struct score_part *part = part_of(p, row);
    const enum role speed = speed_role(part->speedup);
    const enum role role = rank == p->at ? ROLE_FOCUS : row->kind == SCORE_NOT ? ROLE_DIM : ROLE_TEXT;
    canvas_text(c, y, 0, ROLE_FOCUS, rank == p->at ? "▸" : " ");
    canvas_word(c, y, 1, p->setting - 2, role, MARK_NONE, score_drafter(row, text, sizeof text));
    if (row->kind == SCORE_NOT || p->shows == 'b') {
        if (row->kind == SCORE_NOT)
            canvas_word(c, y, p->setting, c->cols - p->setting, role, MARK_NONE, row->why);
        else
            draw_needs(p, c, y, row);
        return;
    }
    canvas_word(c, y, p->setting, p->rate - 2 - p->setting, role, MARK_NONE, row->setting);
    if (part->tokens == 0)
        return;
    canvas_print(c, y, p->rate, ROLE_TEXT, "%s%.2f ±%s", row->kind == SCORE_EXACT ? " " : "≈", part->per_round.value,
                 judge_number(part->per_round.se, text));
    canvas_print(c, y, p->speed, speed, "%5.2f", part->speedup.value);
    if (p->axis.cols > 0 && !isnan(part->speedup.low))
        speed_axis_interval(&p->axis, c, y, part->speedup, true, speed);
    if (p->up_to > 0 && !isnan(row->speedup_at[0]))
        canvas_print(c, y, p->up_to + 8, ROLE_TEXT, score_up_to(row) > 0 ? "%u" : "–", score_up_to(row));
}

/* Draws the verdict on the cursor's row on all texts, and whose texts they are. */
static void
draw_details(const struct score_panel *p, const struct score_row *row, const struct canvas *c, int y)
{
    char text[300];
    const struct comparison *of = &row->all.speedup;
    int x = canvas_print(c, y, 0, ROLE_FOCUS, "%s  ", score_drafter(row, text, sizeof text));
    if (row->kind != SCORE_NOT)
        x += canvas_print(c, y, x, ROLE_TEXT, isnan(of->low) ? "%.2f × ar%s  " : "%.2f × ar%s, %.2f to %.2f  ",
                          of->value, p->report->in_time ? "" : " by weights", of->low, of->high);
    x += canvas_print(c, y, x, speed_role(*of), "%s  ", score_verdict(row));
    canvas_word(c, y, x, c->cols - x, ROLE_TEXT, MARK_NONE, row->setting);
    canvas_word(c, y + 1, 0, c->cols, ROLE_DIM, MARK_NONE, score_own_text(p->report, text, sizeof text));
}

/* Draws the setting as commands of other engines, with the names of its models. */
static void
draw_flags(const struct score_panel *p, const struct view *v, const struct score_row *row, const struct canvas *c)
{
    char text[PANEL_COMMAND];
    const struct policy_ops *ops = policy_named(v->policies, row->preset.policy);
    const struct engine_models models = {p->report->model, row->drafter[0] != '\0' ? row->drafter : NULL};
    int y = 1;
    canvas_word(c, 0, 0, c->cols, ROLE_FOCUS, MARK_NONE, score_drafter(row, text, sizeof text));
    for (enum other_engine e = 0; e < ENGINES && y < c->rows && ops != NULL; e++) {
        engine_flags(e, ops, &row->preset, &models, NULL, 0, text, sizeof text);
        y = panel_engine(c, y, e, text);
    }
}

static void
draw_score(void *state, const struct view *v, const struct canvas *c)
{
    struct score_panel *p = state;
    if (!update(p, v)) {
        canvas_paragraph(c, ROLE_DIM, "no conversation has been scored yet; the models only read texts");
        return;
    }
    const struct score_row *row = p->row[p->at];
    if (p->shows == 'f') {
        draw_flags(p, v, row, c);
        return;
    }
    place_columns(p, c->cols);
    p->rows = c->rows - 1 - DETAILS < (int)p->n ? c->rows - 1 - DETAILS : (int)p->n;
    p->top = panel_scroll(p->top, (int)p->at, (int)p->n, p->rows);
    canvas_text(c, 0, 1, ROLE_DIM, "drafter");
    if (p->shows == 'b') {
        canvas_text(c, 0, p->setting, ROLE_DIM, "accepted  needed at n =");
        for (int i = 0; i < SCORE_SEQUENCES; i++)
            canvas_print(c, 0, p->setting + NEEDS_AT + NEED * i, ROLE_DIM, "%*u", NEED, score_sequences[i]);
    } else {
        canvas_text(c, 0, p->setting, ROLE_DIM, "best setting");
        canvas_text(c, 0, p->rate, ROLE_DIM, "tokens/round");
        canvas_text(c, 0, p->speed + 1, ROLE_DIM, "× ar");
        if (p->axis.cols > 0)
            speed_axis_draw(&p->axis, c);
        if (p->up_to > 0)
            canvas_text(c, 0, p->up_to, ROLE_DIM, UP_TO);
    }
    for (int i = 0; i < p->rows; i++)
        draw_row(p, c, 1 + i, (uint32_t)(p->top + i));
    draw_details(p, row, c, 1 + p->rows);
}

static void
note_score(void *state, const struct view *v, char *out, int n)
{
    const struct score_panel *p = state;
    const size_t used = active_score(v) ? strlen(score_progress(v->score, out, (size_t)n)) : 0;
    if (used > 0 && p->category > 0)
        snprintf(out + used, (size_t)n - used, " · %s", v->score->category[p->category - 1]);
    else if (used > 0 && p->depth > 0)
        snprintf(out + used, (size_t)n - used, " · from position %u", score_depths[p->depth - 1]);
}

/* ---- keys ---- */

/* Goes to the next part that has answers; after the last one, to all answers. */
static void
next_part(uint32_t *part, uint32_t *other, const struct score_part *parts, uint32_t n)
{
    *other = 0;
    do
        *part = *part < n ? *part + 1 : 0;
    while (*part > 0 && parts[*part - 1].tokens == 0);
}

static bool
key_score(void *state, const struct view *v, int key)
{
    struct score_panel *p = state;
    const long by = input_step(key, p->rows > 1 ? p->rows - 1 : 1).down;
    if (!update(p, v))
        return false;
    const struct score_row *first = p->row[0]; /* all drafters have the same answers */
    if (by != 0)
        p->at = by < -(long)p->at ? 0 : by < (long)(p->n - p->at) ? (uint32_t)((long)p->at + by) : p->n - 1;
    else if (key == INPUT_ENTER)
        panel_command(v, "score take %u", p->at + 1);
    else if (key == 'd')
        next_part(&p->depth, &p->category, first->depth, SCORE_DEPTHS);
    else if (key == 'c')
        next_part(&p->category, &p->depth, first->category, p->report->n_categories);
    else if (key == 'f' || key == 'b' || (key == INPUT_ESCAPE && p->shows != 0))
        p->shows = key == INPUT_ESCAPE || key == p->shows ? 0 : key;
    else
        return false;
    return true;
}

static const char *
brief_score(const struct view *v)
{
    const bool takes = v->live && v->score != NULL && v->score->left_s == 0; /* else the run is paused or recorded */
    return takes ? "Enter take  d depth  c category  b break-even  f flags"
                 : "d depth  c category  b break-even  f flags";
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "choose a drafter"},
    {"Enter", "take its best setting; :score take N"},
    {"d, c", "only answers that begin in a range of positions, or of a category; after the last one all"},
    {"b", "break-even: the acceptance measured here, and the one needed with n sequences at a time; b or Esc: back"},
    {"f", "options of other engines for its best setting; f or Esc: back"},
    {"2.31 ±.04, ≈", "tokens per round with one standard error over conversations; ≈: estimated"},
    {"Esc", "close the options; stop scoring, and keep the conversations so far; :score stop"},
    {NULL, NULL},
};

const struct panel_ops panel_score = {
    .name = "score",
    .title = "score",
    .brief_now = brief_score,
    .place = PANEL_BOTTOM,
    .weight = 6,
    .min_cols = 106,
    .active = active_score,
    .keys = keys,
    .state_size = sizeof(struct score_panel),
    .draw = draw_score,
    .note = note_score,
    .key = key_score,
};
