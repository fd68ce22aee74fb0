

#include "tests/rigs/trace_checks.h"
#include "tests/rigs/test.h"
#include "traces/writer.h"

void
write_trace(const char *folder, const struct stream *s, bool closed, char path[256])
{
    struct err err = {0};
    struct event_log *log;
    struct trace_writer *writer;
    struct run_info run;
    fake_run(&run);
    snprintf(path, 256, "%.200s/t", folder);
    assert_ok(event_log_open(&log, 0, &err), err);
    assert_ok(trace_writer_open(&writer, path, NULL, &run, log, &err), err);
    run_info_free(&run); /* the writer must not need it after opening */
    for (size_t i = 0; i < s->n; i++)
        assert_int_equal(event_log_append(log, &s->events[i]), s->events[i].number);
    assert_ok(trace_writer_close(writer, &err), err);
    event_log_close(log);
    if (closed)
        return;
    char *json = read_text(path, "run.json"), *at = strstr(json, ",\n\t\"closed_event\"");
    assert_non_null(at);
    memcpy(at, "\n}\n", 4);
    write_text(path, "run.json", json);
    free(json);
}

struct trace_reader *
open_trace(const char *path)
{
    struct trace_reader *r;
    struct err err;
    assert_ok(trace_reader_open(&r, path, false, &err), err);
    return r;
}

uint64_t
assert_replays_a_beginning(const char *path, const struct stream *s)
{
    struct trace_reader *r;
    struct event e = {0};
    struct err err = {0};
    assert_ok(trace_reader_open(&r, path, false, &err), err);
    size_t i = 0;
    uint64_t rounds = 0;
    while (trace_reader_next(r, &e, &err)) {
        while (i < s->n && !stream_is_traced(&s->events[i]))
            i++;
        assert_less(i, s->n);
        assert_same_event(&s->events[i++], &e);
        rounds += e.type == EVENT_ROUND;
    }
    if (err.kind != ERR_NONE)
        fail_msg("%s", err.text);
    assert_int_equal(rounds, trace_reader_state(r).rounds);
    if (!trace_reader_state(r).closed) {
        if (i > 0)
            assert_int_equal(e.type, EVENT_ROUND);
    }
    trace_reader_close(r);
    return rounds;
}

/* ---- write and read back ---- */

/* Returns the index of the next expected event, or of the first one after `last`. */
static size_t
skip_untraced(const struct stream *s, size_t i)
{
    while (i < s->n && !stream_is_traced(&s->events[i]))
        i++;
    return i;
}

void
assert_reads_back(struct trace_reader *r, const struct stream *s, uint64_t last)
{
    struct event e;
    struct err err = {0};
    size_t i = skip_untraced(s, 0);
    while (trace_reader_next(r, &e, &err)) {
        assert_less(i, s->n);
        assert_same_event(&s->events[i], &e);
        i = skip_untraced(s, i + 1);
    }
    if (err.kind != ERR_NONE)
        fail_msg("%s", err.text);
    assert_true(i == s->n || s->events[i].number > last);
    assert_greater(i, 0);
    assert_at_most(s->events[i - 1].number, last);
    assert_false(trace_reader_next(r, &e, &err));
}

void
assert_comes_back(const char *folder, struct stream *s, bool closed, uint64_t last)
{
    char path[256];
    write_trace(folder, s, closed, path);
    struct trace_reader *r = open_trace(path);
    assert_int_equal(trace_reader_state(r).closed, closed);
    assert_int_equal(trace_reader_state(r).rounds, s->rounds);
    assert_reads_back(r, s, last);
    assert_true(trace_reader_rewind(r, false, NULL));
    assert_reads_back(r, s, last);
    trace_reader_close(r);
    remove_folder(path);
    stream_free(s);
}
