/* Prints and parses tables of fields. */
#include "base/json_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* ---- printing ---- */

/* cJSON returns NULL if memory runs out, and accepts NULL as an object to add to. */
static cJSON *
checked(bool *ok, cJSON *item)
{
    *ok = *ok && item != NULL;
    return item;
}

static void
add_string(bool *ok, cJSON *to, const char *key, const char *text)
{
    const size_t n = strlen(text);
    char *escaped = malloc(ESCAPE_LONGEST * n + 1);
    *ok = *ok && escaped != NULL;
    if (escaped == NULL)
        return;
    text_escape(escaped, text, n);
    checked(ok, cJSON_AddStringToObject(to, key, escaped));
    free(escaped);
}

/* Adds a number as the shortest of the usual forms that reads back as the same double; cJSON's own form drops the last
 * bit. */
static void
add_real(bool *ok, cJSON *to, const char *key, double value)
{
    char text[40];
    for (int digits = 9; digits <= 17; digits += 8) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    checked(ok, cJSON_AddRawToObject(to, key, isfinite(value) ? text : "null"));
}

static uint64_t
whole_at(const struct field *f, const void *at)
{
    uint32_t small;
    uint64_t value;
    memcpy(&small, at, sizeof small);
    if (f->size == sizeof small)
        return small;
    memcpy(&value, at, sizeof value);
    return value;
}

static double
real_at(const struct field *f, const void *at)
{
    return f->size == sizeof(float) ? (double)*(const float *)at : *(const double *)at;
}

static bool
is_set(const struct field *f, const void *from)
{
    const char *at = (const char *)from + f->offset;
    switch (f->kind) {
    case FIELD_TEXT:
    case FIELD_LABEL: return *at != '\0';
    case FIELD_OWNED: return *(char *const *)(const void *)at != NULL;
    case FIELD_FLAG: return *(const bool *)at;
    case FIELD_HASH: return false; /* the hash of a missing file may have any value */
    case FIELD_REAL: return real_at(f, at) != 0 && !isnan(real_at(f, at));
    case FIELD_OBJECT:
        for (const struct field *inner = f->fields; inner->key != NULL; inner++)
            if (is_set(inner, at))
                return true;
        return false;
    default: return whole_at(f, at) != 0;
    }
}

static void
print_field(bool *ok, cJSON *to, const struct field *f, const void *from)
{
    const void *at = (const char *)from + f->offset;
    char text[32];
    switch (f->kind) {
    case FIELD_TEXT:
    case FIELD_LABEL: add_string(ok, to, f->key, at); return;
    case FIELD_OWNED: add_string(ok, to, f->key, *(char *const *)at != NULL ? *(char *const *)at : ""); return;
    case FIELD_FLAG: checked(ok, cJSON_AddBoolToObject(to, f->key, *(const bool *)at)); return;
    case FIELD_REAL: add_real(ok, to, f->key, real_at(f, at)); return;
    case FIELD_NAME: add_string(ok, to, f->key, f->names[whole_at(f, at)]); return;
    case FIELD_OBJECT: fields_print(ok, checked(ok, cJSON_AddObjectToObject(to, f->key)), f->fields, at); return;
    case FIELD_WHOLE:
    case FIELD_DECIMAL: snprintf(text, sizeof text, "%" PRIu64, whole_at(f, at)); break;
    case FIELD_HASH: snprintf(text, sizeof text, "%016" PRIx64, whole_at(f, at)); break;
    }
    checked(ok, f->kind == FIELD_WHOLE ? cJSON_AddRawToObject(to, f->key, text)
                                       : cJSON_AddStringToObject(to, f->key, text));
}

void
fields_print(bool *ok, cJSON *to, const struct field *f, const void *from)
{
    for (; f->key != NULL; f++)
        if (f->printed != NULL ? f->printed(from) : f->rule != FIELD_IF_SET || is_set(f, from))
            print_field(ok, to, f, from);
}

cJSON *
field_add_array(bool *ok, cJSON *to, const char *key)
{
    return checked(ok, cJSON_AddArrayToObject(to, key));
}

cJSON *
field_add_item(bool *ok, cJSON *array, cJSON *item)
{
    if (item == NULL || cJSON_AddItemToArray(array, item))
        return checked(ok, item);
    cJSON_Delete(item);
    return checked(ok, NULL);
}

/* ---- parsing ---- */

bool
field_refuse(struct fields *p, const char *key, const char *what)
{
    if (p->ok)
        err_set(p->err, ERR_WORK, "%s: \"%s\" %s", p->name, key, what);
    p->ok = false;
    return false;
}

/* Returns a string's bytes, unescaped, in memory that the caller frees. */
static char *
parse_bytes(struct fields *p, const char *key, const cJSON *item)
{
    size_t n, len = strlen(item->valuestring);
    char *text = malloc(len + 1);
    if (text == NULL)
        field_refuse(p, key, "cannot be read: out of memory");
    else if (!text_unescape(text, &n, item->valuestring, len))
        field_refuse(p, key, "has a backslash that escapes nothing");
    else if (memchr(text, '\0', n) != NULL)
        field_refuse(p, key, "holds a NUL byte");
    else
        return text;
    free(text);
    return NULL;
}

