/* How the policy judges drafts, from what it declares of it (engine/events/policy.h: SERIES_DRAFTS, SERIES_MARKS,
 * SERIES_CHOICE): rounds below one another with what was thought of each draft, the grid that it was looked up in, and how
 * many were chosen. Of the round that the cursor is in, else of the newest. */
#include <stdlib.h>

#include "tui/panels/judge.h"
#include "tui/terminal/input.h"

#define LEAST_COLS  34 /* for rounds beside a grid */
#define CHOICE_COLS 15 /* for bars beside a grid */
#define CHOICE_ROWS 4  /* and */
#define CHOICE_MOST 12
#define ROUNDS_ROWS 5
#define GRID_CELL   4 /* columns of a cell that has room for its number, and */
#define GRID_NARROW 2 /* for its heat and a mark */

static struct judge
find(const struct scope *s)
{
    struct judge j = {.grid = -1, .marks = -1, .choice = -1};
    const struct policy_info *policy = scope_policy(s);
    for (uint32_t i = 0; scope_series(s, i) != NULL; i++) {
        const enum series_form form = policy->series[i].form;
        if (form == SERIES_DRAFTS)
            j.drafts[j.n_drafts++] = (int)i;
        else if (form == SERIES_CHOICE && j.choice < 0)
            j.choice = (int)i;
        else if (form == SERIES_GRID && j.grid < 0 && series_judges(policy, i))
            j.grid = (int)i;
    }
    if (j.grid >= 0)
        j.marks = series_of_grid(policy, (uint32_t)j.grid, SERIES_MARKS, false);
    return j;
}

static bool
active_judge(const struct view *v)
{
    const struct judge j = find(v->scope);
    return j.n_drafts > 0 || j.grid >= 0 || j.choice >= 0;
}

/* ---- what stands where ---- */

struct places {
    struct canvas rounds, grid, choice; /* rows 0: not shown */
    bool transposed;
};

/* Rounds at the left, the grid at the right, bars below it where there is room, else below the rounds. */
static bool
beside(struct places *p, const struct canvas *c, const struct judge *j, int lines, int cols)
{
    const int left = c->cols - cols - 1, spare = c->rows - lines - 3;
    const bool below = j->choice >= 0 && spare >= CHOICE_ROWS;
    const int bars = j->choice < 0 || below ? 0 : CHOICE_ROWS;
    if (left < LEAST_COLS || lines + 1 > c->rows || c->rows - bars < ROUNDS_ROWS)
        return false;
    p->grid = canvas_inside(c, 0, left + 1, lines + 2, cols);
    p->rounds = canvas_inside(c, 0, 0, c->rows - bars, left);
    if (below)
        p->choice = canvas_inside(c, lines + 3, left + 1, spare < CHOICE_MOST ? spare : CHOICE_MOST, cols);
    else
        p->choice = canvas_inside(c, c->rows - bars, 0, bars, left);
    return true;
}

/* The grid at the bottom, bars beside it or between. */
static bool
stacked(struct places *p, const struct canvas *c, const struct judge *j, int lines, int cols)
{
    const bool right = j->choice < 0 || c->cols - cols - 1 >= CHOICE_COLS;
    const int bars = right ? 0 : CHOICE_ROWS + 1, grid = lines + 2;
    if (cols > c->cols || grid + bars + ROUNDS_ROWS > c->rows)
        return false;
    const int top = c->rows - grid - bars;
    p->rounds = canvas_inside(c, 0, 0, top, c->cols);
    p->grid = canvas_inside(c, c->rows - grid, 0, grid, right && j->choice >= 0 ? cols : c->cols);
    if (j->choice >= 0)
        p->choice = right ? canvas_inside(c, c->rows - grid, cols + 1, grid < CHOICE_MOST ? grid : CHOICE_MOST,
                                          c->cols - cols - 1)
                          : canvas_inside(c, top, 0, bars, c->cols);
    return true;
}

static struct places
arrange(const struct scope *s, const struct judge *j, const struct canvas *c)
{
    struct places p = {.rounds = canvas_inside(c, 0, 0, c->rows, c->cols)};
    const int bars = j->choice < 0 || c->rows < ROUNDS_ROWS + CHOICE_ROWS ? 0 : CHOICE_ROWS;
    if (j->grid >= 0) {
        const struct series *grid = scope_series(s, (uint32_t)j->grid)->declared;
        static const int widths[] = {GRID_CELL, GRID_NARROW};
        for (int k = 0; k < 4; k++) {
            const int lines = k % 2 == 0 ? grid->rows : grid->cols, cells = k % 2 == 0 ? grid->cols : grid->rows;
            const int cols = cells <= c->cols ? JUDGE_LABEL + cells * widths[k / 2] : c->cols + 1;
            p.transposed = k % 2 == 1;
            if (beside(&p, c, j, lines, cols) || stacked(&p, c, j, lines, cols))
                return p;
        }
        const int rows = c->rows - bars - ROUNDS_ROWS; /* folded, if at all */
        p.grid = canvas_inside(c, c->rows - (rows > 2 ? rows : 0), 0, rows > 2 ? rows : 0, c->cols);
    }
    p.choice = canvas_inside(c, c->rows - p.grid.rows - bars, 0, bars, c->cols);
    p.rounds = canvas_inside(c, 0, 0, c->rows - p.grid.rows - bars, c->cols);
    return p;
}

