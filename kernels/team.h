/* Threads that carry out a request's steps together with the thread that makes it, the leader. A step is cut into chunks,
 * which the leader and its helpers claim one after the other; the leader waits only for chunks that were claimed. So a
 * helper that does not run, because the machine is busy, delays a step by one chunk at most, and one that sleeps delays
 * nothing. A waiting thread spins for some microseconds and then sleeps.
 *
 * A team finds its size by trying, from the time of passes (team_sizing.h); helpers beyond it sleep.
 * What a chunk computes must not depend on the thread or on the size of the team. */
#ifndef KERNELS_TEAM_H
#define KERNELS_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct team;

/* `most` threads, the leader among them. `fixed`: the team never changes its size. NULL: no memory. Threads start when
 * they are needed first; fewer where the system has no more. */
struct team *team_open(uint32_t most, bool fixed);
void team_close(struct team *);

/* Thread `rank` < most carries out a chunk; the leader has rank 0. */
typedef void (*team_fn)(void *arg, uint32_t rank, size_t chunk);

/* Calls fn for the chunks 0..n-1, n < 2^16, and returns when all are done: their writes are visible to the caller. While
 * another thread leads the team, and in a child of fork(), the caller carries out all chunks itself. */
void team_for(struct team *, size_t n, team_fn fn, void *arg);

/* The leader's pass of so many units of work took so long, and the leader ran for ran_ns of it. Passes of one kind have the same time
 * a unit. */
void team_pass(struct team *, uint32_t kind, double units, uint64_t took_ns, uint64_t ran_ns);

/* Threads that work now; any thread may ask. */
uint32_t team_size(const struct team *);
uint32_t team_most(const struct team *);
/* The same but for a try that is under way. Any thread may ask. */
uint32_t team_settled(const struct team *);

/* ---- shares ---- */

struct range {
    size_t first, last; /* [first, last) */
};

/* Part `rank` of `size` of n equal units. */
static inline struct range
team_share(size_t n, size_t rank, size_t size)
{
    return (struct range){n * rank / size, n * (rank + 1) / size};
}

/* What [first, last) of the whole has of the part that starts at `start` and is n long, counted from `start`. */
static inline struct range
range_overlap(struct range whole, size_t start, size_t n)
{
    size_t first = whole.first > start ? whole.first - start : 0, last = whole.last > start ? whole.last - start : 0;
    return (struct range){first < n ? first : n, last < n ? last : n};
}

static inline struct range
range_times(struct range r, size_t n)
{
    return (struct range){r.first * n, r.last * n};
}

#endif
