/* A table of a trace, written and read line by line. */
#pragma once

#include <csv.h>

#include "traces/schema.h"

/* ---- writing: lines are collected in memory and then written ---- */

struct table_out {
    const struct table *table;
    bool moe; /* columns of mixtures are written, too */
    int fd;
    char *lines; /* not yet written */
    size_t used, size;
    uint64_t n_lines; /* so far, without the header */
    char *scratch;
    size_t scratch_size;
};

/* Creates the file, which must not exist. Its header is still in memory. */
bool table_out_open(struct table_out *, int folder_fd, enum table_id, bool moe, struct err *);
void table_out_close(struct table_out *);
bool table_out_line(struct table_out *, const struct event *, struct err *); /* false: out of memory */
/* Writes all lines to the file. */
bool table_out_write(struct table_out *, struct err *);
bool table_out_deleted(const struct table_out *); /* the file was deleted */

/* ---- reading ---- */

/* Reads lines into events. An incomplete line ends the table (a process was killed while it wrote), until the rest is
 * written. A missing table that is not required has no lines. */
#define TABLE_FIELDS   64                 /* in a line, those of unknown columns counted */
#define TABLE_LINE_MAX ((size_t)64 << 20) /* bytes: a prompt is a field */

struct table_file {
    const struct table *table;
    const char *folder;   /* for error messages; borrowed */
    int fd;               /* -1: there is no file */
    unsigned char *block; /* block[at .. end) is read and not yet parsed */
    size_t at, end;
    struct csv_parser csv;

    char *line; /* the line's fields, unquoted, terminated */
    size_t line_used, line_size;
    size_t field[TABLE_FIELDS + 1]; /* offset of each field, and of the end */
    size_t n_fields, line_bytes;
    bool line_whole, overflow, no_memory;
    uint64_t newlines, line_number; /* newlines parsed; number of the line, from 1 */

    size_t field_of[TABLE_COLUMNS]; /* field of a known column; SIZE_MAX: missing */
    size_t header_fields;

    bool more; /* `event` is the next event */
    struct event event;
    uint64_t number;   /* of the last event */
    uint64_t n_events; /* events so far */
    bool begun, waits; /* begun: the line is incomplete; waits: it is complete, and after `last` of the last call */
};

bool table_open(struct table_file *, int folder_fd, const char *folder, enum table_id, struct err *);
void table_close(struct table_file *);
/* Returns to the first line. */
bool table_rewind(struct table_file *, struct err *);
/* Reads the next line with a number up to `last`; t->more: there was one. If not, a later call may find one. Texts are
 * valid until the next call. Fails at a wrong line; the error names file, line and column. */
bool table_next(struct table_file *, const struct run_info *, uint64_t last, struct err *);
/* Writes the error of the present line; returns false. */
bool table_refuse(const struct table_file *, const char *column, const char *what, struct err *);
