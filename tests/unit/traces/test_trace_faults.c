/* Full disks and deleted folders: the trace may stop, with one message. The run continues, and the written part
 * replays. (tests/faults/kills_main.c kills programs while they write.) */
#include <errno.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tests/rigs/traced_run.h"

/* Appends until the trace stops, as a run does, up to a limit. */
static void
append_until_trouble(struct traced_run *f)
{
    stream_start_run(&f->stream);
    for (int i = 0; i < 20000 && trace_writer_trouble(f->writer) == NULL; i++) {
        stream_round(&f->stream);
        traced_run_append(f);
        if (i % 20 == 0)
            trace_writer_flush(f->writer);
    }
}

static void
assert_stopped(struct traced_run *f, const char *why)
{
    struct err err = {0};
    const char *trouble = trace_writer_trouble(f->writer);
    assert_non_null(trouble);
    if (strstr(trouble, why) == NULL || strstr(trouble, f->path) == NULL)
        fail_msg("%s", trouble);
    char *copy = strdup(trouble);
    trace_writer_flush(f->writer); /* returns although the trace has stopped */
    for (int i = 0; i < 1000; i++) /* the run continues */
        assert_greater(event_log_append(f->log, &(struct event){.type = EVENT_SERIES}), 0);
    assert_false(trace_writer_close(f->writer, &err));
    f->writer = NULL;
    assert_string_equal(err.text, copy); /* one message, always the same */
    free(copy);
}

TEST_WITH(a_full_disk_stops_the_trace_with_a_message, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    if (mount("tmpfs", f->folder, "tmpfs", 0, "size=256k") != 0) {
        print_message("cannot mount a small disk here (%s); the file size limit stands in for it\n", strerror(errno));
        skip();
    }
    f->mounted = true;
    assert_ok(traced_run_open(f, 0, &err), err);
    append_until_trouble(f);
    assert_stopped(f, strerror(ENOSPC));
    assert_greater(assert_replays_a_beginning(f->path, &f->stream), 10);
}

TEST_WITH(a_disk_that_is_full_from_the_start_is_an_error_at_once, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    if (mount("tmpfs", f->folder, "tmpfs", 0, "size=8k") != 0)
        skip();
    f->mounted = true;
    assert_false(traced_run_open(f, 0, &err));
    assert_contains(err.text, strerror(ENOSPC));
    char name[400];
    snprintf(name, sizeof name, "%s/tokens.csv", f->path);
    assert_int_not_equal(access(name, F_OK), 0); /* no files are left that would prevent a second attempt */
}

TEST_WITH(the_file_size_limit_stops_the_trace_and_not_the_process, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    struct rlimit before;
    assert_ok(traced_run_open(f, 0, &err), err);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 50000, .rlim_max = before.rlim_max});
    append_until_trouble(f);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_stopped(f, strerror(EFBIG));
    assert_greater(assert_replays_a_beginning(f->path, &f->stream), 10);
}

TEST_WITH(the_file_size_limit_at_opening_and_closing_is_an_error, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max});
    bool ok = traced_run_open(f, 0, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_contains(err.text, strerror(EFBIG));
    event_log_close(f->log);
    assert_ok(traced_run_open(f, 0, &err), err);
    stream_start_run(&f->stream);
    stream_round(&f->stream);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max});
    ok = trace_writer_close(f->writer, &err);
    f->writer = NULL;
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_contains(err.text, "replays up to its last round");
    assert_int_equal(assert_replays_a_beginning(f->path, &f->stream), 1);
}

TEST_WITH(a_deleted_folder_stops_the_trace_with_a_message, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    assert_ok(traced_run_open(f, 0, &err), err);
    remove_folder(f->path);
    append_until_trouble(f);
    assert_stopped(f, "deleted");
}

TEST_WITH(a_log_that_ran_over_stops_the_trace_with_a_message, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    assert_ok(traced_run_open(f, 64 << 10, &err), err);
    stream_start_run(&f->stream);
    for (int i = 0; i < 3000; i++)
        stream_round(&f->stream);
    traced_run_append(f); /* faster than any disk: the writer reads the log every few milliseconds */
    trace_writer_flush(f->writer);
    assert_stopped(f, "events were lost");
    assert_replays_a_beginning(f->path, &f->stream);
}

TEST_WITH(a_folder_that_cannot_be_written_is_an_error_at_once, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    write_text(f->folder, "file", "x");
    snprintf(f->path, sizeof f->path, "%.240s/file/t", f->folder);
    assert_false(traced_run_open(f, 0, &err));
    assert_contains(err.text, f->path);
    event_log_close(f->log);
    f->log = NULL;
    snprintf(f->path, sizeof f->path, "%.240s/t", f->folder);
    if (geteuid() != 0)
        assert_int_equal(chmod(f->folder, 0500), 0);
    else if (mount("tmpfs", f->folder, "tmpfs", MS_RDONLY, "size=8k") == 0)
        f->mounted = true; /* root may write in any other folder */
    else
        return;
    assert_false(traced_run_open(f, 0, &err));
    assert_contains(err.text, f->path);
    chmod(f->folder, 0700);
}

TEST_WITH(a_folder_that_holds_a_trace_is_refused_and_left_alone, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    char path[256];
    stream_fill(&f->stream);
    write_trace(f->folder, &f->stream, true, path);
    char *before = read_text(path, "tokens.csv");
    assert_false(traced_run_open(f, 0, &err));
    assert_contains(err.text, "already holds a trace");
    char *after = read_text(path, "tokens.csv");
    assert_string_equal(before, after);
    assert_replays_a_beginning(f->path, &f->stream);
    free(before);
    free(after);
}

TEST_WITH(the_parent_folders_of_a_trace_are_made, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    snprintf(f->path, sizeof f->path, "%.200s/a//b/c/", f->folder);
    assert_ok(traced_run_open(f, 0, &err), err);
    assert_ok(trace_writer_close(f->writer, &err), err);
    f->writer = NULL;
    assert_int_equal(assert_replays_a_beginning(f->path, &f->stream), 0);
}

TEST_WITH(what_was_flushed_can_be_read_while_the_run_goes_on, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    assert_ok(traced_run_open(f, 0, &err), err);
    stream_start_run(&f->stream);
    for (uint64_t i = 1; i <= 20; i++) {
        stream_round(&f->stream);
        traced_run_append(f);
        trace_writer_flush(f->writer);
        assert_int_equal(assert_replays_a_beginning(f->path, &f->stream), i);
    }
    assert_null(trace_writer_trouble(f->writer));
}
