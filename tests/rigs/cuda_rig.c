#include "tests/rigs/cuda_rig.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/plugin.h"

#define EMULATED "specscope-cuda-emulated.so"

const struct backend_ops *
cuda_for_tests(void)
{
    const struct backend_ops *ops;
    struct err err = {.kind = ERR_NONE};
    if (getenv("SPECSCOPE_CUDA_PLUGIN") == NULL) {
        char path[PATH_MAX];
        const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof EMULATED);
        assert_true(n > 0);
        path[n] = '\0';
        memcpy(strrchr(path, '/') + 1, EMULATED, sizeof EMULATED);
        setenv("SPECSCOPE_CUDA_PLUGIN", path, 1);
    }
    const enum plugin_state state = plugin_load(&ops, &err);
    if (state == PLUGIN_BROKEN)
        fail_msg("%s", err.text);
    if (state == PLUGIN_ABSENT)
        print_message("skipped: %s\n", err.text);
    return ops;
}

bool
cuda_is_emulated(void)
{
    const char *path = getenv("SPECSCOPE_CUDA_PLUGIN");
    return path != NULL && strstr(path, EMULATED) != NULL;
}
