/* The terminal: opened, read, suspended, and restored even if the program dies. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tui/terminal/input.h"
#include <stddef.h>
#include <stdio.h>

/* Facts about the terminal that are known without opening it: from the environment, from terminfo, from its answers. */

struct terminal_facts {
    const char *type;      /* $TERM; NULL: not set */
    const char *stands_in; /* the type that is used instead; NULL: terminfo has its own */
    bool known;            /* terminfo has the type */
    bool places;           /* it can move the cursor */
    int colours;           /* number by terminfo; 0: none */
    bool direct_type;      /* 24-bit colours by terminfo */
    bool direct_said;      /* 24-bit colours by $COLORTERM */
    bool direct_answered;  /* 24-bit colours by the terminal's answer */
    bool mouse;            /* it understands modes and questions, as terminals with a mouse do */
    int rows, cols;        /* 0: unknown */
};

/* Inspects the terminal of standard output; asks it only if standard input is a terminal, too. Leaves its modes
 * unchanged. Not to be called after terminal_open(), because it reads terminfo again. */
void terminal_inspect(struct terminal_facts *);

/* Returns whether LC_ALL is C or POSIX, which requests ASCII. */
bool terminal_wants_ascii(void);
/* Sets the user's locale, or C.UTF-8 if that is no UTF-8 locale and ASCII is not wanted. Returns whether it is UTF-8.
 * Numbers are always written with a point. */
bool terminal_choose_locale(void);
/* Returns whether $COLORTERM announces 24-bit colours, for the terminal that $TERM names. */
bool terminal_direct_said(void);
/* Calls setupterm() for the type (NULL: $TERM) with the system's terminfo, else with the program's own. */
bool terminal_setup(const char *type, int fd);
/* If terminfo lacks the type $TERM: asks the terminal for its attributes, and if it answers like an xterm, as nearly
 * all do, sets $TERM to xterm-256color. Fails if it is no terminal or does not answer within five seconds. */
bool terminal_stand_in(void);
/* Returns whether the terminal answers queries: a real vt100 or a console does not. Call it after setupterm(). */
bool terminal_understands(void);

/* A terminfo entry and a locale, which a bare system may lack. Only a build of `make static` contains them. */

/* Stores the type's compiled entry in $TERMINFO, where setupterm() finds it (ncurses 6.1). Fails if the program lacks
 * the entry. */
bool builtin_terminfo(const char *type);
/* Sets LC_CTYPE to C.UTF-8 again, by another path, because glibc does not retry a path that once failed for lack of
 * memory. Fails if the usual folders lack the locale, or memory is still short. */
bool locale_again(void);
/* Sets LC_CTYPE to the program's own C.UTF-8. The C library reads locales only from files, so one is written and
 * removed again. Fails if the program has none, or there is no folder for temporary files. */
bool builtin_locale(void);

/* ---- output: a frame in one write ----
 *
 * curses flushes its output at every movement of the cursor: some ninety system calls per frame, each of which may
 * switch to the terminal's process and away from the engine. So curses writes to a descriptor of its own, which is a
 * file in memory during an update and the terminal otherwise.
 *
 * A frame is sent as a synchronized update (CSI ? 2026 h … l), which a terminal shows at once; other terminals ignore
 * this. If `slots` is set, colours that curses sets by number are replaced by these 24-bit colours. */

#define OUTPUT_SLOTS 256

struct terminal_output {
    FILE *file; /* for newterm(); only curses writes to it */
    int memory; /* -1: none; curses then writes to the terminal directly, and slots have no effect */
    char *bytes;
    size_t room;
    const int32_t *slots; /* (OUTPUT_SLOTS) 0xRRGGBB by colour number, -1: unchanged; NULL: all unchanged; borrowed */
};

/* Opens the output to stdout's terminal. If no descriptor is left, fails with errno set, and there is nothing to
 * close. */
