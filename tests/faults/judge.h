/* Checks the end of a run with a fault: the result is that of a run without faults, or one line and status 1 or 2; and
 * every file that is marked as complete is complete. */
#pragma once

#include "tests/faults/cases.h"
#include "tests/faults/child.h"
#include "tests/faults/folder.h"
#include "tests/faults/page.h"

/* How a run ended. */
enum ending {
    ENDED_SAME,    /* status 0, and the result of runs without faults */
    ENDED_LINE,    /* status 1 or 2, and one line */
    ENDED_LIBRARY, /* a library that the program uses ended it, with its own line and status */
    ENDED_BADLY,
    ENDINGS
};

/* The output and files of a case in two runs without faults. Parts that differ between the two may differ with faults,
 * too. */
struct reference {
    struct left left; /* standard output as the file ">1", standard error as ">2", and files */
    enum sameness { SAME_BYTES, SAME_BUT_NUMBERS, SAME_NAME } sameness[LEFT_MOST];
    char *noise; /* standard error without numbers */
};

/* Reads the files and the output of the last run. */
void left_of(struct left *, const struct bench *);
/* Takes over the contents of `first`. */
void reference_make(struct reference *, const struct fault_case *, struct left *first, const struct left *second);
void reference_free(struct reference *);

/* Writes a sentence to `why` if the run ended badly. `ended`: it did not have to be killed. The line must name memory
 * that ran out. A write that failed may be the one that restores the terminal. */
enum ending judge(const struct reference *, const struct fault_case *, const struct child *, bool ended,
                  enum fault_kind, const struct left *, char why[300]);
