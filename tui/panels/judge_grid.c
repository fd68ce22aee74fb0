/* Two parts of the judge panel: a bar for each number of drafts, and a grid of values as heat with the numbers of the
 * round's drafts. */
#include "tui/panels/judge.h"

#include <math.h>
#include <stdio.h>

#define MOST_BAR  6 /* columns with the gap to the next bar */
#define VALUE_BAR 5 /* from this width the value is below the bar */

/* Draws a bar over `rows` rows, in eighths of a row. */
static void
draw_bar(const struct canvas *c, int x, int width, int rows, double share, enum role role)
{
    for (int y = 0; y < rows; y++) {
        const double here = share * rows - (rows - 1 - y);
        for (int k = 0; k < width && here > 0; k++)
            canvas_text(c, 1 + y, x + k, role, canvas_level(here));
    }
}

/* Draws the bars' values with three digits, because bars from 0 may look alike. */
static void
draw_values(const struct canvas *c, int y, const float *value, int n, int wide, int chosen)
{
    for (int i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, fabsf(value[i]) < 10 ? "%.2f" : "%.3g", (double)value[i]);
        if (isfinite(value[i]))
            canvas_word(c, y, i * wide, wide - 1, i == chosen ? ROLE_TITLE : ROLE_TEXT, MARK_NONE, text);
    }
}

/* Draws the numbers of the bars, and an arrow below the chosen one, or in its place if there is no row below. */
static void
draw_numbers(const struct canvas *c, int y, int n, int wide, int chosen)
{
    const bool below = y + 1 < c->rows;
    int end = 0;
    for (int i = 0; i < n; i++) {
        const int x = i * wide;
        if (i == chosen && !below)
            end = x + canvas_text(c, y, x, ROLE_OK, "▲");
        else if (x >= end)
            end = x + canvas_print(c, y, x, i == chosen ? ROLE_TITLE : ROLE_DIM, "%d", i) + (wide < 3 ? 0 : 1);
        if (i == chosen && below)
            canvas_text(c, y + 1, x, ROLE_OK, "▲");
    }
}

void
judge_draw_choice(const struct judge *j, const struct scope *s, const struct canvas *c, uint32_t round)
{
    const struct series *declared = scope_series(s, (uint32_t)j->choice)->declared;
    const float *value = scope_round_values(s, (uint32_t)j->choice, round);
    const int chosen = judge_chosen(s, j, round);
    int n = chosen + 1;
    double most = 0;
    char number[16];
    for (int i = 0; value != NULL && i < declared->cols; i++)
        if (isfinite(value[i])) {
            most = fmax(most, (double)value[i]);
            n = i + 1 > n ? i + 1 : n;
        }
    if (c->rows < 1)
        return;
    int x = canvas_word(c, 0, 0, c->cols, ROLE_TITLE, MARK_NONE, declared->title);
    if (chosen >= 0)
        x += canvas_print(c, 0, x, ROLE_OK, " %s%d", "▲", chosen);
    if (!(most > 0)) {
        canvas_text(c, 1, 0, ROLE_DIM, "not known yet");
        return;
    }
    canvas_fit(c, 0, x + 1, ROLE_TEXT, "%s", judge_number(chosen >= 0 ? (double)value[chosen] : (double)NAN, number));
    const int wide = c->cols / n > MOST_BAR ? MOST_BAR : c->cols / n < 1 ? 1 : c->cols / n;
    const bool values = wide >= VALUE_BAR && c->rows >= 5;
    const int rows = c->rows - 2 - values - (c->rows >= 6);
    for (int i = 0; i < n; i++)
        if (isfinite(value[i]) && value[i] > 0)
            draw_bar(c, i * wide, wide > 1 ? wide - 1 : 1, rows, (double)value[i] / most,
                     i == chosen ? ROLE_OK : ROLE_SERIES_1);
    if (values)
        draw_values(c, 1 + rows, value, n, wide, chosen);
    draw_numbers(c, 1 + rows + values, n, wide, chosen);
}

#define MOST_CELL 6 /* columns of a cell */

struct grid_axis { /* cells along an axis; `fold` of them share a line of the screen */
    int cells, lines, fold;
    const struct scope_series *edges; /* NULL: the policy declares none */
    char name[32];
};

