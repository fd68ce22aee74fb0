/* A line for each round, the newest first: accepted and rejected drafts, exit layers, why drafting stopped, and the
 * time. Or the tree of the cursor's round: a line for each draft, with its probability and the probability of its
 * path. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/panel.h"

#define ROWS_MOST 512

struct rounds_panel {
    uint32_t top; /* the number of the round in the first row; 0: the newest */
    int n_rows;   /* as drawn last */
    bool tree;    /* shows the tree of the cursor's round */
    int tree_top; /* the tree's first row that is visible; -1: the end of the accepted path is visible */
    uint32_t tree_round;
    int shown; /* rows of the tree for which there is room */
    struct round_row {
        uint32_t number;
        const struct scope_round *round; /* NULL: not in memory. Valid while drawing */
    } row[ROWS_MOST];
};

/* The widths of a line's parts; 0: omitted. The rounds' numbers are right-aligned. */
struct parts {
    int number, boxes, ratio, exits, reason, time;
};

static struct parts
arrange(const struct rounds_panel *p, const struct scope *s, int cols)
{
    uint32_t most = 0, last = p->n_rows > 0 ? p->row[0].number : 0;
    int reason = 9, number = 3;
    for (; last >= 1000; last /= 10)
        number++;
    for (int y = 0; y < p->n_rows; y++) {
        const struct scope_round *r = p->row[y].round;
        char text[ROUND_REASON];
        if (r == NULL)
            continue;
        round_reason(&r->end, text);
        most = round_drafts(r) > most ? round_drafts(r) : most;
        reason = text_width(text) > reason ? text_width(text) : reason;
    }
    struct parts a = {.number = number, .boxes = (int)most + 1};
    int room = cols - 3 - number; /* a space at the end */
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
    const struct segment *changed = mark_of_round(v->scope, r->number);
    int x = round_number(v, c, y, a.number, r);
    if (changed != NULL) /* unless the cursor is there */
        marks_draw_tick(c, y, 0);
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
draw_gone(const struct view *v, const struct canvas *c, int y, uint32_t number, int width)
{
    const bool here = selection_round(v) == number;
    if (here)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
    const int x = 1 + canvas_print(c, y, 1, here ? ROLE_TITLE : ROLE_DIM, "%*u ", width, (unsigned)number);
    canvas_word(c, y, x, c->cols - x, ROLE_DIM, MARK_NONE, "no longer in memory");
}

/* ---- the tree of a round ---- */

struct tree_row {
    const struct scope_draft *draft; /* NULL: the target's own token */
    uint32_t pos;
    token_t token;
    int depth;
    uint64_t open; /* a bit for each depth with a later sibling */
};

struct tree {
    struct tree_row row[SCOPE_DRAFTS + 1]; /* in depth-first order */
    int n;
    int32_t end; /* candidate at the end of the accepted path */
};
_Static_assert(VERIFY_NODES <= 64, "a path's depths are bits of 64");

/* The round of the cursor, or the newest; NULL: it is no longer in memory, and *number is its number (0: there is
 * none). */
static const struct scope_round *
tree_round(const struct view *v, uint32_t *number)
{
    const struct scope *s = v->scope;
    const struct scope_round *newest = scope_round(s, 0);
    const uint32_t at = v->selection->follow || selection_round(v) > 0 ? selection_round(v) : scope_round_after(s, 0);
    *number = at > 0 ? at : newest != NULL ? newest->number : 0;
    return at > 0 ? scope_round_numbered(s, at) : newest;
}

/* Adds what follows a candidate: at the end of the accepted path the target's own token, then the drafts, each with its
 * own tree. */
static void
add_after(struct tree *t, const struct scope *s, const struct scope_round *r, int32_t parent, struct tree_row row)
{
    const uint64_t bit = (uint64_t)1 << row.depth;
    uint32_t last = r->n_drafts;
    for (uint32_t i = 0; i < r->n_drafts; i++)
        last = r->drafts[i].parent == parent ? i : last;
    const struct scope_column *c = parent == t->end && r->last != ROUND_OPEN ? scope_column(s, row.pos) : NULL;
    if (c != NULL)
        t->row[t->n++] =
            (struct tree_row){NULL, c->pos, c->token, row.depth, last < r->n_drafts ? row.open | bit : row.open};
    for (uint32_t i = 0; i < r->n_drafts; i++) {
        const struct scope_draft *d = &r->drafts[i];
        if (d->parent != parent)
            continue;
        const uint64_t open = i != last ? row.open | bit : row.open;
        t->row[t->n++] = (struct tree_row){d, d->pos, d->token, row.depth, open};
        add_after(t, s, r, d->candidate, (struct tree_row){.pos = d->pos + 1, .depth = row.depth + 1, .open = open});
    }
}

static void
make_tree(struct tree *t, const struct scope *s, const struct scope_round *r)
{
    t->n = t->end = 0;
    for (uint32_t i = 0; i < r->n_drafts; i++)
        t->end = r->drafts[i].committed > 0 ? r->drafts[i].candidate : t->end; /* a parent is before its children */
    add_after(t, s, r, 0, (struct tree_row){.pos = r->first_pos});
}

static bool
is_committed(const struct tree_row *row)
{
    return row->draft == NULL || row->draft->committed > 0;
}

static void
print_probability(const struct canvas *c, int y, int x, enum role role, float p)
{
    if (isnan(p))
        canvas_text(c, y, x + 4, ROLE_DIM, "–");
    else
        canvas_print(c, y, x, role, p >= 0.0005f ? "%5.3f" : "<.001", (double)p);
}

/* Draws the branches and the token in `width` columns; of too many branches only the last ones. */
static void
draw_node(const struct view *v, const struct canvas *c, int y, int width, const struct tree_row *row, int last)
{
    const struct scope_draft *d = row->draft;
    const bool accepted = d != NULL && d->accepted > 0, open = d != NULL && d->accepted < 0;
    const enum role role = d == NULL  ? last == SOURCE_BONUS ? ROLE_BONUS : ROLE_CORRECTION
                           : accepted ? ROLE_ACCEPTED
                           : open     ? ROLE_DRAFT
                                      : ROLE_DIM;
    const char *word = panel_word(v->scope, row->token);
    const int need = row->depth + 4 + (text_width(word) < 8 ? text_width(word) : 8);
    const int first = need > width ? need - width : 0;
    int x = 1;
    for (int i = first; i <= row->depth; i++, x++) {
        const bool more = (row->open >> i & 1) != 0;
        canvas_text(c, y, x, ROLE_DIM,
                    i == row->depth       ? more ? "├" : "└"
                    : i == first && i > 0 ? "…"
                    : more                ? "│"
                                          : " ");
    }
    canvas_text(c, y, x, role,
                d == NULL  ? last == SOURCE_BONUS ? "+" : "◆"
                : accepted ? "■"
                : open     ? (d->main_line ? "○" : "◦")
                           : (d->main_line ? "□" : "▫"));
    canvas_word(c, y, x + 2, width - x - 2, role, accepted ? MARK_BOLD : MARK_NONE, word);
    if (is_committed(row) && !v->selection->follow && v->selection->pos == row->pos)
        canvas_text(c, y, 0, ROLE_CURSOR, "▸");
}

#define TREE_NUMBERS 14 /* columns of the two probabilities */

/* Draws the rows from p->tree_top on: branches, both probabilities, a bar of the path's. */
static void
draw_tree(struct rounds_panel *p, const struct view *v, const struct canvas *c, const struct scope_round *r)
{
    struct tree t;
    make_tree(&t, v->scope, r);
    bool known = false;
    int width = 14, end = 0;
    for (int i = 0; i < t.n; i++) {
        const int wide = t.row[i].depth + 5 + text_width(panel_word(v->scope, t.row[i].token));
        width = wide > width ? wide : width;
        end = is_committed(&t.row[i]) ? i : end;
        known = known || (t.row[i].draft != NULL && !isnan(t.row[i].draft->probability));
    }
    const int room = c->cols - (known ? TREE_NUMBERS : 0), bar = room - width - 2;
    width = width < room ? width : room;
    if (known)
        canvas_print(c, 0, width, ROLE_DIM, "    p    path");
    canvas_text(c, 0, 1, ROLE_DIM, t.n == 0 ? "no drafts" : "drafted");
    p->tree_top = panel_scroll(p->tree_top, p->tree_top < 0 ? end : p->tree_top, t.n, c->rows - 1);
    for (int y = 1; y < c->rows && p->tree_top + y - 1 < t.n; y++) {
        const struct tree_row *row = &t.row[p->tree_top + y - 1];
        const struct scope_draft *d = row->draft;
        draw_node(v, c, y, width, row, r->last);
        if (!known || d == NULL)
            continue;
        const enum role role = d->accepted > 0 ? ROLE_ACCEPTED : d->accepted == 0 ? ROLE_DIM : ROLE_DRAFT;
        print_probability(c, y, width, role, d->probability);
        print_probability(c, y, width + 8, role, d->path);
        if (bar >= 8 && !isnan(d->path))
            canvas_bar(c, y, width + TREE_NUMBERS + 1, bar < 24 ? bar : 24, (double)d->path, role);
    }
    p->n_rows = t.n;
}

/* Draws the round's line above its tree. */
static void
draw_round_tree(struct rounds_panel *p, const struct view *v, const struct canvas *c)
{
    uint32_t number;
    const struct scope_round *r = tree_round(v, &number);
    if (p->tree_round != number)
        p->tree_top = -1;
    p->tree_round = number;
    if (r == NULL) {
        draw_gone(v, c, 0, number, 3);
        return;
    }
    p->row[0] = (struct round_row){number, r};
    p->n_rows = 1;
    draw_round(v, c, 0, r, arrange(p, v->scope, c->cols));
    const struct canvas below = canvas_inside(c, 1, 0, c->rows - 1, c->cols);
    draw_tree(p, v, &below, r);
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
    p->shown = c->rows - 2;
    if (p->tree) {
        draw_round_tree(p, v, c);
        return;
    }
    place(p, v, c->rows);
    const struct parts a = arrange(p, v->scope, c->cols);
    for (int y = 0; y < p->n_rows; y++)
        if (p->row[y].round != NULL)
            draw_round(v, c, y, p->row[y].round, a);
        else
            draw_gone(v, c, y, p->row[y].number, a.number);
}

static void
note_rounds(void *state, const struct view *v, char *out, int n)
{
    const struct rounds_panel *p = state;
    const struct scope_round *newest = scope_round(v->scope, 0);
    if (p->tree && p->shown > 0 && p->n_rows > p->shown)
        snprintf(out, (size_t)n, "%d–%d of %d tokens", p->tree_top + 1, p->tree_top + p->shown, p->n_rows);
    else if (!p->tree && p->n_rows > 0 && newest != NULL && p->row[0].number < newest->number)
        snprintf(out, (size_t)n, "%u–%u of %u", (unsigned)p->row[p->n_rows - 1].number, (unsigned)p->row[0].number,
                 (unsigned)scope_now(v->scope)->round);
    else
        snprintf(out, (size_t)n, "■ accepted  □ rejected  ◆ correction  + bonus");
}

/* Shows the tree, or the rounds again. */
static void
toggle_tree(struct rounds_panel *p, const struct view *v)
{
    p->tree = !p->tree;
    p->tree_top = -1;
    tree_round(v, &p->tree_round);
}

static bool
key_rounds(void *state, const struct view *v, int key)
{
    struct rounds_panel *p = state;
    const long page = p->tree ? 0 : p->n_rows > 1 ? p->n_rows - 1 : 1;
    if (key == INPUT_ENTER || (key == INPUT_ESCAPE && p->tree))
        toggle_tree(p, v);
    else if (p->tree && (key == INPUT_PAGE_UP || key == INPUT_PAGE_DOWN))
        p->tree_top += (key == INPUT_PAGE_UP ? -1 : 1) * (p->shown > 1 ? p->shown - 1 : 1);
    else
        return selection_key(v, key, page);
    return true;
}

/* Points at a committed token of the tree. */
static void
point_at_node(const struct rounds_panel *p, const struct view *v, int y)
{
    struct tree t;
    uint32_t number;
    const struct scope_round *r = tree_round(v, &number);
    const int i = p->tree_top + y - 2;
    if (r == NULL || y < 2)
        return;
    make_tree(&t, v->scope, r);
    if (i < 0 || i >= t.n || !is_committed(&t.row[i]))
        return;
    v->selection->pos = t.row[i].pos;
    v->selection->follow = false;
}

static bool
mouse_rounds(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct rounds_panel *p = state;
    (void)c;
    (void)x;
    if (p->tree && mouse_wheel(action) != 0)
        p->tree_top += mouse_wheel(action);
    else if (mouse_wheel(action) != 0)
        selection_move(v, -3 * mouse_wheel(action));
    else if (action == MOUSE_DOUBLE && (p->tree ? y == 0 : y >= 0 && y < p->n_rows))
        toggle_tree(p, v);
    else if (action == MOUSE_PRESS && p->tree)
        point_at_node(p, v, y);
    else if (action == MOUSE_PRESS && y >= 0 && y < p->n_rows)
        selection_to_round(v, p->row[y].number);
    else
        return false;
    return true;
}

static const struct key_help keys[] = {
    {"↑ ↓ PgUp PgDn", "point at a newer or an older round: all panels go there"},
    {"Home End", "follow the newest; the oldest"},
    {"Enter", "the tree of the round: each draft with the drafter's probability and the product of those on its path; "
              "again: close it"},
    {"PgUp PgDn", "in the tree: scroll it, as the wheel does"},
    {"click", "point at the round's first token, or at an accepted token of the tree; twice: the round's tree"},
    {"low confidence",
     "why drafting stopped: no layer was confident enough (SpecBound: a difficult token); or another reason"},
    {NULL, NULL},
};

const struct panel_ops panel_rounds = {
    .name = "rounds",
    .title = "rounds",
    .brief = "↑ ↓ round  Enter tree",
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
