/* What Linux says of processors, in /proc and /sys; elsewhere little is known. */
#include "kernels/platform.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

static bool
first_line(const char *path, char *out, size_t n)
{
    FILE *f = fopen(path, "re");
    const bool ok = f != NULL && fgets(out, (int)n, f) != NULL;
    if (f != NULL)
        fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = '\0';
    return ok;
}

bool
platform_word(const char *path, char *out, size_t n)
{
    char line[256];
    if (!first_line(path, line, sizeof line))
        return false;
    line[strcspn(line, " \t")] = '\0';
    snprintf(out, n, "%s", line);
    return out[0] != '\0';
}

bool
platform_bracketed(const char *path, char *out, size_t n)
{
    char line[256];
    if (!first_line(path, line, sizeof line))
        return false;
    const char *open = strchr(line, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    if (close == NULL)
        return false;
    snprintf(out, n, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

/* ---- processors ---- */

/* A core is known by the first of its threads. */
static int
count_cores(int online)
{
    int cores = 0;
    for (int i = 0; i < online; i++) {
        char path[96], list[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        if (!platform_word(path, list, sizeof list))
            return 0;
        cores += strtol(list, NULL, 10) == i;
    }
    return cores;
}

/* cpu.max of version 2 ("max 100000", "150000 100000") of every group from this process's own up to the root. */
static double
group_quota(void)
{
    char line[512] = "", path[800], limit[128];
    double least = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && strncmp(line, "0::", 3) != 0)
        line[0] = '\0';
    if (f != NULL)
        fclose(f);
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "0::", 3) != 0)
        return 0;
    for (char *group = line + 3, *slash = group; slash != NULL; *slash = '\0') {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        double quota = 0, period = 0;
        if (first_line(path, limit, sizeof limit) && sscanf(limit, "%lf %lf", &quota, &period) == 2 && period > 0 &&
            (least <= 0 || quota / period < least))
            least = quota / period;
        slash = strrchr(group, '/');
        if (slash == NULL || group[0] == '\0')
            break;
    }
    return least;
}

static int
online(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int
platform_usable_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    return online();
}

struct platform_processors
platform_processors(void)
{
    struct platform_processors p = {.online = online(), .usable = platform_usable_processors()};
#if defined(__linux__)
    p.cores = count_cores(p.online);
    p.quota = group_quota();
#else
    (void)count_cores, (void)group_quota;
#endif
    return p;
}

/* Those of `line`'s words that kernels are made for. */
static void
keep_features(char *line, char *out, size_t n)
{
    static const char wanted[] = " avx2 fma f16c avx512f avx512bw avx512vl avx512_vnni avx512_bf16 avx_vnni amx_tile "
                                 "amx_int8 amx_bf16 asimd asimddp asimdhp i8mm bf16 sve sve2 ";
    size_t length = 0;
    out[0] = '\0';
    for (char *rest = NULL, *word = strtok_r(line, " \t\n", &rest); word != NULL;
         word = strtok_r(NULL, " \t\n", &rest)) {
        char in[40];
        snprintf(in, sizeof in, " %.36s ", word);
        if (strstr(wanted, in) != NULL && length < n)
            length += (size_t)snprintf(out + length, n - length, "%s%s", length > 0 ? " " : "", word);
    }
}

void
platform_processor(char *model, size_t n_model, char *features, size_t n_features)
{
    model[0] = features[0] = '\0';
#if defined(__APPLE__)
    size_t room = n_model;
    if (sysctlbyname("machdep.cpu.brand_string", model, &room, NULL, 0) != 0)
        model[0] = '\0';
#endif
    char line[8192];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && (model[0] == '\0' || features[0] == '\0')) {
        char *value = strchr(line, ':');
        if (value == NULL)
            continue;
        value += 1 + strspn(value + 1, " ");
        if (model[0] == '\0' && strncmp(line, "model name", 10) == 0)
            snprintf(model, n_model, "%.*s", (int)strcspn(value, "\n"), value);
        else if (features[0] == '\0' && (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0))
            keep_features(value, features, n_features);
    }
    if (f != NULL)
        fclose(f);
}
