#include "kernels/blas_library.h"

#ifdef SPECSCOPE_STATIC
#include <cblas.h>
#include <string.h>

bool
blas_library_load(struct err *err)
{
    (void)err;
    return true;
}

void *
blas_library_symbol(const char *name)
{
    void (*const multiply)(void) = (void (*)(void))cblas_sgemm;
    void *symbol = NULL;
    if (strcmp(name, "cblas_sgemm") == 0)
        memcpy(&symbol, &multiply, sizeof symbol); /* ISO C has no cast for it */
    return symbol;
}

#else
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "kernels/plugin.h"

#define FILE_NAME "specscope-blas.so"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static struct err failure;

static void
load(void)
{
    char path[PATH_MAX];
    if (!plugin_find(FILE_NAME, path, sizeof path))
        err_set(&failure, ERR_WORK,
                "training cannot multiply: there is no " FILE_NAME " beside the program; build it with `make`");
    else if ((library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == NULL)
        err_set(&failure, ERR_WORK, "training cannot multiply: %.300s; install a BLAS, such as OpenBLAS", dlerror());
}

bool
blas_library_load(struct err *err)
{
    pthread_once(&once, load);
    if (library == NULL && err != NULL)
        *err = failure;
    return library != NULL;
}

void *
blas_library_symbol(const char *name)
{
    return blas_library_load(NULL) ? dlsym(library, name) : NULL; /* of the library that the plug-in is linked with */
}
#endif