struct grid_picture {
    const struct series *grid;
    const float *value;  /* of its cells; NULL: none */
    const float *marks;  /* of the round's drafts; NULL: none */
    int n_marks, stride; /* columns of the declared grid */
    struct grid_axis down, along;
    bool transposed;
    double low, high;
    int cell; /* columns */
};

static struct grid_axis
axis_of(const struct scope *s, int grid, bool rows, int room)
{
    const struct series *declared = scope_series(s, (uint32_t)grid)->declared;
    const int edges = series_of_grid(scope_policy(s), (uint32_t)grid, SERIES_EDGES, rows);
    struct grid_axis a = {.cells = rows ? declared->rows : declared->cols};
    a.edges = edges >= 0 ? scope_series(s, (uint32_t)edges) : NULL;
    snprintf(a.name, sizeof a.name, "%s", a.edges != NULL ? a.edges->declared->title : "");
    room = room > 0 ? room : 1;
    a.fold = (a.cells + room - 1) / room;
    a.lines = (a.cells + a.fold - 1) / a.fold;
    return a;
}

/* ---- labels ---- */

/* Truncates an edge, so that a value below 1 is not shown as 1. */
static double
cut(double value, int digits)
{
    const double scale = pow(10, digits);
    return floor(value * (1 + 2e-7) * scale) / scale; /* the rounding error of a float */
}

/* Returns the decimals, at most four, with which an axis's edges differ. */
static int
decimals(const struct grid_axis *a)
{
    for (int n = 2; n < 4; n++) {
        bool apart = true;
        for (int i = a->fold; i < a->cells; i += a->fold)
            apart = apart && cut((double)a->edges->latest[i], n) != cut((double)a->edges->latest[i - a->fold], n);
        if (apart)
            return n;
    }
    return 4;
}

/* The edge at the beginning of a line: ".52", "1"; without edges the number of its cell. */
static const char *
edge(const struct grid_axis *a, int line, int digits, char out[16])
{
    const int i = line * a->fold;
    const double value = a->edges != NULL ? (double)a->edges->latest[i] : NAN;
    if (isnan(value)) {
        snprintf(out, 16, "%d", i + 1);
        return out;
    }
    if (value == 0 || value == 1 || fabs(value) >= 1000)
        snprintf(out, 16, "%.4g", value);
    else
        snprintf(out, 16, "%.*f", digits, cut(value, digits));
    return value > 0 && value < 1 && out[0] == '0' ? out + 1 : out;
}

static void
draw_edges(const struct grid_picture *p, const struct canvas *c, int y, int lines)
{
    char text[16], corner[80];
    int digits = p->down.edges != NULL ? decimals(&p->down) : 0;
    for (int i = 0; i < lines; i++)
        canvas_print(c, y + lines - 1 - i, 0, ROLE_DIM, "%*s", JUDGE_LABEL - 1, edge(&p->down, i, digits, text));
    snprintf(corner, sizeof corner, "%s\\%s≥", p->down.name, p->along.name);
    canvas_word(c, y + lines, 0, JUDGE_LABEL, ROLE_TITLE, MARK_NONE, corner);
    digits = p->along.edges != NULL ? decimals(&p->along) : 0;
    int end = 0;
    for (int i = 0; i < p->along.lines; i++) {
        const int x = JUDGE_LABEL + i * p->cell;
        const char *label = edge(&p->along, i, digits, text);
        if (x >= end && x + text_width(label) <= c->cols)
            end = x + canvas_text(c, y + lines, x, ROLE_DIM, label) + 1;
    }
}

/* ---- cells ---- */

/* The mean of the cells that share a place on the screen; NAN: none has a value. */
static double
mean_at(const struct grid_picture *p, int down, int along)
{
    double sum = 0;
    int n = 0;
    for (int i = down * p->down.fold; i < (down + 1) * p->down.fold && i < p->down.cells; i++)
        for (int k = along * p->along.fold; k < (along + 1) * p->along.fold && k < p->along.cells; k++) {
            const int row = p->transposed ? k : i, col = p->transposed ? i : k;
            const double value = p->value != NULL ? (double)p->value[row * p->stride + col] : (double)NAN;
            if (isfinite(value)) {
                sum += value;
                n++;
            }
        }
    return n > 0 ? sum / n : NAN;
}

static bool
is_at(const struct grid_picture *p, int draft, int down, int along)
{
    const float value = p->marks[draft];
    if (!(value >= 0 && value < (float)(p->down.cells * p->along.cells)))
        return false;
    const int row = (int)value / p->stride, col = (int)value % p->stride;
    const int i = p->transposed ? col : row, k = p->transposed ? row : col;
    return i / p->down.fold == down && k / p->along.fold == along;
}

