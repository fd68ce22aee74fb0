/* Runs a program under test: its standard output and error in files, or in a terminal of its own, with a time limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child_plan {
    char *const *argv;
    const char *folder;    /* working directory */
    const char *in;        /* file of standard input; NULL: /dev/null. With a terminal it is the terminal */
    const char *out, *err; /* files of its output; with a terminal only `err` */
    bool terminal;         /* of rows x cols */
    unsigned short rows, cols;
    const char *const *variables; /* NAME=VALUE, put into its environment, up to a NULL; NULL: none */
};

struct child {
    pid_t pid;
    int master;   /* the terminal's other side, non-blocking; -1: none */
    int alive_fd; /* readable once it has ended */
    bool ended;
    int status;          /* as waitpid() returns it, once the child has ended */
    bool full_screen;    /* the last escape that switched the alternate screen turned it on */
    bool cooked;         /* at the end the terminal's settings were those of the beginning */
    char tail[16];       /* end of the output, for escapes that arrive in two parts */
    size_t n_tail, seen; /* number of bytes of output so far */
    char was[64];        /* settings at the beginning */
};

/* Starts the program. Returns false and prints a line to standard error if that fails. */
bool child_start(struct child *, const struct child_plan *);

/* Reads output until the child ends or `ms` milliseconds have passed. Returns true if the child has ended and has been
 * reaped. */
bool child_wait(struct child *, int ms);

/* Reads the available output without waiting. A terminal's output is only searched for the state of the screen. */
void child_drain(struct child *);

/* Kills the child if it still runs, and frees its resources. */
void child_close(struct child *);

/* Runs the child for at most `ms` milliseconds, then kills it. Returns false if it had to be killed. */
bool child_run(struct child *, const struct child_plan *, int ms);
