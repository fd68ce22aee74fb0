#include "tui/terminal/canvas.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/colour.h"
#include "base/utf8.h"
#include "tui/terminal/theme.h"

struct canvas
canvas_inside(const struct canvas *c, int y, int x, int rows, int cols)
{
    if (y < 0) {
        rows += y;
        y = 0;
    }
    if (x < 0) {
        cols += x;
        x = 0;
    }
    if (rows > c->rows - y)
        rows = c->rows - y;
    if (cols > c->cols - x)
        cols = c->cols - x;
    return (struct canvas){
        .y = c->y + y, .x = c->x + x, .rows = rows < 0 ? 0 : rows, .cols = cols < 0 ? 0 : cols, .grid = c->grid};
}

/* Returns the bytes of a decomposed Hangul syllable, whose consonants and vowel some terminals draw one after the
 * other, and its composed form; 0 if the text does not begin with one. */
static size_t
hangul_syllable(const char *text, size_t bytes, uint32_t *composed)
{
    enum {
        LEAD = 0x1100,
        LEADS = 19,
        VOWEL = 0x1161,
        VOWELS = 21,
        BEFORE_TAIL = 0x11a7,
        TAILS = 28,
        SYLLABLE = 0xac00
    };
    uint32_t lead, vowel, tail;
    const size_t a = utf8_character(text, bytes, &lead), b = a > 0 ? utf8_character(text + a, bytes - a, &vowel) : 0;
    if (b == 0 || lead - LEAD >= LEADS || vowel - VOWEL >= VOWELS)
        return 0;
    *composed = SYLLABLE + ((lead - LEAD) * VOWELS + vowel - VOWEL) * TAILS;
    const size_t c = utf8_character(text + a + b, bytes - a - b, &tail);
    if (c == 0 || tail <= BEFORE_TAIL || tail >= BEFORE_TAIL + TAILS)
        return a + b;
    *composed += tail - BEFORE_TAIL;
    return a + b + c;
}

/* Cleans a cluster for a cell: removes joiners and variation selectors, whose width differs between terminals, composes
 * Hangul, puts a mark without a character on ◌, and replaces control characters by '?'. Returns its bytes. */
static size_t
clean(const char *cluster, size_t bytes, char *out, size_t size)
{
    uint32_t composed = 0;
    size_t i = hangul_syllable(cluster, bytes, &composed), length = i > 0 ? utf8_put(out, composed) : 0;
    while (i < bytes) {
        uint32_t code;
        const size_t used = utf8_character(cluster + i, bytes - i, &code);
        if (used == 0 || !printable_code((int32_t)code)) {
            out[0] = '?';
            return 1;
        }
        const bool dropped = code == 0x200c || code == 0x200d || (code >= 0xfe00 && code <= 0xfe0f) ||
                             (code >= 0xe0100 && code <= 0xe01ef);
        if (!dropped && length == 0 && text_columns(code) == 0)
            length = utf8_put(out, 0x25cc); /* ◌ */
        if (!dropped) {
            if (length + used > size)
                break;
            memcpy(out + length, cluster + i, used);
            length += used;
        }
        i += used;
    }
    if (length == 0)
        out[length++] = ' ';
    return length;
}

/* Puts a cluster at (y, x) of the canvas on the grid, as ASCII if the terminal has no UTF-8. */
static void
put(const struct canvas *c, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style)
{
    if (y < 0 || y >= c->rows || x < 0 || x + columns > c->cols)
        return;
    char safe[64];
    if (bytes == 1 && cluster[0] >= ' ' && cluster[0] < 0x7f) {
        grid_put(c->grid, c->y + y, c->x + x, cluster, 1, 1, style);
    } else {
        const size_t n = clean(cluster, bytes, safe, sizeof safe);
        grid_put(c->grid, c->y + y, c->x + x, safe, n, columns, style);
    }
}

