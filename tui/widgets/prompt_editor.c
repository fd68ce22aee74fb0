#include "tui/widgets/prompt_editor.h"
#include "engine/base/printable.h"
#include "engine/base/utf8.h"
#include "tui/terminal/input.h"

#include <stdlib.h>
#include <string.h>

bool
editor_open(struct editor *e, const char *text, bool lines, const struct history *h)
{
    *e = (struct editor){.lines = lines, .look = h == NULL ? 0 : h->n};
    e->text = calloc(1, EDITOR_MAX + 1);
    if (e->text == NULL)
        return false;
    editor_replace(e, text);
    return true;
}

void
editor_close(struct editor *e)
{
    free(e->text);
    free(e->aside);
    *e = (struct editor){0};
}

void
editor_replace(struct editor *e, const char *text)
{
    size_t n = strlen(text);
    if (n > EDITOR_MAX) {
        n = EDITOR_MAX;
        n -= text_incomplete(text, n);
    }
    memmove(e->text, text, n);
    e->text[n] = '\0';
    e->length = e->at = n;
}

static void
insert(struct editor *e, const char *bytes, size_t n)
{
    if (e->length + n > EDITOR_MAX)
        return;
    memmove(e->text + e->at + n, e->text + e->at, e->length - e->at + 1);
    memcpy(e->text + e->at, bytes, n);
    e->length += n;
    e->at += n;
}

static void
erase_to(struct editor *e, size_t from, size_t to)
{
    memmove(e->text + from, e->text + to, e->length - to + 1);
    e->length -= to - from;
    e->at = from;
}

static size_t
word_before(const struct editor *e)
{
    size_t at = e->at;
    while (at > 0 && e->text[at - 1] == ' ')
        at--;
    while (at > 0 && e->text[at - 1] != ' ')
        at--;
    return at;
}

static void
look_back(struct editor *e, const struct history *h, int step)
{
    const int to = e->look + step;
    if (h == NULL || to < 0 || to > h->n)
        return;
    if (e->look == h->n) {
        free(e->aside);
        e->aside = strdup(e->text);
    }
    e->look = to;
    editor_replace(e, to < h->n ? h->line[to] : e->aside == NULL ? "" : e->aside);
}

/* Where a cluster stands in the text wrapped at `cols`; bytes 0: the place behind the end. */
struct spot {
    size_t at, bytes;
    int y, x, columns;
    bool begun;
};

/* The next one; .x of a fresh spot is where the first row begins. False behind the end. */
static bool
next_spot(const struct editor *e, int cols, struct spot *s)
{
    if (s->begun) {
        if (s->bytes == 0)
            return false;
        const bool line_break = e->text[s->at] == '\n';
        s->y += line_break;
        s->x = line_break ? 0 : s->x + s->columns;
        s->at += s->bytes;
    }
    s->begun = true;
    s->bytes = text_cluster(e->text + s->at, &s->columns);
    if (s->bytes == 0)
        s->columns = 1; /* the cursor behind the end needs a place */
    if (s->x + s->columns > cols) {
        s->y++;
        s->x = 0;
    }
    return true;
}

/* A row up or down, to the same column or the row's end. False: there is no such row. */
static bool
step_row(struct editor *e, int by)
{
    struct spot s = {.at = 0}, from = {.at = 0};
    if (!e->lines || e->cols < 2)
        return false;
    while (next_spot(e, e->cols, &s))
        if (s.at <= e->at)
            from = s;
    if (from.y + by < 0 || from.y + by > s.y)
        return false;
    size_t to = e->at;
    s = (struct spot){.at = 0};
    while (next_spot(e, e->cols, &s))
        if (s.y == from.y + by && (s.x <= from.x || s.x == 0))
            to = s.at;
    e->at = to;
    return true;
}

