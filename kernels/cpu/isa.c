#include "kernels/cpu/isa.h"

#include <string.h>

const struct cpu_isa *const cpu_isas[] = {
#if defined(__x86_64__)
    &cpu_isa_amx,       &cpu_isa_avx512vnni,
    &cpu_isa_avx512,    &cpu_isa_avx2,
#elif defined(__aarch64__)
    &cpu_isa_neondot, &cpu_isa_neon,
#endif
    &cpu_isa_reference, NULL,
};

const struct cpu_isa *
cpu_isa_choose(const char *family, struct err *err)
{
    const bool any = family == NULL || family[0] == '\0' || strcmp(family, "auto") == 0;
    bool known = false;
    char names[128] = "auto";
    for (size_t i = 0, n = strlen(names); cpu_isas[i] != NULL; i++) {
        n += (size_t)snprintf(names + n, sizeof names - n, ", %s", cpu_isas[i]->name);
        if (!any && strcmp(cpu_isas[i]->family, family) != 0 && strcmp(cpu_isas[i]->name, family) != 0)
            continue;
        known = true;
        if (cpu_isas[i]->usable())
            return cpu_isas[i];
    }
    if (known)
        err_set(err, ERR_USAGE, "this processor does not have the instruction set '%s'; use --isa auto", family);
    else
        err_set(err, ERR_USAGE, "no instruction set '%s' in this build; --isa takes %s", family, names);
    return NULL;
}
