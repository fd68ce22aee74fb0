#include "kernels/team.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/platform.h"
#include "kernels/team_sizing.h"

#define HELPER_SPINS_NS 200000u /* longer than the leader computes between two steps */
#define LEADER_SPINS_NS 20000u  /* longer than the usual difference between running threads in a step */
#define PAUSES          16      /* between two readings of the clock */

/* A thread's share of a step, from which other threads claim chunks when their own are done. It stays with the same
 * thread from step to step, and thus in its caches. */
struct share {
    /* Packed: chunks << 48 | chunks done << 24 | claims. Claims may exceed the chunks. A claimed chunk keeps the step
     * from ending, so the fields below, if read after a claim, belong to the same step. */
    _Alignas(64) _Atomic uint64_t state;
    size_t first;
    team_fn fn;
    void *arg;
};

struct helper {
    struct share share;
    struct team *team;
    uint32_t rank;
    pthread_t thread;
    _Alignas(64) atomic_uint asleep; /* 1 until the leader clears it */
};

struct team {
    _Alignas(64) atomic_uint size; /* number of threads that have a share; written by the leader */
    atomic_uint lasting_size;      /* copy of sizing.home for other threads */
    atomic_uint waiting, bell;     /* waiting: the leader sleeps until a helper rings the bell */
    atomic_bool quit;
    uint32_t most;
    bool fixed;
    _Alignas(64) atomic_bool led; /* the fields below belong to the leader */
    uint32_t started;             /* number of threads, including the leader */
    pid_t process;
    struct team_sizing sizing;
    struct helper threads[]; /* (most); rank 0 is the leader */
};

static inline void
pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- chunks ---- */

#define CLAIM ((uint64_t)1)
#define DONE  ((uint64_t)1 << 24)
#define FIELD (DONE - 1)

static bool
is_open(uint64_t state)
{
    return (state & FIELD) < state >> 48;
}

static bool
is_done(uint64_t state)
{
    return (state / DONE & FIELD) == state >> 48;
}

static uint64_t
look(const struct share *s)
{
    return atomic_load_explicit(&s->state, memory_order_acquire);
}

/* Carries out chunks of a share until none is left to claim. */
static void
carry_out(struct team *t, struct share *s, uint32_t rank)
{
    if (!is_open(look(s)))
        return;
    for (uint64_t state = atomic_fetch_add(&s->state, CLAIM); is_open(state);) {
        s->fn(s->arg, rank, s->first + (state & FIELD));
        state = atomic_fetch_add(&s->state, DONE + CLAIM);
        if (rank > 0 && atomic_load(&t->waiting) != 0) {
            atomic_fetch_add(&t->bell, 1);
            platform_wake(&t->bell);
        }
    }
}

/* Carries out chunks of its own share, then of other shares. */
static void
carry_out_all(struct team *t, uint32_t rank, uint32_t size)
{
    for (uint32_t i = 0, other = rank; i < size; i++, other = other + 1 < size ? other + 1 : 0)
        carry_out(t, &t->threads[other].share, rank);
}

/* ---- helpers ---- */

/* Sleeps until the leader wakes this helper. If the leader misses it in one step, it wakes it in the next. */
static void
fall_asleep(struct helper *h)
{
    struct team *t = h->team;
    atomic_store(&h->asleep, 1);
    if (atomic_load(&t->quit) || is_open(atomic_load(&h->share.state)))
        atomic_store(&h->asleep, 0);
    while (atomic_load(&h->asleep) == 1)
        platform_sleep_on(&h->asleep, 1);
}

static void
wake(struct helper *h)
{
    if (atomic_load(&h->asleep) == 1 && atomic_exchange(&h->asleep, 0) == 1)
        platform_wake(&h->asleep);
}

static void *
help(void *helper)
{
    struct helper *h = helper;
    struct team *t = h->team;
    uint64_t idle_ns = 0; /* start of the idle time; 0: not idle */
    while (!atomic_load_explicit(&t->quit, memory_order_relaxed)) {
        for (int i = 0; i < PAUSES && !is_open(look(&h->share)); i++)
            pause_briefly();
        const uint32_t size = atomic_load_explicit(&t->size, memory_order_relaxed);
        if (is_open(look(&h->share))) {
            carry_out_all(t, h->rank, size);
            idle_ns = 0;
            continue;
        }
        const uint64_t now = clock_ns();
        if (idle_ns == 0)
            idle_ns = now;
        if (h->rank >= size || now - idle_ns > HELPER_SPINS_NS) {
            fall_asleep(h);
            idle_ns = 0;
        }
    }
    return NULL;
}