/* Draws at most `room` columns of a string from column x on; skips columns before the canvas begins. */
static int
put_text(const struct canvas *c, int y, int x, int room, const char *utf8, struct grid_cell style)
{
    int used = 0, columns = 0;
    char ascii[TEXT_ASCII];
    for (size_t n;; utf8 += n) {
        n = c->grid->utf8 ? text_cluster(utf8, &columns) : text_ascii_cluster(utf8, ascii, &columns);
        if (n == 0 || used + columns > room)
            break;
        for (int i = 0; i < columns && !c->grid->utf8; i++)
            put(c, y, x + used + i, ascii + i, 1, 1, style);
        if (c->grid->utf8)
            put(c, y, x + used, utf8, n, columns, style);
        used += columns;
    }
    return used;
}

static struct grid_cell
style_of(enum role role, unsigned marks, float heat)
{
    struct grid_cell style = {.role = (uint8_t)role, .marks = (uint8_t)marks, .heat = GRID_NO_HEAT};
    if (!isnan(heat)) {
        const float clamped = heat < 0 ? 0 : heat > 1 ? 1 : heat;
        style.heat = (int8_t)lrintf(clamped * (GRID_HEATS - 1));
    }
    return style;
}

void
canvas_clear(const struct canvas *c)
{
    for (int y = 0; y < c->rows; y++)
        for (int x = 0; x < c->cols; x++)
            put(c, y, x, " ", 1, 1, style_of(ROLE_TEXT, MARK_NONE, NAN));
}

/* Draws text in `width` columns, cut with '…' if it is longer. */
static int
put_word(const struct canvas *c, int y, int x, int width, const char *utf8, struct grid_cell style)
{
    if (text_width(utf8) <= width)
        return put_text(c, y, x, width, utf8, style);
    const int used = put_text(c, y, x, width - 1, utf8, style);
    return used + put_text(c, y, x + used, width - used, "…", style);
}

/* Do letters or digits follow after `columns` columns? Blanks and lines may be cut without a sign. */
static bool
cuts_words(const char *utf8, int columns)
{
    if (columns < 2 || strlen(utf8) <= (size_t)columns)
        return false;
    for (utf8 += text_fit(utf8, columns, NULL); *utf8 != '\0'; utf8++) {
        const unsigned char c = (unsigned char)*utf8;
        if (isalnum(c) || (c >= 0xc3 && c != 0xe2)) /* U+2000 to U+2FFF are punctuation and signs */
            return true;
    }
    return false;
}

int
canvas_text(const struct canvas *c, int y, int x, enum role role, const char *utf8)
{
    const struct grid_cell style = style_of(role, MARK_NONE, NAN);
    const int room = c->cols - x;
    return (cuts_words(utf8, room) ? put_word : put_text)(c, y, x, room, utf8, style);
}

int
canvas_styled(const struct canvas *c, int y, int x, enum role role, float heat, unsigned marks, const char *utf8)
{
    return put_text(c, y, x, c->cols - x, utf8, style_of(role, marks, heat));
}

void
canvas_under(const struct canvas *c, int y, int x, enum role role, const char *utf8)
{
    const struct grid_cell *there = grid_at(c->grid, c->y + y, c->x + x);
    if (y >= 0 && y < c->rows && x >= 0 && x < c->cols && there != NULL && there->text[0] == ' ')
        canvas_text(c, y, x, role, utf8);
}

int
canvas_print(const struct canvas *c, int y, int x, enum role role, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return canvas_text(c, y, x, role, text);
}

int
canvas_fit(const struct canvas *c, int y, int x, enum role role, const char *format, ...)
{
    char text[120];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return x + text_width(text) <= c->cols ? canvas_text(c, y, x, role, text) : 0;
}

const char *
canvas_level(double fraction)
{
    static const char *const levels[8] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    return levels[fraction >= 1 ? 7 : fraction > 0 ? (int)(fraction * 8) : 0];
}

int
canvas_word(const struct canvas *c, int y, int x, int width, enum role role, unsigned marks, const char *utf8)
{
    return put_word(c, y, x, width, utf8, style_of(role, marks, NAN));
}

