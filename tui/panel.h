/* A panel: one file ending in one table, and one line in tui/panels.c. The core knows no panel by name. */
#ifndef TUI_PANEL_H
#define TUI_PANEL_H

#include "tui/canvas.h"
#include "tui/scope.h"
#include "tui/source.h"

struct app;

struct view { /* what a panel may read when it draws */
    const struct scope *scope;
    const struct run_info *info;
    struct app *app;
    bool focused, live; /* live: knobs can be moved */
};

/* Commands go through the same interpreter as ':' lines, so that what keys and mouse do a command can do. */
bool app_command(struct app *, const char *line);
__attribute__((format(printf, 2, 3))) void app_say(struct app *, const char *format, ...); /* status line */

struct key_help {
    const char *keys, *what;
};

struct panel_ops {
    const char *name, *title;
    const struct key_help *keys; /* ends with a {NULL, NULL}; for the help overlay */
    void *(*open)(void);         /* the panel's own view state; NULL allowed */
    void (*close)(void *state);
    void (*draw)(void *state, const struct view *, const struct canvas *); /* the inside of its box */
    void (*note)(void *state, const struct view *, char *out, int n);      /* text on the box's top edge; may be NULL */
    bool (*key)(void *state, const struct view *, int key); /* true: used it; keys as tui/input.h names them */
    bool (*mouse)(void *state, const struct view *, const struct canvas *, int y, int x,
                  enum mouse_action); /* y, x inside it */
    bool (*command)(void *state, const struct view *, const char *verb,
                    const char *rest); /* its own ':' verbs; may be NULL */
};

extern const struct panel_ops *const panel_registry[]; /* NULL-terminated, in Tab order */

#endif
