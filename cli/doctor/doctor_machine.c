/* Doctor's checks of the machine: processor, BLAS, GPU. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "engine/base/blas_library.h"
#include "engine/base/subprocess.h"
#include "engine/model/memory.h"
#include "kernels/base/platform.h"
#include "kernels/base/plural.h"
#include "kernels/cpu/isa.h"
#include "kernels/plugin.h"

/* ---- processor: instruction sets, kernels, threads, memory and its pages ---- */

/* The features of a processor that each table of kernels needs. */
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
check_instructions(struct findings *f)
{
    char features[200] = "", model[100];
    platform_processor(model, sizeof model, features, sizeof features);
    doctor_add(f, FINDING_OK, "processor", NULL, "%s%s%s", model[0] != '\0' ? model : "unnamed",
               features[0] != '\0' ? ": " : "", features);
    const struct cpu_isa *isa = cpu_isa_choose(NULL, NULL), *better = NULL;
    if (isa == NULL)
        return; /* the reference always exists */
    for (size_t i = 0; cpu_isas[i] != isa; i++)
        better = cpu_isas[i]; /* the next one up */
    const bool slow = isa == &cpu_isa_reference;
    struct finding *one = doctor_add(f, slow ? FINDING_NOTE : FINDING_OK, "kernels", NULL, "%s%s", isa->name,
                                     slow ? ", which are plain C and several times slower than any others" : "");
    if (better != NULL)
        doctor_fix(one, "%s, the next faster, needs %s", better->name, needs_of(better->name));
}

static void
check_load(struct findings *f)
{
    const int processors = platform_processors().usable;
    double load; /* processes that run or wait for a processor, on average over the last minute */
    if (getloadavg(&load, 1) != 1)
        return;
    struct finding *one = doctor_add(f, load > processors ? FINDING_NOTE : FINDING_OK, "load", NULL,
                                     "%.1f processes wanted the %d processor%s in the last minute", load, processors,
                                     plural((uint64_t)processors));
    if (load > processors)
        doctor_fix(one, "stop other programs; meanwhile fewer threads than processors compute, unless -t N is given");
}

static void
check_threads(struct findings *f)
{
    const struct platform_processors p = platform_processors();
    struct finding *one;
    if (p.quota > 0 && p.quota < (double)p.usable) {
        one = doctor_add(f, FINDING_NOTE, "threads", NULL,
                         "%d processors may be used, but for %.1f processors' time in all (a control group's quota)",
                         p.usable, p.quota);
        doctor_fix(one, "-t %d: more threads would wait for one another", p.quota < 2 ? 1 : (int)p.quota);
    } else if (p.usable < p.online) {
        one = doctor_add(f, FINDING_NOTE, "threads", NULL, "%d of %d processors may be used", p.usable, p.online);
        doctor_fix(one, "-t %d, or start it without taskset", p.usable);
    } else if (p.cores > 0 && p.cores < p.online) {
        one = doctor_add(f, FINDING_OK, "threads", NULL, "%d, two or more to each of %d cores", p.online, p.cores);
        doctor_fix(one, "where memory is the limit -t %d may be as fast", p.cores);
    } else {
        doctor_add(f, FINDING_OK, "threads", NULL, "%d, one for each processor", p.online);
    }
    char governor[40];
    if (platform_word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor) &&
        strcmp(governor, "powersave") == 0 &&
        !platform_word("/sys/devices/system/cpu/intel_pstate/status", governor, sizeof governor))
        doctor_add(f, FINDING_NOTE, "clock", "sudo cpupower frequency-set -g performance, before measuring",
                   "the processor saves power, so speeds waver");
}

#define LITTLE ((uint64_t)256 << 20) /* bytes: a run of the bundled model needs half of it */

static void
check_memory(struct findings *f)
{
    char size[24];
    const uint64_t available = memory_available();
    if (available == UINT64_MAX)
        doctor_add(f, FINDING_OK, "memory", NULL, "nothing says how much is available");
    else
        doctor_add(f, available < LITTLE ? FINDING_NOTE : FINDING_OK, "memory",
                   available < LITTLE ? "end something else first" : NULL, "%s available",
                   memory_text(size, available));
}

static void
check_huge_pages(struct findings *f)
{
    const char *name = "/sys/kernel/mm/transparent_hugepage/enabled";
    char how[40];
    if (!platform_bracketed(name, how, sizeof how))
        doctor_add(f, FINDING_NOTE, "huge pages", NULL,
                   "this system has none to ask for: reading weights waits for page tables a little");
    else if (strcmp(how, "never") == 0)
        doctor_add(f, FINDING_NOTE, "huge pages", "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
                   "switched off: reading weights waits for page tables");
    else
        doctor_add(f, FINDING_OK, "huge pages", NULL, "%s: weights lie in them", how);
}

void
doctor_processor(struct findings *f)
{
    check_instructions(f);
    check_threads(f);
    check_load(f);
    check_memory(f);
    check_huge_pages(f);
}

/* ---- BLAS: the library that multiplies matrices for training ---- */

#define FASTER                                                                                                         \
    "install OpenBLAS for several threads (Debian: libopenblas0-openmp); update-alternatives --config "                \
    "libblas.so.3-$(uname -m)-linux-gnu chooses"

/* Returns the file that a function came from, with links resolved; false: it is the program itself, or unknown. */
static bool
file_of(void *at, char out[PATH_MAX])
{
    Dl_info about;
    char program[PATH_MAX];
    if (dladdr(at, &about) == 0 || about.dli_fname == NULL || realpath(about.dli_fname, out) == NULL)
        return false;
    return !platform_program(program, sizeof program) || strcmp(program, out) != 0;
}

