/* Whole files and prompt lists. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/file_replace.h"

/* cJSON omits values for which memory runs out. Call this function once before any JSON is made or read, so that such
 * a failure is recorded. */
void json_memory_watch(void);

/* Returns whether a JSON tree of this process may be incomplete; then none may be printed. */
bool json_memory_ran_out(void);

/* Reads stdin for "-", else a file, or a pipe that a shell made (file_read.h). The caller frees the memory; a NUL
 * follows the last byte. At most 64 MiB. */
bool file_read(const char *path, char **bytes, size_t *len, struct err *);

/* Checks before the work whether --json and --csv can be written after it (file_replace.h). NULL: there is none. */
bool outputs_possible(const char *json, const struct file_kind *, const char *csv, const struct file_kind *,
                      struct err *);

struct prompt_list {
    char **texts, **categories; /* (n) owned; a category is "" where a prompt has none */
    size_t n;
};

/* Spec-Bench's JSON lines: the first of every line's "turns", and its "category". The list is empty after a failure. */
bool prompts_read(const char *path, struct prompt_list *, struct err *);
bool prompts_add(struct prompt_list *, const char *text, const char *category); /* false: out of memory */
void prompts_free(struct prompt_list *);
/* The prompts that come with the program: "prompts", for the benchmark and the scope, "prompts-tune", three of each
 * category, for a race of the program's own models, and "prompts-tasks", ten of each, for a race of other models. */
bool prompts_bundled(const char *name, struct prompt_list *, struct err *);
