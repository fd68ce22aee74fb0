#include "tui/terminal/canvas.h"
#include "engine/base/printable.h"
#include "engine/base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <utf8proc.h>

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

/* What a terminal without UTF-8 shows instead of the glyphs that this program draws. */
static const struct fallback {
    const char *utf8, *ascii;
} fallbacks[] = {
    {"─", "-"},  {"━", "="}, {"│", "|"}, {"┃", "|"}, {"┌", "+"}, {"┐", "+"}, {"└", "+"}, {"┘", "+"}, {"┏", "+"},
    {"┓", "+"},  {"┗", "+"}, {"┛", "+"}, {"├", "|"}, {"┤", "|"}, {"┼", "+"}, {"╵", "'"}, {"╌", "~"}, {"●", "o"},
    {"○", "o"},  {"■", "#"}, {"□", "."}, {"▒", ":"}, {"▓", "!"}, {"░", "."}, {"█", "#"}, {"▸", ">"}, {"▶", ">"},
    {"◄", "<"},  {"►", ">"}, {"…", "~"}, {"⏎", "$"}, {"·", "-"}, {"–", "-"}, {"—", "-"}, {"×", "x"}, {"÷", "/"},
    {"✓", "y"},  {"✗", "n"}, {"τ", "t"}, {"α", "a"}, {"γ", "g"}, {"ω", "w"}, {"ρ", "r"}, {"↑", "^"}, {"↓", "v"},
    {"←", "<"},  {"→", ">"}, {"‹", "<"}, {"›", ">"}, {"┆", ":"}, {"◌", "o"}, {"‖", "="}, {"∞", "*"}, {"≥", ">"},
    {"▁", "1"},  {"▂", "2"}, {"▃", "3"}, {"▄", "4"}, {"▅", "5"}, {"▆", "6"}, {"▇", "7"}, {"’", "'"}, {"“", "\""},
    {"”", "\""}, {"‘", "'"}, {"¼", "1"}, {"½", "2"}, {"▲", "^"}, {"−", "-"}, {"Π", "P"}, {"p̂", "p"}, {"≤", "<"},
    {"±", "+"},  {"≈", "~"}, {"Δ", "d"}, {"β", "b"}, {"ε", "e"}, {"₀", "0"}, {"␣", "_"}, {"┊", ":"}, {"▼", "v"},
    {"◀", "<"},  {"◆", "*"}, {"◇", "o"}, {"★", "*"}, {"☆", "'"},
};

static const char *
ascii_of(const char *utf8, size_t bytes)
{
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++)
        if (strlen(fallbacks[i].utf8) == bytes && memcmp(fallbacks[i].utf8, utf8, bytes) == 0)
            return fallbacks[i].ascii;
    return "?";
}

/* A cluster as a cell may hold it: no joiners or variation selectors (terminals disagree about their width), a mark
 * that has nothing to sit on sits on ◌, and what should never have come here becomes '?'. Returns its bytes. */
