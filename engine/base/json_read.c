#include "engine/base/json_read.h"

#include <errno.h>

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
