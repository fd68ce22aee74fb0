#include "tui/terminal/grid.h"
#include "tui/terminal/theme.h"

#include <stdlib.h>
#include <string.h>

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
    /* Marks piled on one character beyond the cell's size are dropped, whole characters only. */
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
const struct file_kind screen_ansi_file = {.what = "a screen with escape sequences", .begins = "\033[0"};
const struct file_kind svg_file = {.what = "an SVG picture", .begins = "<", .holds = {"<svg"}};

struct shown {      /* of a cell: what it looks like */
    int32_t fg, bg; /* 0xRRGGBB, or THEME_NO_RGB */
    unsigned attributes;
};

static struct shown
shown_at(const struct grid *g, const struct theme *theme, int y, int x)
{
    const struct cell_style s = cell_style(theme, grid_at(g, y, x));
    struct shown shown = {theme->role[s.role].fg, theme->role[s.role].bg, s.attributes};
    if (s.heat != GRID_NO_HEAT && s.ink) {
        shown.fg = theme_heat(theme, (float)s.heat / (GRID_HEATS - 1));
    } else if (s.heat != GRID_NO_HEAT) {
        shown.bg = theme_heat(theme, (float)s.heat / (GRID_HEATS - 1));
        shown.fg = theme_contrast(shown.bg);
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

/* The first column behind those from x on that look as this one does. */
static int
run_end(const struct grid *g, const struct theme *theme, int y, int x)
{
    const struct shown first = shown_at(g, theme, y, x);
    int end = x + 1;
    while (end < g->cols && (grid_at(g, y, end)->columns == 0 || same(first, shown_at(g, theme, y, end))))
        end++;
    return end;
}

/* ---- text with escape sequences ---- */

static void
put_ansi(const struct shown *s, FILE *out)
{
    static const struct {
        unsigned attribute;
        int code;
    } codes[] = {{THEME_BOLD, 1}, {THEME_DIM, 2}, {THEME_UNDERLINE, 4}, {THEME_REVERSE, 7}, {THEME_STRIKE, 9}};
    fputs("\033[0", out);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (s->attributes & codes[i].attribute)
            fprintf(out, ";%d", codes[i].code);
    const int32_t colours[] = {s->fg, s->bg};
    for (int i = 0; i < 2; i++)
        if (colours[i] != THEME_NO_RGB)
            fprintf(out, ";%d;2;%d;%d;%d", i == 0 ? 38 : 48, colours[i] >> 16 & 0xff, colours[i] >> 8 & 0xff,
                    colours[i] & 0xff);
    fputc('m', out);
}

bool
grid_write_ansi(const struct grid *g, const struct theme *theme, FILE *out)
{
    for (int y = 0; y < g->rows; y++) {
        for (int x = 0, end; x < g->cols; x = end) {
            const struct shown s = shown_at(g, theme, y, x);
            end = run_end(g, theme, y, x);
            put_ansi(&s, out);
            for (int i = x; i < end; i++)
                fputs(grid_at(g, y, i)->text, out);
        }
        fputs("\033[0m\n", out);
    }
    return ferror(out) == 0;
}

/* ---- SVG ---- */

#define CELL_WIDTH  8.43 /* of a font of 14 px, as most that are monospaced have it */
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
    const int32_t ink = s.fg != THEME_NO_RGB ? s.fg : theme_contrast(paper),
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