bool terminal_output_open(struct terminal_output *);
void terminal_output_close(struct terminal_output *); /* also of a zeroed struct */
void terminal_output_begin(struct terminal_output *); /* before doupdate() */
void terminal_output_end(struct terminal_output *);   /* after it: sends the frame */

/* Writes all bytes despite interruptions; not through stdio, because a change of size (EINTR) would break its stream.
 * After a signal that ends the program, bytes that the terminal does not accept soon are dropped. */
void terminal_output_send(const char *bytes, size_t n);
bool terminal_output_room(int ms); /* whether the terminal accepts bytes within ms */

/* Copies n bytes of curses' output and replaces CSI 38;5;N m and CSI 48;5;N m by CSI 38;2;R;G;B m and so on. `out` has
 * room for 2 n bytes. Returns the number of bytes written. Pure. */
size_t terminal_output_direct(const int32_t slots[OUTPUT_SLOTS], const char *bytes, size_t n, char *out);

/* A text for the clipboard of the terminal: OSC 52, which many terminals accept (also through ssh and tmux) and others
 * ignore. */

#define CLIPBOARD_MOST 49152 /* bytes; terminals accept sequences of at most about 100 kB */

/* Returns the sequence for n bytes, a string for the caller to free; NULL: too many bytes, or no memory. */
char *clipboard_sequence(const char *text, size_t n);
/* Writes it to standard output, if that is a terminal; not within a frame. */
bool clipboard_put(const char *text, size_t n);

/* ---- the terminal ---- */

struct terminal {
    bool utf8;
    int fd;       /* descriptor of the keys; -1: none */
    FILE *tty;    /* /dev/tty, when stdin is not a terminal */
    void *screen; /* curses' SCREEN */
    struct terminal_output output;
    struct input_decoder decoder;
    uint64_t bytes_us;    /* time of the last byte */
    int failures;         /* consecutive reads without the input that poll() announced */
    bool direct;          /* it shows 24-bit colours, by the environment, terminfo or its answer */
    bool asked;           /* its answer has not come yet */
    int press_y, press_x; /* the last click, to detect a double click */
    uint64_t press_us;
    bool no_more; /* the terminal is gone; nothing more is written */
};

/* Sets the locale (UTF-8 if there is one), starts curses, installs the signal handlers. keys: also read /dev/tty if
 * stdin is no terminal. One terminal at a time. */
bool terminal_open(struct terminal *, bool keys, struct err *);
void terminal_close(struct terminal *);
/* Waits at most timeout_ms and returns the next key or mouse event; INPUT_NONE: there is none. INPUT_RESIZE comes after
 * the resize. */
struct input terminal_read(struct terminal *, int timeout_ms);
void terminal_size(int *rows, int *cols);
void terminal_refresh(struct terminal *, bool everything); /* sends the changes; everything: repaints all cells */
void terminal_suspend(struct terminal *);                  /* returns when the shell continues the program */

/* Returns the signal that ends the program, such as SIGINT or SIGUSR1; 0: none. */
int terminal_ended_by(void);
bool terminal_suspend_wanted(void); /* another process sent SIGTSTP; true once */

/* Giving the terminal back from signal handlers. Only terminal*.c and paint.c call these. */

/* Before curses starts: stores the state of the terminal fd (-1: none) and installs the handlers. */
void signals_install(int fd);
/* After curses has started: composes the bytes that undo its changes. */
void signals_undo(void);
void signals_give_back(void); /* writes these bytes, if the terminal accepts them, and restores its state */
void signals_remove(void);
const char *terminal_string(const char *name); /* a string of terminfo; NULL: the terminal lacks it */
/* Marks the begin and the end of a library's work in the calling thread. If memory runs out, a library may crash with
 * SIGSEGV, SIGBUS or SIGABRT, or call exit(). The handler then restores the terminal, writes one line to stderr and
 * ends with status 1; it calls only async-signal-safe functions. */
void signals_library(bool at_work);
/* The same without a terminal: before signals_install() or after signals_remove(). */
void signals_library_alone(bool at_work);
void signals_stop(void); /* stops the job; returns when the job continues */
