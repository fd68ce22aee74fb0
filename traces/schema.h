/* The tables of a trace: each column once, with the offset of its value in struct event, for both writer and reader. A
 * value that does not apply (NAN, -1) is an empty field. A table contains one kind of event. */
#pragma once

#include "engine/events/event.h"
#include "engine/events/run_info.h"
#include <stdbool.h>
#include <stddef.h>

enum table_id {
    TABLE_TOKENS,
    TABLE_LAYERS,
    TABLE_EXPERTS,
    TABLE_SERIES,
    TABLE_CONTROLS,
    TABLE_VOCAB,
    TABLE_ROUNDS,
    TABLES
};

enum column_kind {
    COLUMN_U64,
    COLUMN_U32,
    COLUMN_I32,     /* -1 is empty where the column is optional */
    COLUMN_FLAG,    /* 0, 1, or empty: -1 */
    COLUMN_REAL,    /* nine digits, or empty: NAN */
    COLUMN_NAME,    /* a char array, escaped */
    COLUMN_CONTROL, /* the name of a control event, escaped */
    COLUMN_TEXT,    /* a terminated string, escaped */
    COLUMN_BYTES,   /* vocab's bytes, escaped */
    COLUMN_SOURCE,  /* token_source_names */
    COLUMN_PROBED,  /* probed_by_names */
    COLUMN_MODEL,   /* layer_model_names, or empty: the target */
    COLUMN_TOP,     /* id:p id:p … in descending order, at most PREDICTION_TOP */
    COLUMN_EXPERTS  /* expert:weight expert:weight …, likewise, at least one and at most EXPERTS_REPORTED */
};

enum column_limit { /* the values that a reader accepts; L, ctx, vocab and policies are in run.json */
                    LIMIT_NONE,
                    LIMIT_TOKEN,    /* 0 .. vocab - 1 */
                    LIMIT_LAYER,    /* 1 .. L of the event's model, which is an earlier column */
                    LIMIT_OWN,      /* 1 .. L of the target */
                    LIMIT_DEPTH,    /* 0 .. L */
                    LIMIT_POSITION, /* 0 .. ctx */
                    LIMIT_NODE,     /* 0 .. VERIFY_NODES - 1 */
                    LIMIT_COUNT,    /* 0 .. 65535 */
                    LIMIT_INDEX,    /* 0 .. 2^20 - 1 */
                    LIMIT_POLICY    /* a policy that run.json declares */
};

struct column {
    const char *name, *former; /* former: the name in older files, which is read too; NULL: the same */
    enum column_kind kind;
    size_t offset; /* in struct event */
    size_t size;   /* of a COLUMN_NAME's array */
    enum column_limit limit;
    bool optional; /* may be empty */
    bool added;    /* may be missing from a file, and is then read as empty */
    bool of_moe;   /* not written in a trace of a dense model */
};

struct table {
    const char *file; /* "tokens.csv" */
    bool required;    /* a folder without it is no trace; other missing tables have no lines */
    bool of_moe;      /* not written in a trace of a dense model */
    enum event_type type;
    const struct column *columns;
    size_t n_columns;
};

#define TABLE_COLUMNS 26 /* most columns of a table */

extern const struct table trace_tables[TABLES];

/* The table of an event; TABLES: none. */
enum table_id table_of(enum event_type);

/* The most bytes that column_write() writes for this column of this event. */
size_t column_room(const struct column *, const struct event *);
/* Writes the field as in the file; texts are quoted. Returns its length; not terminated. `scratch` has column_room()
 * bytes. */
size_t column_write(const struct column *, const struct event *, char *out, char *scratch);

/* Parses the field (n bytes, unquoted, terminated) into the event, which then points to texts in it, unescaped in
 * place. *why on failure: "is not a number", … */
bool column_read(const struct column *, struct event *, char *field, size_t n, const struct run_info *,
                 const char **why);

/* Numbers in a tenth of the time of printf: a trace consists mostly of numbers, and the engine needs the processor. */
#define NUMBER_ROOM 24 /* the longest: 20 digits of a uint64_t */

/* Both return the bytes written; not terminated. */
size_t number_write_whole(char out[NUMBER_ROOM], uint64_t);
size_t number_write_real(char out[NUMBER_ROOM], float); /* nine digits, from which the same float is read */
