/* The line editor: for prompts, ':' commands, searches. UTF-8, with a history of its own for each use. A prompt may
 * hold line breaks: pasted, or typed with Ctrl-J. */
#ifndef TUI_WIDGETS_PROMPT_EDITOR_H
#define TUI_WIDGETS_PROMPT_EDITOR_H

#include "engine/base/err.h"
#include "tui/terminal/canvas.h"

#include <stddef.h>

#define EDITOR_MAX    (64 * 1024) /* bytes of a text */
#define HISTORY_LINES 300

struct history {
    char *line[HISTORY_LINES]; /* owned; oldest first */
    int n, fresh;              /* fresh: the last so many came since it was read */
    char *path;                /* owned; NULL: it is not saved */
    struct err unread;         /* why there is a file that could not be read, and so is not to be replaced */
};

/* path: read now if it is there, and again by history_close(), which adds what is fresh to what others wrote meanwhile; NULL:
 * in memory only. */
void history_open(struct history *, const char *path);
void history_add(struct history *, const char *text); /* one that is there already moves to the end */
/* False when the file could not be written, or would have lost what was in it: a line about it. Frees everything in any
 * case. */
bool history_close(struct history *, struct err *);

struct editor {
    char *text; /* owned, terminated; NULL when closed */
    size_t length, at;
    char *aside;         /* what was being written while the history is looked through; owned */
    int look;            /* where in the history; n: the text itself */
    bool pasting, lines; /* lines: line breaks are allowed */
    int cols;            /* that it is wrapped at, for going up and down a row; 0: it was not drawn as rows */
};

enum editor_result { EDITOR_OPEN, EDITOR_DONE, EDITOR_CANCELLED, EDITOR_COMPLETE };

bool editor_open(struct editor *, const char *text, bool lines, const struct history *); /* false: out of memory */
void editor_close(struct editor *);
enum editor_result editor_key(struct editor *, const struct history *, int key);
void editor_replace(struct editor *, const char *text); /* for completion; the cursor goes to the end */
/* Draws the text wrapped into the canvas with its cursor, scrolled so that the cursor is seen. */
void editor_draw(const struct editor *, const struct canvas *, const char *lead);
int editor_rows(const struct editor *, int cols); /* that editor_draw() would like */

#endif
