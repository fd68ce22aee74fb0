/* The whole run: a column for each token or several tokens, a cell for two layers; exits, corrections and changes of
 * settings. Brackets show the range of the other panels, and a click moves them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "engine/scope/sequence_cells.h"
#include "tui/panels/layers.h"

#define RUN_LABEL 4 /* columns of the layers' numbers */

struct run_panel {
    /* As drawn last, for keys and the mouse, and for columns that need not be computed again. */
    uint32_t first;             /* position of the first column, the first after the prompt */
    uint32_t fold;              /* positions in a column */
    int cols;                   /* columns available */
    int halves;                 /* half rows of layers */
    uint32_t epoch, seq, cells; /* cells: the first position with cells in memory */
    char head[8];
    float *value; /* (cols * halves) for canvas_halves(), column by column, the deepest layer first */
    size_t room;  /* of value */
};

static uint32_t
first_after_prompt(const struct scope *s)
{
    const struct scope_column *c;
    uint32_t pos = scope_first(s);
    while ((c = scope_column(s, pos)) != NULL && c->fate == FATE_PROMPT)
        pos++;
    return pos;
}

/* ---- content of the columns ---- */

struct fold { /* sums for a half cell */
    double sum;
    uint32_t known, grey;
};

/* Computes the layers from + 1 … to of a half row. */
static void
layers_of_half(const struct run_panel *p, uint32_t layers, int half, uint32_t *from, uint32_t *to)
{
    const uint32_t below = (uint32_t)(p->halves - 1 - half), n = (uint32_t)p->halves;
    *from = n >= layers ? below / (n / layers) : below * layers / n;
    *to = n >= layers ? *from + 1 : (below + 1) * layers / n;
}

static void
fold_position(const struct run_panel *p, const struct scope *s, uint32_t pos, struct fold *half)
{
    uint8_t glimpse[RUN_LAYERS_MOST];
    const uint32_t layers = scope_info(s)->layers;
    const struct scope_column *c = scope_column(s, pos);
    if (c == NULL)
        return;
    const bool known = scope_glimpse(s, pos, glimpse);
    for (int h = 0; h < p->halves; h++) {
        uint32_t from, to;
        layers_of_half(p, layers, h, &from, &to);
        for (uint32_t l = from + 1; l <= to; l++) {
            const float confidence = known ? glimpse_confidence(glimpse[l - 1]) : NAN;
            if (layers_beyond(s, c, (int)l)) {
                half[h].grey++;
            } else if (!isnan(confidence)) {
                half[h].sum += (double)confidence;
                half[h].known++;
            }
        }
    }
}

static void
fold_column(const struct run_panel *p, const struct scope *s, int x)
{
    struct fold half[2 * 256] = {{0}};
    float *value = p->value + (size_t)x * (size_t)p->halves;
    const uint32_t from = p->first + (uint32_t)x * p->fold;
    for (uint32_t pos = from; pos < from + p->fold && pos < scope_now(s)->length; pos++)
        fold_position(p, s, pos, half);
    for (int h = 0; h < p->halves; h++)
        value[h] = half[h].grey > half[h].known ? CANVAS_GREY
                   : half[h].known > 0          ? (float)(half[h].sum / half[h].known)
                                                : NAN;
}

/* Returns the positions in a column, rounded up to steps of an eighth, so that a long run is not folded again with each
 * token. */
static uint32_t
fold_of(uint32_t n, uint32_t cols)
{
    uint32_t fold = n <= cols ? 1 : (n + cols - 1) / cols, step = 1;
    while (fold / step >= 16)
        step *= 2;
    return (fold + step - 1) / step * step;
}

