/* An NVIDIA GPU: in sight, with a driver, with the plug-in that computes on it. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "engine/base/subprocess.h"
#include "kernels/plugin.h"

/* The driver's CUDA version, 12040 for 12.4; 0: libcuda is not here. */
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
say_why(struct findings *f, enum finding_level level, const struct err *why)
{
    static const char intro[] = "backend cuda: ";
    const bool has_intro = strncmp(why->text, intro, sizeof intro - 1) == 0;
    doctor_say_message(f, level, "plug-in", why->text + (has_intro ? sizeof intro - 1 : 0));
}

static void
say_driver(struct findings *f)
{
    char module[64];
    kernel_module(module, sizeof module);
    const int version = driver_version();
    if (version > 0)
        doctor_say(f, FINDING_OK, "GPU driver", NULL, "%s%sfor CUDA %d.%d", module, module[0] != '\0' ? ", " : "",
                   version / 1000, version % 1000 / 10);
    else
        doctor_say(f, FINDING_NOTE, "GPU driver",
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
        doctor_say(f, FINDING_OK, "GPU", NULL, "none of NVIDIA's in sight: the CPU computes");
    else
        say_driver(f);
    if (state == PLUGIN_BROKEN) {
        say_why(f, FINDING_BAD, err);
    } else if (state == PLUGIN_ABSENT && in_sight) {
        say_why(f, FINDING_NOTE, err);
    } else if (state == PLUGIN_LOADED && in_sight) {
        struct backend *b = NULL;
        if (!ops->open(&b, &(struct backend_options){.gpu = -1}, err)) {
            say_why(f, FINDING_NOTE, err);
            return true;
        }
        doctor_say(f, FINDING_OK, "GPU", NULL, "%s", ops->describe(b));
        if (ops->note != NULL && ops->note(b)[0] != '\0')
            doctor_say(f, FINDING_NOTE, "plug-in", NULL, "%s", ops->note(b));
        ops->close(b);
    } else if (state == PLUGIN_LOADED) {
        doctor_say(f, FINDING_OK, "plug-in", NULL, PLUGIN_FILE " is there, for machines with a GPU");
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
        say_why(f, errno == ENOMEM ? FINDING_NOTE : FINDING_BAD, &why);
}
