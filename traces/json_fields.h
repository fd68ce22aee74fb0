/* Fields of run.json for run_json_parse.c; nobody else includes it. Every function reports the first thing that is wrong,
 * and then does nothing any more: it returns NULL, 0 or the least that is allowed. */
#ifndef TRACES_JSON_FIELDS_H
#define TRACES_JSON_FIELDS_H

#include <cjson/cJSON.h>

#include "engine/events/run_info.h"

struct fields {
    const char *name; /* of the file */
    struct err *err;
    bool ok;
    bool may_lack;             /* a string, whole number or label that is not there leaves "" or 0 */
    char *choice_text;         /* the next free byte of run_info.choice_memory, */
    const char **choice_names; /* and the next free pointer */
};

bool field_refuse(struct fields *, const char *key, const char *what); /* false */
bool field_left_out(const struct fields *, const cJSON *from, const char *key);
/* The member of that name, of which is() must hold; what: as in "is not a string". */
const cJSON *field_get(struct fields *, const cJSON *from, const char *key, cJSON_bool (*is)(const cJSON *),
                       const char *what);
const cJSON *field_object(struct fields *, const cJSON *from, const char *key);
const cJSON *field_array(struct fields *, const cJSON *from, const char *key, uint32_t most, uint32_t *n);
/* Unescaped, in memory of the caller; NULL: refused. */
char *field_bytes(struct fields *, const cJSON *from, const char *key, size_t *n);
void field_string(struct fields *, const cJSON *from, const char *key, char *out, size_t size);
/* A name to be shown: whatever a terminal could take amiss becomes '?'. */
void field_label(struct fields *, const cJSON *from, const char *key, char *out, size_t size);
double field_real(struct fields *, const cJSON *from, const char *key);
uint64_t field_whole(struct fields *, const cJSON *from, const char *key, uint64_t least, uint64_t most);
uint32_t field_u32(struct fields *, const cJSON *from, const char *key, uint32_t least, uint32_t most);
uint64_t field_u64(struct fields *, const cJSON *from, const char *key, int base); /* in a string */
unsigned field_name(struct fields *, const cJSON *from, const char *key, const char *const *names, unsigned n);

#endif
