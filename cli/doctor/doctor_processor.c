/* The processor: what it can, which kernels are taken, how many threads there are for them, memory and its pages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "engine/base/platform.h"
#include "engine/base/plural.h"
#include "engine/model/memory.h"
#include "kernels/cpu/isa.h"

/* What each table of kernels asks of a processor. */
static const struct {
    const char *name, *needs;
} wants[] = {
    {"amx", "AMX-INT8 (Xeons from 2023 on) and a kernel that lends its tiles (Linux 5.16)"},
    {"avx512vnni", "AVX-512 VNNI (Xeons from 2019 on, Zen 4)"},
    {"avx512", "AVX-512 F, BW, DQ and VL"},
    {"avx2", "AVX2, FMA and F16C (from 2013 on)"},
    {"neondot", "the dot product of Armv8.2"},
    {"neon", "64-bit Arm"},
};

static const char *
needs_of(const char *name)
{
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
        if (strcmp(wants[i].name, name) == 0)
            return wants[i].needs;
    return "another processor";
}

static void
say_instructions(struct findings *f)
{
    char features[200] = "", model[100];
    platform_processor(model, sizeof model, features, sizeof features);
    doctor_say(f, FINDING_OK, "processor", NULL, "%s%s%s", model[0] != '\0' ? model : "unnamed",
               features[0] != '\0' ? ": " : "", features);
    const struct cpu_isa *isa = cpu_isa_choose(NULL, NULL), *better = NULL;
    if (isa == NULL)
        return; /* the reference is always there */
    for (size_t i = 0; cpu_isas[i] != isa; i++)
        better = cpu_isas[i]; /* the next one up */
    const bool slow = isa == &cpu_isa_reference;
    struct finding *one = doctor_say(f, slow ? FINDING_NOTE : FINDING_OK, "kernels", NULL, "%s%s", isa->name,
                                     slow ? ", which are plain C and several times slower than any others" : "");
    if (better != NULL)
        doctor_fix(one, "%s, the next faster, needs %s", better->name, needs_of(better->name));
}

static void
say_load(struct findings *f)
{
    const int processors = platform_processors().usable;
    double load; /* processes that run or wait for a processor, on average over the last minute */
    if (getloadavg(&load, 1) != 1)
        return;
    struct finding *one = doctor_say(f, load > processors ? FINDING_NOTE : FINDING_OK, "load", NULL,
                                     "%.1f processes wanted the %d processor%s in the last minute", load, processors,
                                     plural((uint64_t)processors));
    if (load > processors)
        doctor_fix(one, "stop other programs; meanwhile fewer threads than processors compute, unless -t N is given");
}

static void
say_threads(struct findings *f)
{
    const struct platform_processors p = platform_processors();
    struct finding *one;
    if (p.quota > 0 && p.quota < (double)p.usable) {
        one = doctor_say(f, FINDING_NOTE, "threads", NULL,
                         "%d processors may be used, but for %.1f processors' time in all (a control group's quota)",
                         p.usable, p.quota);
        doctor_fix(one, "-t %d: more threads would wait for one another", p.quota < 2 ? 1 : (int)p.quota);
    } else if (p.usable < p.online) {
        one = doctor_say(f, FINDING_NOTE, "threads", NULL, "%d of %d processors may be used", p.usable, p.online);
        doctor_fix(one, "-t %d, or start it without taskset", p.usable);
    } else if (p.cores > 0 && p.cores < p.online) {
        one = doctor_say(f, FINDING_OK, "threads", NULL, "%d, two or more to each of %d cores", p.online, p.cores);
        doctor_fix(one, "where memory is the limit -t %d may be as fast", p.cores);
    } else {
        doctor_say(f, FINDING_OK, "threads", NULL, "%d, one for each processor", p.online);
    }
    char governor[40];
    if (platform_word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor) &&
        strcmp(governor, "powersave") == 0 &&
        !platform_word("/sys/devices/system/cpu/intel_pstate/status", governor, sizeof governor))
        doctor_say(f, FINDING_NOTE, "clock", "sudo cpupower frequency-set -g performance, before measuring",
                   "the processor saves power, so speeds waver");
}

#define LITTLE ((uint64_t)256 << 20) /* bytes: a run of the bundled model takes half of it */

static void
say_memory(struct findings *f)
{
    char size[24];
    const uint64_t available = memory_available();
    if (available == UINT64_MAX)
        doctor_say(f, FINDING_OK, "memory", NULL, "nothing says how much is available");
    else
        doctor_say(f, available < LITTLE ? FINDING_NOTE : FINDING_OK, "memory",
                   available < LITTLE ? "end something else first" : NULL, "%s available",
                   memory_text(size, available));
}

static void
say_huge_pages(struct findings *f)
{
    const char *name = "/sys/kernel/mm/transparent_hugepage/enabled";
    char how[40];
    if (!platform_bracketed(name, how, sizeof how))
        doctor_say(f, FINDING_NOTE, "huge pages", NULL,
                   "this system has none to ask for: reading weights waits for page tables a little");
    else if (strcmp(how, "never") == 0)
        doctor_say(f, FINDING_NOTE, "huge pages", "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
                   "switched off: reading weights waits for page tables");
    else
        doctor_say(f, FINDING_OK, "huge pages", NULL, "%s: weights lie in them", how);
}

void
doctor_processor(struct findings *f)
{
    say_instructions(f);
    say_threads(f);
    say_load(f);
    say_memory(f);
    say_huge_pages(f);
}
