#include "tui/terminal/paint.h"

#include <curses.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/colour.h"
#include "base/utf8.h"
#include "tui/terminal/terminal.h"

/* ---- the colours of a theme in a palette ---- */

/* xterm's first sixteen; other terminals differ a little */
static const int32_t base_colours[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x2a4fd6, 0xcd00cd,
                                         0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                         0x5c7cff, 0xff00ff, 0x00ffff, 0xffffff};

int32_t
paint_rgb(enum paint_depth depth, int number)
{
    if (number < 0)
        return THEME_NO_RGB;
    if (depth == PAINT_DIRECT)
        return number;
    if (number < 16)
        return base_colours[number];
    if (number < 232) { /* a 6×6×6 cube with these steps */
        static const int32_t step[6] = {0, 95, 135, 175, 215, 255};
        const int at = number - 16;
        return step[at / 36] << 16 | step[at / 6 % 6] << 8 | step[at % 6];
    }
    return (8 + 10 * (number - 232)) * 0x010101;
}

int
paint_nearest(enum paint_depth depth, int32_t rgb)
{
    if (rgb < 0 || depth == PAINT_NONE)
        return -1;
    if (depth == PAINT_DIRECT) /* 1 to 7 would be taken for the palette's colours */
        return rgb > 0 && rgb < 8 ? 0 : rgb;
    int best = -1;
    int64_t best_distance = INT64_MAX;
    /* the user may change the first 16 colours, so 256 colours use only the fixed ones */
    const int from = depth == PAINT_256 ? 16 : 0;
    for (int i = from; i < (int)depth; i++) {
        const int32_t there = paint_rgb(depth, i);
        int64_t distance = 0;
        static const int64_t weight[3] = {2, 4, 3}; /* of blue, green, red to the eye, roughly */
        for (int k = 0; k < 3; k++) {
            const int64_t d = ((rgb >> (8 * k)) & 0xff) - ((there >> (8 * k)) & 0xff);
            distance += weight[k] * d * d;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = i;
        }
    }
    return best;
}

void
paint_scale(enum paint_depth depth, const struct theme *t, int numbers[GRID_HEATS])
{
    const int palette = depth == PAINT_256 ? THEME_256 : depth == PAINT_16 ? THEME_16 : depth == PAINT_8 ? THEME_8 : -1;
    const int steps = palette >= 0 && t->stops > 0 ? t->steps[palette].n : 0;
    double reached = 0;
    for (int i = 0; i < GRID_HEATS; i++) {
        if (steps > 0) {
            numbers[i] = t->steps[palette].number[i * steps / GRID_HEATS];
            continue;
        }
        /* skips nearest colours that would break the order of lightness */
        const int nearest = paint_nearest(depth, theme_heat(t, (float)i / (GRID_HEATS - 1)));
        const double lightness = colour_lightness(paint_rgb(depth, nearest < 0 ? 0 : nearest));
        const bool turns = i > 0 && (t->darker ? lightness > reached : lightness < reached);
        numbers[i] = turns ? numbers[i - 1] : nearest;
        reached = turns ? reached : lightness;
    }
}

/* ---- the screen ---- */

void
paint_open(struct paint *p, bool utf8)
{
    *p = (struct paint){.strike = utf8, .stale = true};
    const char *no_color = getenv("NO_COLOR");
    signals_library(true);
    if (has_colors() && !(no_color != NULL && no_color[0] != '\0') && start_color() == OK) {
        use_default_colors();
        if (COLORS >= 1 << 24 && tigetflag("RGB") > 0)
            p->depth = PAINT_DIRECT;
        else
            p->depth = COLORS >= 256 ? PAINT_256 : COLORS >= 16 ? PAINT_16 : COLORS >= 8 ? PAINT_8 : PAINT_NONE;
        p->max_pairs = COLOR_PAIRS - 1 < PAINT_PAIRS ? COLOR_PAIRS - 1 : PAINT_PAIRS;
    }
    signals_library(false);
    theme_mono(&p->theme);
}