enum editor_result
editor_key(struct editor *e, const struct history *h, int key)
{
    int width = 0;
    switch (key) {
    case INPUT_PASTE_BEGIN: e->pasting = true; return EDITOR_OPEN;
    case INPUT_PASTE_END: e->pasting = false; return EDITOR_OPEN;
    case INPUT_ENTER:
    case INPUT_CTRL('j'):
        if (!e->pasting && key == INPUT_ENTER)
            return EDITOR_DONE;
        insert(e, e->lines ? "\n" : " ", 1);
        return EDITOR_OPEN;
    case INPUT_ESCAPE:
    case INPUT_CTRL('c'):
    case INPUT_CTRL('g'): return EDITOR_CANCELLED;
    case INPUT_TAB:
        if (!e->pasting)
            return EDITOR_COMPLETE;
        insert(e, e->lines ? "\t" : " ", 1); /* pasted, it is text */
        return EDITOR_OPEN;
    case INPUT_LEFT:
    case INPUT_CTRL('b'): e->at = text_before(e->text, e->at); return EDITOR_OPEN;
    case INPUT_RIGHT:
    case INPUT_CTRL('f'): e->at += text_cluster(e->text + e->at, &width); return EDITOR_OPEN;
    case INPUT_HOME:
    case INPUT_CTRL('a'): e->at = 0; return EDITOR_OPEN;
    case INPUT_END:
    case INPUT_CTRL('e'): e->at = e->length; return EDITOR_OPEN;
    case INPUT_UP:
    case INPUT_CTRL('p'):
        if (!step_row(e, -1)) /* the first row's neighbour is the history */
            look_back(e, h, -1);
        return EDITOR_OPEN;
    case INPUT_DOWN:
    case INPUT_CTRL('n'):
        if (!step_row(e, 1))
            look_back(e, h, 1);
        return EDITOR_OPEN;
    case INPUT_CTRL('u'): erase_to(e, 0, e->at); return EDITOR_OPEN;
    case INPUT_CTRL('k'): erase_to(e, e->at, e->length); return EDITOR_OPEN;
    case INPUT_CTRL('w'): erase_to(e, word_before(e), e->at); return EDITOR_OPEN;
    case INPUT_BACKSPACE:
        if (e->length == 0 && !e->lines)
            return EDITOR_CANCELLED;
        erase_to(e, text_before(e->text, e->at), e->at);
        return EDITOR_OPEN;
    case INPUT_DELETE:
    case INPUT_CTRL('d'): erase_to(e, e->at, e->at + text_cluster(e->text + e->at, &width)); return EDITOR_OPEN;
    default: break;
    }
    char bytes[4];
    const size_t n = key >= ' ' && key < INPUT_UP && printable_code(key) ? utf8_put(bytes, (uint32_t)key) : 0;
    if (n > 0)
        insert(e, bytes, n);
    return EDITOR_OPEN;
}

/* Walks the wrapped text; draws when c is not NULL. Returns the rows; *cursor_row is where the cursor is. */
static int
walk(const struct editor *e, const struct canvas *c, int cols, int lead, int top, int *cursor_row)
{
    struct spot s = {.x = lead};
    while (next_spot(e, cols, &s)) {
        const bool here = e->at >= s.at && e->at < s.at + (s.bytes == 0 ? 1 : s.bytes);
        if (here)
            *cursor_row = s.y;
        if (c == NULL || s.y < top)
            continue;
        const char sign = e->text[s.at];
        char cluster[64] = " ";
        if (sign == '\n' || sign == '\t')
            snprintf(cluster, sizeof cluster, "%s", sign == '\n' ? "⏎" : "→");
        else if (s.bytes > 0 && s.bytes < sizeof cluster)
            snprintf(cluster, sizeof cluster, "%.*s", (int)s.bytes, e->text + s.at);
        const bool mark = sign == '\n' || sign == '\t';
        canvas_text(c, s.y - top, s.x, here ? ROLE_CURSOR : mark ? ROLE_DIM : ROLE_TEXT, cluster);
    }
    return s.y + 1;
}

void
editor_draw(const struct editor *e, const struct canvas *c, const char *lead)
{
    if (c->cols < 2 || c->rows < 1)
        return;
    int cursor_row = 0;
    const int width = text_width(lead) < c->cols ? text_width(lead) : 0;
    walk(e, NULL, c->cols, width, 0, &cursor_row);
    const int top = cursor_row >= c->rows ? cursor_row - c->rows + 1 : 0;
    if (top == 0 && width > 0)
        canvas_text(c, 0, 0, ROLE_KEY, lead);
    walk(e, c, c->cols, width, top, &cursor_row);
}

int
editor_rows(const struct editor *e, int cols)
{
    int cursor_row = 0;
    return cols < 2 ? 1 : walk(e, NULL, cols, 0, 0, &cursor_row);
}
