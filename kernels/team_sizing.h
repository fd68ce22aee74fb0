/* The number of threads that a team works with, found by trying. Work comes in passes of several kinds; what a unit of each costs
 * is measured over windows of some passes. While the leader does not run for a part of its passes, because the system takes
 * its processor away or because it waits for a helper that does not run, a smaller team is tried for a window, and stays if it is
 * faster; a team that is smaller than it could be tries a larger one in the same way. A try that fails is repeated later, up to a
 * second. */
#ifndef KERNELS_TEAM_SIZING_H
#define KERNELS_TEAM_SIZING_H

#include <stdbool.h>
#include <stdint.h>

#define TEAM_PASS_KINDS 8

struct team_sizing {
    uint32_t most, size; /* threads that work now; */
    uint32_t home;       /* and without the try that is under way: what a user is shown */
    bool larger;         /* the last try was of a larger team */
    struct {
        double units, ns; /* of this window */
        double cost;      /* ns a unit, of the team at home; 0: not known */
    } kind[TEAM_PASS_KINDS];
    double window_ns, ran_ns;  /* passes of this window; of it, the leader ran */
    uint32_t passes;           /* their number */
    uint64_t try_ns, pause_ns; /* when the next try is, and the pause after it */
};

void team_sizing_open(struct team_sizing *, uint32_t most);
/* A pass of so many units of work ended now; the leader ran for ran_ns of it. */
void team_sizing_pass(struct team_sizing *, uint32_t kind, double units, uint64_t took_ns, uint64_t ran_ns,
                      uint64_t now_ns);

#endif
