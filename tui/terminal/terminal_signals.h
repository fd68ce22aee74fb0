/* Giving the terminal back from signal handlers. Private to terminal*.c and paint.c. */
#ifndef TUI_TERMINAL_TERMINAL_SIGNALS_H
#define TUI_TERMINAL_TERMINAL_SIGNALS_H

#include <stdbool.h>

/* Before curses starts: remembers how the terminal behind fd (-1: none) is, and installs the handlers. */
void signals_install(int fd);
/* After it started: puts together the bytes that undo what it did. */
void signals_undo(void);
void signals_give_back(void); /* writes them, if the terminal takes them, and sets it as it was found */
void signals_remove(void);
const char *terminal_string(const char *name); /* of terminfo; NULL: the terminal has none such */
/* Between the two a library is at work in the calling thread that has no answer to memory running out: it dies, of a signal or by exit(). Then the
 * terminal is given back, a line says what it was, and the exit status is 1. */
void signals_library(bool at_work);
/* The same where no terminal has been taken: before signals_install(), or after signals_remove(). */
void signals_library_alone(bool at_work);
void signals_stop(void); /* stops the job; returns when it is continued */

#endif
