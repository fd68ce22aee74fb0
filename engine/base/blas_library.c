#include "engine/base/blas_library.h"

#include <pthread.h>

#include "engine/base/subprocess.h"

#define CANNOT "training cannot multiply"

#ifdef SPECSCOPE_STATIC
static bool
load(struct blas_library *library, uint32_t threads, struct err *err)
{
    (void)threads, (void)err;
    library->multiply = cblas_sgemm;
    return true;
}

#else
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "kernels/plugin.h"

#define FILE_NAME "specscope-blas.so"

enum {
    SEQUENTIAL,
    PTHREADS,
    OPENMP
}; /* what openblas_get_parallel() returns; with OpenMP a caller in a team is alone */

/* Finds a function of the library that the plug-in is linked with. `to` is a pointer to a function pointer. */
static bool
find(void *plugin, const char *name, void *to)
{
    void *symbol = dlsym(plugin, name);
    memcpy(to, &symbol, sizeof symbol); /* ISO C has no cast for it */
    return symbol != NULL;
}

#define MOST_BUFFERS 64 /* OpenBLAS has at least this number in addition to those of its own threads */

/* Makes OpenBLAS map a large buffer for each thread now: it keeps its buffers, and waits forever if it cannot map one
 * later. */
static void
map_buffers(void *plugin, uint32_t threads)
{
    void *(*take)(int), *held[MOST_BUFFERS];
    void (*give_back)(void *);
    uint32_t n = 0;
    if (!find(plugin, "blas_memory_alloc", &take) || !find(plugin, "blas_memory_free", &give_back))
        return;
    while (n < threads && n < MOST_BUFFERS && (held[n] = take(0)) != NULL)
        n++;
    while (n > 0)
        give_back(held[--n]);
}

static bool
load(struct blas_library *library, uint32_t threads, struct err *err)
{
    char path[PATH_MAX];
    int (*parallel)(void);
    void (*set_threads)(int);
    if (!plugin_find(FILE_NAME, path, sizeof path))
        return err_set(err, ERR_WORK, CANNOT ": there is no " FILE_NAME " beside the program; build it with `make`");
    errno = 0;
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL && errno == ENOMEM) /* which dlerror() may not say */
        return err_set(err, ERR_WORK, CANNOT ": out of memory for " FILE_NAME);
    if (plugin == NULL || !find(plugin, "cblas_sgemm", &library->multiply))
        return err_set(err, ERR_WORK, CANNOT ": %.300s; install a BLAS, such as OpenBLAS", dlerror());
    find(plugin, "openblas_get_config", &library->config);
    const int built = find(plugin, "openblas_get_parallel", &parallel) ? parallel() : OPENMP;
    library->sequential = built == SEQUENTIAL;
    if (built == PTHREADS && find(plugin, "openblas_set_num_threads", &set_threads))
        set_threads(1); /* the callers are the threads */
    map_buffers(plugin, library->sequential ? 1 : threads);
    return true;
}
#endif

static bool
try(void *threads, void *answer, struct err *err)
{
    struct blas_library library = {0};
    (void)answer;
    return load(&library, *(const uint32_t *)threads, err);
}

const struct blas_library *
blas_library(uint32_t threads, struct err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct blas_library library;
    static struct err failure;
    static bool tried, usable;
    pthread_mutex_lock(&lock);
    if (!tried)
        usable = subprocess_run(try, &threads, NULL, 0, CANNOT, &failure) && load(&library, threads, &failure);
    tried = true;
    pthread_mutex_unlock(&lock);
    if (!usable)
        *err = failure;
    return usable ? &library : NULL;
}
