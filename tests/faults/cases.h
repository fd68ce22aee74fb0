/* The commands that faults are tested on, and the kit of small files that they use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/faults/child.h"

#define CASE_WORDS 28

struct fault_case {
    const char *name;
    bool terminal;
    const char *in; /* standard input: a file of the kit; NULL: nothing */
    /* The arguments after the program's name. @FILE is in the source tree, %FILE in the kit; other words are passed
     * unchanged, and files without a folder are in the run's own. */
    const char *words[CASE_WORDS];
};

extern const struct fault_case fault_cases[];
extern const size_t n_fault_cases;

/* Folders and files of the tests. */
struct bench {
    char program[1024], tree[1024], shim[1024]; /* the program, the source tree, the preloaded library */
    char top[256], kit[300], run[300];          /* a folder of our own, and in it: the kit, and where programs run */
    char out[300], err[300], page_path[300];
    struct fault_page *page; /* what the program under test counts; NULL: nothing is preloaded */
};

/* Makes the folders and the kit. Returns false and prints the reason to standard error if this fails. `build` is the
 * folder of built programs. */
bool bench_open(struct bench *, const char *build);
void bench_close(struct bench *); /* removes them */

/* A prepared case. The words belong to the plan and are valid until the next call. */
struct command {
    char text[CASE_WORDS + 1][1100];
    char *argv[CASE_WORDS + 2];
    const char *variables[16];
    char made[6][1200];
    struct child_plan plan;
};
void command_make(struct command *, const struct bench *, const struct fault_case *, const char *fault);
/* Prints the case as a command line. */
void command_print(const struct command *, const struct fault_case *, const struct bench *, const char *fault);
