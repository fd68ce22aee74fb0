#include "tui/app/line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/utf8.h"
#include "tui/terminal/input.h"

/* ---- the editor ---- */

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

/* The position of a cluster in the text wrapped at `cols`; bytes 0: the position after the end. */
struct spot {
    size_t at, bytes;
    int y, x, columns;
    bool begun;
};

/* Moves to the next cluster; returns false after the end. .x of a new spot is the column at which the first row
 * begins. */
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
        s->columns = 1; /* the cursor after the end needs a cell */
    if (s->x + s->columns > cols) {
        s->y++;
        s->x = 0;
    }
    return true;
}

/* Moves a row up or down, to the same column or the row's end. Returns false if there is no such row. */
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
        insert(e, e->lines ? "\t" : " ", 1); /* a pasted tab is text */
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
        if (!step_row(e, -1)) /* above the first row is the history */
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

/* Walks the wrapped text, and draws it if c is not NULL. Returns the number of rows and sets *cursor_row. */
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

/* ---- history ---- */

/* In the file each entry is one line: a line break within a prompt is written \n and a backslash \\. */
#define HISTORY_MOST ((size_t)HISTORY_LINES * (2 * EDITOR_MAX + 2)) /* bytes: each may be escaped */

void
history_add(struct history *h, const char *text)
{
    if (text[0] == '\0')
        return;
    char *entry = NULL;
    for (int i = 0; i < h->n && entry == NULL; i++) {
        if (strcmp(h->line[i], text) != 0)
            continue;
        entry = h->line[i];
        h->fresh -= i >= h->n - h->fresh;
        memmove(&h->line[i], &h->line[i + 1], (size_t)(h->n - i - 1) * sizeof h->line[0]);
        h->n--;
    }
    if (entry == NULL && (entry = strdup(text)) == NULL)
        return; /* without memory the line is not kept */
    if (h->n == HISTORY_LINES) {
        free(h->line[0]);
        memmove(&h->line[0], &h->line[1], (HISTORY_LINES - 1) * sizeof h->line[0]);
        h->n--;
    }
    h->line[h->n++] = entry;
    h->fresh += h->fresh < HISTORY_LINES;
}

