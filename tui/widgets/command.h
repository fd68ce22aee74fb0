/* The ':' interpreter: a line is a verb and the rest; a verb may be shortened as long as it stays the only one. What a
 * verb does is in the table that is handed in (tui/commands/verbs.c has the app's), so all of this works without a terminal. */
#ifndef TUI_WIDGETS_COMMAND_H
#define TUI_WIDGETS_COMMAND_H

#include "engine/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct app;

/* rest: what follows the verb and the blanks behind it. False with one line in err. */
typedef bool verb_function(struct app *, const char *rest, struct err *);

struct verb {
    const char *name, *arguments,
        *what; /* for help: "set", "KNOB VALUE", "change a knob"; what NULL: an alias, not in the help */
    verb_function *run;
    const char *(*offer)(struct app *, int i); /* the i-th word that its argument can be; NULL: no more. May be NULL */
};

#define COMMAND_VERB 24

/* Splits a line: the verb into verb[], *rest points behind it. False for an empty line or an impossible verb. */
bool command_split(const char *line, char verb[COMMAND_VERB], const char **rest);
/* Exact, else the only one that begins so; NULL with a line that says which do. *unknown (may be NULL): none does. */
const struct verb *command_find(const struct verb *table, const char *verb, bool *unknown, struct err *);
/* Runs a line. Verbs that the table does not have (not even shortened) leave *unknown true and err filled. */
bool command_run(const struct verb *table, struct app *, const char *line, bool *unknown, struct err *);
/* A verb, one blank, and all that follows to the letter, blanks at its ends, too. */
bool command_run_text(const struct verb *table, struct app *, const char *line, struct err *);
/* A whole number in [min, max], nothing behind it. `what` is named in the error. */
bool command_number(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, struct err *);
/* Extends the line's last word as far as all that match agree, with a blank behind it when there is only one and it is no
 * folder. The matches are listed in `list` (size > 0) when there are several. Returns their number. */
int command_complete(const struct verb *table, struct app *, const char *line, char *out, size_t out_size, char *list,
                     size_t list_size);

#endif
