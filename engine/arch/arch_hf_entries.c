/* Entries of config.json. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/arch/arch_hf.h"

const cJSON *
arch_hf_entry(const cJSON *object, const char *name)
{
    char first[32];
    const char *point = strchr(name, '.');
    if (point != NULL && (size_t)(point - name) < sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(point - name), name);
        const cJSON *part = cJSON_GetObjectItemCaseSensitive(object, first);
        return cJSON_IsObject(part) ? arch_hf_entry(part, point + 1) : NULL;
    }
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(v) ? NULL : v;
}

enum arch_value
arch_hf_kind(const cJSON *v, double *out)
{
    if (v == NULL)
        return VALUE_MISSING;
    if (!cJSON_IsNumber(v))
        return VALUE_OTHER;
    *out = v->valuedouble;
    return floor(*out) < *out || !(fabs(*out) <= 0x1p53) ? VALUE_REAL : VALUE_WHOLE;
}
