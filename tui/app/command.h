/* The ':' interpreter: a line is a verb and its argument, and an unambiguous beginning of a verb is enough. The caller
 * passes the table of verbs (tui/app/verbs.c), so the interpreter works without a terminal. Paths to complete; scripts
 * of ':' commands. */
#ifndef TUI_APP_COMMAND_H
#define TUI_APP_COMMAND_H

#include <glob.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct app;

/* rest: the argument, without the blanks before it. Fails with one line in err. */
typedef bool verb_function(struct app *, const char *rest, struct err *);

struct verb {
    /* For help: "set", "KNOB VALUE", "change a knob"; Tab completes words in small letters, as in "next | previous
     * [WHAT]". what NULL: an alias, or a command of the panels' keys; neither in the help nor among completions. */
    const char *name, *arguments, *what;
    verb_function *run;
    const char *(*offer)(struct app *,
                         int i); /* returns the i-th possible argument; NULL: there are no more. May be NULL */
};

#define COMMAND_VERB 24

/* Copies a line's verb into verb[] and sets *rest to its argument. Fails for an empty line or an impossible verb. */
bool command_split(const char *line, char verb[COMMAND_VERB], const char **rest);
/* Returns the verb of this name, or the only one that begins with it. NULL: err lists the verbs that begin with it.
 * *unknown (may be NULL) is set if none does. */
const struct verb *command_find(const struct verb *table, const char *verb, bool *unknown, struct err *);
/* Runs a line. If the table contains no such verb, sets *unknown and fails. */
bool command_run(const struct verb *table, struct app *, const char *line, bool *unknown, struct err *);
/* Runs a line whose argument begins after one blank and keeps all other blanks. */
bool command_run_text(const struct verb *table, struct app *, const char *line, struct err *);
/* Parses a whole number in [min, max]; the text must contain nothing else. `what` is named in the error. */
bool command_number(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, struct err *);
/* Extends the line's last word by the common beginning of all matches, and by a blank if the only match is not a
 * folder. Lists several matches in `list` (size > 0). Returns their number. */
int command_complete(const struct verb *table, struct app *, const char *line, char *out, size_t out_size, char *list,
                     size_t list_size);

/* Finds the files and folders (with a '/' at the end) that begin with the word, in place of the earlier ones: "tra"
 * finds "traces/", and "traces/de" finds files in that folder. Hidden files are found only if the word has the dot. */
void path_offers_find(glob_t *, const char *word);

/* A file of ':' commands, one per line, with or without the ':'. Blank lines and lines that begin with '#' are skipped.
 * The whole file is read before any command runs. */

#define SCRIPT_MAX (1024 * 1024) /* bytes */

/* The event that the last line waits for: the end of a round, of the run, of all work, of points of a sweep, of a
 * forecast. */
enum script_wait { WAIT_NOTHING, WAIT_ROUND, WAIT_END, WAIT_IDLE, WAIT_SWEEP, WAIT_WHAT_IF };

struct script {
    char *text; /* owned; zeros end the lines */
    size_t length, at;
    unsigned line; /* number of the line that script_next() last returned */
    char name[128];
    enum script_wait wait;
    uint64_t wait_round; /* or a number of points, or the begin of the wait (clock_us) */
};

bool script_load(struct script *, const char *path,
                 struct err *); /* "-" has no special meaning, because keys come from stdin */
/* Copies the text. Refuses control characters, broken UTF-8 and lines longer than 64 KiB; the error names the line. */
bool script_parse(struct script *, const char *text, size_t n, const char *name, struct err *);
void script_close(struct script *);
bool script_running(const struct script *); /* it is loaded and not closed */
const char *script_next(struct script *);   /* the next line without outer blanks; NULL: there is none */

#endif
