/* Threads that walk one request together: an OpenMP team, and a barrier that stays polite on a shared machine.
 *
 * A request opens one parallel region and its workers wait for each other at barriers between steps; opening a region for every step
 * would cost more than the steps of a small model. Without -fopenmp everything runs on the caller's thread.
 */
#ifndef KERNELS_TEAM_H
#define KERNELS_TEAM_H

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#define PARALLEL(text) _Pragma(#text)
#else
#define PARALLEL(text)
#endif

struct team {
    _Alignas(64) atomic_uint arrived;
    _Alignas(64) atomic_uint generation;
};

struct range {
    size_t first, last; /* [first, last) */
};

static inline uint32_t
team_rank(void)
{
#ifdef _OPENMP
    return (uint32_t)omp_get_thread_num();
#else
    return 0;
#endif
}

/* How many threads the region really got: the runtime may give fewer than asked for. */
static inline uint32_t
team_size(void)
{
#ifdef _OPENMP
    return (uint32_t)omp_get_num_threads();
#else
    return 1;
#endif
}

/* Everyone's writes before it are visible to everyone after it. Spins for some microseconds, longer than any step of a
 * balanced team differs, then yields: the other thread was probably put aside for the screen's. */
static inline void
team_barrier(struct team *t, uint32_t size)
{
    if (size == 1)
        return;
    unsigned now = atomic_load_explicit(&t->generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 == size) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&t->generation, now + 1, memory_order_release);
        return;
    }
    for (unsigned spins = 0; atomic_load_explicit(&t->generation, memory_order_acquire) == now; spins++) {
        if (spins > 1000)
            sched_yield();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

/* This worker's part of n equal units. */
static inline struct range
team_share(size_t n, uint32_t rank, uint32_t size)
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