/* Fills `width` columns with text, `pad`, the mark of spurious confidence and a level's glyph ("": none). */
static void
put_cell(const struct canvas *c, int y, int x, int width, const char *utf8, const char *pad, const char *level,
         struct grid_cell style)
{
    const bool spurious = (style.marks & MARK_SPURIOUS) != 0 && width > 1;
    const int room = width - (spurious ? 1 : 0) - (level[0] != '\0' ? 1 : 0);
    int used = width > 0 ? put_word(c, y, x, room, utf8, style) : 0;
    while (used < room)
        used += put_text(c, y, x + used, 1, pad, style);
    if (spurious)
        used += put_text(
            c, y, x + used, 1, "▓",
            style_of(ROLE_SPURIOUS, (style.marks & MARK_CURSOR) | (style.role == ROLE_EXITED ? MARK_FADED : 0U), NAN));
    put_text(c, y, x + used, width - used, level, style);
}

void
canvas_heat(const struct canvas *c, int y, int x, int width, float heat, unsigned marks, const char *utf8)
{
    if ((marks & MARK_EXITED) != 0) /* without colours a glyph marks layers after the exit */
        put_cell(c, y, x, width, utf8, "▒", "", style_of(ROLE_EXITED, marks, NAN));
    else
        put_cell(c, y, x, width, utf8, " ",
                 c->grid->mono && !isnan(heat) && width > 2 ? canvas_level((double)heat) : "",
                 style_of(ROLE_TEXT, marks, heat));
}

void
canvas_block(const struct canvas *c, int y, int x, int width, enum role role, unsigned marks, const char *utf8)
{
    put_cell(c, y, x, width, utf8, " ", "", style_of(role, marks, NAN));
}

int
canvas_paragraph(const struct canvas *c, enum role role, const char *utf8)
{
    int rows = 0;
    for (utf8 += strspn(utf8, " "); c->cols > 0 && utf8[0] != '\0'; rows++) {
        const size_t n = text_wrap(utf8, c->cols);
        char line[512]; /* the last row gets the whole rest, which canvas_word() cuts */
        snprintf(line, sizeof line, "%.*s", (int)(rows == c->rows - 1 || n >= sizeof line ? sizeof line - 1 : n), utf8);
        if (rows < c->rows)
            canvas_word(c, rows, 0, c->cols, role, MARK_NONE, line);
        utf8 += n + strspn(utf8 + n, " ");
    }
    return rows;
}

/* Draws a box's note, if `c` is given, and returns its width. */
static int
draw_note(const struct canvas *c, int x, const char *note)
{
    enum role role = ROLE_DIM;
    int width = 0;
    for (;;) {
        char part[160];
        const size_t n = strcspn(note, CANVAS_ROLE);
        snprintf(part, sizeof part, "%.*s", (int)n, note);
        if (c != NULL)
            canvas_text(c, 0, x + width, role, part);
        width += text_width(part);
        note += n;
        if (note[0] == '\0' || note[1] == '\0')
            break;
        role = (enum role)(note[1] - 1);
        note += 2;
    }
    return width;
}

