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
    bool any = family == NULL || family[0] == '\0' || strcmp(family, "auto") == 0, known = false;
    for (size_t i = 0; cpu_isas[i] != NULL; i++) {
        if (!any && strcmp(cpu_isas[i]->family, family) != 0 && strcmp(cpu_isas[i]->name, family) != 0)
            continue;
        known = true;
        if (cpu_isas[i]->usable())
            return cpu_isas[i];
    }
    err_set(err, ERR_USAGE,
            known ? "this processor does not have the instruction set '%s'; use --isa auto"
                  : "no instruction set '%s' in this build; use auto, reference, avx2, avx512 or neon",
            any ? "auto" : family);
    return NULL;
}
