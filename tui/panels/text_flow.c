#include "tui/panels/text_flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "tui/panels/panel.h"

void
flow_close(struct flow *f)
{
    free(f->text);
    free(f->spans);
    free(f->lines);
    turns_free(&f->turns);
    *f = (struct flow){0};
}

/* ---- bytes to text ---- */

static bool
append_safe(struct flow *f, const char *bytes, size_t n)
{
    if (!array_grow(&f->text, &f->size, f->n + 4 * n + 1, 1))
        return false;
    f->n += printable_text(bytes, n, f->text + f->n, f->size - f->n);
    return true;
}

static bool
append_plain(struct flow *f, const char *text, size_t n)
{
    if (!array_grow(&f->text, &f->size, f->n + n + 1, 1))
        return false;
    memcpy(f->text + f->n, text, n);
    f->n += n;
    f->text[f->n] = '\0';
    return true;
}

/* Returns what replaces byte i, NULL: nothing. In a draft, spaces that no word follows have a sign; printable_text()
 * has those of tabs and line breaks. */
static const char *
blank(const char *bytes, size_t n, size_t i, enum flow_kind kind)
{
    if (kind != FLOW_COMMITTED)
        return bytes[i] == ' ' && (i + 1 == n || strchr(" \t\n", bytes[i + 1]) != NULL) ? "␣" : NULL;
    return bytes[i] == '\n' ? "\n" : bytes[i] == '\t' ? "    " : NULL;
}

/* Appends complete characters; the beginning of one at the end is carried to the next token. */
static bool
append_bytes(struct flow *f, const char *bytes, size_t n, enum flow_kind kind)
{
    const size_t waiting = text_incomplete(bytes, n);
    const size_t whole = n - waiting;
    size_t from = 0;
    for (size_t i = 0; i <= whole; i++) {
        const char *instead = i < whole ? blank(bytes, whole, i, kind) : NULL;
        if (i < whole && instead == NULL)
            continue;
        if (i > from && !append_safe(f, bytes + from, i - from))
            return false;
        from = i + 1;
        if (instead != NULL && !append_plain(f, instead, strlen(instead)))
            return false;
    }
    f->carry.n = (uint8_t)waiting;
    memcpy(f->carry.bytes, bytes + whole, waiting);
    return true;
}

/* Appends carried bytes that no token completes, escaped. */
static bool
append_waiting(struct flow *f)
{
    const struct flow_carry c = f->carry;
    f->carry.n = 0;
    return append_safe(f, c.bytes, c.n);
}

static bool
push_span(struct flow *f, uint32_t pos, enum flow_kind kind)
{
    if (!array_grow(&f->spans, &f->spans_size, f->n_spans + 1, sizeof *f->spans))
        return false;
    f->spans[f->n_spans++] = (struct flow_span){.at = f->n, .pos = pos, .kind = kind, .carry = f->carry};
    return true;
}

static bool
append_token(struct flow *f, const struct scope *s, uint32_t pos, token_t token, enum flow_kind kind)
{
    if (!push_span(f, pos, kind))
        return false;
    uint32_t n = 0;
    const char *bytes = scope_bytes(s, token, &n);
    char joined[4 + 256]; /* the scope stores at most 256 bytes of a token */
    if (n > sizeof joined - sizeof f->carry.bytes)
        n = sizeof joined - sizeof f->carry.bytes;
    memcpy(joined, f->carry.bytes, f->carry.n);
    if (n > 0)
        memcpy(joined + f->carry.n, bytes, n);
    return append_bytes(f, joined, f->carry.n + n, kind);
}

/* ---- turns ---- */

/* Begins a turn on a line of its own. */
static bool
append_label(struct flow *f, uint32_t pos, const char *label)
{
    const bool inside = f->n > 0 && f->text[f->n - 1] != '\n';
    return append_waiting(f) && (!inside || append_plain(f, "\n", 1)) && push_span(f, pos, FLOW_LABEL) &&
           append_plain(f, label, strlen(label)) && append_plain(f, " ", 1);
}