/* Computes the columns; *anew: the first column to fold again, because its cells may have changed. */
static bool
arrange(struct run_panel *p, const struct scope *s, int rows, int cols, int *anew)
{
    const struct scope_now *now = scope_now(s);
    const uint32_t layers = scope_info(s)->layers, behind = first_after_prompt(s);
    const uint32_t fold = fold_of(now->length - behind, (uint32_t)cols);
    /* when the oldest positions are dropped, columns stay aligned and leave one at a time */
    const uint32_t first = scope_first(s) > 0 ? (behind + fold - 1) / fold * fold : behind;
    struct run_panel next = *p;
    rows = rows > 256 ? 256 : rows;
    next.first = first;
    next.cols = cols;
    next.fold = fold;
    next.halves = 2 * rows >= (int)layers ? 2 * rows / (int)layers * (int)layers : 2 * rows;
    next.epoch = now->epoch;
    next.seq = scope_focus(s);
    next.cells = scope_first_cells(s);
    snprintf(next.head, sizeof next.head, "%s", scope_head(s));
    const size_t room = (size_t)cols * (size_t)next.halves;
    if (room > p->room) {
        float *value = realloc(p->value, room * sizeof *value);
        if (value == NULL)
            return false;
        next.value = value;
        next.room = room;
    }
    const bool same = p->value == next.value && p->first == first && p->cols == cols && p->fold == next.fold &&
                      p->halves == next.halves && p->epoch == next.epoch && p->seq == next.seq &&
                      p->cells <= next.cells && strcmp(p->head, next.head) == 0;
    *anew = same && p->cells > first ? (int)((p->cells - first) / next.fold) : 0;
    *p = next;
    return true;
}

/* ---- the rows below ---- */

struct axis {
    const struct run_panel *p;
    const struct scope *scope;
};

static int
column_of(const struct run_panel *p, uint32_t pos)
{
    return pos < p->first ? 0 : (int)((pos - p->first) / p->fold);
}

static int
place_mark(const void *user, const struct segment *t)
{
    const struct axis *a = user;
    const uint32_t pos = scope_round_position(a->scope, t->first_round);
    return pos < scope_now(a->scope)->length ? RUN_LABEL + column_of(a->p, pos) : -1;
}

static void
draw_span(const struct run_panel *p, const struct scope *s, const struct canvas *c, int y, struct position_range span,
          bool bracket)
{
    if (span.from >= span.to || span.to <= p->first)
        return;
    const uint32_t last = span.to - 1 < scope_now(s)->length ? span.to - 1 : scope_now(s)->length - 1;
    const int from = column_of(p, span.from), to = column_of(p, last);
    for (int x = from; x <= to && x < p->cols; x++)
        canvas_text(c, y, RUN_LABEL + x, bracket ? ROLE_TEXT : ROLE_DIM,
                    !bracket    ? "─"
                    : x == from ? "└"
                    : x == to   ? "┘"
                                : "━");
}

/* Draws the range of the text panel, in brackets the range of the layers panel, changes of settings, and the cursor. */
static void
draw_axis(const struct run_panel *p, const struct view *v, const struct canvas *c, int y)
{
    const struct axis a = {.p = p, .scope = v->scope};
    const struct selection *sel = v->selection;
    struct marks marks;
    draw_span(p, v->scope, c, y, sel->text, false);
    draw_span(p, v->scope, c, y, sel->layers, true);
    marks_find(&marks, v->scope, NULL, place_mark, &a);
    marks_draw(&marks, v->scope, c, y, c->cols, ROLE_LINE);
    if (!sel->follow && sel->pos >= p->first && sel->pos < scope_now(v->scope)->length)
        canvas_text(c, y, RUN_LABEL + column_of(p, sel->pos), ROLE_CURSOR, "▲");
}

/* Draws a mark at each correction. */
static void
draw_fates(const struct run_panel *p, const struct scope *s, const struct canvas *c, int y)
{
    for (uint32_t pos = p->first; pos < scope_now(s)->length; pos++) {
        const struct scope_column *column = scope_column(s, pos);
        if (column != NULL && column->fate == FATE_CORRECTION)
            canvas_text(c, y, RUN_LABEL + column_of(p, pos), ROLE_CORRECTION, "◆");
    }
}

