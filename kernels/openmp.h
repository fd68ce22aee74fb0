/* OpenMP directives if the compiler supports them; without -fopenmp loops run on the caller's thread. For rare loops
 * only: requests use a team (kernels/team.h). */
#ifndef KERNELS_OPENMP_H
#define KERNELS_OPENMP_H

#ifdef _OPENMP
#define PARALLEL(text) _Pragma(#text)
#else
#define PARALLEL(text)
#endif

#endif
