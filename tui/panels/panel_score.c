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

struct score_panel {
    const struct score_report *report;
    uint32_t order[SCORE_ROWS], n, at; /* rows; the cursor's */
    uint32_t depth, category;          /* shows answers of this range of depths, or of this category, from 1; 0: all */
    bool flags;                        /* shows the options of other engines for the cursor's row */
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
    p->n = active_score(v) ? score_order(v->score, p->order) : 0;
    p->at = p->at < p->n ? p->at : 0;
    return p->n > 0;
}

static const struct score_row *
row_at(const struct score_panel *p, uint32_t rank)
{
    return &p->report->row[p->order[rank]];
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
        if (row_at(p, i)->kind != SCORE_NOT && !isnan(part_of(p, row_at(p, i))->speedup.low))
            speed_axis_include(&p->axis, part_of(p, row_at(p, i))->speedup, true);
}

static void
draw_row(const struct score_panel *p, const struct canvas *c, int y, uint32_t rank)
{
    char text[300];
    const struct score_row *row = row_at(p, rank);
    const struct score_part *part = part_of(p, row);
    const enum role speed = speed_role(part->speedup);
    const enum role role = rank == p->at ? ROLE_FOCUS : row->kind == SCORE_NOT ? ROLE_DIM : ROLE_TEXT;
    canvas_text(c, y, 0, ROLE_FOCUS, rank == p->at ? "▸" : " ");
    canvas_word(c, y, 1, p->setting - 2, role, MARK_NONE, score_drafter(row, text, sizeof text));
    canvas_word(c, y, p->setting, (row->kind == SCORE_NOT ? c->cols : p->rate - 2) - p->setting, role, MARK_NONE,
                row->kind == SCORE_NOT ? row->why : score_setting(row, text, sizeof text));
    if (row->kind == SCORE_NOT || part->tokens == 0)
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
        x += canvas_print(c, y, x, ROLE_TEXT, "%.2f × ar%s, %.2f to %.2f  ", of->value,
                          p->report->in_time ? "" : " by weights", of->low, of->high);
    x += canvas_print(c, y, x, speed_role(*of), "%s  ", score_verdict(row));
    canvas_word(c, y, x, c->cols - x, ROLE_TEXT, MARK_NONE, score_setting(row, text, sizeof text));
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
        canvas_paragraph(c, ROLE_DIM, "no conversation is scored yet: models read texts, and generate none");
        return;
    }
    const struct score_row *row = row_at(p, p->at);
    if (p->flags) {
        draw_flags(p, v, row, c);
        return;
    }
    place_columns(p, c->cols);
    p->rows = c->rows - 1 - DETAILS < (int)p->n ? c->rows - 1 - DETAILS : (int)p->n;
    p->top = panel_scroll(p->top, (int)p->at, (int)p->n, p->rows);
    canvas_text(c, 0, 1, ROLE_DIM, "drafter");
    canvas_text(c, 0, p->setting, ROLE_DIM, "best setting");
    canvas_text(c, 0, p->rate, ROLE_DIM, "tokens/round");
    canvas_text(c, 0, p->speed + 1, ROLE_DIM, "× ar");
    if (p->axis.cols > 0)
        speed_axis_draw(&p->axis, c);
    if (p->up_to > 0)
        canvas_text(c, 0, p->up_to, ROLE_DIM, UP_TO);
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

static void
take(const struct view *v, const struct score_row *row)
{
    bool has = row->kind != SCORE_NOT, here = false;
    for (enum aux_role role = 0; role < AUX_MODELS; role++) /* the name of a role without a model is "" */
        here = here || strcmp(scope_info(v->scope)->aux[role].name, row->drafter) == 0;
    if (has && !here && v->live)
        panel_print(v, "this run does not have %s; start with --draft FILE or --eagle FILE", row->drafter);
    has = has && (here || !v->live) && panel_command(v, "policy %s", row->preset.policy);
    for (uint32_t i = 0; i < row->preset.n_set && has; i++)
        has = panel_command(v, "set %s %s", row->preset.set[i].name, row->preset.set[i].text);
}

static bool
key_score(void *state, const struct view *v, int key)
{
    struct score_panel *p = state;
    const long by = input_step(key, p->rows > 1 ? p->rows - 1 : 1).down;
    if (!update(p, v))
        return false;
    const struct score_row *first = row_at(p, 0); /* all drafters have the same answers */
    if (by != 0)
        p->at = by < -(long)p->at ? 0 : by < (long)(p->n - p->at) ? (uint32_t)((long)p->at + by) : p->n - 1;
    else if (key == INPUT_ENTER)
        take(v, row_at(p, p->at));
    else if (key == 'd')
        next_part(&p->depth, &p->category, first->depth, SCORE_DEPTHS);
    else if (key == 'c')
        next_part(&p->category, &p->depth, first->category, p->report->n_categories);
    else if (key == 'f' || (key == INPUT_ESCAPE && p->flags))
        p->flags = !p->flags;
    else
        return false;
    return true;
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "choose a drafter"},
    {"Enter", "take its best setting"},
    {"d, c", "only answers that begin in a range of positions, or of a category; after the last one all"},
    {"f", "options of other engines for its best setting; f or Esc: the drafters again"},
    {"2.31 ±.04, ≈", "tokens per round with one standard error over conversations; ≈: estimated"},
    {"Esc", "close the options; stop scoring, and keep the conversations so far; :score stop"},
    {NULL, NULL},
};

const struct panel_ops panel_score = {
    .name = "score",
    .title = "score",
    .brief = "Enter take  d depth  c category  f flags",
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
