/* What the benchmarks time with. */
#ifndef CLI_GENERATION_TIMING_H
#define CLI_GENERATION_TIMING_H

#include <stddef.h>

double now_us(void);                /* of the monotonic clock */
double median(double *v, size_t n); /* the upper one of an even number; leaves v sorted; n > 0 */

#endif
