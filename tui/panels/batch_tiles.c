#include "tui/panels/batch_tiles.h"

#include <math.h>
#include <string.h>

#include "engine/base/plural.h"
#include "tui/panels/round_marks.h"
#include "tui/terminal/text.h"

#define TILE_COLS   34 /* narrower ones do not stand beside each other */
#define ROOMY_ROWS  7  /* where all have as much, fewer stand beside each other, so that they are wide */
#define BOXED_ROWS  5
#define TALLEST     12
#define SMALLEST    3 /* when they scroll: a line of figures, two of text */
#define TAIL_TOKENS 256

static int
lines_of(uint32_t n, int columns)
{
    return (int)((n + (uint32_t)columns - 1) / (uint32_t)columns);
}

struct tiling
tiling_of(uint32_t n, int rows, int cols)
{
    struct tiling t = {.columns = 1};
    n = n < 1 ? 1 : n;
    while (lines_of(n, t.columns) * ROOMY_ROWS > rows && (t.columns + 1) * TILE_COLS <= cols && (uint32_t)t.columns < n)
        t.columns++;
    t.rows = rows / lines_of(n, t.columns);
    t.rows = t.rows > TALLEST ? TALLEST : t.rows < 2 ? SMALLEST : t.rows;
    t.rows = t.rows > rows && rows > 0 ? rows : t.rows;
    t.boxed = t.rows >= BOXED_ROWS;
    t.visible = rows / t.rows > 0 ? rows / t.rows : 1;
    return t;
}

/* ---- the text ---- */

struct style {
    enum role role;
    unsigned marks;
};

static struct style
style_of(enum fate fate, bool live)
{
    switch (fate) {
    case FATE_REJECTED: return (struct style){live ? ROLE_REJECTED : ROLE_DIM, MARK_STRUCK};
    case FATE_GHOST: return (struct style){ROLE_DRAFT, MARK_NONE};
    case FATE_PROMPT: return (struct style){live ? ROLE_PROMPT : ROLE_DIM, MARK_NONE};
    case FATE_ACCEPTED: return (struct style){live ? ROLE_ACCEPTED : ROLE_DIM, MARK_NONE};
    case FATE_CORRECTION: return (struct style){live ? ROLE_CORRECTION : ROLE_DIM, MARK_UNDERLINED};
    case FATE_BONUS: return (struct style){live ? ROLE_BONUS : ROLE_DIM, MARK_BOLD};
    case FATE_PREFILL:
    case FATE_NONE: break;
    }
    return (struct style){live ? ROLE_TEXT : ROLE_DIM, MARK_NONE};
}

static void
draw_line(const struct canvas *c, int y, const struct flow *f, size_t line, const struct scope_said *said, bool live)
{
    const size_t end = flow_line_end(f, line);
    size_t at = f->lines[line].start;
    int x = 0, columns = 0;
    for (size_t n; at < end && (n = text_cluster(f->text + at, &columns)) != 0; at += n, x += columns) {
        const struct flow_span *span = &f->spans[flow_span_at(f, at)];
        const struct style style = style_of(said[span->pos].fate, live);
        char cluster[64];
        const size_t length = n < sizeof cluster ? n : sizeof cluster - 1;
        memcpy(cluster, f->text + at, length);
        cluster[length] = '\0';
        canvas_styled(c, y, x, style.role, NAN, f->text[at] == ' ' ? style.marks & MARK_STRUCK : style.marks, cluster);
    }
}

/* Its end, as far as there are rows. */
void
tile_text(const struct canvas *c, const struct scope *s, const struct scope_tile *t, struct flow *flow)
{
    struct scope_said said[TAIL_TOKENS];
    const uint32_t n = scope_tile_tail(s, t, said, TAIL_TOKENS);
    if (n == 0)
        canvas_word(c, 0, 0, c->cols, ROLE_DIM, MARK_NONE, t->prompt);
    if (n == 0 || c->rows < 1 || c->cols < 1 || !flow_said(flow, s, said, n, c->cols))
        return;
    const bool open = flow->n_lines > 1 && flow->lines[flow->n_lines - 1].start == flow->n; /* nothing is on it yet */
    const size_t rows = (size_t)c->rows, lines = flow->n_lines - open, top = lines > rows ? lines - rows : 0;
    for (size_t line = top; line < lines; line++)
        draw_line(c, (int)(line - top), flow, line, said, t->live);
}

