/* Whole files and prompt lists. */
#ifndef CLI_OPTIONS_FILES_H
#define CLI_OPTIONS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/file_replace.h"

/* cJSON omits values for which memory runs out. Call this function once before any JSON is made or read, so that such
 * a failure is recorded. */
void json_memory_watch(void);

/* Returns whether a JSON tree of this process may be incomplete; then none may be printed. */
bool json_memory_ran_out(void);

bool file_exists(const char *path);
/* Reads stdin for "-", else a file, or a pipe that a shell made (file_read.h). The caller frees the memory; a NUL
 * follows the last byte. At most 64 MiB. */
bool file_read(const char *path, char **bytes, size_t *len, struct err *);

/* Checks before the work whether --json and --csv can be written after it (file_replace.h). NULL: there is none. */
bool outputs_possible(const char *json, const struct file_kind *, const char *csv, const struct file_kind *,
                      struct err *);

/* Spec-Bench's JSON lines: the first of every line's "turns" and, unless `categories` is NULL, its "category" ("" where it has none).
 * The caller frees both lists by prompts_free(); there are none after a failure. */
bool prompts_read(const char *path, char ***prompts, char ***categories, size_t *n, struct err *);
void prompts_free(char **prompts, size_t n); /* NULL: there are none */
/* The prompts that come with the program: "prompts", for the benchmark and the scope, "prompts-tune", three of each
 * category, for a race of the program's own models, and "prompts-tasks", ten of each, for a race of other models. */
bool prompts_bundled(const char *name, char ***prompts, char ***categories, size_t *n, struct err *);

#endif
