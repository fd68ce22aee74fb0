/* A file of ':' commands, one a line: blank lines and lines that begin with '#' are passed over; a ':' in front of a
 * command is allowed. Read whole before anything runs. */
#ifndef TUI_WIDGETS_SCRIPT_H
#define TUI_WIDGETS_SCRIPT_H

#include "engine/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define SCRIPT_MAX (1024 * 1024) /* bytes */

/* What the line that ran last waits for: the end of a round, of the run, of all that is going on, of points of a sweep; what-if. */
enum script_wait { WAIT_NOTHING, WAIT_ROUND, WAIT_END, WAIT_IDLE, WAIT_SWEEP, WAIT_WHAT_IF };

struct script {
    char *text; /* owned; lines are cut by zeros */
    size_t length, at;
    unsigned line; /* number of the line that script_next() returned last */
    char name[128];
    enum script_wait wait;
    uint64_t wait_round; /* or how many points, or since when (clock_us) */
};

bool script_load(struct script *, const char *path, struct err *); /* "-" is not special: keys come from stdin */
/* Copies the text; refuses control characters, broken UTF-8 and lines above 64 KiB, naming the line. */
bool script_parse(struct script *, const char *text, size_t n, const char *name, struct err *);
void script_close(struct script *);
bool script_running(const struct script *); /* it was loaded and is not closed */
const char *script_next(struct script *);   /* without blanks at its ends; NULL: no more */

#endif
