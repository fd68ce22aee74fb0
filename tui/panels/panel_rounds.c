/* One line a round, the newest first: what was accepted and what not, where the drafts left the model, why drafting
 * stopped, how long it took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "tui/panels/marks.h"
#include "tui/panels/panel.h"
#include "tui/panels/round_marks.h"
#include "tui/terminal/input.h"

struct rounds_panel {
    uint32_t back;   /* rounds passed over at the top */
    uint32_t newest; /* the newest round's number, and */
    uint32_t epoch;  /* its run: while scrolled, the lines stand still */
    int rows;
};

static void *
open_rounds(void)
{
    return calloc(1, sizeof(struct rounds_panel));
}

/* Where the parts of a line stand; 0 columns: left out. */
struct parts {
    int boxes, ratio, exits, reason, time;
};

static struct parts
arrange(const struct view *v, const struct rounds_panel *p, int rows, int cols)
{
    uint32_t most = 0;
    for (int y = 0; y < rows; y++) {
        const struct scope_round *r = scope_round(v->scope, p->back + (uint32_t)y);
        if (r != NULL && r->n_drafts > most)
            most = r->n_drafts;
    }
    struct parts a = {.boxes = (int)most + 1};
    int room = cols - 6; /* the number and a space at the end */
    if (a.boxes > 17)
        a.boxes = 17;
    if (a.boxes > room)
        a.boxes = room > 0 ? room : 0;
    room -= a.boxes;
    if (room >= 7) {
        a.ratio = 7;
        room -= 7;
    }
    if (room >= 9) {
        a.time = 9;
        room -= 9;
    }
    if (room >= 10) {
        a.reason = 10;
        room -= 10;
    }
    a.exits = room >= 4 ? room : 0;
    return a;
}

/* Returns the columns used. */
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

/* What was turned before this round. */
static void
draw_mark(const struct view *v, const struct canvas *c, int y, int x, int width, const struct stretch *turned)
{
    char text[256];
    stretch_text(turned, scope_info(v->scope), true, text, sizeof text);
    if (width < 6)
        return;
    canvas_text(c, y, x, ROLE_LINE, canvas_glyph(c, "┊", ":"));
    canvas_word(c, y, x + 1, width - 2, ROLE_LINE, MARK_NONE, text);
}

static void
draw_round(const struct view *v, const struct canvas *c, int y, const struct scope_round *r, struct parts a)
{
    const struct round_event *e = &r->end;
    const bool here = selection_in_round(v, r);
    const struct stretch *turned = mark_of_round(v->scope, r->number);
    if (here)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
    else if (turned != NULL)
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
    const int used = a.exits > 0 ? draw_exits(c, y, x, a.exits, r) : 0;
    if (turned != NULL)
        draw_mark(v, c, y, x + used + (used > 0), a.exits - used - (used > 0), turned);
    x += a.exits;
    if (a.reason > 0) {
        const struct canvas part = canvas_inside(c, y, x, 1, a.reason - 1);
        char reason[4 * sizeof e->stop_reason + 1]; /* a trace may say anything */
        printable_text(e->stop_reason, strlen(e->stop_reason), reason, sizeof reason);
        canvas_text(&part, 0, 0, ROLE_DIM, r->whole ? reason : "drafting");
        x += a.reason;
    }
    if (a.time > 0 && r->whole)
        canvas_print(c, y, x, ROLE_TEXT, "%6.1f ms", ((double)e->draft_us + (double)e->verify_us) / 1000);
}

static void
draw_rounds(void *state, const struct view *v, const struct canvas *c)
{
    struct rounds_panel *p = state;
    const struct scope_round *newest = scope_round(v->scope, 0);
    if (newest == NULL) {
        canvas_text(c, 0, 0, ROLE_DIM, "no rounds yet");
        return;
    }
    if (p->epoch != scope_now(v->scope)->epoch) {
        p->epoch = scope_now(v->scope)->epoch;
        p->back = 0;
    } else if (p->back > 0 && newest->number > p->newest) {
        p->back += newest->number - p->newest;
    }
    p->newest = newest->number;
    p->rows = c->rows;
    const uint32_t rows = (uint32_t)c->rows, held = scope_rounds(v->scope);
    if (p->back + rows > held)
        p->back = held > rows ? held - rows : 0;
    const struct parts a = arrange(v, p, c->rows, c->cols);
    for (int y = 0; y < c->rows; y++) {
        const struct scope_round *r = scope_round(v->scope, p->back + (uint32_t)y);
        if (r != NULL)
            draw_round(v, c, y, r, a);
    }
}

static void
note_rounds(void *state, const struct view *v, char *out, int n)
{
    const struct rounds_panel *p = state;
    (void)v;
    if (p->back > 0)
        snprintf(out, (size_t)n, "scrolled by %u", (unsigned)p->back);
    else
        snprintf(out, (size_t)n, "■ accepted  □ rejected  ◆ correction  + bonus");
}

static void
scroll(struct rounds_panel *p, long by)
{
    const long back = (long)p->back + by;
    p->back = back < 0 ? 0 : back > SCOPE_ROUNDS ? SCOPE_ROUNDS : (uint32_t)back;
}

static bool
key_rounds(void *state, const struct view *v, int key)
{
    struct rounds_panel *p = state;
    (void)v;
    const long page = p->rows > 1 ? p->rows - 1 : 1;
    switch (key) {
    case 'j':
    case INPUT_DOWN: scroll(p, 1); return true;
    case 'k':
    case INPUT_UP: scroll(p, -1); return true;
    case INPUT_PAGE_DOWN: scroll(p, page); return true;
    case INPUT_PAGE_UP: scroll(p, -page); return true;
    case INPUT_HOME: p->back = 0; return true;
    case INPUT_END: p->back = SCOPE_ROUNDS; return true;
    default: return false;
    }
}

static bool
mouse_rounds(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct rounds_panel *p = state;
    (void)c;
    (void)x;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        scroll(p, action == MOUSE_WHEEL_UP ? -3 : 3);
        return true;
    }
    const struct scope_round *r = y >= 0 ? scope_round(v->scope, p->back + (uint32_t)y) : NULL;
    if (action != MOUSE_PRESS || r == NULL)
        return false;
    v->selection->pos = r->first_pos;
    v->selection->follow = false;
    return true;
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "scroll"},
    {"Home End", "newest, oldest"},
    {"click", "point at the round's first token"},
    {NULL, NULL},
};

const struct panel_ops panel_rounds = {
    .name = "rounds",
    .title = "rounds",
    .brief = "↑ ↓ scroll",
    .place = PANEL_BOTTOM,
    .weight = 4,
    .min_cols = 24,
    .keys = keys,
    .open = open_rounds,
    .close = free,
    .draw = draw_rounds,
    .note = note_rounds,
    .key = key_rounds,
    .mouse = mouse_rounds,
};