void
canvas_box(const struct canvas *c, const char *title, const char *note, bool focused)
{
    if (c->rows < 2 || c->cols < 2)
        return;
    static const char *const thin[6] = {"─", "│", "┌", "┐", "└", "┘"}, *const thick[6] = {"━", "┃", "┏", "┓", "┗", "┛"};
    const char *const *line = focused ? thick : thin; /* shows the focus without colours */
    const enum role role = focused ? ROLE_FOCUS : ROLE_BORDER;
    const int bottom = c->rows - 1, right = c->cols - 1;
    for (int x = 1; x < right; x++) {
        canvas_text(c, 0, x, role, line[0]);
        canvas_text(c, bottom, x, role, line[0]);
    }
    for (int y = 1; y < bottom; y++) {
        canvas_text(c, y, 0, role, line[1]);
        canvas_text(c, y, right, role, line[1]);
    }
    canvas_text(c, 0, 0, role, line[2]);
    canvas_text(c, 0, right, role, line[3]);
    canvas_text(c, bottom, 0, role, line[4]);
    canvas_text(c, bottom, right, role, line[5]);

    const struct canvas top = canvas_inside(c, 0, 1, 1, c->cols - 2);
    int at = 0;
    if (title != NULL && title[0] != '\0') {
        at = canvas_text(&top, 0, 0, ROLE_TITLE, " ");
        at += canvas_text(&top, 0, at, focused ? ROLE_FOCUS : ROLE_TITLE, title);
        at += canvas_text(&top, 0, at, ROLE_TITLE, " ");
    }
    /* The note is drawn whole at the right end, or not at all. */
    const int width = note == NULL ? 0 : draw_note(NULL, 0, note);
    if (width > 0 && at + width + 3 <= top.cols) {
        int from = top.cols - width - 2;
        from += canvas_text(&top, 0, from, ROLE_DIM, " ");
        from += draw_note(&top, from, note);
        canvas_text(&top, 0, from, ROLE_DIM, " ");
    }
}

void
canvas_slider(const struct canvas *c, int y, int x, int width, double fraction, double default_fraction, enum role role)
{
    if (width < 3)
        return;
    const int track = width - 2;
    canvas_text(c, y, x, ROLE_DIM, "├");
    canvas_text(c, y, x + width - 1, ROLE_DIM, "┤");
    for (int i = 0; i < track; i++)
        canvas_text(c, y, x + 1 + i, ROLE_DIM, "─");
    if (default_fraction >= 0 && default_fraction <= 1)
        canvas_text(c, y, x + 1 + (int)lrint(default_fraction * (track - 1)), ROLE_DIM, "┼");
    if (!isnan(fraction))
        canvas_text(c, y, x + 1 + (int)lrint(fmin(fmax(fraction, 0), 1) * (track - 1)), role, "●");
}

