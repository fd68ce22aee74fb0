/* Disks fill, folders vanish, processes are killed: the trace may stop, with one message; the run never does, and what
 * was written replays. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tests/rigs/traced_run.h"

static void
sleep_us(uint32_t us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000}, NULL);
}

/* Appends until the trace stops, as a run would; but not for ever. */
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
    trace_writer_flush(f->writer); /* returns, though nothing is written any more */
    for (int i = 0; i < 1000; i++) /* the run goes on */
        assert_true(event_log_append(f->log, &(struct event){.type = EVENT_SERIES}) > 0);
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
    if (!traced_run_open(f, 0, &err))
        fail_msg("%s", err.text);
    append_until_trouble(f);
    assert_stopped(f, strerror(ENOSPC));
    assert_true(assert_replays_a_beginning(f->path, &f->stream) > 10);
}

TEST_WITH(a_disk_that_is_full_from_the_start_is_an_error_at_once, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    if (mount("tmpfs", f->folder, "tmpfs", 0, "size=8k") != 0)
        skip();
    f->mounted = true;
    assert_false(traced_run_open(f, 0, &err));
    assert_non_null(strstr(err.text, strerror(ENOSPC)));
    char name[400];
    snprintf(name, sizeof name, "%s/tokens.csv", f->path);
    assert_int_not_equal(access(name, F_OK), 0); /* nothing is left that would forbid a second try */
}

TEST_WITH(the_file_size_limit_stops_the_trace_and_not_the_process, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    struct rlimit before;
    if (!traced_run_open(f, 0, &err))
        fail_msg("%s", err.text);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 50000, .rlim_max = before.rlim_max});
    append_until_trouble(f); /* SIGXFSZ has its default action: to kill */
    setrlimit(RLIMIT_FSIZE, &before);
    assert_stopped(f, strerror(EFBIG));
    assert_true(assert_replays_a_beginning(f->path, &f->stream) > 10);
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
    assert_non_null(strstr(err.text, strerror(EFBIG)));
    event_log_close(f->log);
    if (!traced_run_open(f, 0, &err))
        fail_msg("%s", err.text);
    stream_start_run(&f->stream);
    stream_round(&f->stream);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max});
    ok = trace_writer_close(f->writer, &err);
    f->writer = NULL;
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_non_null(strstr(err.text, "replays up to its last round"));
    assert_int_equal(assert_replays_a_beginning(f->path, &f->stream), 1);
}

TEST_WITH(a_deleted_folder_stops_the_trace_with_a_message, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    if (!traced_run_open(f, 0, &err))
        fail_msg("%s", err.text);
    remove_folder(f->path);
    append_until_trouble(f);
    assert_stopped(f, "deleted");
}

TEST_WITH(a_log_that_ran_over_stops_the_trace_with_a_message, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    if (!traced_run_open(f, 64 << 10, &err))
        fail_msg("%s", err.text);
    stream_start_run(&f->stream);
    for (int i = 0; i < 3000; i++)
        stream_round(&f->stream);
    traced_run_append(f); /* faster than any disk: the writer looks at the log every few milliseconds */
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
    assert_non_null(strstr(err.text, f->path));
    event_log_close(f->log);
    f->log = NULL;
    snprintf(f->path, sizeof f->path, "%.240s/t", f->folder);
    if (geteuid() != 0)
        assert_int_equal(chmod(f->folder, 0500), 0);
    else if (mount("tmpfs", f->folder, "tmpfs", MS_RDONLY, "size=8k") == 0)
        f->mounted = true; /* root may write anywhere else */
    else
        return;
    assert_false(traced_run_open(f, 0, &err));
    assert_non_null(strstr(err.text, f->path));
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
    assert_non_null(strstr(err.text, "already holds a trace"));
    char *after = read_text(path, "tokens.csv");
    assert_string_equal(before, after);
    assert_replays_a_beginning(f->path, &f->stream);
    free(before);
    free(after);
}

TEST_WITH(parents_are_made, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    snprintf(f->path, sizeof f->path, "%.200s/a//b/c/", f->folder);
    if (!traced_run_open(f, 0, &err))
        fail_msg("%s", err.text);
    assert_true(trace_writer_close(f->writer, &err));
    f->writer = NULL;
    assert_int_equal(assert_replays_a_beginning(f->path, &f->stream), 0);
}

TEST_WITH(what_was_flushed_can_be_read_while_the_run_goes_on, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct err err;
    if (!traced_run_open(f, 0, &err))
        fail_msg("%s", err.text);
    stream_start_run(&f->stream);
    for (uint64_t i = 1; i <= 20; i++) {
        stream_round(&f->stream);
        traced_run_append(f);
        trace_writer_flush(f->writer);
        assert_int_equal(assert_replays_a_beginning(f->path, &f->stream), i);
    }
    assert_null(trace_writer_trouble(f->writer));
}

/* ---- killed ---- */

struct shared {
    _Atomic uint64_t flushed; /* rounds that trace_writer_flush() returned for */
};

static void
write_for_ever(struct traced_run *f, struct shared *shared)
{
    struct err err;
    if (!traced_run_open(f, 0, &err))
        _exit(1);
    uint64_t dice = f->stream.random;
    for (size_t i = 0; i < f->stream.n; i++) {
        const struct event *e = &f->stream.events[i];
        event_log_append(f->log, e);
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        if (e->type == EVENT_ROUND && dice >> 61 == 0) {
            trace_writer_flush(f->writer);
            atomic_store(&shared->flushed, e->round);
        } else if (dice >> 58 == 1) {
            sleep_us(200);
        }
    }
    for (;;)
        pause();
}

TEST_WITH(killed_at_any_instant_a_trace_replays_up_to_its_last_round, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    stream_start_run(&f->stream);
    for (int i = 0; i < 2000; i++)
        stream_round(&f->stream);
    uint64_t most = 0;
    for (int i = 0; i < 30; i++) {
        atomic_store(&shared->flushed, 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            write_for_ever(f, shared);
        const uint32_t least = i % 3 == 0 ? 0 : stream_below(&f->stream, 1500); /* rounds */
        while (atomic_load(&shared->flushed) < least) {
            assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* the child still writes */
            sleep_us(100);
        }
        sleep_us(stream_below(&f->stream, 20000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        char run_json[400];
        snprintf(run_json, sizeof run_json, "%s/run.json", f->path);
        if (access(run_json, F_OK) != 0) { /* killed while it was still making the folder */
            assert_int_equal(atomic_load(&shared->flushed), 0);
        } else {
            uint64_t rounds = assert_replays_a_beginning(f->path, &f->stream);
            assert_true(rounds >= atomic_load(&shared->flushed));
            most = rounds > most ? rounds : most;
        }
        remove_folder(f->path);
    }
    print_message("at most %llu rounds\n", (unsigned long long)most);
    assert_true(most > 10);
    munmap(shared, sizeof *shared);
}
