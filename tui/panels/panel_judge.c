/* How the policy judges drafts, from the series that it declares (engine/events/policy.h: SERIES_DRAFTS, SERIES_MARKS,
 * SERIES_CHOICE): rounds with the values of each draft, the grid that drafts are looked up in, and how many were
 * chosen. It shows the cursor's round and older ones. */
#include "tui/panels/judge.h"

#include <math.h>
#include <stdio.h>

#include "base/plural.h"

#define BLOCKS 64 /* rows of drafts on the screen at most */

struct judge_panel {
    struct judge judge;
    /* As drawn last, for the mouse. */
    int width; /* of a draft */
    int n_blocks;
    struct judge_block { /* drafts of a round beside each other */
        int y, rows;
        uint32_t back, from, n; /* the round, its drafts from .. from + n - 1 */
    } block[BLOCKS];
};

#define LEAST_WIDTH 6 /* of a draft, with the gap to the next one */
#define MOST_WIDTH  10

/* ---- data of a round ---- */

int
judge_chosen(const struct scope *s, const struct judge *j, uint32_t round)
{
    const float *value = j->choice >= 0 ? scope_round_values(s, (uint32_t)j->choice, round) : NULL;
    const int n = value != NULL ? scope_series(s, (uint32_t)j->choice)->declared->cols : 0;
    for (int i = n - 1; i >= 0; i--)
        if (value[n + i] > 0)
            return i;
    return -1;
}

const char *
judge_number(double value, char out[16])
{
    if (isnan(value))
        return "–";
    if (value >= 0.995 && value <= 1)
        return "1.0";
    if (value < 0 || value > 1)
        snprintf(out, 16, fabs(value) >= 99 ? "%.0f" : "%.2g", value);
    else
        snprintf(out, 16, "%.2f", value);
    return value >= 0 && value < 1 ? out + 1 : out; /* without the 0 */
}

/* The value of a DRAFTS series; NAN: not reported. */
static double
value_of(const struct scope *s, int series, uint32_t round, uint32_t row, uint32_t draft)
{
    const struct series *declared = scope_series(s, (uint32_t)series)->declared;
    const float *value = scope_round_values(s, (uint32_t)series, round);
    if (value == NULL || (int)row >= declared->rows || (int)draft >= declared->cols)
        return NAN;
    return (double)value[row * (uint32_t)declared->cols + draft];
}

/* True if the last draft's value is above its limit. */
static bool
ended_above(const struct scope *s, int series, const struct scope_round *r)
{
    const uint32_t last = r->n_drafts - 1;
    return r->n_drafts > 0 && value_of(s, series, r->number, 0, last) > value_of(s, series, r->number, 1, last);
}

static bool
has_limit(const struct scope *s, int series)
{
    return scope_series(s, (uint32_t)series)->declared->rows == 2;
}

/* ---- a round's own line ---- */

static size_t
add(char *out, size_t at, size_t size, const char *text)
{
    const int n = at < size ? snprintf(out + at, size - at, "%s", text) : 0;
    return at + (n > 0 ? (size_t)n : 0);
}

/* Appends ", 0.73 > 0.70": the last draft and its limit. */
static size_t
append_limits(const struct scope *s, const struct judge *j, const struct scope_round *r, char *out, size_t at,
              size_t size)
{
    for (int k = 0; k < j->n_drafts; k++) {
        if (!has_limit(s, j->drafts[k]) || r->n_drafts == 0)
            continue;
        const double value = value_of(s, j->drafts[k], r->number, 0, r->n_drafts - 1);
        const double limit = value_of(s, j->drafts[k], r->number, 1, r->n_drafts - 1);
        char text[64];
        if (isnan(value) || isnan(limit))
            continue;
        const int digits = fabs(value - limit) < 0.01 ? 4 : 2;
        snprintf(text, sizeof text, ", %.*f %s %.*f", digits, value, value > limit ? ">" : "≤", digits, limit);
        at = add(out, at, size, text);
    }
    return at;
}