/* "▸1,2"; if they do not fit, "+1", the first of several. False: the place contains no draft. */
static bool
marks_at(const struct grid_picture *p, int down, int along, int room, char *out, size_t size)
{
    int first = -1, n = 0;
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; p->marks != NULL && i < p->n_marks; i++) {
        if (!is_at(p, i, down, along))
            continue;
        first = n++ == 0 ? i : first;
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, n == 1 ? "%s%d" : "%s,%d", n > 1 || room < 2 ? "" : "▸", i + 1);
    }
    if (n > 0 && (at >= size || text_width(out) > room))
        snprintf(out, size, n > 1 ? "+%d" : "%d", first + 1);
    return n > 0;
}

static void
draw_cell(const struct grid_picture *p, const struct canvas *c, int y, int down, int along)
{
    const int x = JUDGE_LABEL + along * p->cell, room = p->cell - (c->grid->mono && p->cell > 2);
    const double value = mean_at(p, down, along);
    const double heat = p->high > p->low ? (value - p->low) / (p->high - p->low) : value;
    char text[64], number[16];
    const bool marked = marks_at(p, down, along, room, text, sizeof text);
    if (!marked && isnan(value))
        snprintf(text, sizeof text, "·");
    else if (!marked && p->cell >= 4)
        snprintf(text, sizeof text, "%s", judge_number(value, number));
    else if (!marked)
        snprintf(text, sizeof text, "%s", c->grid->mono && p->cell <= 2 ? canvas_level(heat) : "");
    /* marked cells have no heat, so that marks are visible in every theme and without colours */
    canvas_heat(c, y, x, p->cell, marked ? NAN : (float)heat, marked ? MARK_BOLD : MARK_NONE, text);
}

static void
draw_title(const struct grid_picture *p, const struct canvas *c, uint32_t round)
{
    char low[16], high[16];
    int x = canvas_text(c, 0, JUDGE_LABEL, ROLE_TITLE, p->grid->title);
    if (p->low <= p->high)
        x +=
            canvas_fit(c, 0, JUDGE_LABEL + x, ROLE_DIM, "  %s ▁▂▃▄▅▆▇█ %s",
                       p->low == 0 ? "0" : judge_number(p->low, low), p->high == 1 ? "1" : judge_number(p->high, high));
    if (p->marks != NULL && JUDGE_LABEL + x + 12 <= c->cols)
        canvas_print(c, 0, JUDGE_LABEL + x, ROLE_DIM, "  round %u", (unsigned)round);
}

void
judge_draw_grid(const struct judge *j, const struct scope *s, const struct canvas *c, uint32_t round, bool transposed)
{
    struct grid_picture p = {.grid = scope_series(s, (uint32_t)j->grid)->declared, .transposed = transposed};
    p.value = scope_round_values(s, (uint32_t)j->grid, round);
    p.marks = scope_round_values(s, (uint32_t)j->marks, round);
    p.n_marks = scope_series(s, (uint32_t)j->marks)->declared->cols;
    p.stride = p.grid->cols;
    p.down = axis_of(s, j->grid, !transposed, c->rows - 1);
    p.along = axis_of(s, j->grid, transposed, c->cols - JUDGE_LABEL);
    if (c->rows < 2 || c->cols <= JUDGE_LABEL)
        return;
    p.cell = (c->cols - JUDGE_LABEL) / p.along.lines;
    p.cell = p.cell > MOST_CELL ? MOST_CELL : p.cell;
    p.low = INFINITY, p.high = -INFINITY;
    for (int i = 0; p.value != NULL && i < p.down.cells * p.along.cells; i++)
        if (isfinite(p.value[i])) {
            p.low = fmin(p.low, (double)p.value[i]);
            p.high = fmax(p.high, (double)p.value[i]);
        }
    if (p.low >= 0 && p.high <= 1)
        p.low = 0, p.high = 1;
    const int top = c->rows - 1 > p.down.lines;
    if (top)
        draw_title(&p, c, round);
    for (int i = 0; i < p.down.lines; i++)
        for (int k = 0; k < p.along.lines; k++)
            draw_cell(&p, c, top + p.down.lines - 1 - i, i, k);
    draw_edges(&p, c, top, p.down.lines);
}
