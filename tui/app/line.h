/* The line that the user writes: a ':' command, a prompt, a search, an export's path. Each use has its own history, and
 * prompts to start from are listed below a prompt. */
#ifndef TUI_APP_LINE_H
#define TUI_APP_LINE_H

#include <stddef.h>

#include "base/err.h"
#include "tui/terminal/canvas.h"
#include <stdbool.h>

/* The editor of a line of UTF-8, and its history. A prompt may contain line breaks: pasted, or typed with Ctrl-J. */

#define EDITOR_MAX    (64 * 1024) /* bytes of a text */
#define HISTORY_LINES 300

struct history {
    char *line[HISTORY_LINES]; /* owned; oldest first */
    int n, fresh;              /* fresh: how many of the last were added since it was read */
    char *path;                /* owned; NULL: the history is not saved */
    struct err unread;         /* the error of reading the file, which is then not replaced */
};

/* Reads the file at path if it exists. history_close() reads it again and adds the fresh lines to lines that other
 * processes have added. NULL: the history is in memory only. */
void history_open(struct history *, const char *path);
void history_add(struct history *, const char *text); /* moves an equal line to the end */
/* Writes the file and frees everything. Fails if the file could not be written or its contents would be lost. */
bool history_close(struct history *, struct err *);

struct editor {
    char *text; /* owned, terminated; NULL when closed */
    size_t length, at;
    char *aside;         /* the user's own text while a line of the history is shown; owned */
    int look;            /* index of the history's line that is shown; n: the user's own text */
    bool pasting, lines; /* lines: line breaks are allowed */
    int cols;            /* width at which it was drawn, for moving up and down a row; 0: it was not drawn as rows */
};

enum editor_result { EDITOR_OPEN, EDITOR_DONE, EDITOR_CANCELLED, EDITOR_COMPLETE };

bool editor_open(struct editor *, const char *text, bool lines, const struct history *); /* false: out of memory */
void editor_close(struct editor *);
enum editor_result editor_key(struct editor *, const struct history *, int key);
void editor_replace(struct editor *, const char *text); /* for completion; the cursor goes to the end */
/* Draws the text wrapped into the canvas with its cursor, scrolled so that the cursor is seen. */
void editor_draw(const struct editor *, const struct canvas *, const char *lead);
int editor_rows(const struct editor *, int cols); /* rows that the whole text takes */

/* Prompts to start from, listed below the prompt that is being written: Tab selects each in turn, then the user's own
 * text again. */

struct offers {
    char *const *prompts; /* (n); borrowed */
    size_t n;
    int at;        /* number of the prompt in the editor, from 1; 0: the user's own text */
    char *written; /* the user's own text while a prompt is selected; owned */
};

enum line_use { LINE_COMMAND, LINE_PROMPT, LINE_SEARCH, LINE_EXPORT, LINE_USES };

struct line {
    enum line_use use;
    struct editor editor;
    struct history history[LINE_USES];
    struct offers offers; /* listed below a prompt */
};

/* history_path: file of the prompts' history, or NULL; prompts: (n_prompts) to start from, borrowed. */
void line_begin(struct line *, const char *history_path, char *const *prompts, size_t n_prompts);
void line_end(struct line *, struct err *); /* err: set if a history could not be written */

bool line_open(struct line *, enum line_use, const char *text); /* false: out of memory */
enum editor_result line_key(struct line *, int key);
const char *line_verb(const struct line *); /* the use's command with a blank; "": the user writes the command */
bool line_is_text(const struct line *);     /* a prompt or a search, whose outer blanks count */
/* Returns the line as a ':' command for the caller to free, and adds it to the history; NULL: the line is empty, or no
 * memory. Blanks at the end are removed unless the line is text. */
char *line_command(struct line *);
void line_draw(const struct line *, const struct canvas *);                     /* on one row; not for prompts */
void line_draw_prompt(struct line *, const char *title, const struct canvas *); /* a box on the whole screen */

/* The filter of the help overlay. */

struct help_filter {
    char text[40]; /* "": all rows are shown. Case is ignored */
    bool typing;
};

bool help_filter_key(struct help_filter *, int key); /* '/', then letters and Enter. False: no key of the filter */

#endif
