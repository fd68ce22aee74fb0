/* A replay of two saved runs: steps, jumps in both directions and seeking move both. */
#include "engine/scope/scope.h"
#include "tests/rigs/saved_runs.h"
#include "tests/rigs/test.h"
#include "traces/replay.h"

static void
drain(struct replay *r, struct scope *s)
{
    const struct event *e;
    struct err err = {0};
    for (;;) {
        if (replay_rewound(r))
            scope_reset(s);
        assert_ok(replay_next(r, 0, &e, &err), err);
        if (e == NULL && !replay_status(r).seeking)
            return;
        if (e != NULL)
            scope_event(s, e);
    }
}

TEST(a_replay_steps_and_jumps_through_two_traces)
{
    const struct saved_runs *t = *state;
    const struct saved_choice two[2] = {{t->bound, 0, 0}, {t->skip, 0, 0}};
    struct replay *r;
    struct scope *s;
    struct err err = {0};
    assert_ok(replay_open_pair(&r, two, &err), err);
    assert_ok(scope_open(&s, replay_info(r), &err), err);
    const uint64_t rounds = replay_status(r).rounds;
    uint32_t emitted[128][2] = {{0}};
    uint64_t us[128] = {0};
    assert_greater(rounds, 10);
    assert_less(rounds, 128);
    for (uint64_t i = 1; i <= rounds; i++) {
        replay_step_rounds(r, 1);
        drain(r, s);
        assert_int_equal(replay_status(r).round, i);
        assert_int_equal(scope_now(s)->round, i);
        memcpy(emitted[i], scope_now(s)->versus->emitted, sizeof emitted[i]);
        us[i] = replay_status(r).t_us;
        assert_greater(emitted[i][0] + emitted[i][1], emitted[i - 1][0] + emitted[i - 1][1]);
    }
    static const uint64_t to[] = {7, 3, 9, 1, 10, 10, 2};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        replay_goto(r, to[i]);
        drain(r, s);
        assert_int_equal(replay_status(r).round, to[i]);
        assert_memory_equal(scope_now(s)->versus->emitted, emitted[to[i]], sizeof emitted[0]);
    }
    replay_goto_fraction(r, (double)us[6] / (double)replay_status(r).duration_us);
    drain(r, s);
    const uint64_t there = replay_status(r).round;
    assert_at_least(there, 5);
    assert_less(there, rounds);
    assert_at_most(us[there], us[6]);
    assert_memory_equal(scope_now(s)->versus->emitted, emitted[there], sizeof emitted[0]);
    replay_step_token(r);
    drain(r, s);
    replay_goto(r, UINT64_MAX);
    drain(r, s);
    assert_true(replay_status(r).at_end);
    assert_int_equal(replay_status(r).t_us, replay_status(r).duration_us);
    assert_string_equal(scope_now(s)->end, "tokens");
    scope_close(s);
    replay_close(r);
}

/* ---- later events ---- */

static void
count(void *user, const struct event *e)
{
    uint64_t *n = user;
    n[0] += e->type == EVENT_ROUND;
    n[1] += e->type == EVENT_CONTROL;
    n[2] += e->type == EVENT_LAYER || e->type == EVENT_SERIES;
}

static void
known_beforehand(struct replay *r)
{
    uint64_t before[3] = {0}, played[3] = {0};
    const struct event *e;
    struct err err = {0};
    assert_ok(replay_foresee(r, count, before, &err), err);
    assert_int_equal(replay_status(r).t_us, 0);
    assert_false(replay_status(r).at_end);
    replay_goto(r, UINT64_MAX);
    while (replay_next(r, 0, &e, &err) && e != NULL)
        count(played, e);
    assert_true(replay_status(r).at_end);
    assert_greater(before[0], 5);
    assert_greater(before[1], 3);
    assert_greater(played[2], 100);
    assert_int_equal(before[0], played[0]);
    assert_int_equal(before[1], played[1]);
    assert_int_equal(before[2], 0);
    replay_close(r);
}

/* All controls and rounds are counted in advance, and then all events are replayed from the start. */
TEST(a_replay_of_two_traces_has_later_knob_changes)
{
    const struct saved_runs *t = *state;
    const struct saved_choice two[2] = {{t->bound, 0, 0}, {t->skip, 0, 0}};
    struct replay *r;
    struct err err = {0};
    assert_ok(replay_open_pair(&r, two, &err), err);
    known_beforehand(r);
    assert_ok(replay_open(&r, t->bound, false, &err), err);
    known_beforehand(r);
}

FIXTURE(saved_runs_open, saved_runs_close);
