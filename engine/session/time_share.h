/* A share of the time for work on the side, in slices. A slice may overdraw it; the time until the next one makes up for
 * that. Time that nobody used is saved up to a bound only. */
#ifndef ENGINE_SESSION_TIME_SHARE_H
#define ENGINE_SESSION_TIME_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define TIME_SHARE_SAVED 20000 /* us, at most */

struct time_share {
    double share;     /* [0, 1] */
    double credit_us; /* below 0: overdrawn */
    uint64_t now_us;  /* when it was asked last */
};

static inline bool
time_share_left(struct time_share *t, uint64_t now_us)
{
    const double earned = t->now_us == 0 ? 0 : t->share * (double)(now_us - t->now_us);
    t->credit_us = t->credit_us + earned < TIME_SHARE_SAVED ? t->credit_us + earned : TIME_SHARE_SAVED;
    t->now_us = now_us;
    return t->credit_us > 0;
}

static inline void
time_share_spend(struct time_share *t, uint64_t us)
{
    t->credit_us -= (double)us;
}

#endif
