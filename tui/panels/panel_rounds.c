/* A line for each round, the newest first: accepted and rejected drafts, exit layers, why drafting stopped, and the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/panels/panel.h"
#include "tui/terminal/input.h"
#include "tui/terminal/text.h"

#define ROWS_MOST 512

struct rounds_panel {
    uint32_t top; /* the number of the round in the first row; 0: the newest */
    int n_rows;   /* as drawn last */
    struct round_row {
        uint32_t number;
        const struct scope_round *round; /* NULL: not in memory. Valid while drawing */
    } row[ROWS_MOST];
};

/* The widths of a line's parts; 0: omitted. */
struct parts {
    int boxes, ratio, exits, reason, time;
};

static struct parts
arrange(const struct rounds_panel *p, const struct scope *s, int cols)
{
    uint32_t most = 0;
    int reason = 9;
    for (int y = 0; y < p->n_rows; y++) {
        const struct scope_round *r = p->row[y].round;
        char text[ROUND_REASON];
        if (r == NULL)
            continue;
        round_reason(&r->end, text);
        most = r->n_drafts > most ? r->n_drafts : most;
        reason = text_width(text) > reason ? text_width(text) : reason;
    }
    struct parts a = {.boxes = (int)most + 1};
    int room = cols - 6; /* the number and a space at the end */
    /* drafts without exit layers get the room of these */
    const int others = 7 + 9 + 10, wide = scope_draft_origin(s) == DRAFTS_LAYERS ? 0 : room - others;
    if (a.boxes > 17)
        a.boxes = wide < 17 ? 17 : a.boxes < wide ? a.boxes : wide;
    if (a.boxes > room)
        a.boxes = room > 0 ? room : 0;
    room -= a.boxes;
    if (room >= 7) {
        a.ratio = most < 10 ? 5 : 7;
        room -= a.ratio;
    }
    if (room >= 9) {
        a.time = 9;
        room -= 9;
    }
    if (room >= 10) {
        a.reason = reason < room ? reason + 1 : room;
        room -= a.reason;
    }
    a.exits = room >= 4 ? room : 0;
    return a;
}

/* Draws the drafts' exit layers; returns the columns used. */
static int
draw_exits(const struct canvas *c, int y, int x, int width, const struct scope_round *r)
{
    char text[64 * 6] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < r->n_drafts; i++) {
        const struct scope_draft *d = &r->drafts[i];
        if (d->main_line && d->exit_layer > 0 && n + 8 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, n == 0 ? "L%d" : " %d", (int)d->exit_layer);
    }
    const struct canvas part = canvas_inside(c, y, x, 1, width - 1);
    canvas_text(&part, 0, 0, ROLE_DIM, text);
    if ((int)n > width - 1)
        canvas_text(&part, 0, part.cols - 1, ROLE_DIM, "…");
    return (int)n < width ? (int)n : width;
}

/* Draws the changes of settings before this round. */
static void
draw_mark(const struct view *v, const struct canvas *c, int y, int x, int width, const struct segment *changed)
{
    char text[256];
    segment_text(changed, scope_info(v->scope), true, text, sizeof text);
    if (width < 6)
        return;
    canvas_text(c, y, x, ROLE_LINE, "┊");
    canvas_word(c, y, x + 1, width - 2, ROLE_LINE, MARK_NONE, text);
}

static void
draw_round(const struct view *v, const struct canvas *c, int y, const struct scope_round *r, struct parts a)
{
    const struct round_event *e = &r->end;
    const bool here = selection_in_round(v, r);
    const struct segment *changed = mark_of_round(v->scope, r->number);
    if (here)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
    else if (changed != NULL)
        marks_draw_tick(c, y, 0);
    int x = 1 + canvas_print(c, y, 1, here ? ROLE_TITLE : r->whole ? ROLE_TEXT : ROLE_DIM, "%3u ", (unsigned)r->number);
    round_marks(c, y, x, a.boxes, r);
    x += a.boxes + 1;
    if (a.ratio > 0) {
        if (r->whole && e->verified > 0)
            canvas_print(c, y, x, e->accepted == e->verified ? ROLE_ACCEPTED : ROLE_TEXT, "%u/%u",
                         (unsigned)e->accepted, (unsigned)e->verified);
        else if (r->whole)
            canvas_text(c, y, x, ROLE_DIM, "–");
        x += a.ratio;
    }
    const bool exits = a.exits > 0 && scope_draft_origin(v->scope) == DRAFTS_LAYERS;
    const int used = exits ? draw_exits(c, y, x, a.exits, r) : 0;
    if (changed != NULL)
        draw_mark(v, c, y, x + used + (used > 0), a.exits - used - (used > 0), changed);
    x += a.exits;
    if (a.reason > 0) {
        char reason[ROUND_REASON];
        round_reason(e, reason);
        canvas_word(c, y, x, a.reason - 1, ROLE_DIM, MARK_NONE, r->whole ? reason : "drafting");
        x += a.reason;
    }
    if (a.time > 0 && r->whole)
        canvas_print(c, y, x, ROLE_TEXT, "%6.1f ms", ((double)e->draft_us + (double)e->verify_us) / 1000);
}

