/* Giving the terminal back from signal handlers. Private to terminal*.c. */
#ifndef TUI_TERMINAL_TERMINAL_SIGNALS_H
#define TUI_TERMINAL_TERMINAL_SIGNALS_H

/* Before curses starts: remembers how the terminal behind fd (-1: none) is, and installs the handlers. */
void signals_install(int fd);
/* After it started: puts together the bytes that undo what it did. */
void signals_undo(void);
void signals_remove(void);
const char *terminal_string(const char *name); /* of terminfo; NULL: the terminal has none such */
void signals_stop(void);                       /* stops the job; returns when it is continued */

#endif
