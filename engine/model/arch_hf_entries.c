/* Entries of config.json. */
#include <math.h>

#include "engine/model/arch_hf.h"

const cJSON *
arch_hf_entry(const cJSON *object, const char *name)
{
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