/* Helpers block all signals, so that the program's own threads receive them. */
static void
start_helpers(struct team *t)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (t->started = 1; t->started < t->most; t->started++) {
        struct helper *h = &t->threads[t->started];
        h->team = t;
        h->rank = t->started;
        if (pthread_create(&h->thread, NULL, help, h) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->process = getpid();
    t->sizing.most = t->started;
    if (t->sizing.size > t->started) {
        t->sizing.home = t->sizing.size = t->started;
        atomic_store(&t->size, t->started);
    }
}

/* ---- the leader ---- */

static bool
all_done(const struct team *t, uint32_t size)
{
    uint32_t rank = 0;
    while (rank < size && is_done(look(&t->threads[rank].share)))
        rank++;
    return rank == size;
}

/* Waits until all claimed chunks are done. */
static void
wait_for_helpers(struct team *t, uint32_t size)
{
    uint64_t start = 0;
    for (;;) {
        for (int i = 0; i < PAUSES; i++) {
            if (all_done(t, size))
                return;
            pause_briefly();
        }
        const uint64_t now = clock_ns();
        if (start == 0)
            start = now;
        if (now - start < LEADER_SPINS_NS)
            continue;
        const unsigned bell = atomic_load(&t->bell);
        atomic_store(&t->waiting, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (!all_done(t, size))
            platform_sleep_on(&t->bell, bell);
        atomic_store(&t->waiting, 0);
    }
}

static void
share_out(struct team *t, size_t n, team_fn fn, void *arg, uint32_t size)
{
    for (uint32_t rank = size; rank-- > 0;) {
        struct helper *h = &t->threads[rank];
        const struct range part = team_share(n, rank, size);
        h->share.first = part.first;
        h->share.fn = fn;
        h->share.arg = arg;
        atomic_store_explicit(&h->share.state, (uint64_t)(part.last - part.first) << 48, memory_order_release);
        if (rank > 0 && part.first < part.last)
            wake(h);
    }
}

void
team_for(struct team *t, size_t n, team_fn fn, void *arg)
{
    if (n > 1 && t->most > 1 && !atomic_exchange_explicit(&t->led, true, memory_order_acquire)) {
        if (t->started == 0)
            start_helpers(t);
        const uint32_t size = t->sizing.size;
        if (size > 1) {
            share_out(t, n, fn, arg, size);
            carry_out_all(t, 0, size);
            wait_for_helpers(t, size);
        }
        atomic_store_explicit(&t->led, false, memory_order_release);
        if (size > 1)
            return;
    }
    for (size_t chunk = 0; chunk < n; chunk++)
        fn(arg, 0, chunk);
}

void
team_pass(struct team *t, uint32_t kind, double units, uint64_t took_ns, uint64_t ran_ns)
{
    if (t->fixed || t->most == 1 || atomic_exchange_explicit(&t->led, true, memory_order_acquire))
        return;
    team_sizing_pass(&t->sizing, kind, units, took_ns, ran_ns, clock_ns());
    atomic_store_explicit(&t->size, t->sizing.size, memory_order_relaxed);
    atomic_store_explicit(&t->lasting_size, t->sizing.home, memory_order_relaxed);
    atomic_store_explicit(&t->led, false, memory_order_release);
}

struct team *
team_open(uint32_t most, bool fixed)
{
    const size_t bytes = sizeof(struct team) + most * sizeof(struct helper);
    struct team *t = aligned_alloc(_Alignof(struct team), bytes);
    if (t == NULL)
        return NULL;
    *t = (struct team){.most = most, .fixed = fixed};
    atomic_init(&t->size, most);
    atomic_init(&t->lasting_size, most);
    team_sizing_open(&t->sizing, most);
    for (uint32_t i = 0; i < most; i++) {
        atomic_init(&t->threads[i].asleep, 0);
        atomic_init(&t->threads[i].share.state, 0);
    }
    return t;
}

void
team_close(struct team *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->quit, true);
    for (uint32_t i = 1; i < t->started && t->process == getpid(); i++) {
        wake(&t->threads[i]);
        pthread_join(t->threads[i].thread, NULL);
    }
    free(t);
}

uint32_t
team_size(const struct team *t)
{
    return atomic_load_explicit(&t->size, memory_order_relaxed);
}

uint32_t
team_most(const struct team *t)
{
    return t->most;
}

uint32_t
team_lasting_size(const struct team *t)
{
    return atomic_load_explicit(&t->lasting_size, memory_order_relaxed);
}
