/* An export: a trace is copied while it is written. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tests/rigs/traced_run.h"
#include "traces/schema.h"
#include "traces/writer.h"

static void
open_run(struct traced_run *f)
{
    struct err err;
    assert_ok(traced_run_open(f, 0, &err), err);
    stream_start_run(&f->stream);
}

static void
copy(const struct traced_run *f, const char *to)
{
    struct err err;
    assert_ok(trace_writer_copy(f->writer, to, &err), err);
}

static void
assert_fails(const struct traced_run *f, const char *to, const char *why)
{
    struct err err;
    assert_false(trace_writer_copy(f->writer, to, &err));
    if (strstr(err.text, why) == NULL)
        fail_msg("%s", err.text);
}

/* Counts files, without "." and "..". */
static int
files_in(const char *folder)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = -2;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* Checks that the copy has all files and replays a prefix of the stream. Returns the number of its rounds. */
static uint64_t
assert_whole(const char *path, const struct stream *s)
{
    assert_int_equal(files_in(path), TABLES + 1);
    return assert_replays_a_beginning(path, s);
}

/* The trace grows while it is copied, but by at most three parts. */
enum { COPIES = 16, PARTS = COPIES + 4 };

struct growing {
    struct traced_run *run;
    atomic_uint parts, copies; /* written parts of the stream; finished copies */
    atomic_bool enough;
};

static void
wait_for(const atomic_uint *number, unsigned least, const atomic_bool *enough)
{
    while (atomic_load(number) < least && !atomic_load(enough))
        usleep(100);
}

static void *
append_rounds(void *user)
{
    struct growing *g = user;
    const size_t part = g->run->stream.n / PARTS;
    for (size_t i = 0; i < part * PARTS && !atomic_load(&g->enough); i++) {
        event_log_append(g->run->log, &g->run->stream.events[i]);
        if ((i + 1) % part != 0)
            continue;
        trace_writer_flush(g->run->writer);
        const unsigned parts = atomic_fetch_add(&g->parts, 1) + 1;
        wait_for(&g->copies, parts > 3 ? parts - 3 : 0, &g->enough);
    }
    return NULL;
}

TEST_WITH(every_copy_of_a_growing_trace_is_whole, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    struct growing g = {.run = f};
    char to[COPIES][300];
    pthread_t thread;
    uint64_t before = 0, different = 0;
    open_run(f);
    for (int i = 0; i < 4000; i++)
        stream_round(&f->stream);
    assert_int_equal(pthread_create(&thread, NULL, append_rounds, &g), 0);
    bool ok = true;
    struct err err;
    for (int i = 0; i < COPIES && ok; i++) {
        wait_for(&g.parts, (unsigned)i + 1, &g.enough);
        snprintf(to[i], sizeof to[i], "%.240s/copy%d", f->folder, i);
        ok = trace_writer_copy(f->writer, to[i], &err);
        atomic_fetch_add(&g.copies, 1);
    }
    atomic_store(&g.enough, true);
    pthread_join(thread, NULL);
    assert_ok(ok, err);
    for (int i = 0; i < COPIES; i++) {
        const uint64_t rounds = assert_whole(to[i], &f->stream);
        assert_at_least(rounds, before);
        different += rounds > before;
        before = rounds;
    }
    print_message("%llu rounds at last, %llu copies with more than the one before\n", (unsigned long long)before,
                  (unsigned long long)different);
    assert_at_least(different, COPIES / 4); /* each copy has all written parts except the last */
}

TEST_WITH(what_directly_follows_the_last_round_is_copied_and_a_round_under_way_is_not, traced_run_set_up,
          traced_run_tear_down)
{
    struct traced_run *f = *state;
    char to[300];
    open_run(f);
    stream_round(&f->stream);
    stream_round(&f->stream);
    stream_control(&f->stream, "end", "tokens");
    stream_control(&f->stream, "baseline", "398.5");
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/ended", f->folder);
    copy(f, to);
    assert_int_equal(assert_whole(to, &f->stream), 2);
    char *controls = read_text(to, "controls.csv");
    assert_contains(controls, "\"baseline\",,\"398.5\"");
    free(controls);

    f->stream.round++; /* a draft's line waits for its verdict while a control is written */
    struct event *e = stream_add(&f->stream, EVENT_TOKEN);
    e->token = (struct token_event){.source = SOURCE_DRAFT, .candidate = 1, .accepted = -1, .committed = -1};
    stream_control(&f->stream, "pause", "");
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/under-way", f->folder);
    copy(f, to);
    assert_int_equal(assert_whole(to, &f->stream), 2);
}

