#include "tui/app/screen.h"
#include "base/clock.h"

bool
screen_outdated(const struct screen *s)
{
    return s->terminal.direct && !s->asked_direct;
}

/* Switches to 24-bit colours after the terminal has reported them. Returns true if they are new. */
static bool
switch_to_direct(struct screen *s)
{
    if (!screen_outdated(s))
        return false;
    s->asked_direct = true;
    if (s->terminal.output.memory < 0 || !paint_direct(&s->paint))
        return false;
    s->terminal.output.slots = s->paint.slot;
    return true;
}

bool
screen_open(struct screen *s, bool keys, struct err *err)
{
    if (!terminal_open(&s->terminal, keys, err))
        return false;
    paint_open(&s->paint, s->terminal.utf8);
    switch_to_direct(s);
    return true;
}

void
screen_close(struct screen *s)
{
    grid_close(&s->paint.shown);
    terminal_close(&s->terminal);
    grid_close(&s->grid);
}

static void
take_theme(struct screen *s, const struct theme *theme)
{
    s->theme = *theme;
    paint_theme(&s->paint, theme);
}

bool
screen_theme(struct screen *s, const char *name, const char *data_dir, struct err *err)
{
    struct theme theme;
    if (!theme_load(&theme, name, data_dir, err))
        return false;
    take_theme(s, &theme);
    return true;
}

bool
screen_first_theme(struct screen *s, const char *name, const char *data_dir, struct err *err)
{
    struct theme theme;
    if (screen_theme(s, name == NULL ? THEME_DEFAULT : name, data_dir, err))
        return true;
    theme_builtin(&theme, NULL);
    take_theme(s, &theme);
    return false;
}

bool
screen_begin(struct screen *s)
{
    int rows, cols;
    if (switch_to_direct(s)) {
        paint_theme(&s->paint, &s->theme);
        s->repaint = true;
    }
    terminal_size(&rows, &cols);
    if ((s->grid.rows != rows || s->grid.cols != cols) && !grid_open(&s->grid, rows, cols))
        return false;
    s->grid.utf8 = s->terminal.utf8;
    s->grid.mono = s->paint.depth == PAINT_NONE || s->paint.theme.stops == 0;
    s->dirty = false;
    grid_clear(&s->grid);
    return true;
}

bool
screen_show(struct screen *s)
{
    s->paint.stale = s->paint.stale || s->repaint;
    if (!paint_show(&s->paint, &s->grid))
        return false;
    terminal_refresh(&s->terminal, s->repaint);
    s->repaint = false;
    s->frame_us = clock_us();
    return true;
}
