/* A table of `bench --csv`: a line for each policy or point of a grid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "engine/measure/metrics.h"

#define BENCH_SETTINGS 24 /* of a line */

struct bench_setting {
    const char *name, *text;
    double value; /* NAN: text is no number */
};

struct bench_line {
    const char *policy, *params; /* "exit_layer=2 gamma=4" */
    struct bench_setting setting[BENCH_SETTINGS];
    size_t n_settings;
    const char **field; /* (n_columns) */
};

struct bench_table {
    const char *path;     /* the caller's */
    char *bytes, *copies; /* the fields, terminated; the params, split */
    const char **column;
    size_t n_columns, n_lines;
    struct bench_line *line;
    const char **fields;
};

/* Reads a table. Refuses a file without the columns policy and params, or with lines of different lengths. The caller
 * calls bench_table_close(), also after a failure. */
bool bench_table_open(struct bench_table *, const char *path, struct err *);
void bench_table_close(struct bench_table *);
/* Returns a column's index; SIZE_MAX: there is none. */
size_t bench_table_column(const struct bench_table *, const char *name);
/* Returns a field's value; NAN: it is empty or no number. */
double bench_table_value(const struct bench_table *, size_t line, size_t column);
/* Returns the line's setting of this name; NULL: there is none. */
const struct bench_setting *bench_line_setting(const struct bench_line *, const char *name);

/* The measures of engine/measure/metrics.h by the column names of `bench --csv`, so that a figure can combine traces
 * and benchmarks. */

struct named_measure {
    const char *name;  /* "tokens_per_round" */
    const char *label; /* "tokens/round" */
    int better;        /* 1: more is better, -1: less is; 0: neither */
    bool timed;        /* it depends on the clock; else on counts only */
    size_t at;         /* offset in struct measures */
    size_t estimated;  /* offset in struct estimates; MEASURE_OF_TWO: it needs two runs */
};
#define MEASURE_OF_TWO SIZE_MAX
extern const struct named_measure named_measures[]; /* ends with a name of NULL */

const struct named_measure *measure_named(const char *name); /* NULL: there is none */
double measure_value(const struct named_measure *, const struct measures *);
/* Returns the value with its standard error; a speedup needs a measured baseline (else NAN). */
struct estimate measure_estimate(const struct named_measure *, const struct estimates *, struct estimate baseline);
/* Prints "tok_per_s, speedup, …". Returns out. */
const char *measure_names(char *out, size_t size);
