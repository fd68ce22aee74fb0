/* A team's size, found by its leader's own clock. What the last threads save in a step is the time that a smaller team would
 * have needed for its chunks, less the time that this one took; where a helper is interrupted with a chunk, that is
 * negative by as long as the leader waits. Savings are kept up to a bound, so that a single interruption changes nothing. */
#ifndef KERNELS_TEAM_SIZING_H
#define KERNELS_TEAM_SIZING_H

#include <stddef.h>
#include <stdint.h>

struct team_sizing {
    uint32_t most, size;
    int64_t saved_ns;  /* by the last threads; below 0 the team shrinks */
    uint64_t retry_ns; /* when it grows again, */
    uint64_t pause_ns; /* and how long it waits for that when it shrinks the next time */
};

struct team_step {
    size_t chunks, own; /* all, and the leader's own */
    uint64_t chunk_ns;  /* that one of them takes, while nothing interrupts it; 0: not measured */
    uint64_t wait_ns;   /* that the leader waited after its last one */
};

void team_sizing_open(struct team_sizing *, uint32_t most);
/* Before a step: grows when it is time to. */
void team_sizing_grow(struct team_sizing *, uint64_t now_ns);
/* Takes a step into account that ended now. */
void team_sizing_judge(struct team_sizing *, const struct team_step *, uint64_t now_ns);

#endif
