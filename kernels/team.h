/* A team of threads that carries out the steps of a request. The thread that makes the request is the leader; the
 * others are helpers. A step is divided into chunks, which the leader and its helpers claim one by one. The leader
 * waits only for claimed chunks: a helper that does not run because the machine is busy delays a step by at most one
 * chunk, and a sleeping helper causes no delay. A waiting thread spins for some microseconds and then sleeps.
 *
 * A team adjusts its size by measuring the time of passes (team_sizing.h); the remaining helpers sleep. The result of a
 * chunk must not depend on the thread or on the size of the team. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct team;

/* Creates a team of at most `most` threads, including the leader. `fixed`: the size never changes. Returns NULL if
 * there is no memory. Threads start when first needed; there are fewer of them if the system refuses more. */
struct team *team_open(uint32_t most, bool fixed);
void team_close(struct team *);

/* Carries out a chunk on thread `rank` < most; the leader has rank 0. */
typedef void (*team_fn)(void *arg, uint32_t rank, size_t chunk);

/* Calls fn for the chunks 0..n-1, n < 2^16, and returns when all are done; their writes are visible to the caller. If
 * another thread is leading the team, or in a child of fork(), the caller carries out all chunks itself. */
void team_for(struct team *, size_t n, team_fn fn, void *arg);

/* Reports a pass of `units` units of work that took took_ns; the leader ran on a processor for ran_ns of it. Passes of
 * one kind take the same time per unit. */
void team_pass(struct team *, uint32_t kind, double units, uint64_t took_ns, uint64_t ran_ns);

/* Returns the number of threads that work at present. May be called from any thread. */
uint32_t team_size(const struct team *);
uint32_t team_most(const struct team *);
/* The same without the effect of a trial in progress. May be called from any thread. */
uint32_t team_lasting_size(const struct team *);

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

/* Returns the intersection of `whole` with [start, start + n), relative to `start`. */
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