void
canvas_bar(const struct canvas *c, int y, int x, int width, double fraction, enum role role)
{
    static const char *const parts[8] = {"░", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double filled = isnan(fraction) ? 0 : fmin(fmax(fraction, 0), 1) * width;
    for (int i = 0; i < width; i++) {
        const double here = filled - i;
        if (here >= 1)
            canvas_text(c, y, x + i, role, "█");
        else if (here > 0.0625 && c->grid->utf8)
            canvas_text(c, y, x + i, role, parts[(int)(here * 8)]);
        else
            canvas_text(c, y, x + i, ROLE_DIM, "░");
    }
}

/* ---- half blocks: two values in a cell, one above the other ---- */

#define STEPS 16 /* levels of a half cell; few, because pairs of colours are limited */

static float
stepped(float value)
{
    return isnan(value) || value < 0 ? value : rintf(fminf(value, 1) * (STEPS - 1)) / (STEPS - 1);
}

static uint8_t
level_of(float value)
{
    return value < 0 ? GRID_GREY : (uint8_t)(1 + lrintf(value * (GRID_HEATS - 1)));
}

/* Without colours: the mean of the halves that have a value. */
static void
draw_level(const struct canvas *c, int y, int x, float upper, float lower)
{
    const float above = upper >= 0 ? upper : lower, below = lower >= 0 ? lower : upper; /* neither NAN nor grey */
    if (above >= 0)
        canvas_styled(c, y, x, ROLE_TEXT, (above + below) / 2, MARK_NONE, canvas_level((double)(above + below) / 2));
    else
        canvas_text(c, y, x, ROLE_DIM, isnan(upper) && isnan(lower) ? " " : "░");
}

void
canvas_halves(const struct canvas *c, int y, int x, float upper, float lower)
{
    struct grid_cell *cell = grid_at(c->grid, c->y + y, c->x + x);
    if (y < 0 || y >= c->rows || x < 0 || x >= c->cols || cell == NULL)
        return;
    if (c->grid->mono || !c->grid->utf8) {
        draw_level(c, y, x, upper, lower);
        return;
    }
    upper = stepped(upper);
    lower = stepped(lower);
    if (isnan(upper) && isnan(lower)) {
        canvas_text(c, y, x, ROLE_TEXT, " ");
    } else if (isnan(upper)) {
        canvas_text(c, y, x, ROLE_TEXT, "▄");
        cell->upper = level_of(lower);
    } else {
        canvas_styled(c, y, x, lower < 0 ? ROLE_EXITED : ROLE_TEXT, lower < 0 ? NAN : lower, MARK_NONE, "▀");
        cell->upper = level_of(upper);
    }
}

/* ---- line charts: two by four braille dots a cell ---- */

/* Bit of the dot at (row 0..3, column 0..1) in U+2800 + bits. */
static const uint8_t dot_bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

static void
dot(const struct canvas *c, int row, int column, enum role role)
{
    const int y = row / 4, x = column / 2;
    if (row < 0 || column < 0 || y >= c->rows || x >= c->cols)
        return;
    if (!c->grid->utf8) {
        static const char *const heights[4] = {"'", "-", ".", "_"};
        canvas_text(c, y, x, role, heights[row % 4]);
        return;
    }
    uint32_t code = 0;
    char glyph[5] = "";
    const struct grid_cell *cell = grid_at(c->grid, c->y + y, c->x + x);
    if (cell == NULL || utf8_character(cell->text, strlen(cell->text), &code) == 0 || code < 0x2800 || code > 0x28ff)
        code = 0x2800; /* not a chart's cell yet */
    utf8_put(glyph, code | dot_bits[row % 4][column % 2]);
    canvas_text(c, y, x, role, glyph);
}

/* A value's dot row; the top row is `high`. */
static int
row_of(double value, double low, double high, int dots)
{
    const double span = high > low ? high - low : 1;
    const double up = fmin(fmax((value - low) / span, 0), 1);
    return dots - 1 - (int)lrint(up * (dots - 1));
}

void
canvas_plot(const struct canvas *c, const float *values, int n, double low, double high, enum role role)
{
    const int wide = c->cols * 2, tall = c->rows * 4;
    if (n <= 0 || wide <= 0 || tall <= 0)
        return;
    int last = -1; /* dot row of the column before, -1: a gap */
    for (int column = 0; column < wide; column++) {
        /* draws the whole range of the values in this column, so that no peak is lost */
        const int from = (int)((int64_t)column * n / wide);
        const int to = (int)((int64_t)(column + 1) * n / wide);
        int top = tall, bottom = -1;
        for (int i = from; i < to || i == from; i++) {
            if (isnan(values[i]))
                continue;
            const int row = row_of((double)values[i], low, high, tall);
            top = row < top ? row : top;
            bottom = row > bottom ? row : bottom;
        }
        if (bottom < 0) {
            last = -1;
            continue;
        }
        const int reached = isnan(values[to > from ? to - 1 : from])
                                ? bottom
                                : row_of((double)values[to > from ? to - 1 : from], low, high, tall);
        if (last >= 0 && last < top) /* joined to the column before */
            top = last + 1 < top ? last + 1 : top;
        if (last >= 0 && last > bottom)
            bottom = last - 1 > bottom ? last - 1 : bottom;
        for (int row = top; row <= bottom; row++)
            dot(c, row, column, role);
        last = reached;
    }
}

static const struct grid_cell blank_cell = {.text = " ", .columns = 1, .heat = GRID_NO_HEAT};

bool
grid_open(struct grid *g, int rows, int cols)
{
    rows = rows < 1 ? 1 : rows;
    cols = cols < 1 ? 1 : cols;
    struct grid_cell *cells = calloc((size_t)rows * (size_t)cols, sizeof *cells);
    if (cells == NULL)
        return false;
    free(g->cells);
    g->cells = cells;
    g->rows = rows;
    g->cols = cols;
    grid_clear(g);
    return true;
}

void
grid_close(struct grid *g)
{
    free(g->cells);
    *g = (struct grid){0};
}

void
grid_clear(struct grid *g)
{
    for (size_t i = 0; i < (size_t)g->rows * (size_t)g->cols; i++)
        g->cells[i] = blank_cell;
}

struct grid_cell *
grid_at(const struct grid *g, int y, int x)
{
    if (y < 0 || x < 0 || y >= g->rows || x >= g->cols)
        return NULL;
    return &g->cells[(size_t)y * (size_t)g->cols + (size_t)x];
}

/* Half of a wide character at x is about to be overwritten: its other half becomes a space. */
static void
mend(struct grid *g, int y, int x)
{
    struct grid_cell *c = grid_at(g, y, x);
    if (c == NULL)
        return;
    struct grid_cell *other = c->columns == 0 ? c - 1 : c->columns == 2 ? c + 1 : NULL;
    if (other == NULL)
        return;
    memcpy(other->text, " ", 2);
    other->columns = 1;
    memcpy(c->text, " ", 2);
    c->columns = 1;
}

void
grid_put(struct grid *g, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style)
{
    if (grid_at(g, y, x) == NULL || grid_at(g, y, x + columns - 1) == NULL)
        return;
    mend(g, y, x);
    if (columns == 2)
        mend(g, y, x + 1);
    struct grid_cell *c = grid_at(g, y, x);
    /* Combining marks that exceed the cell's size are dropped, whole characters only. */
    if (bytes >= TEXT_CLUSTER) {
        bytes = TEXT_CLUSTER - 1;
        while (bytes > 0 && ((unsigned char)cluster[bytes] & 0xc0) == 0x80)
            bytes--;
    }
    memset(style.text, 0, sizeof style.text);
    if (columns == 2) {
        style.columns = 0;
        c[1] = style;
    }
    memcpy(style.text, cluster, bytes);
    style.columns = (uint8_t)columns;
    c[0] = style;
}

size_t
grid_row(const struct grid *g, int y, char *out, size_t size)
{
    size_t length = 0, used = 0;
    for (int x = 0; x < g->cols; x++) {
        const struct grid_cell *c = grid_at(g, y, x);
        if (c == NULL)
            break;
        const size_t n = strnlen(c->text, sizeof c->text);
        if (length + n >= size)
            break;
        memcpy(out + length, c->text, n);
        length += n;
        if (!(n == 1 && c->text[0] == ' ') && n != 0)
            used = length;
    }
    out[used] = '\0';
    return used;
}

bool
grid_write(const struct grid *g, FILE *file)
{
    const size_t size = (size_t)g->cols * TEXT_CLUSTER + 1;
    char *line = malloc(size);
    if (line == NULL)
        return false;
    bool fine = true;
    for (int y = 0; y < g->rows && fine; y++) {
        const size_t n = grid_row(g, y, line, size);
        fine = fwrite(line, 1, n, file) == n && fputc('\n', file) != EOF;
    }
    free(line);
    return fine;
}

/* ---- pictures as files ---- */

const struct file_kind screen_text_file = {
    .what = "a screen of specscope", .begins = "", .holds = {"──", "━━", "--+", "? help"}};

struct shown {      /* the appearance of a cell */
    int32_t fg, bg; /* 0xRRGGBB, or THEME_NO_RGB */
    unsigned attributes;
};

static struct shown
shown_at(const struct grid *g, const struct theme *theme, int y, int x)
{
    const struct cell_style s = cell_style(theme, grid_at(g, y, x));
    struct shown shown = {theme->role[s.text].fg, theme->role[s.role].bg, s.attributes};
    if (s.heat != GRID_NO_HEAT && s.ink) {
        shown.fg = theme_heat(theme, (float)s.heat / (GRID_HEATS - 1));
    } else if (s.heat != GRID_NO_HEAT) {
        shown.bg = theme_heat(theme, (float)s.heat / (GRID_HEATS - 1));
        shown.fg = colour_contrast(shown.bg);
    }
    if (s.grey || s.upper != GRID_NO_HEAT)
        shown.fg = s.grey ? theme->role[ROLE_EXITED].bg : theme_heat(theme, (float)s.upper / (GRID_HEATS - 1));
    return shown;
}

static bool
same(struct shown a, struct shown b)
{
    return a.fg == b.fg && a.bg == b.bg && a.attributes == b.attributes;
}

/* Returns the first column after x that looks different. */
static int
run_end(const struct grid *g, const struct theme *theme, int y, int x)
{
    const struct shown first = shown_at(g, theme, y, x);
    int end = x + 1;
    while (end < g->cols && (grid_at(g, y, end)->columns == 0 || same(first, shown_at(g, theme, y, end))))
        end++;
    return end;
}

/* ---- SVG ---- */

#define CELL_WIDTH  8.43 /* of most monospaced fonts of 14 px */
#define CELL_HEIGHT 16.3 /* so that lines of boxes meet */
#define BASELINE    12.6

static void
put_xml(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
        }
}