static void
draw_run(void *state, const struct view *v, const struct canvas *c)
{
    struct run_panel *p = state;
    const uint32_t layers = scope_info(v->scope)->layers;
    const int below = c->rows >= 6 ? 2 : c->rows >= 3 ? 1 : 0, rows = c->rows - below, cols = c->cols - RUN_LABEL;
    int anew;
    if (scope_now(v->scope)->length == 0 || rows < 1 || cols < 1) {
        canvas_text(c, 0, 0, ROLE_DIM, "no tokens yet");
        return;
    }
    if (!arrange(p, v->scope, rows, cols, &anew)) {
        canvas_text(c, 0, 0, ROLE_ERROR, "out of memory for the whole run");
        return;
    }
    const uint32_t n = scope_now(v->scope)->length - p->first;
    const int shown = (int)((n + p->fold - 1) / p->fold), used = (p->halves + 1) / 2;
    for (int x = anew; x < shown; x++)
        fold_column(p, v->scope, x);
    for (int x = 0; x < shown; x++)
        for (int y = 0; y < used; y++) {
            const float *value = p->value + (size_t)x * (size_t)p->halves + 2 * y;
            canvas_halves(c, y, RUN_LABEL + x, value[0], 2 * y + 1 < p->halves ? value[1] : NAN);
        }
    canvas_print(c, 0, 0, ROLE_DIM, "L%u", (unsigned)layers);
    if (used > 1)
        canvas_text(c, used - 1, 0, ROLE_DIM, " 1");
    if (below > 1)
        draw_fates(p, v->scope, c, used);
    if (below > 0)
        draw_axis(p, v, c, used + (below > 1));
}

static void
close_run(void *state)
{
    struct run_panel *p = state;
    free(p->value);
}

static void
note_run(void *state, const struct view *v, char *out, int n)
{
    const struct run_panel *p = state;
    const char *exited = scope_draft_origin(v->scope) == DRAFTS_LAYERS ? " ── ░ exited" : "";
    if (p->fold > 1)
        snprintf(out, (size_t)n, "%u token%s a column%s ── ◆ correction", (unsigned)p->fold, plural(p->fold), exited);
    else
        snprintf(out, (size_t)n, "a column a token%s ── ◆ correction", exited);
}

static void
point_at(const struct run_panel *p, const struct view *v, long pos)
{
    const long first = (long)p->first, last = (long)scope_now(v->scope)->length - 1;
    if (last < first)
        return;
    v->selection->pos = (uint32_t)(pos < first ? first : pos > last ? last : pos);
    v->selection->follow = false;
}

/* The first move puts the cursor on the newest position. */
static void
move(const struct run_panel *p, const struct view *v, long columns)
{
    const struct selection *sel = v->selection;
    const long now = (long)scope_now(v->scope)->length - 1, by = columns * (long)p->fold;
    point_at(p, v, sel->follow ? now + (columns < -1 ? by : 0) : (long)sel->pos + by);
}

static bool
key_run(void *state, const struct view *v, int key)
{
    const struct run_panel *p = state;
    if (p->fold == 0) /* not drawn yet */
        return false;
    switch (key) {
    case 'h':
    case INPUT_LEFT: move(p, v, -1); return true;
    case 'l':
    case INPUT_RIGHT: move(p, v, 1); return true;
    case INPUT_SHIFT_LEFT:
    case INPUT_PAGE_UP: move(p, v, -10); return true;
    case INPUT_SHIFT_RIGHT:
    case INPUT_PAGE_DOWN: move(p, v, 10); return true;
    case '0':
    case INPUT_HOME: point_at(p, v, 0); return true;
    case '$': point_at(p, v, (long)scope_now(v->scope)->length); return true;
    case INPUT_END:
    case 'f': v->selection->follow = true; return true;
    default: return false;
    }
}

static bool
mouse_run(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    const struct run_panel *p = state;
    (void)c;
    (void)y;
    if (p->fold == 0 || action == MOUSE_RELEASE)
        return false;
    if (mouse_wheel(action) != 0)
        move(p, v, 2 * mouse_wheel(action));
    else
        point_at(p, v, (long)p->first + (long)(x < RUN_LABEL ? 0 : x - RUN_LABEL) * (long)p->fold);
    return true;
}

static bool
active_run(const struct view *v)
{
    return scope_info(v->scope)->layers > 1;
}

static const struct key_help keys[] = {
    {"← →", "point at a token; with Shift ten columns at a time: all panels go there"},
    {"Home $", "the first, the last one"},
    {"f, End", "follow the newest position again"},
    {"click, drag", "point there"},
    {"─ └━┘", "what the text shows, what the layers show"},
    {NULL, NULL},
};

const struct panel_ops panel_run = {
    .name = "run",
    .title = "whole run",
    .brief = "← → point  f follow",
    .active = active_run,
    .place = PANEL_MIDDLE,
    .alone = true,
    .weight = 4,
    .min_cols = 40,
    .keys = keys,
    .state_size = sizeof(struct run_panel),
    .close = close_run,
    .draw = draw_run,
    .note = note_run,
    .key = key_run,
    .mouse = mouse_run,
};
