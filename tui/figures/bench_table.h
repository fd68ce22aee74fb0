/* What `bench --csv` wrote: a line for each policy, or point of a grid. */
#ifndef TUI_FIGURES_BENCH_TABLE_H
#define TUI_FIGURES_BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define BENCH_SETTINGS 24 /* of a line */

struct bench_setting {
    const char *name, *text;
    double value; /* NAN: a word */
};

struct bench_line {
    const char *policy, *params; /* "exit_layer=2 gamma=4" */
    struct bench_setting setting[BENCH_SETTINGS];
    size_t n_settings;
    const char **field; /* (n_columns) */
};

struct bench_table {
    const char *path;     /* the caller's */
    char *bytes, *copies; /* of the fields, terminated; of params, cut up */
    const char **column;
    size_t n_columns, n_lines;
    struct bench_line *line;
    const char **fields;
};

/* Refused are files that are no such table: without the columns policy and params, with lines of another length.
 * bench_table_close() afterwards, also when it failed. */
bool bench_table_open(struct bench_table *, const char *path, struct err *);
void bench_table_close(struct bench_table *);
/* SIZE_MAX: there is no such column. */
size_t bench_table_column(const struct bench_table *, const char *name);
/* NAN: the field is empty or no number. */
double bench_table_value(const struct bench_table *, size_t line, size_t column);
/* The line's setting of this name; NULL: it has none. */
const struct bench_setting *bench_line_setting(const struct bench_line *, const char *name);

#endif
