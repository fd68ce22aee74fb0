#include "engine/base/json_read.h"

#include <errno.h>
#include <string.h>

bool
json_read(cJSON **out, const char *text, size_t n)
{
    const int before = errno;
    errno = 0;
    *out = cJSON_ParseWithLength(text, n);
    const bool starved = *out == NULL && errno == ENOMEM;
    errno = before;
    return !starved;
}

size_t
json_wrong_line(const char *text, size_t n)
{
    const int before = errno;
    const char *end = NULL;
    size_t line = 1;
    errno = 0;
    cJSON *value = cJSON_ParseWithLengthOpts(text, n, &end, false);
    const bool starved = value == NULL && errno == ENOMEM, parsed = value != NULL;
    errno = before;
    cJSON_Delete(value);
    if (starved)
        return 0;
    end = end != NULL ? end : text;
    while (parsed && end < text + n && *end != '\0' && strchr(" \t\r\n", *end) != NULL)
        end++;
    if (parsed && end == text + n)
        return 0;
    for (const char *c = text; c < end && c < text + n; c++)
        line += *c == '\n';
    return line;
}
