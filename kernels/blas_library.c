#include "kernels/blas_library.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/subprocess.h"

#define CANNOT "training cannot multiply"
#define CORE   "OPENBLAS_CORETYPE" /* the variable by which an OpenBLAS chooses its kernels when it is loaded */

#ifdef SPECSCOPE_STATIC
static bool
load(struct blas_library *library, uint32_t threads, const char *core, struct err *err)
{
    (void)threads, (void)core, (void)err; /* the library chose its kernels when the program started */
    library->multiply = cblas_sgemm;
    return true;
}

#else
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

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

/* Loads the library; core: the kernels that an OpenBLAS shall take, or NULL. */
static bool
load(struct blas_library *library, uint32_t threads, const char *core, struct err *err)
{
    char path[PATH_MAX];
    int (*parallel)(void);
    void (*set_threads)(int);
    char *(*core_name)(void);
    if (!plugin_find(FILE_NAME, path, sizeof path))
        return err_set(err, ERR_WORK, CANNOT ": there is no " FILE_NAME " beside the program; build it with `make`");
    if (core != NULL && setenv(CORE, core, 1) != 0)
        return err_set(err, ERR_WORK, CANNOT ": out of memory for " FILE_NAME);
    errno = 0;
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const int why = errno;
    if (core != NULL)
        unsetenv(CORE);
    if (plugin == NULL && why == ENOMEM) /* which dlerror() may not say */
        return err_set(err, ERR_WORK, CANNOT ": out of memory for " FILE_NAME);
    if (plugin == NULL || !find(plugin, "cblas_sgemm", &library->multiply))
        return err_set(err, ERR_WORK, CANNOT ": %.300s; install a BLAS, such as OpenBLAS", dlerror());
    find(plugin, "openblas_get_config", &library->config);
    const int built = find(plugin, "openblas_get_parallel", &parallel) ? parallel() : OPENMP;
    library->sequential = built == SEQUENTIAL;
    if (built == PTHREADS && find(plugin, "openblas_set_num_threads", &set_threads))
        set_threads(1); /* the callers are the threads */
    map_buffers(plugin, library->sequential ? 1 : threads);
    /* last: if it is known, there was enough memory, and other kernels may work */
    if (find(plugin, "openblas_get_corename", &core_name))
        snprintf(library->core, sizeof library->core, "%s", core_name());
    return true;
}
#endif

/* ---- products and kernels ---- */

/* Compares products of all layouts, with sizes that are no multiples of a kernel's, with plain sums. */
static bool
products_right(__typeof__(cblas_sgemm) *multiply)
{
    enum { M = 75, N = 83, K = 301 };
    static float a[M * K], b[K * N], c[M * N]; /* in a child process */
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i * 37 % 101 - 50) / 64;
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i * 53 % 97 - 48) / 64;
    for (int layout = 0; layout < 4; layout++) {
        const bool ta = (layout & 1) != 0, tb = (layout & 2) != 0;
        multiply(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, M, N, K, 1, a,
                 ta ? M : K, b, tb ? K : N, 0, c, N);
        for (int i = 0; i < M * N; i++) {
            const int row = i / N, col = i % N;
            double sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                const double term =
                    (double)a[ta ? k * M + row : row * K + k] * (double)b[tb ? col * K + k : k * N + col];
                sum += term;
                size += fabs(term);
            }
            if (!(fabs((double)c[i] - sum) <= 1e-4 * size))
                return false;
        }
    }
    return true;
}

struct attempt {
    uint32_t threads;
    const char *core;
};

/* In a child process: the answer is the library's own. */
static bool
try(void *attempt, void *answer, struct err *err)
{
    const struct attempt *a = attempt;
    struct blas_library *library = answer;
    if (!load(library, a->threads, a->core, err))
        return false;
    if (a->core != NULL && strcasecmp(library->core, a->core) != 0)
        return err_set(err, ERR_WORK, CANNOT ": this OpenBLAS has no kernels for %s", a->core);
    return products_right(library->multiply) ||
           err_set(err, ERR_WORK,
                   CANNOT ": products of this BLAS%s%s are wrong on this processor; install another version of it",
                   library->core[0] != '\0' ? " for " : "", library->core);
}

/* Returns the better kernels that this processor can run, best first; ends with NULL. */
static const char *const *
better_cores(void)
{
    static const char *const cores[] = {"SkylakeX", "Haswell", NULL};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return cores;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return cores + 1;
#endif
    return cores + 2;
}

/* Returns whether these kernels use AVX2 at least; true for a library that is not OpenBLAS. */
static bool
is_recent(const char *core)
{
    static const char *const recent[] = {"", "Haswell", "Zen", "Excavator", "SkylakeX", "Cooperlake", "SapphireRapids"};
    for (size_t i = 0; i < sizeof recent / sizeof *recent; i++)
        if (strcasecmp(core, recent[i]) == 0)
            return true;
    return false;
}

/* Finds kernels that are right, and recent if possible. *core: those to request, or NULL. */
static bool
choose(uint32_t threads, const char **core, struct blas_library *library, struct err *err)
{
    const char *const set = getenv(CORE), *const *better = better_cores();
    struct attempt a = {threads, NULL};
    struct blas_library usual = {0}, tried;
    struct err why = {0}, refused = {0};
    const bool right = subprocess_run(try, &a, &usual, sizeof usual, CANNOT, err);
    *core = NULL;
    usual.outdated = !is_recent(usual.core) && *better != NULL;
    *library = usual;
    if ((right && !usual.outdated) || usual.core[0] == '\0' || (set != NULL && set[0] != '\0'))
        return right;
    for (; *better != NULL; better++) {
        a.core = *better;
        bool works = false;
        for (int attempts = 0; attempts < 2 && !works && strcasecmp(usual.core, *better) != 0; attempts++) {
            tried = (struct blas_library){0}; /* again after a failure: a lack of memory may be over */
            works = subprocess_run(try, &a, &tried, sizeof tried, CANNOT, &why);
        }
        if (works) {
            *core = *better;
            *library = tried;
            snprintf(library->avoided, sizeof library->avoided, "%s", usual.core);
            snprintf(library->refused, sizeof library->refused, "%.*s", (int)sizeof library->refused - 1, refused.text);
            return true;
        }
        if (err_is_memory(&why)) /* other kernels would round differently */
            return err_copy(err, &why);
        refused = why;
    }
    snprintf(library->refused, sizeof library->refused, "%.*s", (int)sizeof library->refused - 1, refused.text);
    return right;
}

const struct blas_library *
blas_library(uint32_t threads, struct err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct blas_library library;
    static struct err failure;
    static bool tried, usable;
    const char *core;
    pthread_mutex_lock(&lock);
    if (!tried)
        usable = choose(threads, &core, &library, &failure) && load(&library, threads, core, &failure);
    tried = true;
    pthread_mutex_unlock(&lock);
    if (!usable)
        *err = failure;
    return usable ? &library : NULL;
}
