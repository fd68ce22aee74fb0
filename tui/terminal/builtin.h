/* What a terminal needs and a bare system may lack, brought along by `make static`; other builds have none of it. */
#ifndef TUI_TERMINAL_BUILTIN_H
#define TUI_TERMINAL_BUILTIN_H

#include <stdbool.h>

/* Makes setupterm() find the type, by $TERMINFO, which takes a compiled entry itself (ncurses 6.1). False: it is not among
 * those that came along. */
bool builtin_terminfo(const char *type);
/* Sets LC_CTYPE to C.UTF-8 once more, by another path: glibc does not try again what it once had no memory for, and keeps that
 * by the path. False: there is none in the usual folders, or still no memory. */
bool locale_again(void);
/* Sets LC_CTYPE to C.UTF-8. The C library reads locales from files alone, so one is written and removed again. False:
 * none came along, or no folder for temporary files is there. */
bool builtin_locale(void);

#endif
