/* Two saved runs as a pair. The two sequences of one run give that run again. In a pair of two runs each is what it is
 * alone, in step, with its own settings. Pairs that cannot be in step are refused. */

#include "engine/scope/scope.h"
#include "tests/rigs/folders.h"
#include "tests/rigs/saved_runs.h"
#include "tests/rigs/test.h"
#include "tests/rigs/trace_events.h"
#include "traces/trace_pair.h"

static bool
is_of_sequence(const struct event *e)
{
    return e->type != EVENT_CONTROL && e->type != EVENT_VOCAB;
}

static struct trace_pair *
open_pair(const char *a, uint32_t of_a, const char *b, uint32_t of_b)
{
    const struct saved_choice two[2] = {{a, 0, of_a}, {b, 0, of_b}};
    struct trace_pair *p;
    struct err err = {0};
    assert_ok(trace_pair_open(&p, two, &err), err);
    return p;
}

/* ---- the stream ---- */

TEST(two_traces_of_one_run_are_replayed_as_that_run)
{
    const struct saved_runs *t = *state;
    struct trace_reader *alone;
    struct trace_pair *p = open_pair(t->both, 0, t->both, 1);
    struct event expected, got;
    struct err err = {0};
    uint64_t rounds = 0, events = 0;
    assert_ok(trace_reader_open(&alone, t->both, false, &err), err);
    for (int pass = 0; pass < 2; pass++) {
        while (trace_reader_next(alone, &expected, &err)) {
            if (!is_of_sequence(&expected))
                continue;
            do
                assert_ok(trace_pair_next(p, &got, &err), err);
            while (!is_of_sequence(&got));
            assert_int_equal(got.run, 1);
            got.number = expected.number;
            got.t_us = expected.t_us;
            assert_same_event(&expected, &got);
            rounds += got.type == EVENT_ROUND;
            events++;
        }
        while (trace_pair_next(p, &got, &err))
            assert_false(is_of_sequence(&got));
        assert_int_equal(err.kind, ERR_NONE);
        assert_true(trace_reader_rewind(alone, false, &err) && trace_pair_rewind(p, false, &err));
    }
    assert_greater(events, 500);
    assert_int_equal(rounds, 2 * trace_pair_rounds(p));
    trace_pair_close(p);
    trace_reader_close(alone);
}

/* Checks that a side's events are its trace's, except for numbers, rounds and times. Returns the number of rounds. */
static uint64_t
same_as_alone(const struct saved_runs *t, uint32_t side)
{
    struct trace_reader *alone;
    struct trace_pair *p = open_pair(t->bound, 0, t->skip, 0);
    struct event expected, got;
    struct err err = {0};
    uint64_t rounds = 0, t_us = 0, number = 0;
    uint32_t round = 0;
    assert_ok(trace_reader_open(&alone, side == 0 ? t->bound : t->skip, false, &err), err);
    while (trace_pair_next(p, &got, &err)) {
        assert_greater(got.number, number);
        assert_at_least(got.t_us, t_us);
        assert_at_least(got.round, round);
        assert_at_most(got.round, round + 1);
        number = got.number;
        t_us = got.t_us;
        if (is_of_sequence(&got))
            round = got.round;
        if (!is_of_sequence(&got) || got.seq != side)
            continue;
        do
            assert_ok(trace_reader_next(alone, &expected, &err), err);
        while (!is_of_sequence(&expected));
        got.number = expected.number;
        got.t_us = expected.t_us;
        got.round = expected.round;
        got.seq = expected.seq;
        assert_same_event(&expected, &got);
        rounds += got.type == EVENT_ROUND;
    }
    assert_int_equal(err.kind, ERR_NONE);
    assert_at_most(t_us, trace_pair_duration_us(p));
    while (trace_reader_next(alone, &expected, &err))
        assert_false(is_of_sequence(&expected));
    trace_reader_close(alone);
    trace_pair_close(p);
    return rounds;
}

TEST(each_trace_of_a_pair_is_replayed_as_if_it_were_alone)
{
    const struct saved_runs *t = *state;
    struct trace_pair *p = open_pair(t->bound, 0, t->skip, 0);
    const uint64_t a = same_as_alone(t, 0), b = same_as_alone(t, 1);
    assert_greater(a, 5);
    assert_greater(b, 5);
    assert_int_equal(a + b, trace_pair_rounds(p));
    trace_pair_close(p);
}

TEST(two_traces_are_replayed_in_step_by_token)
{
    const struct saved_runs *t = *state;
    struct trace_pair *p = open_pair(t->bound, 0, t->skip, 0);
    struct event e;
    struct err err = {0};
    uint64_t emitted[2] = {0};
    uint32_t numbered = 0, seq = 0;
    bool left[2] = {false}, ended = false;
    while (trace_pair_next(p, &e, &err)) {
        if (e.type == EVENT_TOKEN && e.token.source == SOURCE_PROMPT)
            assert_int_equal(emitted[0] + emitted[1], 0);
        if (e.type == EVENT_CONTROL && e.control.kind == RECORDED_LEFT)
            left[e.seq] = true;
        ended = ended || (e.type == EVENT_CONTROL && e.control.kind == RECORDED_END);
        if (e.type != EVENT_ROUND)
            continue;
        const uint32_t last = seq;
        seq = e.seq;
        assert_true(left[1 - seq] || emitted[seq] < emitted[1 - seq] || (emitted[0] == emitted[1] && seq == last) ||
                    emitted[1 - seq] >= 39 /* its last round was its end */);
        assert_int_equal(e.round, ++numbered);
        emitted[seq] += e.round_end.emitted;
        assert_false(left[seq]);
    }
    assert_true(left[0] && left[1] && ended);
    assert_int_equal(emitted[0], 39);
    assert_int_equal(emitted[1], 59);
    trace_pair_close(p);
}