/* Appends " · 3 rows, 4 tested, 5–8 cut". */
static size_t
append_cut(const struct scope_round *r, int chosen, char *out, size_t at, size_t size)
{
    const int n = (int)r->n_drafts;
    char text[96];
    if (chosen < 0 || n == 0)
        return at;
    if (chosen >= n)
        return add(out, at, size, " · all with rows");
    const int tested =
        snprintf(text, sizeof text, " · %d row%s, %d tested", chosen, plural((uint64_t)chosen), chosen + 1);
    if (chosen + 2 == n)
        snprintf(text + tested, sizeof text - (size_t)tested, ", %d cut", n);
    else if (chosen + 2 < n)
        snprintf(text + tested, sizeof text - (size_t)tested, ", %d–%d cut", chosen + 2, n);
    return add(out, at, size, text);
}

static void
draw_header(const struct view *v, const struct judge *j, const struct canvas *c, int y, const struct scope_round *r)
{
    const bool here = selection_in_round(v, r);
    const int x = round_number(v, c, y, 3, r);
    char text[256] = "", reason[ROUND_REASON] = "";
    size_t at = 0;
    if (r->whole) {
        round_reason(&r->end, reason);
        at = (size_t)snprintf(text, sizeof text, "%u/%u", (unsigned)r->end.accepted, (unsigned)r->end.verified);
    } else {
        at = add(text, at, sizeof text, "drafting");
    }
    at = append_cut(r, judge_chosen(v->scope, j, r->number), text, at, sizeof text);
    if (reason[0] != '\0')
        at = add(text, add(text, at, sizeof text, " · "), sizeof text, reason);
    append_limits(v->scope, j, r, text, at, sizeof text);
    canvas_word(c, y, x, c->cols - x, here ? ROLE_TITLE : ROLE_DIM, MARK_NONE, text);
}

/* ---- drafts ---- */

/* Draws "4✗met": the draft's number if a grid shows it, too, its verdict, its token. */
static void
draw_draft(const struct scope *s, const struct judge *j, const struct canvas *c, int y, int x, int width,
           const struct scope_round *r, uint32_t i, int chosen)
{
    const struct scope_draft *d = &r->drafts[i];
    const bool cut = chosen >= 0 ? (int)i > chosen : r->whole && d->accepted < 0;
    int at = j->marks >= 0 ? canvas_print(c, y, x, ROLE_DIM, "%u", (unsigned)i + 1) : 0;
    enum role role = ROLE_DRAFT;
    unsigned marks = (int)i == chosen ? MARK_UNDERLINED : MARK_NONE; /* without a row */
    if (cut) {
        role = ROLE_DIM;
        at += canvas_text(c, y, x + at, role, "╌");
    } else if (d->accepted > 0) {
        role = ROLE_ACCEPTED;
        at += canvas_text(c, y, x + at, role, "✓");
    } else if (d->accepted == 0) {
        role = ROLE_REJECTED;
        at += canvas_text(c, y, x + at, role, "✗");
    } else {
        at += canvas_text(c, y, x + at, role, "○");
    }
    canvas_word(c, y, x + at, width - 1 - at, role, marks, panel_word(s, d->token));
}

static void
draw_values(const struct scope *s, const struct canvas *c, int series, bool first, const struct judge_block *b,
            int width, uint32_t round)
{
    char text[16];
    for (uint32_t i = 0; i < b->n; i++) {
        const double value = value_of(s, series, round, 0, b->from + i);
        const int x = JUDGE_LABEL + (int)i * width;
        if (first && !isnan(value))
            canvas_heat(c, 0, x, width - 1, (float)value, MARK_NONE, judge_number(value, text));
        else
            canvas_word(c, 0, x, width - 1, ROLE_DIM, MARK_NONE, judge_number(value, text));
    }
}

