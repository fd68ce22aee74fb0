/* Condition variables whose waits end by the monotonic clock: a clock that is set right changes no deadline. */
#ifndef ENGINE_BASE_CONDITION_H
#define ENGINE_BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void condition_open(pthread_cond_t *); /* pthread_cond_destroy() ends it */

/* Waits until somebody signals, or clock_us() is until_us (UINT64_MAX: for ever). False: that time has come. As with
 * every condition, what was waited for is looked at again afterwards. */
bool condition_wait(pthread_cond_t *, pthread_mutex_t *, uint64_t until_us);

#endif