/* ---- the scope ---- */

static struct scope *
scope_of(struct trace_pair *p)
{
    struct scope *s;
    struct event e;
    struct err err = {0};
    assert_ok(scope_open(&s, trace_pair_info(p), &err), err);
    while (trace_pair_next(p, &e, &err))
        scope_event(s, &e);
    assert_int_equal(err.kind, ERR_NONE);
    return s;
}

static struct metrics
metrics_alone(const char *path)
{
    struct trace_reader *r;
    struct metrics m;
    struct event e;
    struct err err = {0};
    assert_ok(trace_reader_open(&r, path, false, &err), err);
    metrics_begin(&m, trace_reader_info(r)->layers, trace_reader_info(r)->rho);
    while (trace_reader_next(r, &e, &err))
        metrics_event(&m, &e);
    trace_reader_close(r);
    return m;
}

TEST(each_trace_of_a_pair_has_its_settings_and_measures)
{
    const struct saved_runs *t = *state;
    const char *const path[] = {t->bound, t->skip};
    struct trace_pair *p = open_pair(t->bound, 0, t->skip, 0);
    struct scope *s = scope_of(p);
    const struct run_info *info = trace_pair_info(p);
    assert_string_equal(info->saved_as, "bound");
    assert_string_equal(run_info_of(info, 1)->saved_as, "skip");
    assert_non_null(scope_now(s)->versus);
    assert_string_equal(scope_versus_policy(s, 0)->name, "specbound");
    assert_string_equal(scope_versus_policy(s, 1)->name, "layerskip");
    const int tau = policy_knob_index(scope_versus_policy(s, 0), "tau"),
              gamma = policy_knob_index(scope_versus_policy(s, 1), "gamma");
    assert_number_equal(scope_versus_knob(s, 0, (uint32_t)tau), 0.3);
    assert_number_equal(scope_versus_knob(s, 1, (uint32_t)gamma), 4);
    for (uint32_t seq = 0; seq < 2; seq++) {
        const struct metrics alone = metrics_alone(path[seq]);
        assert_true(scope_set_focus(s, seq));
        const struct metrics *m = &scope_now(s)->metrics;
        assert_int_equal(m->total.rounds, alone.total.rounds);
        assert_int_equal(m->total.emitted, alone.total.emitted);
        assert_number_equal(m->total.draft_us, alone.total.draft_us);
        assert_number_equal(m->total.layers, alone.total.layers);
        assert_string_equal(scope_info(s)->saved_as, seq == 0 ? "bound" : "skip");
    }
    assert_true(scope_set_focus(s, 0));
    assert_int_equal(scope_now(s)->versus->same, scope_now(s)->committed); /* up to the end of the shorter text */
    assert_false(scope_now(s)->versus->parted);                            /* the runs are greedy */
    /* The knob change begins a segment of the first sequence only. */
    const struct segments *st = scope_now(s)->segments;
    uint32_t of_first = 0, of_second = 0;
    for (uint32_t i = 0; i < segments_held(st); i++) {
        of_first += segment_concerns(segments_at(st, i), 0);
        of_second += segment_concerns(segments_at(st, i), 1);
    }
    assert_int_equal(of_first, 2);
    assert_int_equal(of_second, 1);
    scope_close(s);
    trace_pair_close(p);
}

/* ---- refusals ---- */

static void
refused(const char *a, const struct saved_choice *b, const char *why)
{
    const struct saved_choice two[2] = {{a, 0, 0}, *b};
    struct trace_pair *p;
    struct err err = {0};
    assert_false(trace_pair_open(&p, two, &err));
    assert_null(p);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

TEST(settings_that_cannot_run_in_step_are_refused)
{
    const struct saved_runs *t = *state;
    refused(t->skip, &(struct saved_choice){t->prompt, 0, 0}, "different prompts");
    refused(t->skip, &(struct saved_choice){t->model, 0, 0}, "different models");
    refused(t->skip, &(struct saved_choice){t->bound, 0, 1}, "no round of sequence 2");
    refused(t->skip, &(struct saved_choice){t->bound, 3, 0}, "in run 3; the last run with a round is 1");
    refused(t->skip, &(struct saved_choice){t->folder, 0, 0}, "is no trace");
}

/* A trace whose policy has a differently named knob is from another version. */
TEST(other_declarations_are_refused_where_they_matter)
{
    struct saved_runs *t = *state;
    char *json = read_text(t->skip, "run.json"), *whole = strdup(json);
    char *at = strstr(json, "\"gamma\"");
    assert_non_null(at);
    memcpy(at, "\"gemma\"", 7);
    for (char *more = at; (more = strstr(more + 1, "\"gamma\"")) != NULL;)
        memcpy(more, "\"gemma\"", 7);
    write_text(t->skip, "run.json", json);
    refused(t->both, &(struct saved_choice){t->both, 0, 2}, "no round of sequence 3");
    trace_pair_close(open_pair(t->skip, 0, t->bound, 0)); /* harmless if only one of the runs has that policy */
    struct trace_pair *p = open_pair(t->bound, 0, t->skip, 0);
    const struct policy_info *skip = run_info_policy(trace_pair_info(p), "layerskip");
    assert_at_least(policy_knob_index(skip, "gemma"), 0);
    trace_pair_close(p);
    const struct saved_choice two[2] = {{t->both, 0, 1}, {t->skip, 0, 0}};
    struct err err = {0};
    assert_false(trace_pair_open(&p, two, &err));
    assert_contains(err.text, "declare policy layerskip differently");
    write_text(t->skip, "run.json", whole);
    free(json);
    free(whole);
}

FIXTURE(saved_runs_open, saved_runs_close);
