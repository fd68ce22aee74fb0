/* The folder that a program under test runs in, and what it leaves there. */
#ifndef TESTS_FAULTS_FOLDER_H
#define TESTS_FAULTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#define LEFT_MOST 40

/* What a run left: files by name, then what it said. */
struct left {
    size_t n;
    struct left_file {
        char name[120];
        char *bytes; /* (n_bytes), a zero behind */
        size_t n_bytes;
    } file[LEFT_MOST];
};

void folder_empty(const char *folder); /* of all files and folders in it */
/* All that lies in the folder, and in its folders. */
void folder_read(struct left *, const char *folder);
void left_free(struct left *);
const struct left_file *left_find(const struct left *, const char *name);

/* A whole file with a zero behind it; NULL: there is none. */
char *whole_file(const char *path, size_t *n);

/* The text with each number as # and without blanks, and without what says how much memory is left: what stays the same from
 * run to run. The caller's to free. */
char *without_numbers(const char *text, size_t n);

#endif
