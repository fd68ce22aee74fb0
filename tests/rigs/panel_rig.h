/* What the panels' tests share: a panel drawn into a grid, and the app that panels talk to. It defines functions of the
 * app in its stead, so it is included by test programs and is no part of the tests' archive. */
#ifndef TESTS_RIGS_PANEL_RIG_H
#define TESTS_RIGS_PANEL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rigs/scope_events.h"
#include "tui/panels/panel.h"
#include "tui/terminal/input.h"

struct app { /* what panels say to the app */
    char command[200], said[400];
    bool refuse;
};

bool
app_command(struct app *app, const char *line)
{
    snprintf(app->command, sizeof app->command, "%s", line);
    return !app->refuse;
}

void
app_say(struct app *app, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(app->said, sizeof app->said, format, args);
    va_end(args);
}

struct fixture {
    struct run_info info;
    struct scope *scope;
    struct stream stream;
    size_t fed;
    struct app app;
    struct selection selection;
    struct view view;
    struct grid grid;
    const struct panel_ops *ops; /* the panel under test */
    void *panel;
    char line[4096];
};

static inline void
open_fixture(struct fixture *f, uint32_t layers)
{
    struct err err = {0};
    memset(f, 0, sizeof *f);
    fake_forms_run(&f->info, layers);
    f->info.start_values[POLICY_KNOBS] = 0.55;
    assert_true(scope_open(&f->scope, &f->info, &err));
    stream_begin(&f->stream, 1);
    f->selection.follow = true;
    f->view = (struct view){.scope = f->scope,
                            .info = &f->info,
                            .app = &f->app,
                            .focused = true,
                            .live = true,
                            .selection = &f->selection,
                            .search = ""};
    f->grid.utf8 = true;
}

static inline void
close_fixture(struct fixture *f)
{
    if (f->ops != NULL && f->ops->close != NULL)
        f->ops->close(f->panel);
    grid_close(&f->grid);
    scope_close(f->scope);
    run_info_free(&f->info);
    stream_free(&f->stream);
}

static inline void
see(struct fixture *f)
{
    feed(f->scope, &f->stream, f->fed);
    f->fed = f->stream.n;
}

static inline void
use(struct fixture *f, const struct panel_ops *ops)
{
    f->ops = ops;
    f->panel = ops->open != NULL ? ops->open() : NULL;
}

/* Draws the panel into rows × cols cells. */
static inline void
draw(struct fixture *f, int rows, int cols)
{
    see(f);
    assert_true(grid_open(&f->grid, rows, cols));
    const struct canvas c = {.rows = rows, .cols = cols, .grid = &f->grid};
    f->ops->draw(f->panel, &f->view, &c);
}

static inline const char *
line(struct fixture *f, int y)
{
    grid_row(&f->grid, y, f->line, sizeof f->line);
    return f->line;
}

/* The row that holds the text; -1: none does. */
static inline int
row_with(struct fixture *f, const char *text)
{
    for (int y = 0; y < f->grid.rows; y++)
        if (strstr(line(f, y), text) != NULL)
            return y;
    return -1;
}

static inline void
press(struct fixture *f, int key)
{
    f->ops->key(f->panel, &f->view, key);
}

#endif