void
doctor_blas(struct findings *f)
{
    char path[PATH_MAX] = "in the program itself";
    struct err err = {0};
    const struct blas_library *library = blas_library(1, &err);
    if (library == NULL) {
        doctor_add_message(f, FINDING_NOTE, "BLAS", err.text);
        return;
    }
    void *multiply = NULL;
    memcpy(&multiply, &library->multiply, sizeof multiply); /* ISO C has no cast to a function pointer */
    const bool shared = file_of(multiply, path);
    const char *config =
        library->config != NULL ? library->config() : NULL; /* "OpenBLAS 0.3.21 … Zen MAX_THREADS=64" */
    if (config != NULL && strstr(config, "SINGLE_THREADED") != NULL)
        doctor_add(f, FINDING_NOTE, "BLAS", FASTER, "%s (%s): of one thread, so training takes longer", config, path);
    else if (config != NULL)
        doctor_add(f, FINDING_OK, "BLAS", NULL, "%s (%s)", config, path);
    else if (shared &&
             (strstr(path, "openblas") != NULL || strstr(path, "mkl") != NULL || strstr(path, "blis") != NULL))
        doctor_add(f, FINDING_OK, "BLAS", NULL, "%s", path);
    else if (shared)
        doctor_add(
            f, FINDING_NOTE, "BLAS", FASTER,
            "%s is probably the reference one, with which `train` takes fifty times as long; all else is as fast",
            path);
    else
        doctor_add(f, FINDING_OK, "BLAS", NULL, "built into the program");
}

/* ---- NVIDIA GPU: device, driver, plug-in ---- */

/* Returns the driver's CUDA version, 12040 for 12.4; 0: no libcuda. */
static int
driver_version(void)
{
    int version = 0;
#ifndef SPECSCOPE_STATIC /* which loads nothing */
    int (*ask)(int *) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (driver == NULL)
        return 0;
    void *symbol = dlsym(driver, "cuDriverGetVersion");
    memcpy(&ask, &symbol, sizeof ask);
    if (ask != NULL && ask(&version) != 0)
        version = 0;
    dlclose(driver);
#endif
    return version;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  …"; "": the kernel has no such module. */
static void
kernel_module(char *out, size_t n)
{
    char line[256] = "";
    out[0] = '\0';
    FILE *f = fopen("/proc/driver/nvidia/version", "re");
    if (f == NULL)
        return;
    if (fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, "Module");
        at = at != NULL ? at + strlen("Module") + strspn(at + strlen("Module"), " ") : line;
        snprintf(out, n, "%.*s", (int)strcspn(at, " \n"), at);
    }
    fclose(f);
}

static void
add_reason(struct findings *f, enum finding_level level, const struct err *why)
{
    static const char intro[] = "backend cuda: ";
    const bool has_intro = strncmp(why->text, intro, sizeof intro - 1) == 0;
    doctor_add_message(f, level, "plug-in", why->text + (has_intro ? sizeof intro - 1 : 0));
}

static void
check_driver(struct findings *f)
{
    char module[64];
    kernel_module(module, sizeof module);
    const int version = driver_version();
    if (version > 0)
        doctor_add(f, FINDING_OK, "GPU driver", NULL, "%s%sfor CUDA %d.%d", module, module[0] != '\0' ? ", " : "",
                   version / 1000, version % 1000 / 10);
    else
        doctor_add(f, FINDING_NOTE, "GPU driver",
                   "install NVIDIA's driver; in a container, let it have it (--gpus all)",
                   "a GPU is in sight, and libcuda.so.1 is not%s%s",
                   module[0] != '\0' ? "; the kernel has module " : "", module);
}

/* Adds the findings to `answer`, which is a struct findings. A process of its own calls this function: driver and plug-in may crash or
 * hang while they are loaded. */
static bool
inspect(void *user, void *answer, struct err *err)
{
    struct findings *f = answer;
    const bool in_sight = plugin_gpu_in_sight();
    const struct backend_ops *ops = NULL;
    *f = *(const struct findings *)user;
    const enum plugin_state state = plugin_load(&ops, err);
    if (!in_sight)
        doctor_add(f, FINDING_OK, "GPU", NULL, "none of NVIDIA's in sight: the CPU computes");
    else
        check_driver(f);
    if (state == PLUGIN_BROKEN) {
        add_reason(f, FINDING_BAD, err);
    } else if (state == PLUGIN_ABSENT && in_sight) {
        add_reason(f, FINDING_NOTE, err);
    } else if (state == PLUGIN_LOADED && in_sight) {
        struct backend *b = NULL;
        if (!ops->open(&b, &(struct backend_options){.gpu = -1}, err)) {
            add_reason(f, FINDING_NOTE, err);
            return true;
        }
        doctor_add(f, FINDING_OK, "GPU", NULL, "%s", ops->describe(b));
        if (ops->note != NULL && ops->note(b)[0] != '\0')
            doctor_add(f, FINDING_NOTE, "plug-in", NULL, "%s", ops->note(b));
        ops->close(b);
    } else if (state == PLUGIN_LOADED) {
        doctor_add(f, FINDING_OK, "plug-in", NULL, PLUGIN_FILE " is there, for machines with a GPU");
    }
    return true;
}

void
doctor_gpu(struct findings *f)
{
    struct findings with_gpu;
    struct err why = {0};
    errno = 0;
    if (subprocess_run(inspect, f, &with_gpu, sizeof with_gpu, "driver and plug-in", &why))
        *f = with_gpu;
    else
        add_reason(f, errno == ENOMEM ? FINDING_NOTE : FINDING_BAD, &why);
}