/* Fills the rows from p->top on, first with rounds in memory. */
static void
list(struct rounds_panel *p, const struct scope *s, int rows)
{
    uint32_t back = p->top == 0 ? 0 : scope_round_back(s, p->top), number = p->top + 1;
    const struct scope_round *r;
    p->n_rows = 0;
    for (; p->n_rows < rows && (r = scope_round(s, back)) != NULL; back++)
        p->row[p->n_rows++] = (struct round_row){number = r->number, r};
    for (; p->n_rows < rows && (number = scope_round_before(s, number)) != 0; p->n_rows++)
        p->row[p->n_rows] = (struct round_row){number, NULL};
}

/* Chooses the rows: with a cursor they move only if it would be invisible. */
static void
place(struct rounds_panel *p, const struct view *v, int rows)
{
    const struct scope *s = v->scope;
    uint32_t at = selection_round(v);
    rows = rows > ROWS_MOST ? ROWS_MOST : rows;
    if (v->selection->follow)
        p->top = 0;
    else if (p->top == 0)
        p->top = scope_round(s, 0)->number;
    at = at == 0 ? scope_round_after(s, 0) : at; /* the cursor is in the prompt */
    if (p->top > 0 && at > p->top)
        p->top = at;
    list(p, s, rows);
    if (p->top == 0 || p->n_rows == 0 || at >= p->row[p->n_rows - 1].number)
        return;
    p->top = at;
    for (uint32_t i = 1, next; i < (uint32_t)rows && (next = scope_round_after(s, p->top)) != 0; i++)
        p->top = next;
    list(p, s, rows);
}

static void
draw_gone(const struct view *v, const struct canvas *c, int y, uint32_t number)
{
    const bool here = selection_round(v) == number;
    if (here)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
    const int x = 1 + canvas_print(c, y, 1, here ? ROLE_TITLE : ROLE_DIM, "%3u ", (unsigned)number);
    canvas_word(c, y, x, c->cols - x, ROLE_DIM, MARK_NONE, "no longer in memory");
}

static void
draw_rounds(void *state, const struct view *v, const struct canvas *c)
{
    struct rounds_panel *p = state;
    p->n_rows = 0;
    if (scope_round(v->scope, 0) == NULL) {
        canvas_text(c, 0, 0, ROLE_DIM, "no rounds yet");
        return;
    }
    place(p, v, c->rows);
    const struct parts a = arrange(p, v->scope, c->cols);
    for (int y = 0; y < p->n_rows; y++)
        if (p->row[y].round != NULL)
            draw_round(v, c, y, p->row[y].round, a);
        else
            draw_gone(v, c, y, p->row[y].number);
}

static void
note_rounds(void *state, const struct view *v, char *out, int n)
{
    const struct rounds_panel *p = state;
    const struct scope_round *newest = scope_round(v->scope, 0);
    if (p->n_rows > 0 && newest != NULL && p->row[0].number < newest->number)
        snprintf(out, (size_t)n, "%u–%u of %u", (unsigned)p->row[p->n_rows - 1].number, (unsigned)p->row[0].number,
                 (unsigned)scope_now(v->scope)->round);
    else
        snprintf(out, (size_t)n, "■ accepted  □ rejected  ◆ correction  + bonus");
}

static bool
key_rounds(void *state, const struct view *v, int key)
{
    const struct rounds_panel *p = state;
    const long page = p->n_rows > 1 ? p->n_rows - 1 : 1;
    return selection_key(v, key, page);
}

static bool
mouse_rounds(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    const struct rounds_panel *p = state;
    (void)c;
    (void)x;
    if (mouse_wheel(action) != 0)
        selection_move(v, -3 * mouse_wheel(action));
    else if (action == MOUSE_PRESS && y >= 0 && y < p->n_rows)
        selection_to_round(v, p->row[y].number);
    else
        return false;
    return true;
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "point at a newer or an older round: all panels go there"},
    {"Home End", "follow the newest; the oldest"},
    {"click", "point at the round's first token"},
    {"low confidence",
     "why drafting stopped: no layer was confident enough (SpecBound: a difficult token); or another reason"},
    {NULL, NULL},
};

const struct panel_ops panel_rounds = {
    .name = "rounds",
    .title = "rounds",
    .brief = "↑ ↓ round",
    .place = PANEL_BOTTOM,
    .weight = 4,
    .min_cols = 24,
    .keys = keys,
    .state_size = sizeof(struct rounds_panel),
    .draw = draw_rounds,
    .note = note_rounds,
    .key = key_rounds,
    .mouse = mouse_rounds,
};