static size_t
clean(const char *cluster, size_t bytes, char *out, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < bytes;) {
        uint32_t code;
        const size_t used = utf8_character(cluster + i, bytes - i, &code);
        if (used == 0 || !printable_code((int32_t)code)) {
            out[0] = '?';
            return 1;
        }
        const bool dropped = code == 0x200c || code == 0x200d || (code >= 0xfe00 && code <= 0xfe0f) ||
                             (code >= 0xe0100 && code <= 0xe01ef);
        if (!dropped && length == 0 && utf8proc_charwidth((int32_t)code) <= 0)
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

/* One cluster at (y, x) of the canvas, on the grid. */
static void
put(const struct canvas *c, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style)
{
    if (y < 0 || y >= c->rows || x < 0 || x + columns > c->cols)
        return;
    char safe[64];
    if (bytes == 1 && cluster[0] >= ' ' && cluster[0] < 0x7f) {
        grid_put(c->grid, c->y + y, c->x + x, cluster, 1, 1, style);
    } else if (!c->grid->utf8) {
        grid_put(c->grid, c->y + y, c->x + x, ascii_of(cluster, bytes), 1, 1, style);
        if (columns == 2)
            grid_put(c->grid, c->y + y, c->x + x + 1, "?", 1, 1, style);
    } else {
        const size_t n = clean(cluster, bytes, safe, sizeof safe);
        grid_put(c->grid, c->y + y, c->x + x, safe, n, columns, style);
    }
}

/* At most `room` columns of a string from column x on; what is left of the canvas is skipped. Without UTF-8 " ±" is "+-", which
 * has as many columns. */
static int
put_text(const struct canvas *c, int y, int x, int room, const char *utf8, struct grid_cell style)
{
    int used = 0, columns = 0;
    for (size_t n; (n = text_cluster(utf8, &columns)) != 0; utf8 += n) {
        if (used + columns > room)
            break;
        const char *half = c->grid->utf8                                            ? NULL
                           : strncmp(utf8, " ±", strlen(" ±")) == 0                 ? "+"
                           : used > 0 && strncmp(utf8 - 1, " ±", strlen(" ±")) == 0 ? "-"
                                                                                    : NULL;
        put(c, y, x + used, half != NULL ? half : utf8, half != NULL ? 1 : n, columns, style);
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

int
canvas_text(const struct canvas *c, int y, int x, enum role role, const char *utf8)
{
    return put_text(c, y, x, c->cols - x, utf8, style_of(role, MARK_NONE, NAN));
}

int
canvas_styled(const struct canvas *c, int y, int x, enum role role, float heat, unsigned marks, const char *utf8)
{
    return put_text(c, y, x, c->cols - x, utf8, style_of(role, marks, heat));
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

const char *
canvas_glyph(const struct canvas *c, const char *utf8, const char *ascii)
{
    return c->grid->utf8 ? utf8 : ascii;
}

const char *
canvas_level(double fraction)
{
    static const char *const levels[8] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    return levels[fraction >= 1 ? 7 : fraction > 0 ? (int)(fraction * 8) : 0];
}

/* Text in `width` columns, cut with '…' where it is longer. */
static int
put_word(const struct canvas *c, int y, int x, int width, const char *utf8, struct grid_cell style)
{
    if (text_width(utf8) <= width)
        return put_text(c, y, x, width, utf8, style);
    const int used = put_text(c, y, x, width - 1, utf8, style);
    return used + put_text(c, y, x + used, width - used, "…", style);
}

int
canvas_word(const struct canvas *c, int y, int x, int width, enum role role, unsigned marks, const char *utf8)
{
    return put_word(c, y, x, width, utf8, style_of(role, marks, NAN));
}

void
canvas_heat(const struct canvas *c, int y, int x, int width, float heat, unsigned marks, const char *utf8)
{
    if (width <= 0)
        return;
    const bool exited = (marks & MARK_EXITED) != 0, spurious = (marks & MARK_SPURIOUS) != 0 && width > 1;
    const bool level = c->grid->mono && !exited && !isnan(heat) && width > 2;
    const struct grid_cell style = style_of(exited ? ROLE_EXITED : ROLE_TEXT, marks, exited ? NAN : heat);
    const int room = width - (spurious ? 1 : 0) - (level ? 1 : 0);
    int used = put_word(c, y, x, room, utf8, style);
    if (exited) /* without colours too it is seen where the layers stop */
        while (used < room)
            used += put_text(c, y, x + used, 1, "▒", style);
    while (used < room)
        used += put_text(c, y, x + used, 1, " ", style);
    if (spurious)
        used += put_text(c, y, x + used, 1, "▓", style_of(ROLE_SPURIOUS, marks & MARK_CURSOR, NAN));
    if (level)
        put_text(c, y, x + used, 1, canvas_level((double)heat), style);
}

int
canvas_paragraph(const struct canvas *c, enum role role, const char *utf8)
{
    int rows = 0;
    for (utf8 += strspn(utf8, " "); c->cols > 0 && utf8[0] != '\0'; rows++) {
        const size_t n = text_wrap(utf8, c->cols);
        char line[512]; /* of the last row all that there is: it is cut where it ends */
        snprintf(line, sizeof line, "%.*s", (int)(rows == c->rows - 1 || n >= sizeof line ? sizeof line - 1 : n), utf8);
        if (rows < c->rows)
            canvas_word(c, rows, 0, c->cols, role, MARK_NONE, line);
        utf8 += n + strspn(utf8 + n, " ");
    }
    return rows;
}

void
canvas_block(const struct canvas *c, int y, int x, int width, enum role role, unsigned marks, const char *utf8)
{
    if (width <= 0)
        return;
    const bool spurious = (marks & MARK_SPURIOUS) != 0 && width > 1;
    const struct grid_cell style = style_of(role, marks, NAN);
    const int room = width - spurious;
    int used = put_word(c, y, x, room, utf8, style);
    while (used < room)
        used += put_text(c, y, x + used, 1, " ", style);
    if (spurious)
        put_text(c, y, x + used, 1, "▓", style_of(ROLE_SPURIOUS, marks & MARK_CURSOR, NAN));
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
    const char *const *line = focused ? thick : thin; /* the focus is seen without colours */
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
    /* The note stands at the right end, whole or not at all. */
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
