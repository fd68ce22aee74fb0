#include "engine/base/json_read.h"

#include <errno.h>
#include <string.h>

/* Sets *end to the first parse error, or to the first byte after the value. */
static bool
parse(cJSON **out, const char *text, size_t n, const char **end)
{
    const int before = errno;
    errno = 0;
    *out = cJSON_ParseWithLengthOpts(text, n, end, false);
    const bool starved = *out == NULL && errno == ENOMEM;
    errno = before;
    return !starved;
}

bool
json_read(cJSON **out, const char *text, size_t n)
{
    const char *end;
    return parse(out, text, n, &end);
}

bool
json_read_typed(cJSON **out, const char *text, size_t n, size_t *wrong)
{
    const char *end = NULL;
    *wrong = 0;
    if (!parse(out, text, n, &end))
        return false;
    end = end != NULL ? end : text;
    while (*out != NULL && end < text + n && *end != '\0' && strchr(" \t\r\n", *end) != NULL)
        end++;
    if (*out != NULL && end == text + n)
        return true;
    cJSON_Delete(*out);
    *out = NULL;
    *wrong = 1;
    for (const char *c = text; c < end && c < text + n; c++)
        *wrong += *c == '\n';
    return true;
}