/* Appends a token of the prompt: the parts of it that are in turns, and before the first turn the template's. */
static bool
append_turns(struct flow *f, const struct scope *s, uint32_t pos, token_t token)
{
    uint32_t n = 0;
    const char *bytes = scope_bytes(s, token, &n);
    bool there = false; /* it has a span */
    for (size_t at = f->prompt_at, end = at + n, to; at < end; at = to) {
        const struct turn *t = f->turn < f->turns.n ? &f->turns.turn[f->turn] : NULL;
        const bool inside = t != NULL && at >= t->from;
        to = t == NULL ? end : inside ? t->to : t->from;
        to = to < end ? to : end;
        if (inside && at == t->from && !append_label(f, pos, t->label))
            return false;
        const bool shown = inside || (f->turn == 0 && f->turns.preface);
        if (shown && (!push_span(f, pos, inside ? FLOW_COMMITTED : FLOW_MARKUP) ||
                      !append_bytes(f, bytes + (at - f->prompt_at), to - at, FLOW_COMMITTED)))
            return false;
        there = there || shown;
        f->turn += inside && to == t->to;
    }
    f->prompt_at += n;
    return there || push_span(f, pos, FLOW_COMMITTED);
}

/* Finds the turns again if the prompt has got longer. */
static bool
update_turns(struct flow *f, const struct scope *s)
{
    uint32_t n = f->prompt;
    const struct scope_column *c;
    while ((c = scope_column(s, n)) != NULL && c->fate == FATE_PROMPT)
        n++;
    if (n == f->prompt)
        return true;
    f->prompt = n;
    if (f->turns.n > 0)
        f->stable = f->stable_n = f->n_lines = 0;
    if (!turns_find(&f->turns, s, n))
        return false;
    if (f->turns.n == 0)
        return true;
    f->stable = f->stable_n = f->n_lines = f->prompt_at = f->turn = 0;
    f->stable_carry.n = 0;
    return true;
}

static bool
append_committed(struct flow *f, const struct scope *s, uint32_t from, uint32_t to)
{
    for (uint32_t pos = from; pos < to; pos++) {
        const struct scope_column *c = scope_column(s, pos);
        const bool turns = f->turns.n > 0;
        if (c == NULL || c->token == TOKEN_NONE)
            continue;
        if (turns && pos == f->prompt && !append_label(f, pos, "model ›"))
            return false;
        if (!(turns && pos < f->prompt ? append_turns(f, s, pos, c->token)
                                       : append_token(f, s, pos, c->token, FLOW_COMMITTED)))
            return false;
    }
    return true;
}

/* Appends the drafts that were rejected last and those that are not verified yet. */
static bool
append_drafts(struct flow *f, const struct scope *s)
{
    const struct scope_draft *struck;
    const uint32_t n_struck = scope_struck(s, &struck), committed = scope_now(s)->committed;
    if (n_struck > 0) {
        if (!append_waiting(f))
            return false;
        for (uint32_t i = 0; i < n_struck; i++)
            if (!append_token(f, s, struck[i].pos, struck[i].token, FLOW_STRUCK))
                return false;
        if (!append_waiting(f))
            return false;
        f->carry = f->stable_carry;
    }
    for (uint32_t pos = committed; pos < scope_now(s)->length && pos - committed < VERIFY_NODES; pos++) {
        const struct scope_column *c = scope_column(s, pos);
        if (c != NULL && c->fate == FATE_GHOST && !append_token(f, s, pos, c->token, FLOW_GHOST))
            return false;
    }
    return true;
}

/* ---- lines ---- */

static bool
push_line(struct flow *f, size_t start, size_t need)
{
    if (!array_grow(&f->lines, &f->lines_size, f->n_lines + 1, sizeof *f->lines))
        return false;
    f->lines[f->n_lines++] = (struct flow_line){start, need};
    return true;
}

/* Breaks the text into lines, from the start of the last line on. Text before `fixed` stays on its line. */
static bool
wrap(struct flow *f, size_t fixed)
{
    if (f->n_lines == 0 && !push_line(f, 0, 0))
        return false;
    const size_t first = f->lines[f->n_lines - 1].start;
    size_t start = first, after_space = fixed > first ? fixed : first;
    int used = 0, columns = 0;
    for (size_t at = first, n; (n = text_cluster(f->text + at, &columns)) != 0; at += n) {
        const char c = f->text[at];
        if (c == '\n' || (c == ' ' && used + 1 > f->width)) { /* a space at a line's end becomes the break */
            start = after_space = at + 1;
            n = 1;
            used = 0;
            if (!push_line(f, start, at + 1))
                return false;
            continue;
        }
        if (used + columns > f->width && at > start) {
            /* Moves the word to the next line; a word longer than a line is broken. */
            start = after_space > start ? after_space : at;
            if (!push_line(f, start, at + n))
                return false;
            used = 0;
            after_space = start;
            at = start; /* measured again from there */
            n = text_cluster(f->text + at, &columns);
        }
        used += columns;
        if (f->text[at] == ' ' && at >= fixed)
            after_space = at + n;
    }
    return true;
}

