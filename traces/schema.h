/* The tables of a trace: every column once, with where its value lives in struct event, so that the writer and the
 * reader can't disagree. A value that does not apply (NAN, -1) is an empty field; a table has one kind of event. */
#ifndef TRACES_SCHEMA_H
#define TRACES_SCHEMA_H

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
    COLUMN_REAL,    /* %.9g, or empty: NAN */
    COLUMN_NAME,    /* a char array, escaped */
    COLUMN_CONTROL, /* the name of a control event, escaped */
    COLUMN_TEXT,    /* a terminated string, escaped */
    COLUMN_BYTES,   /* vocab's bytes, escaped */
    COLUMN_SOURCE,  /* token_source_names */
    COLUMN_PROBED,  /* probed_by_names */
    COLUMN_MODEL,   /* layer_model_names, or empty: the target */
    COLUMN_TOP,     /* id:p id:p … in descending order, at most GUESS_TOP */
    COLUMN_EXPERTS  /* expert:weight expert:weight …, likewise, at least one and at most EXPERTS_TOLD */
};

enum column_limit { /* what a reader refuses; L, ctx, vocab and policies are run.json's */
                    LIMIT_NONE,
                    LIMIT_TOKEN,    /* 0 .. vocab - 1 */
                    LIMIT_LAYER,    /* 1 .. L, of the event's model: its column stands before the layer's */
                    LIMIT_OWN,      /* 1 .. L, of the target */
                    LIMIT_DEPTH,    /* 0 .. L */
                    LIMIT_POSITION, /* 0 .. ctx */
                    LIMIT_NODE,     /* 0 .. VERIFY_NODES - 1 */
                    LIMIT_COUNT,    /* 0 .. 65535 */
                    LIMIT_INDEX,    /* 0 .. 2^20 - 1 */
                    LIMIT_POLICY    /* a policy that run.json declares */
};

struct column {
    const char *name;
    enum column_kind kind;
    size_t offset; /* in struct event */
    size_t size;   /* of a COLUMN_NAME's array */
    enum column_limit limit;
    bool optional;    /* may be empty */
    bool added;       /* may be missing from a file, which reads as empty: others may not know it, or it came later */
    bool of_mixtures; /* a trace of a dense model is written without it */
};

struct table {
    const char *file; /* "tokens.csv" */
    bool required;    /* a trace without it is none; any other that is not there has no lines */
    bool of_mixtures; /* a trace of a dense model is written without it */
    enum event_type type;
    const struct column *columns;
    size_t n_columns;
};

#define TABLE_COLUMNS 24 /* at most */

extern const struct table trace_tables[TABLES];

/* The table that an event is a line of; TABLES: of none. */
enum table_id table_of(enum event_type);

/* Bytes that column_write() needs at most for this column of this event. */
size_t column_room(const struct column *, const struct event *);
/* The field as it stands in the file, quoted where it is text. Returns its length; not terminated. `scratch` has as
 * many bytes as column_room() said. */
size_t column_write(const struct column *, const struct event *, char *out, char *scratch);

/* The field (n bytes, unquoted, terminated) into the event. Text is unescaped in place and stays there. On failure
 * `why` says what is wrong with it, as in "is not a number". */
bool column_read(const struct column *, struct event *, char *field, size_t n, const struct run_info *,
                 const char **why);

/* Numbers as a trace's fields, the text that printf would make, in a tenth of its time: a trace is mostly numbers, and
 * the processor that prints them is missed by the engine. */
#define NUMBER_ROOM 24 /* the longest: 20 digits of a uint64_t */

/* Both return the bytes written; no NUL follows them. */
size_t number_write_whole(char out[NUMBER_ROOM], uint64_t);
size_t number_write_real(char out[NUMBER_ROOM], float); /* as %.9g, to the byte; enough to read the same float back */

/* Arbitrary bytes as printable UTF-8, reversibly: a backslash is doubled, and whatever is not printable
 * (engine/base/printable.h) becomes \xNN, byte by byte. The result holds no control character, so a CSV line is a line.
 * What is printable may differ from one version of utf8proc to the next; what is read back does not. */

#define ESCAPE_LONGEST 4 /* bytes out for a byte in */

/* out has room for ESCAPE_LONGEST * n + 1 bytes; terminated. Returns the length. */
size_t trace_escape(char *out, const char *bytes, size_t n);
/* out has room for n + 1 bytes, and may be text itself; terminated. Bytes that trace_escape() would have escaped stand
 * for themselves. False when a backslash is followed by neither a backslash nor x and two hexadecimal digits. */
bool trace_unescape(char *out, size_t *n_out, const char *text, size_t n);

/* For names that are shown: each byte that trace_escape() would escape becomes '?', in place; a backslash stays. */
void make_printable(char *text, size_t n);

#endif
