#include "kernels/team_sizing.h"

#include <stdbool.h>

#define SAVED_MOST_NS  8000000 /* two interruptions by the scheduler */
#define TRIAL_NS       3000000 /* what a larger team may lose until it is found too large again */
#define FIRST_PAUSE_NS 50000000u
#define LAST_PAUSE_NS  1000000000u

static uint32_t
fewer(uint32_t size)
{
    return size - (size > 4 ? size / 4 : 1);
}

void
team_sizing_open(struct team_sizing *s, uint32_t most)
{
    *s = (struct team_sizing){.most = most, .size = most, .saved_ns = SAVED_MOST_NS, .pause_ns = FIRST_PAUSE_NS};
}

void
team_sizing_grow(struct team_sizing *s, uint64_t now_ns)
{
    if (s->size == s->most || now_ns < s->retry_ns)
        return;
    s->size += s->size / 3 > 1 ? s->size / 3 : 1;
    s->size = s->size < s->most ? s->size : s->most;
    s->saved_ns = TRIAL_NS;
}

void
team_sizing_judge(struct team_sizing *s, const struct team_step *step, uint64_t now_ns)
{
    const uint32_t smaller = s->size > 1 ? fewer(s->size) : 1;
    const bool interrupted = step->own == 1 && step->chunks > s->size; /* the leader itself: chunk_ns means nothing */
    const size_t longer = (step->chunks + smaller - 1) / smaller;      /* chunks of each thread of a smaller team */
    s->saved_ns -= (int64_t)step->wait_ns;
    if (!interrupted)
        s->saved_ns += ((int64_t)longer - (int64_t)step->own) * (int64_t)step->chunk_ns;
    if (s->saved_ns < 0) {
        s->size = smaller;
        s->retry_ns = now_ns + s->pause_ns;
        s->pause_ns = 2 * s->pause_ns < LAST_PAUSE_NS ? 2 * s->pause_ns : LAST_PAUSE_NS;
        s->saved_ns = TRIAL_NS;
    } else if (s->saved_ns > SAVED_MOST_NS) {
        s->saved_ns = SAVED_MOST_NS;
        s->pause_ns = FIRST_PAUSE_NS;
        s->retry_ns = now_ns; /* it may grow on */
    }
}
