/* Traces of several sequences at a time. */
#include "tests/rigs/test.h"
#include "tests/rigs/trace_checks.h"
#include "traces/replay.h"
#include "traces/schema.h"

TEST_WITH(sequences_of_a_batch_read_back_event_for_event, folder_set_up, folder_tear_down)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        print_message("seed %d\n", (int)seed);
        struct stream s;
        stream_begin(&s, seed);
        const uint32_t at_a_time = 1 + stream_below(&s, 8);
        stream_batch(&s, at_a_time, at_a_time + stream_below(&s, 5));
        if (seed % 4 == 0)
            stream_fill(&s);
        assert_comes_back(*state, &s, true, s.n);
    }
}

/* Renumbers all lines 1, 2, 3, …: no gap marks the places of verdicts. */
static void
renumber(const char *path)
{
    char *text[TABLES], *line[TABLES];
    FILE *out[TABLES];
    size_t size[TABLES];
    char *made[TABLES];
    for (unsigned t = 0; t < TABLES; t++) {
        text[t] = read_text(path, trace_tables[t].file);
        line[t] = strchr(text[t], '\n') + 1;
        assert_non_null(out[t] = open_memstream(&made[t], &size[t]));
        fprintf(out[t], "%.*s", (int)(line[t] - text[t]), text[t]);
    }
    for (unsigned long long number = 1;; number++) {
        int first = -1;
        for (int t = 0; t < TABLES; t++)
            if (*line[t] != '\0' && (first < 0 || strtoull(line[t], NULL, 10) < strtoull(line[first], NULL, 10)))
                first = t;
        if (first < 0)
            break;
        const char *rest = strchr(line[first], ',');
        char *end = strchr(rest, '\n') + 1;
        fprintf(out[first], "%llu%.*s", number, (int)(end - rest), rest);
        line[first] = end;
    }
    for (unsigned t = 0; t < TABLES; t++) {
        fclose(out[t]);
        write_text(path, trace_tables[t].file, made[t]);
        free(made[t]);
        free(text[t]);
    }
}

static bool
judged(const struct stream *s, const struct event *draft)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct event *e = &s->events[i];
        if (e->type == EVENT_VERDICT && e->run == draft->run && e->seq == draft->seq && e->round == draft->round &&
            e->verdict.candidate == draft->token.candidate)
            return true;
    }
    return false;
}

TEST_WITH(a_batch_that_was_not_closed_ends_with_its_last_line, folder_set_up, folder_tear_down)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        print_message("seed %d\n", (int)seed);
        struct stream s;
        stream_begin(&s, seed);
        stream_batch(&s, 4, 6);
        uint64_t last = 0;
        for (size_t i = 0; i < s.n; i++)
            if (s.events[i].type == EVENT_ROUND)
                last = s.events[i].number;
        assert_comes_back(*state, &s, false, last);
    }
}

/* Events may be numbered without gaps for verdicts. Each verdict is then read before its line. */
TEST_WITH(verdicts_without_numbers_come_before_what_follows_them, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 5);
    stream_batch(&s, 5, 9);
    write_trace(folder, &s, true, path);
    renumber(path);
    struct trace_reader *r = open_trace(path);
    struct event e;
    struct err err = {0};
    uint32_t due[16] = {0}, verdicts = 0;
    while (trace_reader_next(r, &e, &err)) {
        if (e.type == EVENT_VERDICT) {
            verdicts++;
            assert_greater(due[e.seq]--, 0);
        } else if (e.type == EVENT_ROUND || (e.type == EVENT_TOKEN && e.token.source != SOURCE_DRAFT)) {
            assert_int_equal(due[e.seq], 0);
        } else if (e.type == EVENT_TOKEN) {
            due[e.seq] += judged(&s, &e);
        }
    }
    if (err.kind != ERR_NONE)
        fail_msg("%s", err.text);
    assert_greater(verdicts, 20);
    trace_reader_close(r);
    stream_free(&s);
}

/* Sequences share their rounds, so a step is a step of all of them. */
TEST_WITH(a_replay_steps_through_rounds_of_all_sequences, folder_set_up, folder_tear_down)
{
    const char *folder = *state;
    struct stream s;
    char path[256];
    stream_begin(&s, 3);
    stream_batch(&s, 4, 7);
    write_trace(folder, &s, true, path);
    struct replay *r;
    struct err err = {0};
    const struct event *e;
    assert_ok(replay_open(&r, path, false, &err), err);
    assert_int_equal(replay_status(r).rounds, s.round);
    for (uint32_t round = 1; round <= s.round; round++) {
        replay_step_rounds(r, 1);
        struct event last = {.number = 0};
        while (replay_next(r, 0, &e, &err) && e != NULL) {
            if (e->type == EVENT_ROUND)
                assert_int_equal(e->round, round);
            last = *e;
        }
        assert_int_equal(last.type, EVENT_ROUND);
        assert_int_equal(replay_status(r).round, round);
        for (size_t i = last.number; i < s.n; i++) {
            if (s.events[i].type == EVENT_ROUND)
                assert_greater(s.events[i].round, round);
        }
    }
    replay_goto(r, 2);
    assert_true(replay_rewound(r));
    while (replay_next(r, 0, &e, &err) && e != NULL)
        assert_at_most(e->round, 2);
    assert_int_equal(replay_status(r).round, 2);
    replay_close(r);
    stream_free(&s);
}
