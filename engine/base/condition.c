#include "engine/base/condition.h"

#include <errno.h>
#include <time.h>

void
condition_open(pthread_cond_t *condition)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

bool
condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_us)
{
    if (until_us == UINT64_MAX)
        return pthread_cond_wait(condition, lock) == 0;
    const struct timespec until = {(time_t)(until_us / 1000000), (long)(until_us % 1000000 * 1000)};
    return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}
