#include "kernels/cuda/gemm.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* "…/specscope-cuda.so", wherever this code was loaded from, with "cublas" in the place of "cuda". */
static bool
find_file(char *path, size_t n)
{
    static const char own[] = "cuda", other[] = "cublas";
    Dl_info here;
    if (dladdr((const void *)GEMM_SYMBOL, &here) == 0 || here.dli_fname == NULL)
        return false;
    const char *slash = strrchr(here.dli_fname, '/'), *name = slash != NULL ? slash : here.dli_fname;
    const char *at = strstr(name, own);
    if (at == NULL)
        return false;
    const int length =
        snprintf(path, n, "%.*s%s%s", (int)(at - here.dli_fname), here.dli_fname, other, at + sizeof own - 1);
    return (size_t)length < n && access(path, F_OK) == 0;
}

bool
gemm_load(const struct gemm_ops **out, struct err *err)
{
    char path[PATH_MAX];
    const struct gemm_ops *(*table)(void) = NULL;
    *out = NULL;
    if (!find_file(path, sizeof path))
        return err_set(
            err, ERR_WORK,
            "there is no specscope-cublas.so beside the CUDA plug-in; `make cuda` builds it where the toolkit "
            "has cuBLASLt");
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* as the CUDA plug-in itself */
    if (handle == NULL)
        return err_set(err, ERR_WORK, "%.120s can't be loaded (%.200s); is libcublasLt here?", path, dlerror());
    void *symbol = dlsym(handle, GEMM_SYMBOL);
    memcpy(&table, &symbol, sizeof table); /* ISO C has no cast for it */
    dlclose(handle);
    const struct gemm_ops *ops = table != NULL ? table() : NULL;
    if (ops == NULL || ops->abi != GEMM_ABI)
        return err_set(err, ERR_WORK, "%.200s is of another specscope; build it again with `make cuda`", path);
    *out = ops;
    return true;
}
