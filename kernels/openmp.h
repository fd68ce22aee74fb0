/* OpenMP's directives where the compiler has it; without -fopenmp everything runs on the caller's thread. For loops that are
 * rare: requests are carried out by a team (kernels/team.h). */
#ifndef KERNELS_OPENMP_H
#define KERNELS_OPENMP_H

#ifdef _OPENMP
#define PARALLEL(text) _Pragma(#text)
#else
#define PARALLEL(text)
#endif

#endif
