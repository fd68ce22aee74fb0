/* Adjusts the number of threads of a team by trial. Work comes in passes of several kinds; the time per unit of each
 * kind is measured over windows of several passes. If the leader does not run for a part of its passes, because the
 * system gives its processor to another process or because it waits for a helper that does not run, a smaller team is
 * tried for one window and kept if it is faster. A team smaller than its maximum tries a larger size in the same way. A
 * failed trial is repeated after a pause of up to a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TEAM_PASS_KINDS 8

struct team_sizing {
    uint32_t most, size; /* maximum; threads that work at present */
    uint32_t home;       /* size without the trial in progress, for display */
    bool larger;         /* the last trial was of a larger team */
    struct {
        double units, ns; /* totals of this window */
        double cost;      /* ns per unit at size `home`; 0: unknown */
    } kind[TEAM_PASS_KINDS];
    double window_ns, ran_ns;  /* duration of this window's passes; time the leader ran during them */
    uint32_t passes;           /* number of passes in this window */
    uint64_t try_ns, pause_ns; /* time of the next trial, and the pause after it */
};

void team_sizing_open(struct team_sizing *, uint32_t most);
/* Records a pass of `units` units of work that ended at now_ns and took took_ns; the leader ran for ran_ns of it. */
void team_sizing_pass(struct team_sizing *, uint32_t kind, double units, uint64_t took_ns, uint64_t ran_ns,
                      uint64_t now_ns);
