/* Teams of threads: every chunk is carried out once, by whichever thread claims it, and a team finds the size that is
 * the fastest. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "kernels/team.h"
#include "kernels/team_sizing.h"
#include "tests/rigs/test.h"

#define CHUNKS_MOST 300

struct tally {
    uint32_t most;
    unsigned count[CHUNKS_MOST]; /* not atomic, because only one thread claims a chunk */
    atomic_uint done, wrong;
    bool hold; /* a helper keeps its chunk until all others are done */
    atomic_bool held;
    size_t n;
};

static void
count_chunk(void *arg, uint32_t rank, size_t chunk)
{
    struct tally *t = arg;
    if (rank >= t->most || chunk >= t->n)
        atomic_fetch_add(&t->wrong, 1);
    if (t->hold && rank > 0 && !atomic_exchange(&t->held, true))
        while (atomic_load(&t->done) < t->n - 1)
            sched_yield();
    t->count[chunk]++;
    atomic_fetch_add(&t->done, 1);
}

static void
run_steps(struct team *team, uint32_t most, unsigned steps, bool hold)
{
    unsigned state = 1;
    for (unsigned i = 0; i < steps; i++) {
        state = state * 1103515245u + 12345u;
        struct tally t = {.most = most, .n = state / 65536 % CHUNKS_MOST, .hold = hold};
        team_for(team, t.n, count_chunk, &t);
        assert_int_equal(atomic_load(&t.wrong), 0);
        assert_int_equal(atomic_load(&t.done), t.n);
        for (size_t c = 0; c < t.n; c++)
            assert_int_equal(t.count[c], 1);
    }
}

TEST(every_chunk_is_carried_out_once)
{
    for (uint32_t most = 1; most <= 5; most++)
        for (int fixed = 0; fixed <= 1; fixed++) {
            struct team *team = team_open(most, fixed != 0);
            assert_non_null(team);
            run_steps(team, most, 300, false);
            assert_in_range(team_size(team), 1, most);
            team_close(team);
        }
}

TEST(a_helper_that_is_held_up_delays_only_its_own_chunk)
{
    struct team *team = team_open(3, true);
    assert_non_null(team);
    run_steps(team, 3, 200, true); /* hangs if other chunks wait for the held one */
    team_close(team);
}

static void *
lead_beside(void *team)
{
    run_steps(team, 4, 300, false);
    return NULL;
}

TEST(two_threads_may_lead_one_team)
{
    struct team *team = team_open(4, false);
    pthread_t other;
    assert_non_null(team);
    assert_int_equal(pthread_create(&other, NULL, lead_beside, team), 0);
    run_steps(team, 4, 300, false);
    pthread_join(other, NULL);
    team_close(team);
}

/* ---- sizing on a simulated machine ---- */

struct machine {
    double ms[4];    /* duration of a pass, by threads - 1 */
    bool busy;       /* the leader does not always run */
    uint64_t now_ns; /* its clock */
};

/* Simulates passes for so many seconds; returns the share of the time at the given size. */
static double
run_passes(struct team_sizing *s, struct machine *m, double seconds, uint32_t size)
{
    const uint64_t start = m->now_ns, end = start + (uint64_t)(seconds * 1e9);
    uint64_t at_size = 0;
    while (m->now_ns < end) {
        const uint32_t used = s->size;
        const uint64_t took = (uint64_t)(m->ms[used - 1] * 1e6);
        m->now_ns += took;
        at_size += used == size ? took : 0;
        team_sizing_pass(s, 0, 16, took, m->busy ? took / 2 : took, m->now_ns);
    }
    return (double)at_size / (double)(end - start);
}

TEST(the_fastest_size_is_found_and_left_again)
{
    struct team_sizing s;
    struct machine m = {.ms = {2, 1}};
    team_sizing_open(&s, 2);
    assert_greater(run_passes(&s, &m, 2, 2), 0.99); /* other sizes are tried only after a disturbance */
    m = (struct machine){{2, 4}, true, m.now_ns};
    run_passes(&s, &m, 2, 1);
    assert_greater(run_passes(&s, &m, 4, 1), 0.8);
    assert_int_equal(s.home, 1);
    m = (struct machine){{2, 1}, false, m.now_ns};
    assert_greater(run_passes(&s, &m, 4, 2), 0.7);
    assert_int_equal(s.home, 2);
    m.busy = true; /* although it is preempted, two threads are faster */
    assert_greater(run_passes(&s, &m, 4, 2), 0.8);
    assert_int_equal(s.home, 2);
}

TEST(a_size_between_is_found)
{
    struct team_sizing s;
    struct machine m = {.ms = {8, 4, 2.5, 6}, .busy = true};
    team_sizing_open(&s, 4);
    run_passes(&s, &m, 4, 3);
    assert_greater(run_passes(&s, &m, 4, 3), 0.7);
    assert_int_equal(s.home, 3);
}

/* The duration of a pass is compared only with passes of the same kind and length. */
TEST(kinds_of_passes_are_compared_with_their_own)
{
    struct team_sizing s;
    uint64_t now = 0;
    team_sizing_open(&s, 2);
    for (int i = 0; i < 20000; i++) {
        const bool long_one = i / 500 % 2 != 0;
        const uint64_t took = (long_one ? 9000000u : 1000000u) * (s.size == 1 ? 2 : 1);
        team_sizing_pass(&s, long_one ? 3 : 0, 16, took, took / 2, now += took);
        assert_int_equal(s.home, 2);
    }
}
