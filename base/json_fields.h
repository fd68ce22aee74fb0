/* Tables of the fields of JSON objects: each field once, with its place in a C struct, from which it is printed and
 * parsed. Texts may hold any bytes and are escaped as in the CSV tables. Parsing reports the first wrong field; after
 * that every function does nothing and returns NULL, 0 or false. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum field_kind {
    FIELD_TEXT,  /* a char array */
    FIELD_LABEL, /* a char array for the screen: when read, '?' replaces each character that a terminal must not get */
    FIELD_OWNED, /* a char * to a text of its own, or NULL */
    FIELD_FLAG,  /* a bool */
    FIELD_WHOLE, /* an unsigned integer of 4 or 8 bytes */
    FIELD_REAL,  /* a float or a double, printed so that it reads back exactly */
    FIELD_DECIMAL, /* a uint64_t as a string, since JSON's numbers are doubles */
    FIELD_HASH,    /* a uint64_t as a string of 16 hexadecimal digits */
    FIELD_NAME,    /* an enum as one of `names` */
    FIELD_OBJECT   /* a struct, with `fields` */
};

enum field_rule {
    FIELD_NEEDED,  /* parsing refuses an object without it */
    FIELD_OR_NULL, /* the same, and null is NAN; of a FIELD_REAL */
    FIELD_USUAL,   /* printed always; a missing one leaves the struct's value */
    FIELD_IF_SET   /* printed unless it is 0, "" or NULL, an object if any of its fields is set; read as FIELD_USUAL */
};

struct field {
    const char *key; /* NULL ends a table */
    enum field_kind kind;
    enum field_rule rule;
    size_t offset, size;            /* in the struct */
    uint64_t least, most;           /* bounds: of a FIELD_WHOLE, of a FIELD_REAL unless both are 0, of a name's index */
    const char *const *names;       /* of a FIELD_NAME */
    const struct field *fields;     /* of a FIELD_OBJECT */
    bool (*printed)(const void *s); /* NULL: `rule` decides; else returns whether the field is printed */
};

/* `offset` and `size` of a member. */
#define FIELD_AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)

/* A member of the struct OF, which is defined where a table is. */
#define FIELD_MEMBER(rule, key, kind, member, least, most, names, table)                                               \
    {                                                                                                                  \
        key, FIELD_##kind, FIELD_##rule, FIELD_AT(OF, member), least, most, names, table, NULL                         \
    }
#define FIELD_PLAIN(rule, key, kind, member)          FIELD_MEMBER(rule, key, kind, member, 0, 0, NULL, NULL)
#define FIELD_BOUNDED(rule, key, member, least, most) FIELD_MEMBER(rule, key, WHOLE, member, least, most, NULL, NULL)
#define FIELD_REAL_TO(rule, key, member, most)        FIELD_MEMBER(rule, key, REAL, member, 0, most, NULL, NULL)
#define FIELD_NAMED(rule, key, member, names, last)   FIELD_MEMBER(rule, key, NAME, member, 0, last, names, NULL)
#define FIELD_STRUCT(rule, key, member, table)        FIELD_MEMBER(rule, key, OBJECT, member, 0, 0, NULL, table)
#define FIELD_END                                                                                                      \
    {                                                                                                                  \
        .key = NULL                                                                                                    \
    }

/* ---- printing: out of memory sets *ok to false ---- */

void fields_print(bool *ok, cJSON *to, const struct field *table, const void *from);
cJSON *field_add_array(bool *ok, cJSON *to, const char *key);
cJSON *field_add_item(bool *ok, cJSON *array, cJSON *item); /* item may be NULL if memory ran out */

/* ---- parsing ---- */

struct fields {
    const char *name; /* of the file */
    struct err *err;
    bool ok;
};

void fields_parse(struct fields *, const cJSON *from, const struct field *table, void *to);
/* returns false; what: as in "is not a string" */
bool field_refuse(struct fields *, const char *key, const char *what);
/* Returns a member that is an array of at most `most` items; NULL: refused, or missing and not needed. */
const cJSON *field_array(struct fields *, const cJSON *from, const char *key, bool needed, int most);
