

#include <signal.h>
#include <sys/mount.h>

#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"
#include "tests/rigs/traced_run.h"

bool
traced_run_open(struct traced_run *f, size_t cap, struct err *err)
{
    struct run_info run;
    fake_run(&run);
    assert_true(event_log_open(&f->log, cap, err));
    bool ok = trace_writer_open(&f->writer, f->path, NULL, &run, f->log, err);
    run_info_free(&run);
    return ok;
}

void
traced_run_append(struct traced_run *f)
{
    for (; f->appended < f->stream.n; f->appended++)
        assert_int_equal(event_log_append(f->log, &f->stream.events[f->appended]), f->appended + 1);
}

int
traced_run_set_up(void **state)
{
    signal(SIGXFSZ, SIG_IGN); /* as in main() */
    struct traced_run *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    make_temp_folder(f->folder);
    snprintf(f->path, sizeof f->path, "%.240s/t", f->folder);
    stream_begin(&f->stream, seed_or(1));
    *state = f;
    return 0;
}

int
traced_run_tear_down(void **state)
{
    struct traced_run *f = *state;
    if (f->writer != NULL)
        trace_writer_close(f->writer, NULL);
    event_log_close(f->log);
    if (f->mounted)
        umount2(f->folder, MNT_DETACH);
    remove_folder(f->folder);
    stream_free(&f->stream);
    free(f);
    return 0;
}
