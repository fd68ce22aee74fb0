/* The terminal: opened, read, suspended, and given back as it was found, whatever happens. */
#ifndef TUI_TERMINAL_TERMINAL_H
#define TUI_TERMINAL_TERMINAL_H

#include <stdint.h>

#include "engine/base/err.h"
#include "tui/terminal/input.h"
#include "tui/terminal/report.h"
#include "tui/terminal/terminal_output.h"

struct terminal {
    bool utf8;
    int fd;       /* where keys come from, -1: nowhere */
    FILE *tty;    /* /dev/tty, when stdin is not a terminal */
    void *pad;    /* curses window that keys are read through: reading draws nothing */
    void *screen; /* curses' SCREEN */
    struct terminal_output output;
    int failures; /* reads that should have brought something and did not */
    bool direct;  /* it shows 24-bit colours: the environment, terminfo, or its answer says so */
    bool asked;   /* and its answer has not come */
    struct report report;
    int press_y, press_x; /* the last click, to tell a double one */
    uint64_t press_us;
    bool no_more; /* the terminal is gone, nothing is written to it any more */
};

/* Sets the locale (UTF-8 if there is one), starts curses, installs the signal handlers. keys: false when nothing is to
 * be read where stdin is no terminal. One terminal at a time. */
bool terminal_open(struct terminal *, bool keys, struct err *);
void terminal_close(struct terminal *);
/* The next key or mouse event, waiting at most timeout_ms; INPUT_NONE when there is none. A resize has been done when
 * INPUT_RESIZE comes. */
struct input terminal_read(struct terminal *, int timeout_ms);
void terminal_size(int *rows, int *cols);
void terminal_refresh(struct terminal *, bool everything); /* sends what curses holds; everything: repaint it all */
void terminal_suspend(struct terminal *);                  /* until the shell continues us */

/* A signal that asks the program to end (SIGINT, SIGTERM, SIGHUP), 0: none came. */
int terminal_ended_by(void);
bool terminal_suspend_wanted(void); /* SIGTSTP came from outside; true once */

#endif
