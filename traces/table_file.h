/* One of a trace's tables, written and read line by line. */
#ifndef TRACES_TABLE_FILE_H
#define TRACES_TABLE_FILE_H

#include <csv.h>

#include "traces/schema.h"

/* ---- writing: lines gather in memory until they are handed to the file system ---- */

struct table_out {
    const struct table *table;
    bool mixture; /* columns of mixtures are written, too */
    int fd;
    char *lines; /* not yet written */
    size_t used, size;
    uint64_t n_lines; /* so far, the header aside */
    char *scratch;
    size_t scratch_size;
};

/* Creates the file with its header (in memory as yet). It must not exist. */
bool table_out_open(struct table_out *, int folder_fd, enum table_id, bool mixture, struct err *);
void table_out_close(struct table_out *);
bool table_out_line(struct table_out *, const struct event *, struct err *); /* false: out of memory */
/* Hands all lines to the file system. */
bool table_out_write(struct table_out *, struct err *);
bool table_out_deleted(const struct table_out *); /* the file has no name any more */

/* ---- reading ---- */

/* Lines are read into events. A line that is not finished ends the table (a process was killed while it wrote), until more comes (it
 * is still writing). A table that is not needed and not there is one without lines. */
#define TABLE_FIELDS   64                 /* in a line, those of unknown columns counted */
#define TABLE_LINE_MAX ((size_t)64 << 20) /* bytes: a prompt is a field */

struct table_file {
    const struct table *table;
    const char *folder;   /* for error lines; the owner's */
    int fd;               /* -1: there is no such file */
    unsigned char *block; /* what was read and not yet parsed: block[at .. end) */
    size_t at, end;
    struct csv_parser csv;

    char *line; /* the line's fields, unquoted, terminated */
    size_t line_used, line_size;
    size_t field[TABLE_FIELDS + 1]; /* where each begins; one more: where the next would */
    size_t n_fields, line_bytes;
    bool line_whole, overflow, no_memory;
    uint64_t newlines, line_number; /* newlines parsed; the line's number, from 1 */

    size_t field_of[TABLE_COLUMNS]; /* which field a known column is; SIZE_MAX: it is not there */
    size_t header_fields;

    bool more; /* `event` holds the next one */
    struct event event;
    uint64_t number;   /* of the last event that was one, */
    uint64_t n_events; /* and how many were */
    bool begun, waits; /* the present line is unfinished; is whole, and beyond what the last call asked for */
};

bool table_open(struct table_file *, int folder_fd, const char *folder, enum table_id, struct err *);
void table_close(struct table_file *);
/* Back to the first line. */
bool table_rewind(struct table_file *, struct err *);
/* The next line with a number up to `last`; t->more says whether there was one: where not, a later call may find it. Texts
 * live until the next call. False when a line is wrong: file, line, column, what. */
bool table_next(struct table_file *, const struct run_info *, uint64_t last, struct err *);
/* Says what is wrong with the present line; returns false. */
bool table_refuse(const struct table_file *, const char *column, const char *what, struct err *);

#endif
