/* OpenMP directives if the compiler supports them; without -fopenmp loops run on the caller's thread. For rare loops
 * only: requests use a team (kernels/team.h). */
#pragma once

#include <stddef.h>
#ifdef _OPENMP
#include <omp.h>
#define PARALLEL(text) _Pragma(#text)
#else
#define PARALLEL(text)
#endif

/* The number of the calling thread in its parallel loop, from 0. */
static inline size_t
openmp_thread(void)
{
#ifdef _OPENMP
    return (size_t)omp_get_thread_num();
#else
    return 0;
#endif
}