bool
paint_direct(struct paint *p)
{
    static const char *const takes[2] = {"setaf", "setab"};
    if (p->depth != PAINT_256)
        return false;
    for (int i = 0; i < 2; i++) { /* the sequences that terminal_output_end() replaces */
        signals_library(true);
        const char *set = tigetstr(takes[i]), *made = set == NULL || set == (char *)-1 ? NULL : tiparm(set, 200);
        signals_library(false);
        if (made == NULL || strcmp(made, i == 0 ? "\033[38;5;200m" : "\033[48;5;200m") != 0)
            return false;
    }
    p->depth = PAINT_DIRECT;
    p->slots = true;
    p->stale = true;
    return true;
}

void
paint_theme(struct paint *p, const struct theme *theme)
{
    if (p->depth == PAINT_NONE)
        theme_mono(&p->theme); /* a theme for colours may distinguish roles only by colour */
    else
        p->theme = *theme;
    if (p->depth != PAINT_NONE)
        reset_color_pairs();
    memset(p->pair, 0, sizeof p->pair);
    p->pairs = 0;
    p->n_slots = PAINT_FIRST_SLOT;
    for (int i = 0; i < PAINT_SLOTS; i++)
        p->slot[i] = THEME_NO_RGB;
    p->stale = true;
    for (int i = 0; i < ROLES; i++) {
        p->role[i].fg = paint_nearest(p->depth, p->theme.role[i].fg);
        p->role[i].bg = paint_nearest(p->depth, p->theme.role[i].bg);
        if (p->role[i].fg == p->role[i].bg && p->role[i].bg >= 0) /* with few colours both may be the same */
            p->role[i].fg = paint_nearest(p->depth, colour_contrast(paint_rgb(p->depth, p->role[i].bg)));
    }
    int scale[GRID_HEATS];
    paint_scale(p->depth, &p->theme, scale);
    for (int i = 0; i < GRID_HEATS; i++) {
        p->heat[i].bg = scale[i];
        p->heat[i].fg = p->heat[i].bg < 0
                            ? p->role[ROLE_TEXT].fg
                            : paint_nearest(p->depth, colour_contrast(paint_rgb(p->depth, p->heat[i].bg)));
    }
}