/* Plots row 0, or row 1 as a dashed line, over the drafts' columns: a step for each draft. */
static void
plot(const struct scope *s, const struct canvas *c, int series, uint32_t row, const struct judge_block *b, int width,
     uint32_t round, enum role role, const double range[2])
{
    float dots[2 * MOST_WIDTH * SCOPE_DRAFTS];
    const int n = (int)b->n * width * 2;
    for (int i = 0; i < n; i++) {
        const double value = value_of(s, series, round, row, b->from + (uint32_t)(i / (width * 2)));
        dots[i] = row > 0 && i % 4 > 1 ? NAN : (float)value;
    }
    const struct canvas part = canvas_inside(c, 0, JUDGE_LABEL, c->rows, (int)b->n * width);
    canvas_plot(&part, dots, part.cols < n / 2 ? part.cols * 2 : n, range[0], range[1], role);
}

static void
draw_line(const struct scope *s, const struct canvas *c, int series, const struct judge_block *b, int width,
          const struct scope_round *r, const char *label)
{
    double range[2] = {0, 1}, limit = NAN;
    char text[16];
    for (uint32_t i = 0; i < 2 * b->n; i++) {
        const double value = value_of(s, series, r->number, i % 2, b->from + i / 2);
        range[0] = fmin(range[0], value); /* fmin and fmax ignore NAN */
        range[1] = fmax(range[1], value);
        limit = i % 2 == 1 && isnan(limit) ? value : limit;
    }
    plot(s, c, series, 1, b, width, r->number, ROLE_LINE, range);
    plot(s, c, series, 0, b, width, r->number, ROLE_SERIES_1, range);
    const double up = (limit - range[0]) / (range[1] - range[0]);
    const int at = isnan(limit) ? -1 : (int)fmin((1 - up) * c->rows, c->rows - 1);
    if (at >= 0)
        canvas_print(c, at, 0, ROLE_LINE, "%*s", JUDGE_LABEL - 1, judge_number(limit, text));
    const int name = at == c->rows - 1 ? 0 : c->rows - 1;
    if (name != at)
        canvas_word(c, name, 0, JUDGE_LABEL, ROLE_DIM, MARK_NONE, label);
    if (b->from + b->n == r->n_drafts && ended_above(s, series, r))
        for (int y = 0; y < c->rows; y++)
            canvas_text(c, y, JUDGE_LABEL + (int)b->n * width - 1, ROLE_WARN, "│");
}

/* A series' title if it is short, or its key. */
static const char *
label_of(const struct scope *s, int series)
{
    const struct series *declared = scope_series(s, (uint32_t)series)->declared;
    return text_width(declared->title) < JUDGE_LABEL && declared->title[0] != '\0' ? declared->title : declared->key;
}

/* ---- blocks ---- */

static int
line_rows(int rows)
{
    return rows >= 18 ? 3 : 2;
}

/* Draws tokens and values, as far as they fit. Returns the rows used. */
static int
draw_block(const struct judge_panel *p, const struct scope *s, const struct canvas *c, const struct judge_block *b)
{
    const struct judge *j = &p->judge;
    const struct scope_round *r = scope_round(s, b->back);
    const int chosen = judge_chosen(s, j, r->number);
    for (uint32_t i = 0; i < b->n; i++)
        draw_draft(s, j, c, b->y, JUDGE_LABEL + (int)i * p->width, p->width, r, b->from + i, chosen);
    int y = b->y + 1;
    bool first = true;
    for (int k = 0; k < j->n_drafts && y < c->rows; k++) {
        const int series = j->drafts[k];
        const bool line = has_limit(s, series);
        const struct canvas part = canvas_inside(c, y, 0, line ? line_rows(c->rows) : 1, c->cols);
        if (line) {
            draw_line(s, &part, series, b, p->width, r, label_of(s, series));
        } else {
            canvas_word(&part, 0, 0, JUDGE_LABEL - 1, ROLE_DIM, MARK_NONE, label_of(s, series));
            draw_values(s, &part, series, first, b, p->width, r->number);
            first = false;
        }
        y += part.rows;
    }
    return y - b->y;
}