static void
put_ground(double x, double y, double width, int32_t rgb, FILE *out)
{
    fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n", x, y, width,
            CELL_HEIGHT, (unsigned)rgb);
}

static bool
blank(const struct grid *g, int y, int from, int to)
{
    bool none = true;
    for (int x = from; x < to; x++)
        none = none && (grid_at(g, y, x)->text[0] == '\0' || strcmp(grid_at(g, y, x)->text, " ") == 0);
    return none;
}

static void
put_run(const struct grid *g, const struct theme *theme, int y, int from, int to, int32_t paper, FILE *out)
{
    const struct shown s = shown_at(g, theme, y, from);
    const int32_t ink = s.fg != THEME_NO_RGB ? s.fg : colour_contrast(paper),
                  ground = s.bg != THEME_NO_RGB ? s.bg : paper;
    const bool reverse = (s.attributes & THEME_REVERSE) != 0;
    const double x = from * CELL_WIDTH, width = (to - from) * CELL_WIDTH;
    if ((reverse ? ink : ground) != paper)
        put_ground(x, y * CELL_HEIGHT, width, reverse ? ink : ground, out);
    if (blank(g, y, from, to) && (s.attributes & (THEME_UNDERLINE | THEME_STRIKE)) == 0)
        return;
    fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" textLength=\"%.2f\" fill=\"#%06x\"", x, y * CELL_HEIGHT + BASELINE, width,
            (unsigned)(reverse ? ground : ink));
    if (s.attributes & THEME_BOLD)
        fputs(" font-weight=\"bold\"", out);
    if (s.attributes & THEME_DIM)
        fputs(" opacity=\"0.6\"", out);
    if (s.attributes & (THEME_UNDERLINE | THEME_STRIKE))
        fprintf(out, " text-decoration=\"%s\"", s.attributes & THEME_STRIKE ? "line-through" : "underline");
    fputc('>', out);
    for (int i = from; i < to; i++)
        put_xml(grid_at(g, y, i)->text, out);
    fputs("</text>\n", out);
}

bool
grid_write_svg(const struct grid *g, const struct theme *theme, FILE *out)
{
    const int32_t text = theme->role[ROLE_TEXT].bg, paper = text != THEME_NO_RGB ? text : 0xffffff;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.2f\" height=\"%.2f\" viewBox=\"0 0 %.2f %.2f\" "
            "font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" xml:space=\"preserve\">\n",
            g->cols * CELL_WIDTH, g->rows * CELL_HEIGHT, g->cols * CELL_WIDTH, g->rows * CELL_HEIGHT);
    fprintf(out, "<rect width=\"100%%\" height=\"100%%\" fill=\"#%06x\"/>\n", (unsigned)paper);
    for (int y = 0; y < g->rows; y++)
        for (int x = 0, end; x < g->cols; x = end) {
            end = run_end(g, theme, y, x);
            put_run(g, theme, y, x, end, paper, out);
        }
    fputs("</svg>\n", out);
    return ferror(out) == 0;
}