/* Marks the text so far as committed. */
static bool
settle(struct flow *f)
{
    if (!wrap(f, 0))
        return false;
    f->stable = f->n_spans;
    f->stable_n = f->n;
    f->stable_lines = f->n_lines;
    f->stable_carry = f->carry;
    return true;
}

/* ---- keeping up ---- */

static void
cut(struct flow *f, size_t n_spans)
{
    if (n_spans < f->stable) {
        f->stable = n_spans;
        f->stable_n = f->spans[n_spans].at;
        f->stable_carry = f->spans[n_spans].carry;
    }
    f->n_spans = f->stable;
    f->n = f->stable_n;
    f->carry = f->stable_carry;
    if (f->text != NULL)
        f->text[f->n] = '\0';
    while (f->n_lines > 1 && f->lines[f->n_lines - 1].need > f->n)
        f->n_lines--;
}

static bool
update(struct flow *f, const struct scope *s)
{
    const uint32_t until = scope_now(s)->committed;
    size_t keep = f->stable;
    while (keep > 0 && f->spans[keep - 1].pos >= until)
        keep--;
    cut(f, keep);
    const uint32_t from = keep > 0 ? f->spans[keep - 1].pos + 1 : scope_first(s);
    return append_plain(f, "", 0) && append_committed(f, s, from, until) && settle(f) &&
           (f->no_drafts || append_drafts(f, s)) && append_waiting(f) && wrap(f, f->stable_n);
}

bool
flow_update(struct flow *f, const struct scope *s, int width)
{
    const bool old = f->n_spans > 0 && scope_first(s) > f->spans[0].pos + SCOPE_POSITIONS / 4;
    if (f->epoch != scope_now(s)->epoch || old) {
        f->stable = f->stable_n = f->n_lines = 0;
        f->stable_carry.n = 0;
        f->epoch = scope_now(s)->epoch;
        f->prompt = 0;
        turns_free(&f->turns);
    }
    if (f->width != width) {
        f->n_lines = 0;
        f->width = width < 1 ? 1 : width;
    }
    if (update_turns(f, s) && update(f, s))
        return true;
    flow_close(f);
    return false;
}

/* Appends tokens of a tile while they are of a kind; returns the index of the first other one. */
static bool
append_said(struct flow *f, const struct scope *s, const struct scope_said *said, uint32_t n, uint32_t *at,
            enum flow_kind kind)
{
    for (; *at < n; ++*at) {
        const enum fate fate = said[*at].fate;
        if ((fate == FATE_REJECTED ? FLOW_STRUCK : fate == FATE_GHOST ? FLOW_GHOST : FLOW_COMMITTED) != kind)
            return true;
        if (!append_token(f, s, *at, said[*at].token, kind))
            return false;
    }
    return true;
}

/* Builds the text from the end of a tile's text; a span's pos is its token's index in said[n]. */
static bool
flow_said(struct flow *f, const struct scope *s, const struct scope_said *said, uint32_t n, int width)
{
    uint32_t at = 0;
    f->width = width < 1 ? 1 : width;
    f->n = f->n_spans = f->n_lines = f->stable = f->stable_n = 0;
    f->carry.n = 0;
    bool fine = append_plain(f, "", 0) && append_said(f, s, said, n, &at, FLOW_COMMITTED) && settle(f);
    if (fine && !f->no_drafts && at < n && said[at].fate == FATE_REJECTED) {
        fine = append_waiting(f) && append_said(f, s, said, n, &at, FLOW_STRUCK) && append_waiting(f);
        f->carry = f->stable_carry;
    }
    fine = fine && (f->no_drafts || append_said(f, s, said, n, &at, FLOW_GHOST));
    if (fine && append_waiting(f) && wrap(f, f->stable_n))
        return true;
    flow_close(f);
    return false;
}

/* ---- finding ---- */

#define ROWS_FOR_DRAFTS 6 /* that a text must have to leave one to drafts */

size_t
flow_top(const struct flow *f, size_t rows)
{
    const bool open =
        f->stable_lines > 1 && f->lines[f->stable_lines - 1].start == f->stable_n; /* the last one is empty */
    const size_t room = rows - (rows >= ROWS_FOR_DRAFTS && !f->no_drafts), lines = f->stable_lines - open;
    return lines > room ? lines - room : 0;
}

