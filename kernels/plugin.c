#include "kernels/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/platform.h"

#ifndef SPECSCOPE_LIBDIR
#define SPECSCOPE_LIBDIR "/usr/local/lib/specscope"
#endif

/* Returns the folder of the program; false: the system does not provide it. */
static bool
program_folder(char *out, size_t n)
{
    char *slash = platform_program(out, n) ? strrchr(out, '/') : NULL;
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

bool
plugin_find(const char *file, char *path, size_t n)
{
    char folder[PATH_MAX - 64];
    if (program_folder(folder, sizeof folder)) {
        static const char *const beside[] = {"", "/../lib/specscope", "/.."}; /* the last: for test programs */
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
            snprintf(path, n, "%s%s/%s", folder, beside[i], file);
            if (access(path, F_OK) == 0)
                return true;
        }
    }
    snprintf(path, n, "%s/%s", SPECSCOPE_LIBDIR, file);
    return access(path, F_OK) == 0;
}

static bool
find_file(char *path, size_t n)
{
    const char *given = getenv("SPECSCOPE_CUDA_PLUGIN");
    if (given == NULL)
        return plugin_find(PLUGIN_FILE, path, n);
    /* dlopen would search for a bare name in the system's folders */
    const int len = snprintf(path, n, strchr(given, '/') != NULL ? "%s" : "./%s", given);
    return given[0] != '\0' && (size_t)len < n && access(path, F_OK) == 0;
}

enum plugin_state
plugin_load(const struct backend_ops **out, struct err *err)
{
    char path[PATH_MAX];
    const struct backend_ops *(*table)(void) = NULL;
    *out = NULL;
#ifdef SPECSCOPE_STATIC /* a static program has a C library of its own */
    err_set(err, ERR_WORK,
            "backend cuda: this program is a static one, which loads no plug-ins; install the other one, or use "
            "--backend cpu");
    return PLUGIN_ABSENT;
#endif
    if (!find_file(path, sizeof path)) {
        err_set(err, ERR_WORK,
                "backend cuda: there is no " PLUGIN_FILE
                " beside the program; build it with `make cuda` (it needs nvcc), or use --backend cpu");
        return PLUGIN_ABSENT;
    }
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        err_set(err, ERR_WORK, "backend cuda: %.300s is not a file; build it with `make cuda`", path);
        return PLUGIN_BROKEN;
    }
    /* Never unloaded: a driver's own threads and exit handlers outlive the last use of the table. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        err_set(err, ERR_WORK, "backend cuda: %.120s can't be loaded (%.200s); build it again with `make cuda`", path,
                dlerror());
        return PLUGIN_BROKEN;
    }
    void *symbol = dlsym(handle, PLUGIN_SYMBOL);
    memcpy(&table, &symbol, sizeof table); /* ISO C has no cast from void * to a function pointer */
    dlclose(handle);
    if (table == NULL) {
        err_set(err, ERR_WORK, "backend cuda: %.200s is no plug-in of specscope; build it with `make cuda`", path);
        return PLUGIN_BROKEN;
    }
    const struct backend_ops *ops = table();
    if (ops->abi != BACKEND_ABI) {
        err_set(err, ERR_WORK, "backend cuda: %.200s speaks ABI %u, this program %u; build both from the same sources",
                path, (unsigned)ops->abi, (unsigned)BACKEND_ABI);
        return PLUGIN_BROKEN;
    }
    *out = ops;
    return PLUGIN_LOADED;
}

bool
plugin_gpu_in_sight(void)
{
    static const char *const signs[] = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/nvgpu"}; /* dxg: WSL */
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (access(signs[i], F_OK) == 0)
            return true;
    return false;
}
