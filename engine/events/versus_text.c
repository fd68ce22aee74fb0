#include "engine/events/versus_text.h"

#include <stdio.h>
#include <string.h>

uint32_t
versus_read(const struct run_info *info, const char *text, double *values)
{
    char word[64];
    int used = 0;
    if (sscanf(text, "%63s%n", word, &used) != 1)
        return info->n_policies;
    const struct policy_info *p = run_info_policy(info, word);
    if (p == NULL)
        return info->n_policies;
    const uint32_t policy = (uint32_t)(p - info->policies);
    for (text += used; sscanf(text, "%63s%n", word, &used) == 1; text += used) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        const int k = policy_knob_index(p, word);
        if (k >= 0)
            knob_parse(&p->knobs[k], equals + 1, &values[policy * POLICY_KNOBS + (uint32_t)k], NULL);
    }
    return policy;
}

void
versus_print(const struct policy_info *p, const double *first, const double *second, char out[VERSUS_TEXT_MOST])
{
    size_t used = (size_t)snprintf(out, VERSUS_TEXT_MOST, "%s", p->name);
    for (uint32_t k = 0; k < p->n_knobs; k++) {
        char value[32];
        if (first[k] == second[k])
            continue;
        knob_format(&p->knobs[k], second[k], value, sizeof value);
        used += (size_t)snprintf(out + used, VERSUS_TEXT_MOST - used, " %s=%s", p->knobs[k].name, value);
    }
}
