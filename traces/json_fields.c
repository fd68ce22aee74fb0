/* Fields of run.json, checked. */
#include "traces/json_fields.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/escape.h"

bool
field_refuse(struct fields *p, const char *key, const char *what)
{
    if (p->ok)
        err_set(p->err, ERR_WORK, "%s: \"%s\" %s", p->name, key, what);
    p->ok = false;
    return false;
}

bool
field_left_out(const struct fields *p, const cJSON *from, const char *key)
{
    return p->ok && p->may_lack && cJSON_GetObjectItemCaseSensitive(from, key) == NULL;
}

const cJSON *
field_get(struct fields *p, const cJSON *from, const char *key, cJSON_bool (*is)(const cJSON *), const char *what)
{
    const cJSON *item = p->ok ? cJSON_GetObjectItemCaseSensitive(from, key) : NULL;
    if (item == NULL)
        field_refuse(p, key, "is missing");
    else if (!is(item))
        field_refuse(p, key, what);
    return p->ok ? item : NULL;
}

const cJSON *
field_object(struct fields *p, const cJSON *from, const char *key)
{
    return field_get(p, from, key, cJSON_IsObject, "is not an object");
}

const cJSON *
field_array(struct fields *p, const cJSON *from, const char *key, uint32_t most, uint32_t *n)
{
    const cJSON *array = field_get(p, from, key, cJSON_IsArray, "is not an array");
    int size = cJSON_GetArraySize(array);
    if (size < 0 || (unsigned)size > most)
        field_refuse(p, key, "has too many elements");
    *n = p->ok ? (uint32_t)size : 0;
    return p->ok ? array : NULL;
}

char *
field_bytes(struct fields *p, const cJSON *from, const char *key, size_t *n)
{
    const cJSON *item = field_get(p, from, key, cJSON_IsString, "is not a string");
    if (item == NULL)
        return NULL;
    size_t len = strlen(item->valuestring);
    char *text = malloc(len + 1);
    if (text == NULL)
        field_refuse(p, key, "does not fit into memory");
    else if (!trace_unescape(text, n, item->valuestring, len))
        field_refuse(p, key, "has a backslash that escapes nothing");
    else if (memchr(text, '\0', *n) != NULL)
        field_refuse(p, key, "holds a NUL byte");
    else
        return text;
    free(text);
    return NULL;
}

void
field_string(struct fields *p, const cJSON *from, const char *key, char *out, size_t size)
{
    size_t n;
    char *text = field_left_out(p, from, key) ? NULL : field_bytes(p, from, key, &n);
    if (text == NULL)
        return;
    if (n >= size)
        field_refuse(p, key, "is too long");
    else
        memcpy(out, text, n + 1);
    free(text);
}

void
field_label(struct fields *p, const cJSON *from, const char *key, char *out, size_t size)
{
    field_string(p, from, key, out, size);
    make_printable(out, strlen(out));
}

double
field_real(struct fields *p, const cJSON *from, const char *key)
{
    const cJSON *item = field_get(p, from, key, cJSON_IsNumber, "is not a number");
    double value = item != NULL ? item->valuedouble : 0;
    if (!isfinite(value))
        field_refuse(p, key, "is not a finite number");
    return p->ok ? value : 0;
}

uint64_t
field_whole(struct fields *p, const cJSON *from, const char *key, uint64_t least, uint64_t most)
{
    if (field_left_out(p, from, key))
        return 0;
    double value = field_real(p, from, key);
    if (p->ok && (value != floor(value) || value < (double)least || value > (double)most))
        field_refuse(p, key, "is not a whole number in its range");
    return p->ok ? (uint64_t)value : least;
}

uint32_t
field_u32(struct fields *p, const cJSON *from, const char *key, uint32_t least, uint32_t most)
{
    return (uint32_t)field_whole(p, from, key, least, most);
}

uint64_t
field_u64(struct fields *p, const cJSON *from, const char *key, int base)
{
    if (field_left_out(p, from, key))
        return 0;
    char text[40] = "", *end = text;
    field_string(p, from, key, text, sizeof text);
    errno = 0;
    uint64_t value = strtoull(text, &end, base);
    if (p->ok &&
        (errno != 0 || text[0] == '\0' || *end != '\0' || text[strspn(text, "0123456789abcdefABCDEF")] != '\0'))
        field_refuse(p, key, "is not a whole number in a string");
    return value;
}

unsigned
field_name(struct fields *p, const cJSON *from, const char *key, const char *const *names, unsigned n)
{
    char text[40] = "";
    field_string(p, from, key, text, sizeof text);
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    field_refuse(p, key, "is none of the names it can be");
    return 0;
}
