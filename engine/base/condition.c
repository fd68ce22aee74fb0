#include "engine/base/condition.h"

#include <errno.h>

#include "engine/base/platform.h"

void
condition_open(pthread_cond_t *condition)
{
    platform_condition_open(condition);
}

bool
condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_us)
{
    if (until_us == UINT64_MAX)
        return pthread_cond_wait(condition, lock) == 0;
    return platform_condition_wait(condition, lock, until_us) != ETIMEDOUT;
}