/* Returns the width of a draft with which the longest of the next rounds fits on one row, if possible. */
static int
width_of(const struct scope *s, uint32_t back, int room)
{
    int most = 1;
    for (uint32_t i = 0; i < 8 && scope_round(s, back + i) != NULL; i++)
        if ((int)scope_round(s, back + i)->n_drafts > most)
            most = (int)scope_round(s, back + i)->n_drafts;
    const int width = room / most;
    return width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width;
}

static void
judge_draw_rounds(struct judge_panel *p, const struct view *v, const struct canvas *c, uint32_t back)
{
    const int room = c->cols - JUDGE_LABEL;
    p->width = width_of(v->scope, back, room);
    p->n_blocks = 0;
    const uint32_t beside = room >= p->width ? (uint32_t)(room / p->width) : 1;
    const struct scope_round *r;
    for (int y = 0; y < c->rows && (r = scope_round(v->scope, back)) != NULL; back++) {
        draw_header(v, &p->judge, c, y++, r);
        for (uint32_t from = 0; from < r->n_drafts && y < c->rows && p->n_blocks < BLOCKS; from += beside) {
            struct judge_block *b = &p->block[p->n_blocks++];
            const uint32_t left = r->n_drafts - from;
            *b = (struct judge_block){.y = y, .back = back, .from = from, .n = left < beside ? left : beside};
            b->rows = draw_block(p, v->scope, c, b);
            y += b->rows;
        }
    }
}

#define LEAST_COLS  34 /* for rounds beside a grid */
#define CHOICE_COLS 15 /* for bars beside a grid */
#define CHOICE_ROWS 4  /* and */
#define CHOICE_MOST 12
#define ROUNDS_ROWS 5
#define GRID_CELL   4 /* columns of a cell with its number */
#define GRID_NARROW 2 /* with only its heat and a mark */

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

/* ---- positions of the parts ---- */

struct places {
    struct canvas rounds, grid, choice; /* rows 0: not shown */
    bool transposed;
};

/* Places the rounds at the left, the grid at the right, and the bars below the grid if they fit, otherwise below the
 * rounds. */
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

/* Places the grid at the bottom, and the bars beside it or above it. */
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
        const int rows = c->rows - bars - ROUNDS_ROWS; /* the grid is folded */
        p.grid = canvas_inside(c, c->rows - (rows > 2 ? rows : 0), 0, rows > 2 ? rows : 0, c->cols);
    }
    p.choice = canvas_inside(c, c->rows - p.grid.rows - bars, 0, bars, c->cols);
    p.rounds = canvas_inside(c, 0, 0, c->rows - p.grid.rows - bars, c->cols);
    return p;
}

/* ---- drawing ---- */

/* How many rounds back the cursor's round is; in the prompt: the first round; 0: no cursor; scope_rounds(): not in
 * memory. */
static uint32_t
selected(const struct view *v)
{
    const uint32_t round = selection_round(v);
    if (v->selection->follow)
        return 0;
    return scope_round_back(v->scope, round > 0 ? round : scope_round_after(v->scope, 0));
}

/* Returns the first judged round from there on, because the open round may not be judged yet. */
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
    return selection_key(v, key, 0);
}

static bool
mouse_judge(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    const struct judge_panel *p = state;
    (void)c;
    if (mouse_wheel(action) != 0)
        return key_judge(state, v, mouse_wheel(action) < 0 ? INPUT_UP : INPUT_DOWN);
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
    .state_size = sizeof(struct judge_panel),
    .draw = draw_judge,
    .note = note_judge,
    .key = key_judge,
    .mouse = mouse_judge,
};
