/* A replay returns the same events as a live run's log, at the run's pace or any other. */
#include <math.h>

#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"
#include "traces/replay.h"

struct fixture {
    char folder[256], path[256];
    struct stream stream;
    struct replay *replay;
    size_t at;       /* events of the stream handed out since the last rewind */
    uint64_t rounds; /* and rounds among them */
    uint64_t now;
};

/* Pulls once, and checks that the event is the next one of the stream. */
static const struct event *
pull(struct fixture *f)
{
    const struct event *e;
    struct err err;
    if (replay_rewound(f->replay)) {
        f->at = 0;
        f->rounds = 0;
    }
    assert_ok(replay_next(f->replay, f->now, &e, &err), err);
    if (e == NULL)
        return NULL;
    while (f->at < f->stream.n && !stream_is_traced(&f->stream.events[f->at]))
        f->at++;
    assert_less(f->at, f->stream.n);
    assert_same_event(&f->stream.events[f->at++], e);
    f->rounds += e->type == EVENT_ROUND;
    return e;
}

/* Pulls the events that are due. Returns their number, and the last one in *last. */
static size_t
drain(struct fixture *f, struct event *last)
{
    size_t n = 0;
    const struct event *e;
    while ((e = pull(f)) != NULL) {
        n++;
        if (last != NULL)
            *last = *e;
    }
    struct replay_status s = replay_status(f->replay);
    assert_false(s.seeking);
    assert_int_equal(s.round, f->rounds);
    assert_int_equal(s.rounds, f->stream.rounds);
    assert_at_most(s.t_us, s.duration_us);
    return n;
}

/* The time of event i of the stream. */
static uint64_t
time_of(const struct fixture *f, size_t i)
{
    uint64_t offset = 0;
    for (size_t k = 0; k + 1 <= i; k++)
        if (f->stream.events[k].run != f->stream.events[k + 1].run)
            offset += f->stream.events[k].t_us;
    return offset + f->stream.events[i].t_us;
}

/* All events up to that time were pulled, and none after it. A verdict has the time of the event after it. */
static void
assert_played_until(const struct fixture *f, uint64_t t_us)
{
    for (size_t i = 0; i < f->stream.n; i++) {
        const struct event *e = &f->stream.events[i];
        if (stream_is_traced(e) && e->type != EVENT_VERDICT)
            assert_int_equal(i < f->at, time_of(f, i) <= t_us);
    }
}

static int
set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    make_temp_folder(f->folder);
    stream_begin(&f->stream, 4);
    for (int run = 0; run < 3; run++) {
        stream_start_run(&f->stream);
        for (int i = 0; i < 4; i++)
            stream_round(&f->stream);
        stream_control(&f->stream, "end", "tokens");
    }
    write_trace(f->folder, &f->stream, true, f->path);
    struct err err;
    assert_ok(replay_open(&f->replay, f->path, false, &err), err);
    f->now = 123456789;
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;
    replay_close(f->replay);
    remove_folder(f->folder);
    stream_free(&f->stream);
    free(f);
    return 0;
}

TEST_WITH(a_replay_shows_nothing_until_it_plays, set_up, tear_down)
{
    struct fixture *f = *state;
    f->now += 10000000;
    assert_int_equal(drain(f, NULL), 0);
    assert_false(replay_status(f->replay).playing);
    assert_int_equal(replay_status(f->replay).t_us, 0);
}

TEST_WITH(a_replay_shows_events_when_they_are_due, set_up, tear_down)
{
    struct fixture *f = *state;
    static const double speeds[] = {1, 0.25, 64, 2};
    uint64_t head = 0, start = f->now;
    drain(f, NULL); /* the clock starts at the first call */
    replay_play(f->replay, true);
    while (!replay_status(f->replay).at_end) {
        double speed = speeds[f->now / 97 % 4];
        replay_set_speed(f->replay, speed);
        f->now += 96;
        head += (uint64_t)(96 * speed);
        drain(f, NULL);
        if (replay_status(f->replay).at_end)
            break;
        assert_int_equal(replay_status(f->replay).t_us, head);
        assert_played_until(f, head);
    }
    assert_greater(f->now, start);
    assert_int_equal(f->at, f->stream.n);
    assert_int_equal(replay_status(f->replay).t_us, replay_status(f->replay).duration_us);
    assert_int_equal(replay_status(f->replay).duration_us, time_of(f, f->stream.n - 1));
    assert_false(replay_status(f->replay).playing);
}