TEST_WITH(a_trace_without_rounds_is_copied_too, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    char to[300];
    open_run(f);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/copy", f->folder);
    copy(f, to);
    assert_int_equal(assert_whole(to, &f->stream), 0);
}

/* A folder in place of a table can be opened like a file, but reading it fails. */
TEST_WITH(a_read_error_is_noticed_and_leaves_nothing_behind, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    char to[300], name[400], aside[400];
    open_run(f);
    stream_round(&f->stream);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/copy", f->folder);
    for (unsigned i = 0; i < TABLES; i++) {
        const char *file = trace_tables[i].file;
        snprintf(name, sizeof name, "%s/%s", f->path, file);
        snprintf(aside, sizeof aside, "%s/aside", f->folder);
        assert_int_equal(rename(name, aside), 0);
        assert_int_equal(mkdir(name, 0700), 0);
        assert_fails(f, to, file);
        assert_int_not_equal(access(to, F_OK), 0);
        assert_int_equal(rmdir(name), 0);
        assert_int_equal(rename(aside, name), 0);
    }
    copy(f, to);
    assert_int_equal(assert_whole(to, &f->stream), 1);
}

TEST_WITH(a_disk_that_fills_up_leaves_nothing_behind_and_can_be_tried_again, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    char to[300], other[300], disk[256];
    make_temp_folder(disk);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=64k") != 0) {
        remove_folder(disk);
        print_message("cannot mount a small disk here (%s); the file size limit stands in for it\n", strerror(errno));
        skip();
    }
    open_run(f);
    for (int i = 0; i < 300; i++)
        stream_round(&f->stream);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/copy", disk);
    assert_fails(f, to, strerror(ENOSPC));
    assert_int_equal(files_in(disk), 0);
    write_text(disk, "note", "mine");
    assert_fails(f, disk, strerror(ENOSPC)); /* a folder that existed before keeps its contents */
    assert_int_equal(files_in(disk), 1);
    assert_int_equal(mount("tmpfs", disk, "tmpfs", MS_REMOUNT, "size=64m"), 0);
    copy(f, to);
    assert_int_equal(assert_whole(to, &f->stream), 300);
    snprintf(other, sizeof other, "%.240s/other", f->folder); /* the trace itself is not damaged */
    copy(f, other);
    assert_int_equal(assert_whole(other, &f->stream), 300);
    umount2(disk, MNT_DETACH);
    remove_folder(disk);
}

TEST_WITH(the_file_size_limit_is_an_error_and_not_the_end, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    char to[300];
    struct rlimit before;
    open_run(f);
    for (int i = 0; i < 300; i++)
        stream_round(&f->stream);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/copy", f->folder);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 20000, .rlim_max = before.rlim_max});
    struct err err;
    const bool ok = trace_writer_copy(f->writer, to, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(ok);
    assert_contains(err.text, strerror(EFBIG));
    assert_int_not_equal(access(to, F_OK), 0);
    copy(f, to);
    assert_int_equal(assert_whole(to, &f->stream), 300);
}

TEST_WITH(a_folder_with_a_trace_is_refused_and_one_with_other_files_is_not, traced_run_set_up, traced_run_tear_down)
{
    struct traced_run *f = *state;
    char to[300];
    open_run(f);
    stream_round(&f->stream);
    traced_run_append(f);
    trace_writer_flush(f->writer);
    snprintf(to, sizeof to, "%.240s/copy", f->folder);
    assert_int_equal(mkdir(to, 0700), 0);
    write_text(to, "note", "mine");
    copy(f, to);
    assert_int_equal(files_in(to), TABLES + 2);
    assert_fails(f, to, "already holds a trace");
    assert_int_equal(files_in(to), TABLES + 2);
    assert_fails(f, "/nowhere/at/all", "choose another folder");
}
