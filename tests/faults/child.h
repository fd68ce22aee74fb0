/* Runs a program under test: its standard output and error in files, or in a terminal of its own, with a time limit. */
#ifndef TESTS_FAULTS_CHILD_H
#define TESTS_FAULTS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child_plan {
    char *const *argv;
    const char *folder;    /* that it runs in */
    const char *in;        /* standard input's file; NULL: /dev/null. A terminal's is the terminal */
    const char *out, *err; /* what it says, in files; in a terminal only what it says on standard error */
    bool terminal;         /* of rows x cols */
    unsigned short rows, cols;
    const char *const *variables; /* NAME=VALUE, put into its environment, up to a NULL; NULL: none */
};

struct child {
    pid_t pid;
    int master;   /* the terminal's other side, non-blocking; -1: none */
    int alive_fd; /* readable once it has ended */
    bool ended;
    int status;          /* as waitpid() has it, once it has ended */
    bool full_screen;    /* the terminal's last word about its alternate screen */
    bool cooked;         /* at the end the terminal's settings were those of the beginning */
    char tail[16];       /* of what came, for escapes that come in two parts */
    size_t n_tail, seen; /* bytes that came from it */
    char was[64];        /* settings at the beginning */
};

/* False: it could not be started; a line on standard error says why. */
bool child_start(struct child *, const struct child_plan *);

/* Takes what comes until it ends or so many milliseconds have passed. True: it has ended, and is no more. */
bool child_wait(struct child *, int ms);

/* What there is, without waiting; the terminal's output is only looked at for what the screen's state is. */
void child_drain(struct child *);

/* Kills it if it still runs, and gives back what it took. */
void child_close(struct child *);

/* Waits that long at most; then it is killed. False: it had to be. */
bool child_run(struct child *, const struct child_plan *, int ms);

#endif
