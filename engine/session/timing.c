#include "engine/session/timing.h"

#include "engine/base/clock.h"

#define LATE_US 100000 /* what is behind time by more doesn't hurry */

uint64_t
timing_stands(const struct timing *t, bool in_round)
{
    if (t->paused)
        return UINT64_MAX;
    const bool stepping = t->step_rounds > 0 || t->step_token;
    return in_round || stepping || clock_us() >= t->next_us ? 0 : t->next_us;
}

void
timing_step(struct timing *t, bool token, uint32_t rounds)
{
    t->step_token = token;
    t->step_rounds = rounds;
}

bool
timing_token(struct timing *t)
{
    const bool pauses = t->step_token;
    t->step_token = false;
    return pauses;
}

void
timing_slow(struct timing *t, uint32_t emitted)
{
    if (!(t->pace > 0))
        return;
    const uint64_t now = clock_us();
    t->next_us = (t->next_us + LATE_US > now ? t->next_us : now) + (uint64_t)(emitted * 1e6 / t->pace);
}

bool
timing_break(struct timing *t, uint32_t round)
{
    const bool reached = t->break_at > 0 && round >= t->break_at;
    if (reached)
        t->break_at = 0;
    return reached;
}

bool
timing_round(struct timing *t)
{
    return t->step_rounds > 0 && --t->step_rounds == 0;
}
