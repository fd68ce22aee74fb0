/* A pause that lasts at least so long by the program's own clock. */
#pragma once

#include <time.h>

#include "base/clock.h"

static inline void
rest_ms(uint64_t ms)
{
    const uint64_t until = clock_ns() + ms * 1000000;
    while (clock_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}
