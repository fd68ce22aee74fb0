#include "tui/terminal/cell_style.h"

struct cell_style
cell_style(const struct theme *theme, const struct grid_cell *c)
{
    struct cell_style s = {
        .heat = GRID_NO_HEAT, .upper = GRID_NO_HEAT, .role = c->role < ROLES ? (enum role)c->role : ROLE_TEXT};
    s.attributes = theme->role[s.role].attributes;
    s.ink = (c->marks & MARK_INK) != 0;
    if (c->heat >= 0 && theme->stops > 0)
        s.heat = (uint8_t)c->heat;
    else if (c->heat >= 0) /* a weaker scale of three, beside the level's glyph */
        s.attributes |= c->heat < GRID_HEATS / 3 ? THEME_DIM : c->heat >= GRID_HEATS * 2 / 3 ? THEME_BOLD : 0;
    s.grey = c->upper == GRID_GREY;
    if (c->upper > 0 && c->upper <= GRID_HEATS && theme->stops > 0)
        s.upper = c->upper - 1;
    if (c->marks & MARK_CURSOR) {
        s.upper = GRID_NO_HEAT;
        s.grey = false;
        s.heat = GRID_NO_HEAT;
        s.role = ROLE_CURSOR;
        s.attributes = (s.attributes & ~(unsigned)THEME_DIM) | theme->role[ROLE_CURSOR].attributes;
    }
    if ((c->marks & MARK_FADED) && !(c->marks & MARK_CURSOR))
        s.attributes |= THEME_DIM;
    s.attributes |= (c->marks & MARK_BOLD ? THEME_BOLD : 0U) | (c->marks & MARK_STRUCK ? THEME_STRIKE : 0U) |
                    (c->marks & MARK_UNDERLINED ? THEME_UNDERLINE : 0U);
    return s;
}