void
flow_draw_cut(const struct flow *f, const struct canvas *c, size_t top)
{
    const size_t last = top + (size_t)c->rows - 1;
    if (last + 1 >= f->n_lines || f->lines[last + 1].start < f->stable_n)
        return;
    int x = 0, columns = 0;
    for (size_t at = f->lines[last].start, n; at < flow_line_end(f, last); at += n, x += columns)
        n = text_cluster(f->text + at, &columns);
    canvas_text(c, c->rows - 1, x < c->cols ? x : c->cols - 1, ROLE_DRAFT, "…");
}

size_t
flow_line_end(const struct flow *f, size_t line)
{
    if (line + 1 >= f->n_lines)
        return f->n;
    const size_t end = f->lines[line + 1].start;
    return end > f->lines[line].start && f->text[end - 1] == '\n' ? end - 1 : end;
}

/* Returns the last of n ascending offsets that is at most `at`; 0 if all are larger. */
static size_t
last_up_to(const void *items, size_t each, size_t n, size_t at)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (*(const size_t *)((const char *)items + middle * each) <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

size_t
flow_line_at(const struct flow *f, size_t at)
{
    return last_up_to(f->lines, sizeof *f->lines, f->n_lines, at);
}

size_t
flow_span_at(const struct flow *f, size_t at)
{
    return last_up_to(f->spans, sizeof *f->spans, f->n_spans, at);
}

size_t
flow_find(const struct flow *f, uint32_t pos)
{
    size_t low = 0, high = f->stable;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (f->spans[middle].pos < pos)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < f->n_spans; i++) {
        if (f->spans[i].pos == pos && f->spans[i].kind != FLOW_STRUCK && f->spans[i].kind != FLOW_LABEL)
            return i;
        if (i < f->stable && f->spans[i].pos > pos)
            break;
    }
    return f->n_spans;
}

#define TILE_COLS   34 /* least columns of tiles beside each other */
#define ROOMY_ROWS  7  /* with equal room, wide tiles are better */
#define BOXED_ROWS  5
#define TALLEST     12
#define SMALLEST    3 /* if they scroll: one row of figures, two of text */
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

static void
draw_line(const struct canvas *c, int y, const struct flow *f, size_t line, const struct scope_said *said, bool live)
{
    const size_t end = flow_line_end(f, line);
    size_t at = f->lines[line].start;
    int x = 0, columns = 0;
    for (size_t n; at < end && (n = text_cluster(f->text + at, &columns)) != 0; at += n, x += columns) {
        const struct flow_span *span = &f->spans[flow_span_at(f, at)];
        const struct fate_style *style = &fate_styles[said[span->pos].fate];
        const enum role role = live || said[span->pos].fate == FATE_GHOST ? style->role : ROLE_DIM;
        char cluster[64];
        snprintf(cluster, sizeof cluster, "%.*s", (int)n, f->text + at);
        canvas_styled(c, y, x, role, NAN, f->text[at] == ' ' ? style->marks & MARK_STRUCK : style->marks, cluster);
    }
}

/* Draws the end of the text, as far as there are rows. */
void
tile_text(const struct canvas *c, const struct scope *s, const struct scope_tile *t, struct flow *flow)
{
    struct scope_said said[TAIL_TOKENS];
    const uint32_t n = scope_tile_tail(s, t, said, TAIL_TOKENS);
    if (n == 0)
        canvas_word(c, 0, 0, c->cols, ROLE_DIM, MARK_NONE, t->prompt);
    if (n == 0 || c->rows < 1 || c->cols < 1 || !flow_said(flow, s, said, n, c->cols))
        return;
    const size_t top = flow_top(flow, (size_t)c->rows);
    for (int y = 0; y < c->rows && top + (size_t)y < flow->n_lines; y++)
        draw_line(c, y, flow, top + (size_t)y, said, t->live);
    flow_draw_cut(flow, c, top);
}

/* ---- the figures ---- */

/* Draws figures from the right end, as many as fit into `room` columns; returns the remaining columns. */
static int
draw_figures(const struct canvas *c, const struct scope *s, const struct scope_tile *t, int room)
{
    const struct measures m = metrics_measures(&scope_now(s)->metrics, &t->total);
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
    const struct scope_round *r = t->live ? scope_round_of(s, t->seq, 0) : NULL;
    const int marks = r != NULL ? (int)round_drafts(r) + 1 : 0;
    const int least = (marks > 9 ? 9 : marks) + 5; /* accepted of verified */
    char number[16];
    snprintf(number, sizeof number, "%*u", look.digits, (unsigned)t->seq + 1);
    int x = canvas_text(c, 0, 0, role, look.focused ? "▸" : " ");
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
