/* A file of ':' commands, one a line: blank lines and lines that begin with '#' are passed over; a ':' in front of a
 * command is allowed. Read whole before anything runs. */
#ifndef TUI_APP_SCRIPT_H
#define TUI_APP_SCRIPT_H

#include "engine/base/err.h"

#include <stddef.h>

#define SCRIPT_MAX (1024 * 1024) /* bytes */

struct script {
    char *text; /* owned; lines are cut by zeros */
    size_t length, at;
    unsigned line; /* number of the line that script_next() returned last */
    char name[128];
};

bool script_load(struct script *, const char *path, struct err *); /* "-" is not special: keys come from stdin */
/* Copies the text; refuses control characters, broken UTF-8 and lines above 64 KiB, naming the line. */
bool script_parse(struct script *, const char *text, size_t n, const char *name, struct err *);
void script_close(struct script *);
const char *script_next(struct script *); /* without blanks around it; NULL at the end */

#endif