/* ---- drawing ---- */

/* Rounds back to the one that the cursor is in, in the prompt to the first one; 0 without a cursor; scope_rounds(): it is not held
 * any more. */
static uint32_t
selected(const struct view *v)
{
    const uint32_t round = selection_round(v);
    if (v->selection->follow)
        return 0;
    return scope_round_back(v->scope, round > 0 ? round : scope_round_after(v->scope, 0));
}

/* From there on the first round that was judged: the open one may not be yet. */
static uint32_t
judged(const struct scope *s, const struct judge *j, uint32_t back)
{
    for (uint32_t i = back; i < back + 2 && i < scope_rounds(s); i++) {
        const uint32_t round = scope_round(s, i)->number;
        if ((j->marks >= 0 && scope_round_values(s, (uint32_t)j->marks, round) != NULL) ||
            (j->choice >= 0 && scope_round_values(s, (uint32_t)j->choice, round) != NULL))
            return round;
    }
    return scope_round(s, back)->number;
}

static void *
open_judge(void)
{
    return calloc(1, sizeof(struct judge_panel));
}

static void
draw_judge(void *state, const struct view *v, const struct canvas *c)
{
    struct judge_panel *p = state;
    p->judge = find(v->scope);
    p->n_blocks = 0;
    if (c->rows < 1 || c->cols < 1)
        return;
    if (scope_rounds(v->scope) == 0) {
        canvas_text(c, 0, 0, ROLE_DIM, "no rounds yet");
        return;
    }
    const uint32_t back = selected(v);
    if (back == scope_rounds(v->scope)) {
        canvas_print(c, 0, 0, ROLE_DIM, "round %u is no longer in memory", (unsigned)selection_round(v));
        return;
    }
    const struct places at = arrange(v->scope, &p->judge, c);
    const uint32_t round = judged(v->scope, &p->judge, back);
    judge_draw_rounds(p, v, &at.rounds, back);
    if (p->judge.grid >= 0 && at.grid.rows > 0)
        judge_draw_grid(&p->judge, v->scope, &at.grid, round, at.transposed);
    if (p->judge.choice >= 0 && at.choice.rows > 0)
        judge_draw_choice(&p->judge, v->scope, &at.choice, round);
}

static void
note_judge(void *state, const struct view *v, char *out, int n)
{
    (void)state;
    const bool rowless = find(v->scope).choice >= 0;
    snprintf(out, (size_t)n, "✓ accepted  ✗ rejected%s", rowless ? "  ╌ cut" : "");
}

/* ---- keys and mouse ---- */

static bool
key_judge(void *state, const struct view *v, int key)
{
    (void)state;
    switch (key) {
    case 'j':
    case INPUT_DOWN: selection_move(v, -1); return true;
    case 'k':
    case INPUT_UP: selection_move(v, 1); return true;
    case INPUT_HOME: v->selection->follow = true; return true;
    case INPUT_END: selection_to_round(v, 1); return true;
    default: return false;
    }
}

static bool
mouse_judge(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    const struct judge_panel *p = state;
    (void)c;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        return key_judge(state, v, action == MOUSE_WHEEL_UP ? INPUT_UP : INPUT_DOWN);
    for (int i = 0; action == MOUSE_PRESS && i < p->n_blocks; i++) {
        const struct judge_block *b = &p->block[i];
        const struct scope_round *r = scope_round(v->scope, b->back);
        if (r == NULL || y < b->y - (b->from == 0) || y >= b->y + b->rows || x >= JUDGE_LABEL + (int)b->n * p->width)
            continue;
        const uint32_t draft = b->from + (x >= JUDGE_LABEL ? (uint32_t)((x - JUDGE_LABEL) / p->width) : 0);
        v->selection->pos = draft < r->n_drafts && y >= b->y ? r->drafts[draft].pos : r->first_pos;
        v->selection->follow = false;
        return true;
    }
    return false;
}

static const struct key_help keys[] = {
    {"↑ ↓", "a newer or an older round"},
    {"Home End", "newest, oldest"},
    {"click", "point at a draft"},
    {"▸1 +1", "the cell of draft 1 in the table; it and others"},
    {"rows tested cut", "drafts verified with rows of their own; one more tested without; not looked at"},
    {NULL, NULL},
};

const struct panel_ops panel_judge = {
    .name = "judge",
    .title = "drafts judged",
    .brief = "↑ ↓ round  click draft",
    .place = PANEL_TOP,
    .first_tab = true,
    .weight = 4,
    .min_cols = 40,
    .active = active_judge,
    .keys = keys,
    .open = open_judge,
    .close = free,
    .draw = draw_judge,
    .note = note_judge,
    .key = key_judge,
    .mouse = mouse_judge,
};
