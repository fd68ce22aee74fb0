/* The folder that a program under test runs in, and the files that the program leaves there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LEFT_MOST 40

/* The results of a run: files by name, then its output. */
struct left {
    size_t n;
    struct left_file {
        char name[120];
        char *bytes; /* (n_bytes), then a zero */
        size_t n_bytes;
    } file[LEFT_MOST];
};

void folder_empty(const char *folder); /* of all files and folders in it */
/* Reads all files in the folder and in its subfolders. */
void folder_read(struct left *, const char *folder);
void left_free(struct left *);
const struct left_file *left_find(const struct left *, const char *name);

/* Returns a whole file with a zero after it, or NULL if there is none. */
char *whole_file(const char *path, size_t *n);

/* Returns the parts of the text that are the same from run to run: each number is replaced by #; blanks and lines with
 * the amount of memory left or with a speed are removed. The caller frees it. */
char *without_numbers(const char *text, size_t n);
