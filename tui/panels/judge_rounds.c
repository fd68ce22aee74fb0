/* Rounds below one another: each draft with its verdict, what was thought of it, and a line for what is held against a
 * limit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/plural.h"
#include "tui/panels/judge.h"
#include "tui/panels/round_marks.h"

#define LEAST_WIDTH 6 /* of a draft, the gap to the next one included */
#define MOST_WIDTH  10

/* ---- what is known of a round ---- */

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

/* Of a DRAFTS series; NAN: not reported. */
static double
value_of(const struct scope *s, int series, uint32_t round, uint32_t row, uint32_t draft)
{
    const struct series *declared = scope_series(s, (uint32_t)series)->declared;
    const float *value = scope_round_values(s, (uint32_t)series, round);
    if (value == NULL || (int)row >= declared->rows || (int)draft >= declared->cols)
        return NAN;
    return (double)value[row * (uint32_t)declared->cols + draft];
}

/* Did drafting end above a limit? */
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

/* ", 0.73 > 0.70", of the last draft and its limit. */
static size_t
say_limits(const struct scope *s, const struct judge *j, const struct scope_round *r, char *out, size_t at, size_t size)
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

/* " · 3 rows, 4 tested, 5–8 cut" */
static size_t
say_cut(const struct scope_round *r, int chosen, char *out, size_t at, size_t size)
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
    if (here)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
    const int x = 1 + canvas_print(c, y, 1,
                                   here       ? ROLE_TITLE
                                   : r->whole ? ROLE_TEXT
                                              : ROLE_DIM,
                                   "%3u ", (unsigned)r->number);
    char text[256] = "", reason[ROUND_REASON] = "";
    size_t at = 0;
    if (r->whole) {
        round_reason(&r->end, reason);
        at = (size_t)snprintf(text, sizeof text, "%u/%u", (unsigned)r->end.accepted, (unsigned)r->end.verified);
    } else {
        at = add(text, at, sizeof text, "drafting");
    }
    at = say_cut(r, judge_chosen(v->scope, j, r->number), text, at, sizeof text);
    if (reason[0] != '\0')
        at = add(text, add(text, at, sizeof text, " · "), sizeof text, reason);
    say_limits(v->scope, j, r, text, at, sizeof text);
    canvas_word(c, y, x, c->cols - x, here ? ROLE_TITLE : ROLE_DIM, MARK_NONE, text);
}

/* ---- drafts ---- */

static const char *
word_of(const struct scope *s, token_t token)
{
    const char *text = scope_text(s, token);
    return text[0] == ' ' && text[1] != '\0' ? text + 1 : text[0] == ' ' ? "␣" : text;
}

/* "4✗met": the draft's number where a grid shows it too, its verdict, its token. */
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
    canvas_word(c, y, x + at, width - 1 - at, role, marks, word_of(s, d->token));
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

/* Lines of `row` over the drafts' columns: a step for each; every other dot left out where dashed. */
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
        range[0] = fmin(range[0], value); /* NAN is passed over */
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

/* A short title, or the key. */
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

/* Tokens and values; what does not fit below is cut. Returns the rows used. */
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

/* So wide that the longest of the next rounds stands on one line, if that can be. */
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

void
judge_draw_rounds(struct judge_panel *p, const struct view *v, const struct canvas *c, uint32_t back)
{
    const int room = c->cols - JUDGE_LABEL;
    p->width = width_of(v->scope, back, room);
    p->n_blocks = 0;
    const uint32_t beside = room >= p->width ? (uint32_t)(room / p->width) : 1;
    const struct scope_round *r;
    for (int y = 0; y < c->rows && (r = scope_round(v->scope, back)) != NULL; back++) {
        draw_header(v, &p->judge, c, y++, r);
        for (uint32_t from = 0; from < r->n_drafts && y < c->rows && p->n_blocks < JUDGE_BLOCKS; from += beside) {
            struct judge_block *b = &p->block[p->n_blocks++];
            const uint32_t left = r->n_drafts - from;
            *b = (struct judge_block){.y = y, .back = back, .from = from, .n = left < beside ? left : beside};
            b->rows = draw_block(p, v->scope, c, b);
            y += b->rows;
        }
    }
}
