/* Whole files and prompt lists. */
#ifndef CLI_BASE_FILES_H
#define CLI_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/file_replace.h"

bool file_exists(const char *path);
/* "-" is stdin; else a file, or a pipe that a shell made (file_text.h). Memory is the caller's; a NUL follows the last byte.
 * At most 64 MiB. */
bool file_read(const char *path, char **bytes, size_t *len, struct err *);

/* Results go to a file, or to stdout for "-"; then nothing else may. NULL: there are none to write. */
bool results_take_stdout(const char *path);
/* Before the work: what would keep them from being written after it? Nothing is left behind, and nothing is changed. */
bool results_possible(const char *path, const struct file_kind *, struct err *);
/* A file of another kind is left alone (file_replaceable()). */
bool results_open(FILE **, const char *path, const struct file_kind *, struct err *);
/* Closes the file, whose errors so far it finds; stdout is only flushed. False: *err says what was not written. */
bool results_close(FILE *, const char *path, struct err *);

/* Spec-Bench's JSON lines: the first of every line's "turns" and, unless `categories` is NULL, its "category" ("" where it has none).
 * The caller frees both lists by prompts_free(); there are none after a failure. */
bool prompts_read(const char *path, char ***prompts, char ***categories, size_t *n, struct err *);
void prompts_free(char **prompts, size_t n); /* NULL: there are none */
/* The prompts that come with the program: "prompts", for the benchmark and the scope, or "prompts-tune", three of each category. */
bool prompts_bundled(const char *name, char ***prompts, char ***categories, size_t *n, struct err *);

#endif
