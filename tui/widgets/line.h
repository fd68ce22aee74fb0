/* The line that a person writes: a ':' command, a prompt, what to search for, where to export to. Each use has a history
 * of its own; under a prompt stand others to start from. */
#ifndef TUI_WIDGETS_LINE_H
#define TUI_WIDGETS_LINE_H

#include "tui/widgets/prompt_offers.h"

enum line_use { LINE_COMMAND, LINE_PROMPT, LINE_SEARCH, LINE_EXPORT, LINE_USES };

struct line {
    enum line_use use;
    struct editor editor;
    struct history history[LINE_USES];
    struct offers offers; /* under a prompt */
};

/* history_path: of prompts, or NULL; prompts: (n_prompts) to offer, borrowed. */
void line_begin(struct line *, const char *history_path, char *const *prompts, size_t n_prompts);
void line_end(struct line *, struct err *); /* err: a history that could not be written */

bool line_open(struct line *, enum line_use, const char *text); /* false: out of memory */
enum editor_result line_key(struct line *, int key);
const char *line_verb(const struct line *); /* of that command, with a blank; "": it is written, too */
bool line_is_text(const struct line *);     /* a prompt, what to search for: blanks at its ends are part of it */
/* What was written as a ':' command, for the caller to free, and into the history; NULL: nothing was, or no memory. Blanks
 * at its end go, unless it is text. */
char *line_command(struct line *);
void line_draw(const struct line *, const struct canvas *);  /* on one row; not for prompts */
void line_draw_prompt(struct line *, const struct canvas *); /* a box on the whole screen */

#endif
