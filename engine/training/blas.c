#include "engine/training/blas.h"

#include <dlfcn.h>
#include <string.h>

enum { SEQUENTIAL, PTHREADS, OPENMP }; /* what openblas_get_parallel() says; with OpenMP a caller in a team is alone */

static void *
symbol(const char *name) /* NULL where the BLAS is not OpenBLAS */
{
    return dlsym(RTLD_DEFAULT, name);
}

uint32_t
blas_callers(uint32_t wanted)
{
    int (*parallel)(void) = NULL;
    void (*set_threads)(int) = NULL;
    void *found = symbol("openblas_get_parallel"), *setter = symbol("openblas_set_num_threads");
    memcpy(&parallel, &found, sizeof found); /* ISO C has no cast for it */
    memcpy(&set_threads, &setter, sizeof setter);
    if (parallel == NULL)
        return wanted;
    const int built = parallel();
    if (built == PTHREADS && set_threads != NULL)
        set_threads(1);
    return built == SEQUENTIAL && wanted > 1 ? 1 : wanted;
}