/* Returns the number of a colour for curses; if all slots are used, that of the nearest colour. */
static int
slot_of(struct paint *p, int colour)
{
    if (!p->slots || colour < 0)
        return colour;
    int best = PAINT_FIRST_SLOT;
    double least = INFINITY;
    for (int i = PAINT_FIRST_SLOT; i < p->n_slots; i++) {
        if (p->slot[i] == colour)
            return i;
        const double distance = fabs(colour_lightness(p->slot[i]) - colour_lightness(colour));
        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    if (p->n_slots == PAINT_SLOTS)
        return best;
    p->slot[p->n_slots] = colour;
    return p->n_slots++;
}

static int
pair_of(struct paint *p, int fg, int bg)
{
    if (p->depth == PAINT_NONE || (fg < 0 && bg < 0))
        return 0;
    const size_t size = sizeof p->pair / sizeof p->pair[0];
    size_t at = ((size_t)(unsigned)fg * 2654435761U ^ (size_t)(unsigned)bg * 40503U) % size;
    while (p->pair[at].number != 0) {
        if (p->pair[at].fg == fg && p->pair[at].bg == bg)
            return p->pair[at].number;
        at = (at + 1) % size;
    }
    if (p->pairs >= p->max_pairs)
        return 0;
    signals_library(true);
    const bool made = init_extended_pair(p->pairs + 1, slot_of(p, fg), slot_of(p, bg)) != ERR;
    signals_library(false);
    if (!made)
        return 0;
    p->pair[at].fg = fg;
    p->pair[at].bg = bg;
    p->pair[at].number = ++p->pairs;
    return p->pairs;
}

struct look {
    attr_t attributes;
    int pair;
    bool strike;
};

static struct look
look_of(struct paint *p, const struct grid_cell *c)
{
    const struct cell_style s = cell_style(&p->theme, c);
    const unsigned attributes = s.attributes;
    const bool hot = s.heat != GRID_NO_HEAT;
    const int bg = hot && !s.ink ? p->heat[s.heat].bg : p->role[s.role].bg;
    int fg = !hot ? p->role[s.text].fg : s.ink ? p->heat[s.heat].bg : p->heat[s.heat].fg;
    if (s.grey || s.upper != GRID_NO_HEAT) /* of a half block */
        fg = s.grey ? p->role[ROLE_EXITED].bg : p->heat[s.upper].bg;
    struct look look = {.pair = pair_of(p, fg, bg), .strike = (attributes & THEME_STRIKE) != 0};
    look.attributes = (attributes & THEME_BOLD ? A_BOLD : 0U) | (attributes & THEME_DIM ? A_DIM : 0U) |
                      (attributes & THEME_UNDERLINE ? A_UNDERLINE : 0U) | (attributes & THEME_REVERSE ? A_REVERSE : 0U);
    return look;
}

/* Converts a cell's text to wide characters for curses: a character and its marks. If the locale's width differs, the
 * screen would shift, so the cell becomes '?', also in the grid. */
static int
wide_text(struct grid_cell *c, wchar_t out[CCHARW_MAX + 1])
{
    int n = 0;
    const char *at = c->text;
    bool fits = true;
    while (*at != '\0' && n < CCHARW_MAX - 1) {
        uint32_t code;
        const size_t used = utf8_character(at, strlen(at), &code);
        if (used == 0) {
            fits = false;
            break;
        }
        const int width = code < 0x80 ? 1 : wcwidth((wchar_t)code);
        if (n == 0)
            fits = width == c->columns;
        else if (width != 0)
            break; /* curses would refuse the cell */
        if (!fits)
            break;
        out[n++] = (wchar_t)code;
        at += used;
    }
    if (!fits || n == 0) {
        for (int i = 0; i < c->columns; i++)
            memcpy(c[i].text, "?", 2);
        if (c->columns == 2)
            c[1].columns = 1;
        c->columns = 1;
        out[0] = L'?';
        n = 1;
    }
    out[n] = L'\0';
    return n;
}

bool
paint_show(struct paint *p, struct grid *g)
{
    if (p->shown.rows != g->rows || p->shown.cols != g->cols) {
        if (!grid_open(&p->shown, g->rows, g->cols))
            return false;
        p->stale = true;
    }
    if (p->stale)
        erase();
    for (int y = 0; y < g->rows; y++) {
        for (int x = 0; x < g->cols; x++) {
            struct grid_cell *c = grid_at(g, y, x), *old = grid_at(&p->shown, y, x);
            if (c->columns == 0 || (!p->stale && memcmp(c, old, sizeof *c) == 0 &&
                                    (c->columns == 1 || memcmp(c + 1, old + 1, sizeof *c) == 0)))
                continue;
            const struct look look = look_of(p, c);
            wchar_t text[CCHARW_MAX + 1];
            int n = wide_text(c, text);
            /* Words are struck through; arrows, lines and boxes (U+2190 to U+2BFF) are signs already. */
            const bool word = text[0] != L' ' && !(text[0] >= 0x2190 && text[0] < 0x2c00);
            if (look.strike && p->strike && word && n < CCHARW_MAX) {
                text[n++] = 0x0336;
                text[n] = L'\0';
            }
            cchar_t cell;
            signals_library(true);
            if (setcchar(&cell, text, look.attributes, 0, &look.pair) == OK)
                mvadd_wch(y, x, &cell); /* ERR after the last cell of the screen, which is drawn nevertheless */
            signals_library(false);
        }
    }
    memcpy(p->shown.cells, g->cells, (size_t)g->rows * (size_t)g->cols * sizeof *g->cells);
    p->stale = false;
    return true;
}