TEST_WITH(time_stands_still_while_it_is_paused, set_up, tear_down)
{
    struct fixture *f = *state;
    drain(f, NULL);
    replay_play(f->replay, true);
    f->now += 1000;
    drain(f, NULL);
    replay_play(f->replay, false);
    f->now += 1000000;
    assert_int_equal(drain(f, NULL), 0);
    replay_play(f->replay, true);
    drain(f, NULL);
    assert_played_until(f, 1000);
}

TEST_WITH(the_speed_of_a_replay_is_clamped, set_up, tear_down)
{
    struct fixture *f = *state;
    replay_set_speed(f->replay, 1000);
    assert_number_equal(replay_status(f->replay).speed, REPLAY_FASTEST);
    replay_set_speed(f->replay, 0);
    assert_number_equal(replay_status(f->replay).speed, REPLAY_SLOWEST);
    replay_set_speed(f->replay, (double)NAN);
    assert_number_equal(replay_status(f->replay).speed, REPLAY_SLOWEST);
}

TEST_WITH(a_step_plays_whole_rounds, set_up, tear_down)
{
    struct fixture *f = *state;
    struct event last;
    for (uint64_t round = 1; round <= f->stream.rounds; round++) {
        replay_step_rounds(f->replay, 1);
        assert_true(replay_status(f->replay).seeking);
        assert_greater(drain(f, &last), 0);
        assert_int_equal(last.type, EVENT_ROUND);
        assert_int_equal(f->rounds, round);
    }
    replay_step_rounds(f->replay, 1); /* no round is left: pulls the rest */
    drain(f, NULL);
    assert_int_equal(f->at, f->stream.n);
    assert_true(replay_status(f->replay).at_end);
    replay_step_rounds(f->replay, 1);
    assert_int_equal(drain(f, NULL), 0);
}

TEST_WITH(steps_in_quick_succession_add_up, set_up, tear_down)
{
    struct fixture *f = *state;
    struct event last = {0};
    for (int i = 0; i < 3; i++)
        replay_step_rounds(f->replay, 1);
    drain(f, &last);
    assert_int_equal(f->rounds, 3);
    replay_step_token(f->replay);
    drain(f, &last);
    const size_t one = f->at;
    replay_goto(f->replay, 3);
    drain(f, NULL);
    replay_step_token(f->replay);
    replay_step_token(f->replay);
    drain(f, &last);
    assert_int_equal(last.type, EVENT_TOKEN);
    assert_greater(f->at, one);
}

TEST_WITH(a_step_plays_up_to_the_next_token, set_up, tear_down)
{
    struct fixture *f = *state;
    struct event last = {0};
    size_t tokens = 0, expected = 0;
    for (size_t i = 0; i < f->stream.n; i++)
        expected += f->stream.events[i].type == EVENT_TOKEN;
    for (;;) {
        replay_step_token(f->replay);
        drain(f, &last);
        if (replay_status(f->replay).at_end)
            break;
        assert_int_equal(last.type, EVENT_TOKEN);
        tokens++;
    }
    assert_int_equal(tokens, expected);
}

TEST_WITH(goto_works_in_both_directions, set_up, tear_down)
{
    struct fixture *f = *state;
    struct event last;
    uint64_t n = f->stream.rounds;
    print_message("%d rounds\n", (int)n);
    assert_greater(n, 6);
    static const int to[] = {5, 2, 6, 6, 1, 0, 3};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        replay_goto(f->replay, (uint64_t)to[i]);
        last.type = EVENT_ROUND;
        drain(f, &last);
        assert_int_equal(f->rounds, to[i]);
        assert_int_equal(last.type, EVENT_ROUND);
        assert_false(replay_status(f->replay).at_end);
        if (to[i] == 0)
            assert_int_equal(f->at, 0);
        else
            assert_int_equal(replay_status(f->replay).run_us, time_of(f, f->at - 1) - f->stream.events[f->at - 1].t_us);
    }
    replay_goto(f->replay, n + 100);
    drain(f, NULL);
    assert_true(replay_status(f->replay).at_end);
    assert_int_equal(f->at, f->stream.n);
}

