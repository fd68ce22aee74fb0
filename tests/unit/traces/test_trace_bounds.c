/* A trace with a size limit ends after a whole round, reports this, and replays. Also tests traces with fewer
 * layers. */
#include <dirent.h>
#include <sys/stat.h>

#include "tests/rigs/test.h"
#include "tests/rigs/traced_run.h"
#include "traces/trace_folder.h"

static uint64_t
bytes_of(const char *folder)
{
    uint64_t bytes = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char name[600];
        struct stat about;
        snprintf(name, sizeof name, "%.300s/%s", folder, entry->d_name);
        if (stat(name, &about) == 0 && S_ISREG(about.st_mode))
            bytes += (uint64_t)about.st_size;
    }
    closedir(d);
    return bytes;
}

static void
open_within(struct traced_run *f, const struct trace_bounds *bounds)
{
    struct run_info run;
    struct err err;
    fake_run(&run);
    assert_ok(event_log_open(&f->log, 0, &err), err);
    assert_ok(trace_writer_open(&f->writer, f->path, bounds, &run, f->log, &err), err);
    run_info_free(&run);
}

/* Appends runs until the trace is full. It is flushed every `every` rounds only. */
static void
append(struct traced_run *f, bool batch, int every)
{
    const uint32_t seqs[] = {0, 1, 2};
    stream_start_run(&f->stream);
    for (int i = 0; i < 3000 && trace_writer_trouble(f->writer) == NULL; i++) {
        if (batch)
            stream_batch_round(&f->stream, seqs, 3);
        else
            stream_round(&f->stream);
        if (i % 100 == 60)
            stream_start_run(&f->stream);
        traced_run_append(f);
        if (i % every == 0)
            trace_writer_flush(f->writer);
    }
}

/* The last round has a line of every sequence. */
static void
assert_ends_whole(const char *path, bool batch)
{
    struct trace_reader *r = open_trace(path);
    struct event e;
    uint32_t lines[3] = {0};
    while (trace_reader_next(r, &e, NULL))
        if (e.type == EVENT_ROUND)
            lines[e.seq]++;
    assert_true(trace_reader_info(r)->cut);
    assert_true(trace_reader_state(r).closed);
    assert_greater(lines[0], 5);
    for (int i = 1; batch && i < 3; i++)
        assert_int_equal(lines[i], lines[0]);
    trace_reader_close(r);
}

TEST_WITH(a_trace_that_is_full_ends_behind_a_whole_round, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    for (int i = 0; i < 12; i++) {
        const bool batch = i % 3 == 2;
        const struct trace_bounds bounds = {.bytes = 65536 + stream_below(&f->stream, 400000)};
        struct err err = {0};
        open_within(f, &bounds);
        append(f, batch, i % 2 == 0 ? 1 : 1000);
        const char *trouble = trace_writer_trouble(f->writer);
        assert_non_null(trouble);
        assert_contains(trouble, "--trace-max");
        trace_writer_flush(f->writer);
        assert_false(trace_writer_close(f->writer, &err)); /* it fails with the message */
        f->writer = NULL;
        assert_at_most(bytes_of(f->path), bounds.bytes);
        if (!batch)
            assert_greater(bytes_of(f->path), bounds.bytes / 2);
        if (!batch)
            assert_greater(assert_replays_a_beginning(f->path, &f->stream), 5);
        assert_ends_whole(f->path, batch);
        remove_folder(f->path);
        event_log_close(f->log);
        f->log = NULL;
        f->appended = 0;
        stream_free(&f->stream);
        stream_begin(&f->stream, (uint64_t)i);
    }
}

TEST_WITH(an_export_of_a_full_trace_says_that_it_was, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err = {0};
    char copy[320];
    open_within(f, &(struct trace_bounds){.bytes = 100000});
    append(f, false, 1);
    snprintf(copy, sizeof copy, "%.300s.copy", f->path);
    assert_ok(trace_copy(f->path, copy, NULL, &err), err);
    assert_greater(assert_replays_a_beginning(copy, &f->stream), 5);
    assert_ends_whole(copy, false);
    char *json = read_text(copy, "run.json");
    const char *first = strstr(json, "closed_event");
    assert_non_null(first);
    assert_lacks(first + 1, "closed_event"); /* only once */
    free(json);
}

/* The layer events that are written, by origin and by round. */
static void
count_layers(struct traced_run *f, const struct trace_bounds *bounds, uint64_t counted[PROBED_BY], uint32_t *strange)
{
    struct event e;
    struct err err = {0};
    stream_begin(&f->stream, 5);
    stream_fill(&f->stream);
    open_within(f, bounds);
    f->appended = 0;
    traced_run_append(f);
    assert_ok(trace_writer_close(f->writer, &err), err);
    f->writer = NULL;
    struct trace_reader *r = open_trace(f->path);
    assert_int_equal(trace_reader_info(r)->trace.layers, bounds->layers);
    assert_int_equal(trace_reader_info(r)->trace.every, bounds->every);
    memset(counted, 0, PROBED_BY * sizeof *counted);
    *strange = 0;
    while (trace_reader_next(r, &e, &err))
        if (e.type == EVENT_LAYER) {
            counted[e.layer.probed_by]++;
            *strange += e.layer.probed_by == PROBED_SCOPE && bounds->every > 1 && e.round % bounds->every != 0;
        }
    assert_int_equal(err.kind, ERR_NONE);
    trace_reader_close(r);
    remove_folder(f->path);
    event_log_close(f->log);
    f->log = NULL;
    stream_free(&f->stream);
}

TEST_WITH(fewer_layers_are_written_where_fewer_are_wanted, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    uint64_t all[PROBED_BY], some[PROBED_BY], third[PROBED_BY], none[PROBED_BY];
    uint32_t strange;
    stream_free(&f->stream);
    count_layers(f, &(struct trace_bounds){.layers = TRACE_LAYERS_ALL}, all, &strange);
    count_layers(f, &(struct trace_bounds){.layers = TRACE_LAYERS_SOME}, some, &strange);
    count_layers(f, &(struct trace_bounds){.layers = TRACE_LAYERS_OFF}, none, &strange);
    count_layers(f, &(struct trace_bounds){.layers = TRACE_LAYERS_SOME, .every = 3}, third, &strange);
    assert_int_equal(strange, 0);
    assert_greater(third[PROBED_SCOPE], 0);
    assert_less(third[PROBED_SCOPE], all[PROBED_SCOPE]);
    assert_int_equal(some[PROBED_SCOPE], 0);
    for (int by = 0; by < PROBED_BY; by++) {
        assert_int_equal(none[by], 0);
        if (by != PROBED_SCOPE) {
            assert_int_equal(some[by], all[by]);
            assert_int_equal(third[by], all[by]);
        }
    }
    assert_greater(all[PROBED_POLICY], 0);
    stream_begin(&f->stream, 1);
}
