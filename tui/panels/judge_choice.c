/* What each number of verified drafts promises, and which was chosen. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/judge.h"

#define MOST_BAR  6 /* columns, the gap to the next one included */
#define VALUE_BAR 5 /* so wide there is room for the value below it */

/* One bar over `rows` rows, in eighths of a row. */
static void
draw_bar(const struct canvas *c, int x, int width, int rows, double share, enum role role)
{
    for (int y = 0; y < rows; y++) {
        const double here = share * rows - (rows - 1 - y);
        for (int k = 0; k < width && here > 0; k++)
            canvas_text(c, 1 + y, x + k, role, canvas_level(here));
    }
}

/* Bars are drawn from 0 and may look alike: their values in three digits. */
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

/* Numbers below, the chosen one's arrow below it where there is a line for it, else in its place. */
static void
draw_numbers(const struct canvas *c, int y, int n, int wide, int chosen)
{
    const bool below = y + 1 < c->rows;
    int end = 0;
    for (int i = 0; i < n; i++) {
        const int x = i * wide;
        if (i == chosen && !below)
            end = x + canvas_text(c, y, x, ROLE_OK, canvas_glyph(c, "▲", "^"));
        else if (x >= end)
            end = x + canvas_print(c, y, x, i == chosen ? ROLE_TITLE : ROLE_DIM, "%d", i) + (wide < 3 ? 0 : 1);
        if (i == chosen && below)
            canvas_text(c, y + 1, x, ROLE_OK, canvas_glyph(c, "▲", "^"));
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
        x += canvas_print(c, 0, x, ROLE_OK, " %s%d", canvas_glyph(c, "▲", "^"), chosen);
    if (!(most > 0)) {
        canvas_text(c, 1, 0, ROLE_DIM, "not known yet");
        return;
    }
    const char *promise = judge_number(chosen >= 0 ? (double)value[chosen] : (double)NAN, number);
    if (x + 1 + text_width(promise) <= c->cols)
        canvas_text(c, 0, x + 1, ROLE_TEXT, promise);
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