/* ---- the figures ---- */

/* As many of them as fit into `room` columns, from the right end; returns the columns that are left. */
static int
draw_figures(const struct canvas *c, const struct scope *s, const struct scope_tile *t, int room)
{
    const struct measures m = scope_tile_measures(s, t);
    const double speed = scope_tile_tokens_per_s(t);
    char text[4][40] = {"", "", "", ""};
    if (isnan(speed))
        return room;
    snprintf(text[0], sizeof text[0], " %.*f tok/s ", speed < 10 ? 1 : 0, speed);
    snprintf(text[1], sizeof text[1], " %.2f/round ", m.tokens_per_round);
    if (!isnan(m.acceptance_rate))
        snprintf(text[2], sizeof text[2], " %.0f%% accepted ", m.acceptance_rate * 100);
    snprintf(text[3], sizeof text[3], " %u token%s ", (unsigned)t->total.emitted, plural(t->total.emitted));
    int x = c->cols;
    for (int i = 0; i < 4 && text_width(text[i]) <= room; i++) {
        x -= text_width(text[i]);
        room -= text_width(text[i]);
        canvas_text(c, 0, x, t->live ? ROLE_TEXT : ROLE_DIM, text[i]);
    }
    return room;
}

static void
draw_head(const struct canvas *c, const struct scope *s, const struct scope_tile *t, struct tile_look look)
{
    const enum role role = look.focused ? ROLE_FOCUS : t->live ? ROLE_TITLE : ROLE_DIM;
    const struct scope_round *r = t->live ? scope_tile_round(s, t) : NULL;
    const int marks = r != NULL ? (int)r->n_drafts + 1 : 0;
    const int least = (marks > 9 ? 9 : marks) + 5; /* and how many of how many */
    char number[16];
    snprintf(number, sizeof number, "%*u", look.digits, (unsigned)t->seq + 1);
    int x = canvas_text(c, 0, 0, role, look.focused ? canvas_glyph(c, "▸", ">") : " ");
    x += canvas_styled(c, 0, x, role, NAN, look.pointed ? MARK_CURSOR : MARK_NONE, number);
    x += canvas_text(c, 0, x, role, " ");
    if (!t->live) {
        x += canvas_text(c, 0, x, ROLE_DIM, t->left[0] != '\0' ? "ended: " : "ended");
        x += canvas_word(c, 0, x, c->cols - x, ROLE_DIM, MARK_NONE, t->left);
        x += canvas_text(c, 0, x, ROLE_DIM, t->held ? " " : ", not held ");
        draw_figures(c, s, t, c->cols - x);
        return;
    }
    int room = draw_figures(c, s, t, c->cols - x - least - 1) + least;
    if (r == NULL || room < 2)
        return;
    round_marks(c, 0, x, marks < room ? marks : room, r);
    x += marks < room ? marks : room;
    room -= marks;
    char ratio[32];
    snprintf(ratio, sizeof ratio, " %u/%u ", (unsigned)r->end.accepted, (unsigned)r->end.verified);
    if (r->whole && r->end.verified > 0 && text_width(ratio) <= room)
        canvas_text(c, 0, x, r->end.accepted == r->end.verified ? ROLE_ACCEPTED : ROLE_TEXT, ratio);
    else
        canvas_text(c, 0, x, ROLE_TEXT, " ");
}

void
tile_draw(const struct canvas *c, const struct scope *s, const struct scope_tile *t, struct tile_look look, bool boxed,
          struct flow *flow)
{
    struct canvas head = canvas_inside(c, 0, 0, 1, c->cols), body = canvas_inside(c, 1, 2, c->rows - 1, c->cols - 3);
    if (boxed) {
        canvas_box(c, "", "", look.focused);
        head = canvas_inside(c, 0, 1, 1, c->cols - 2);
        body = canvas_inside(c, 1, 1, c->rows - 2, c->cols - 2);
    }
    for (int y = 1; !boxed && look.focused && y < c->rows; y++)
        canvas_text(c, y, 0, ROLE_FOCUS, "┃");
    draw_head(&head, s, t, look);
    if (body.rows > 0 && body.cols > 0)
        tile_text(&body, s, t, flow);
}
