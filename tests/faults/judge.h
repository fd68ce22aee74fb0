/* Whether a program that had a fault ended as it should: with the same result as without, or with one line and status 1
 * or 2; and whatever it left that calls itself complete is complete. */
#ifndef TESTS_FAULTS_JUDGE_H
#define TESTS_FAULTS_JUDGE_H

#include "tests/faults/cases.h"
#include "tests/faults/child.h"
#include "tests/faults/folder.h"
#include "tests/faults/page.h"

/* How a run ended. */
enum ending {
    ENDED_SAME,    /* status 0, and the result of runs without faults */
    ENDED_LINE,    /* status 1 or 2, and one line */
    ENDED_LIBRARY, /* a library that the program is made with ended it, with a line and a status of its own */
    ENDED_BADLY,
    ENDINGS
};

/* What a case says and leaves without faults, of two runs: what differs between them needn't be the same with faults. */
struct reference {
    struct left left; /* standard output as the file ">1", standard error as ">2", and files */
    enum sameness { SAME_BYTES, SAME_BUT_NUMBERS, SAME_NAME } sameness[LEFT_MOST];
    char *noise; /* standard error without numbers */
};

/* What lies there now, with what was said. */
void left_of(struct left *, const struct bench *);
/* Takes what `first` has. */
void reference_make(struct reference *, const struct fault_case *, struct left *first, const struct left *second);
void reference_free(struct reference *);

/* Why it ended badly is a sentence in `why`. `ended`: it did not have to be killed. Of memory that ran out the line
 * speaks; a write that failed was perhaps the one that would have given the terminal back. */
enum ending judge(const struct reference *, const struct fault_case *, const struct child *, bool ended,
                  enum fault_kind, const struct left *, char why[300]);

#endif
