/* Doctor's checks of the machine: processor, BLAS, GPU. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/plural.h"
#include "base/subprocess.h"
#include "cli/doctor/doctor.h"
#include "engine/model/memory.h"
#include "engine/remote/http.h"
#include "kernels/blas_library.h"
#include "kernels/cpu/isa.h"
#include "kernels/plugin.h"

/* ---- processor: instruction sets, kernels, threads, memory and its pages ---- */

static void
check_instructions(struct findings *f)
{
    char features[200] = "", model[100];
    platform_processor(model, sizeof model, features, sizeof features);
    doctor_add(f, FINDING_OK, "processor", "%s%s%s", model[0] != '\0' ? model : "unnamed",
               features[0] != '\0' ? ": " : "", features);
    const struct cpu_isa *isa = cpu_isa_choose(NULL, NULL);
    if (isa == &cpu_isa_reference)
        doctor_add(f, FINDING_NOTE, "kernels", "%s, which are plain C and several times slower than any others",
                   isa->name);
    else if (isa != NULL)
        doctor_add(f, FINDING_OK, "kernels", "%s", isa->name);
}

static void
check_load(struct findings *f)
{
    const int processors = platform_processors().usable;
    double load; /* processes that run or wait for a processor, on average over the last minute */
    if (getloadavg(&load, 1) == 1)
        doctor_add(f, load > processors ? FINDING_NOTE : FINDING_OK, "load",
                   "%.1f processes wanted the %d processor%s in the last minute%s", load, processors,
                   plural((uint64_t)processors),
                   load > processors ? "; stop other programs, which take processors from the threads of a run" : "");
}

static void
check_threads(struct findings *f)
{
    const struct platform_processors p = platform_processors();
    if (p.quota > 0 && p.quota < (double)p.usable)
        doctor_add(
            f, FINDING_NOTE, "threads",
            "a control group's quota allows %.1f processors' time on %d processors; -t %d avoids that threads wait",
            p.quota, p.usable, p.quota < 2 ? 1 : (int)p.quota);
    else if (p.usable < p.online)
        doctor_add(f, FINDING_NOTE, "threads", "%d of %d processors may be used; -t %d, or start it without taskset",
                   p.usable, p.online, p.usable);
    else
        doctor_add(f, FINDING_OK, "threads", "%d, one for each processor", p.online);
}

#define LITTLE ((uint64_t)256 << 20) /* bytes: a run of the bundled model needs half of it */

static void
check_memory(struct findings *f)
{
    char size[24];
    const uint64_t available = memory_available();
    if (available == UINT64_MAX)
        doctor_add(f, FINDING_OK, "memory", "the system does not tell how much is available");
    else
        doctor_add(f, available < LITTLE ? FINDING_NOTE : FINDING_OK, "memory", "%s available%s",
                   memory_text(size, available), available < LITTLE ? "; end another program first" : "");
}

static void
check_huge_pages(struct findings *f)
{
    char how[40] = "";
    const bool has = platform_bracketed("/sys/kernel/mm/transparent_hugepage/enabled", how, sizeof how);
    if (!has || strcmp(how, "never") == 0)
        doctor_add(f, FINDING_NOTE, "huge pages", "%s",
                   has ? "switched off, so reading weights waits for page tables; "
                         "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
                       : "this system has none");
    else
        doctor_add(f, FINDING_OK, "huge pages", "%s, used for weights", how);
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

void
doctor_blas(struct findings *f)
{
    struct err err = {0};
    const struct blas_library *library = blas_library(1, &err);
    const char *config = library != NULL && library->config != NULL ? library->config() : NULL;
    if (library == NULL)
        doctor_add(f, FINDING_NOTE, "BLAS", "%s", err.text);
    else if (config == NULL)
        doctor_add(f, FINDING_NOTE, "BLAS", "not OpenBLAS; with the reference BLAS training takes fifty times as long");
    else if (strstr(config, "SINGLE_THREADED") != NULL)
        doctor_add(f, FINDING_NOTE, "BLAS",
                   "%s has one thread, so training takes longer; install OpenBLAS for several threads (Debian: "
                   "libopenblas0-openmp)",
                   config);
    else if (library->outdated)
        doctor_add(f, FINDING_NOTE, "BLAS",
                   "%s: these kernels leave instructions of this processor unused, so training takes several times as "
                   "long; %s",
                   config,
                   getenv("OPENBLAS_CORETYPE") != NULL ? "unset OPENBLAS_CORETYPE" : "install a newer OpenBLAS");
    else if (library->avoided[0] != '\0')
        doctor_add(f, FINDING_OK, "BLAS", "%s; its kernels for %s are not used, which it would have chosen", config,
                   library->avoided);
    else
        doctor_add(f, FINDING_OK, "BLAS", "%s", config); /* "OpenBLAS 0.3.21 … Zen MAX_THREADS=64" */
}

/* ---- libcurl: servers ---- */

void
doctor_servers(struct findings *f)
{
    struct err err = {0};
    const char *library = http_library(&err);
    doctor_add(f, library != NULL ? FINDING_OK : FINDING_NOTE, "servers", "%.*s",
               library != NULL ? (int)strcspn(library, " ") : (int)sizeof err.text,
               library != NULL ? library : err.text); /* "libcurl/8.5.0" */
}

/* ---- NVIDIA GPU: device and plug-in ---- */

static void
add_reason(struct findings *f, enum finding_level level, const struct err *why)
{
    static const char intro[] = "backend cuda: ";
    const bool has_intro = strncmp(why->text, intro, sizeof intro - 1) == 0;
    doctor_add(f, level, "plug-in", "%s", why->text + (has_intro ? sizeof intro - 1 : 0));
}

/* Adds the findings to `answer`, which is a struct findings. A process of its own calls this function: driver and
 * plug-in may crash or hang while they are loaded. */
static bool
inspect(void *user, void *answer, struct err *err)
{
    struct findings *f = answer;
    const bool in_sight = plugin_gpu_in_sight();
    const struct backend_ops *ops = NULL;
    *f = *(const struct findings *)user;
    const enum plugin_state state = plugin_load(&ops, err);
    if (!in_sight)
        doctor_add(f, FINDING_OK, "GPU", "no NVIDIA GPU, so the CPU computes");
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
        doctor_add(f, FINDING_OK, "GPU", "%s", ops->describe(b));
        if (ops->note != NULL && ops->note(b)[0] != '\0')
            doctor_add(f, FINDING_NOTE, "plug-in", "%s", ops->note(b));
        ops->close(b);
    } else if (state == PLUGIN_LOADED) {
        doctor_add(f, FINDING_OK, "plug-in", PLUGIN_FILE " exists, for machines with a GPU");
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