TEST_WITH(rewinding_is_told_once, set_up, tear_down)
{
    struct fixture *f = *state;
    assert_false(replay_rewound(f->replay));
    replay_goto(f->replay, 3);
    drain(f, NULL);
    assert_false(replay_rewound(f->replay));
    replay_goto(f->replay, 1);
    assert_true(replay_rewound(f->replay));
    assert_false(replay_rewound(f->replay));
    f->at = 0;
    f->rounds = 0;
    drain(f, NULL);
}

TEST_WITH(a_fraction_is_a_place_in_time, set_up, tear_down)
{
    struct fixture *f = *state;
    uint64_t duration = replay_status(f->replay).duration_us;
    static const double to[] = {0.3, 0.8, 0.5, 0.50001, 0, 0.1, 1, 0.9};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        replay_goto_fraction(f->replay, to[i]);
        drain(f, NULL);
        if (to[i] > 0)
            assert_played_until(f, (uint64_t)(to[i] * (double)duration));
        else
            assert_int_equal(f->at, 0);
    }
}

TEST_WITH(a_replay_continues_after_a_jump_in_time, set_up, tear_down)
{
    struct fixture *f = *state;
    uint64_t duration = replay_status(f->replay).duration_us;
    drain(f, NULL);
    replay_play(f->replay, true);
    replay_goto_fraction(f->replay, 0.5);
    drain(f, NULL);
    assert_true(replay_status(f->replay).playing);
    f->now += duration / 4;
    drain(f, NULL);
    assert_played_until(f, (uint64_t)(0.5 * (double)duration) + duration / 4);
}

TEST_WITH(playing_at_the_end_starts_again, set_up, tear_down)
{
    struct fixture *f = *state;
    replay_goto(f->replay, UINT64_MAX);
    drain(f, NULL);
    replay_play(f->replay, true);
    drain(f, NULL);
    f->now += 500;
    drain(f, NULL);
    assert_played_until(f, 500);
}

TEST_WITH(a_jump_can_be_taken_in_pieces_and_changed_on_the_way, set_up, tear_down)
{
    struct fixture *f = *state;
    replay_goto(f->replay, 6);
    for (int i = 0; i < 5; i++)
        assert_non_null(pull(f));
    assert_true(replay_status(f->replay).seeking);
    replay_goto(f->replay, 1);
    drain(f, NULL);
    assert_int_equal(f->rounds, 1);
}

TEST_WITH(any_sequence_of_commands_shows_a_beginning_of_the_run, set_up, tear_down)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2000; i++) {
        uint32_t n = stream_below(&f->stream, (uint32_t)f->stream.rounds + 3);
        switch (stream_below(&f->stream, 8)) {
        case 0: replay_play(f->replay, true); break;
        case 1: replay_play(f->replay, false); break;
        case 2: replay_set_speed(f->replay, (double)n); break;
        case 3: replay_step_rounds(f->replay, n % 4); break;
        case 4: replay_step_token(f->replay); break;
        case 5: replay_goto(f->replay, n); break;
        case 6: replay_goto_fraction(f->replay, (double)n / (double)(f->stream.rounds + 2)); break;
        default: f->now += stream_below(&f->stream, 3000);
        }
        if (stream_below(&f->stream, 3) == 0)
            pull(f);
        else
            drain(f, NULL);
    }
}

TEST_WITH(a_broken_trace_plays_up_to_the_break_and_says_why, set_up, tear_down)
{
    struct fixture *f = *state;
    char *text = read_text(f->path, "vocab.csv");
    size_t last = strlen(text) - 1; /* the start of the last line */
    while (text[last - 1] != '\n')
        last--;
    text[last] = 'x';
    write_text(f->path, "vocab.csv", text);
    free(text);
    const struct event *e;
    struct err err = {0};
    replay_close(f->replay); /* it has already read the small file */
    f->replay = NULL;
    assert_ok(replay_open(&f->replay, f->path, false, &err), err);
    replay_goto(f->replay, UINT64_MAX);
    size_t n = 0;
    while (replay_next(f->replay, f->now, &e, &err) && e != NULL)
        n++;
    assert_greater(n, 20);
    assert_contains(err.text, "vocab.csv");
    assert_true(replay_status(f->replay).at_end);
    assert_false(replay_next(f->replay, f->now, &e, &err));
    assert_null(e);
}
