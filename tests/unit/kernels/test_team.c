/* Teams of threads: every chunk is carried out once, by whichever thread claims it, and a team shrinks and grows by what it saves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "kernels/team.h"
#include "kernels/team_sizing.h"

#define CHUNKS_MOST 300

struct tally {
    uint32_t most;
    unsigned count[CHUNKS_MOST]; /* plain: who claims a chunk has it alone */
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

static void
test_every_chunk_is_carried_out_once(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 5; most++)
        for (int fixed = 0; fixed <= 1; fixed++) {
            struct team *team = team_open(most, fixed != 0);
            assert_non_null(team);
            run_steps(team, most, 300, false);
            assert_in_range(team_size(team), 1, most);
            team_close(team);
        }
}

static void
test_a_helper_that_is_held_up_delays_only_its_own_chunk(void **state)
{
    (void)state;
    struct team *team = team_open(3, true);
    assert_non_null(team);
    run_steps(team, 3, 200, true); /* hangs where other chunks wait for the one that is held */
    team_close(team);
}

static void *
lead_beside(void *team)
{
    run_steps(team, 4, 300, false);
    return NULL;
}

static void
test_two_threads_may_lead_one_team(void **state)
{
    (void)state;
    struct team *team = team_open(4, false);
    pthread_t other;
    assert_non_null(team);
    assert_int_equal(pthread_create(&other, NULL, lead_beside, team), 0);
    run_steps(team, 4, 300, false);
    pthread_join(other, NULL);
    team_close(team);
}

static void
test_a_team_that_waits_shrinks_and_grows_again_later(void **state)
{
    (void)state;
    struct team_sizing s;
    uint64_t now = 1000;
    const struct team_step slow = {.chunks = 8, .own = 4, .chunk_ns = 1000, .wait_ns = 4000000};
    const struct team_step fast = {.chunks = 8, .own = 4, .chunk_ns = 100000};
    team_sizing_open(&s, 2);
    team_sizing_judge(&s, &slow, now);
    assert_int_equal(s.size, 2); /* one interruption is nothing */
    for (int i = 0; i < 3; i++)
        team_sizing_judge(&s, &slow, now);
    assert_int_equal(s.size, 1);
    team_sizing_grow(&s, now);
    assert_int_equal(s.size, 1);
    team_sizing_grow(&s, now + 1100000000u);
    assert_int_equal(s.size, 2);
    for (int i = 0; i < 100; i++)
        team_sizing_judge(&s, &fast, now);
    assert_int_equal(s.size, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chunk_is_carried_out_once),
        cmocka_unit_test(test_a_helper_that_is_held_up_delays_only_its_own_chunk),
        cmocka_unit_test(test_two_threads_may_lead_one_team),
        cmocka_unit_test(test_a_team_that_waits_shrinks_and_grows_again_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