static void
parse_array(struct fields *p, const struct field *f, const char *text, char *out)
{
    const size_t n = strlen(text);
    if (n >= f->size) {
        field_refuse(p, f->key, "is too long");
        return;
    }
    memcpy(out, text, n + 1);
    if (f->kind == FIELD_LABEL)
        make_printable(out, n);
}

/* Stores an unsigned integer of the member's size; an enum has the size of an int. */
static void
put_whole(const struct field *f, void *at, uint64_t value)
{
    const uint32_t small = (uint32_t)value;
    if (f->size == sizeof small)
        memcpy(at, &small, sizeof small);
    else
        memcpy(at, &value, sizeof value);
}

static void
parse_digits(struct fields *p, const struct field *f, const char *text, void *at)
{
    char *end;
    errno = 0;
    const uint64_t value = strtoull(text, &end, f->kind == FIELD_HASH ? 16 : 10);
    if (errno != 0 || text[0] == '\0' || *end != '\0' || text[strspn(text, "0123456789abcdefABCDEF")] != '\0')
        field_refuse(p, f->key, "is not a whole number in a string");
    else
        put_whole(f, at, value);
}

static void
parse_name(struct fields *p, const struct field *f, const char *text, void *at)
{
    uint64_t i = 0;
    while (i <= f->most && strcmp(f->names[i], text) != 0)
        i++;
    if (i > f->most)
        field_refuse(p, f->key, "is not one of the possible names");
    else
        put_whole(f, at, i);
}

static void
put_real(const struct field *f, void *at, double value)
{
    if (f->size == sizeof(float))
        *(float *)at = (float)value;
    else
        *(double *)at = value;
}

static void
parse_number(struct fields *p, const struct field *f, double value, void *at)
{
    if (!isfinite(value))
        field_refuse(p, f->key, "is not a finite number");
    else if (f->kind == FIELD_REAL && f->most > 0 && !(value >= (double)f->least && value <= (double)f->most))
        field_refuse(p, f->key, "is not in its range");
    else if (f->kind == FIELD_REAL)
        put_real(f, at, value);
    else if (value != floor(value) || value < (double)f->least || value > (double)f->most)
        field_refuse(p, f->key, "is not a whole number in its range");
    else
        put_whole(f, at, (uint64_t)value);
}

static void
parse_string(struct fields *p, const struct field *f, const cJSON *item, void *at)
{
    char *text = parse_bytes(p, f->key, item);
    if (text == NULL)
        return;
    switch (f->kind) {
    case FIELD_OWNED:
        free(*(char **)at);
        *(char **)at = text;
        return;
    case FIELD_NAME: parse_name(p, f, text, at); break;
    case FIELD_DECIMAL:
    case FIELD_HASH: parse_digits(p, f, text, at); break;
    default: parse_array(p, f, text, at); break;
    }
    free(text);
}

static void
parse_field(struct fields *p, const struct field *f, const cJSON *item, void *at)
{
    switch (f->kind) {
    case FIELD_FLAG:
        if (cJSON_IsBool(item))
            *(bool *)at = cJSON_IsTrue(item);
        else
            field_refuse(p, f->key, "is neither true nor false");
        return;
    case FIELD_WHOLE:
    case FIELD_REAL:
        if (cJSON_IsNumber(item))
            parse_number(p, f, item->valuedouble, at);
        else if (cJSON_IsNull(item) && f->rule == FIELD_OR_NULL)
            put_real(f, at, (double)NAN);
        else
            field_refuse(p, f->key, "is not a number");
        return;
    case FIELD_OBJECT:
        if (cJSON_IsObject(item))
            fields_parse(p, item, f->fields, at);
        else
            field_refuse(p, f->key, "is not an object");
        return;
    default:
        if (cJSON_IsString(item))
            parse_string(p, f, item, at);
        else
            field_refuse(p, f->key, "is not a string");
    }
}

/* Returns NULL if the member is missing; refuses the object if it is needed. */
static const cJSON *
member(struct fields *p, const cJSON *from, const char *key, bool needed)
{
    const cJSON *item = p->ok ? cJSON_GetObjectItemCaseSensitive(from, key) : NULL;
    if (item == NULL && needed)
        field_refuse(p, key, "is missing");
    return item;
}

void
fields_parse(struct fields *p, const cJSON *from, const struct field *f, void *to)
{
    for (; f->key != NULL && p->ok; f++) {
        const cJSON *item = member(p, from, f->key, f->rule <= FIELD_OR_NULL);
        if (item != NULL)
            parse_field(p, f, item, (char *)to + f->offset);
    }
}

const cJSON *
field_array(struct fields *p, const cJSON *from, const char *key, bool needed, int most)
{
    const cJSON *array = member(p, from, key, needed);
    if (array == NULL)
        return NULL;
    if (!cJSON_IsArray(array))
        field_refuse(p, key, "is not an array");
    else if (cJSON_GetArraySize(array) > most)
        field_refuse(p, key, "has too many elements");
    return p->ok ? array : NULL;
}