/* Undoes the escapes, in place. */
static void
unescape(char *line)
{
    char *to = line;
    for (const char *from = line; *from != '\0'; from++) {
        if (from[0] == '\\' && from[1] != '\0') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static void
load(struct history *h)
{
    char *text;
    size_t n;
    if (access(h->path, F_OK) != 0 && errno == ENOENT)
        return; /* at first there is no file */
    if (!file_text(h->path, HISTORY_MOST, &text, &n, &h->unread))
        return;
    for (char *line = text; line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        end = end != NULL ? end : text + n;
        *end = '\0';
        unescape(line);
        if (strlen(line) <= EDITOR_MAX)
            history_add(h, line);
        line = end + 1;
    }
    free(text);
}

void
history_open(struct history *h, const char *path)
{
    *h = (struct history){0};
    if (path == NULL || (h->path = strdup(path)) == NULL)
        return;
    load(h);
    h->fresh = 0;
}

static bool
save(const struct history *h, struct err *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *lines = open_memstream(&text, &n);
    if (lines == NULL)
        return err_set(err, ERR_WORK, "%s: out of memory", h->path);
    for (int i = 0; i < h->n; i++) {
        for (const char *c = h->line[i]; *c != '\0'; c++) {
            if (*c == '\n' || *c == '\\')
                fputc('\\', lines);
            fputc(*c == '\n' ? 'n' : *c, lines);
        }
        fputc('\n', lines);
    }
    bool fine = ferror(lines) == 0;
    fine = fclose(lines) == 0 && fine;
    fine = fine ? file_folders_make(h->path, err) &&
                      file_replace_text(AT_FDCWD, h->path, 0600, text, n, err) /* prompts are private */
                : err_set(err, ERR_WORK, "%s: out of memory", h->path);
    free(text);
    return fine;
}

static void
forget(struct history *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->line[i]);
    *h = (struct history){0};
}

/* Adds the fresh lines to the file as it is now, because another process may have written it since it was read. */
static bool
keep(const struct history *h, struct err *err)
{
    struct err why;
    struct history now = {.path = h->path};
    load(&now);
    for (int i = h->n - h->fresh; i < h->n; i++)
        history_add(&now, h->line[i]);
    bool fine = true;
    if (h->unread.kind != ERR_NONE || now.unread.kind != ERR_NONE)
        fine = err_set(err, ERR_WORK, "the prompts of now are not added to the history: %s",
                       h->unread.kind != ERR_NONE ? h->unread.text : now.unread.text);
    else if (!save(&now, &why))
        fine = err_set(err, ERR_WORK, "the history of prompts is lost: %s", why.text);
    forget(&now);
    return fine;
}

bool
history_close(struct history *h, struct err *err)
{
    const bool fine = h->path == NULL || h->fresh == 0 || keep(h, err);
    free(h->path);
    forget(h);
    return fine;
}

/* ---- prompts to start from ---- */

#define OFFERS_SHOWN 16 /* a longer list is not drawn, but Tab still selects from it */

/* Clears the selection; also frees. */
static void
offers_begin(struct offers *o)
{
    free(o->written);
    o->written = NULL;
    o->at = 0;
}

/* Returns false if the key selects no prompt. */
static bool
offers_key(struct offers *o, struct editor *e, int key)
{
    const int n = (int)o->n;
    const int step = key == INPUT_TAB ? 1 : key == INPUT_SHIFT_TAB ? n : 0; /* n: one back, modulo n + 1 */
    if (n == 0 || step == 0)
        return false;
    const bool own = o->at == 0 || strcmp(e->text, o->prompts[o->at - 1]) != 0;
    char *written = own ? strdup(e->text) : NULL; /* a changed offer is the user's own text */
    if (own && written != NULL) {
        free(o->written);
        o->written = written;
    }
    o->at = (o->at + step) % (n + 1);
    editor_replace(e, o->at > 0 ? o->prompts[o->at - 1] : o->written != NULL ? o->written : "");
    return true;
}

/* Rows that the list takes; 0: it is not drawn. */
static int
offers_rows(const struct offers *o)
{
    const int n = (int)o->n;
    return n > 0 && n <= OFFERS_SHOWN ? n + 1 : 0;
}

static void
offers_draw(const struct offers *o, const struct canvas *c)
{
    for (int x = 0; x < c->cols; x++)
        canvas_text(c, 0, x, ROLE_BORDER, "─");
    canvas_text(c, 0, 1, ROLE_DIM, " Tab: prompts to start from ");
    for (int i = 0; i + 1 < c->rows && i < (int)o->n; i++) {
        const char *text = o->prompts[i];
        char safe[400];
        printable_text(text, strlen(text), safe, sizeof safe);
        const bool here = o->at == i + 1;
        const struct canvas line = canvas_inside(c, i + 1, 0, 1, c->cols);
        canvas_text(&line, 0, 0, here ? ROLE_FOCUS : ROLE_DIM, here ? "▸ " : "  ");
        canvas_word(&line, 0, 2, line.cols - 2, here ? ROLE_TEXT : ROLE_DIM, MARK_NONE, safe);
    }
}

/* ---- the line ---- */

static const struct {
    const char *verb, *lead; /* verb: of the command; lead: before the text on the screen */
} uses[LINE_USES] = {[LINE_COMMAND] = {"", ":"},
                     [LINE_PROMPT] = {"prompt ", ""},
                     [LINE_SEARCH] = {"search ", "/"},
                     [LINE_EXPORT] = {"export ", "export to: "}};

void
line_begin(struct line *l, const char *history_path, char *const *prompts, size_t n_prompts)
{
    *l = (struct line){.offers = {.prompts = prompts, .n = n_prompts}};
    for (int i = 0; i < LINE_USES; i++)
        history_open(&l->history[i], i == LINE_PROMPT ? history_path : NULL);
}

void
line_end(struct line *l, struct err *err)
{
    for (int i = 0; i < LINE_USES; i++)
        history_close(&l->history[i], err);
    editor_close(&l->editor);
    offers_begin(&l->offers);
}

bool
line_open(struct line *l, enum line_use use, const char *text)
{
    editor_close(&l->editor);
    l->use = use;
    offers_begin(&l->offers);
    return editor_open(&l->editor, text, use == LINE_PROMPT, &l->history[use]);
}

enum editor_result
line_key(struct line *l, int key)
{
    if (l->use == LINE_PROMPT && !l->editor.pasting && offers_key(&l->offers, &l->editor, key))
        return EDITOR_OPEN;
    return editor_key(&l->editor, &l->history[l->use], key);
}

const char *
line_verb(const struct line *l)
{
    return uses[l->use].verb;
}

bool
line_is_text(const struct line *l)
{
    return l->use == LINE_PROMPT || l->use == LINE_SEARCH;
}

char *
line_command(struct line *l)
{
    const char *verb = uses[l->use].verb;
    const size_t lead = strlen(verb);
    size_t n = l->editor.length;
    while (!line_is_text(l) && n > 0 && l->editor.text[n - 1] == ' ') /* Tab adds a blank after a word */
        n--;
    if (n == 0 && l->use == LINE_SEARCH)
        return strdup("search-next");
    char *command = n > 0 ? malloc(lead + n + 1) : NULL;
    if (command == NULL)
        return NULL;
    memcpy(command, verb, lead);
    memcpy(command + lead, l->editor.text, n);
    command[lead + n] = '\0';
    history_add(&l->history[l->use], command + lead);
    return command;
}

void
line_draw(const struct line *l, const struct canvas *c)
{
    editor_draw(&l->editor, c, uses[l->use].lead);
}

void
line_draw_prompt(struct line *l, const char *title, const struct canvas *c)
{
    const int cols = c->cols > 110 ? 100 : c->cols - 6;
    int rows = editor_rows(&l->editor, cols - 4), offers = offers_rows(&l->offers);
    const int most = c->rows - (c->rows >= 24 ? 10 : 5); /* a part of the panels stays visible */
    if (rows + offers > most)
        offers = 0;
    rows = rows < 3 ? 3 : rows;
    rows = rows > most ? most : rows;
    const struct canvas box =
        canvas_inside(c, (c->rows - rows - offers) / 3, (c->cols - cols) / 2, rows + offers + 2, cols);
    const struct canvas inside = canvas_inside(&box, 1, 2, rows, box.cols - 4),
                        below = canvas_inside(&box, 1 + rows, 2, offers, box.cols - 4);
    canvas_clear(&box);
    canvas_box(&box, title, "Enter starts a run   Ctrl-J breaks the line   ↑ earlier ones   Esc leaves", true);
    l->editor.cols = inside.cols; /* ↑ moves up a visible row */
    editor_draw(&l->editor, &inside, uses[LINE_PROMPT].lead);
    if (offers > 0)
        offers_draw(&l->offers, &below);
}

bool
help_filter_key(struct help_filter *f, int key)
{
    const size_t n = strlen(f->text);
    if (!f->typing && key != '/')
        return false;
    if (!f->typing) {
        *f = (struct help_filter){.typing = true};
    } else if (key == INPUT_ENTER || key == INPUT_ESCAPE) {
        f->typing = false;
        if (key == INPUT_ESCAPE)
            f->text[0] = '\0';
    } else if (key == INPUT_BACKSPACE) {
        f->text[n > 0 ? n - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 0x7f && n + 1 < sizeof f->text) {
        f->text[n] = (char)key;
        f->text[n + 1] = '\0';
    }
    return true;
}
