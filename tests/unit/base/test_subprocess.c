/* A function that runs in a separate process: its results, and the ways in which the process can end. */
#include <signal.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "tests/rigs/test.h"

static int changed;
static volatile sig_atomic_t handled;

static void
handle(int signal)
{
    handled = signal;
}

static bool
answer(void *user, void *out, struct err *err)
{
    (void)err;
    changed = 1;
    memcpy(out, user, 4);
    return true;
}

static bool
refuse(void *user, void *out, struct err *err)
{
    (void)out;
    return err_set(err, ERR_USAGE, "%s", (const char *)user);
}

static bool
end_by_signal(void *user, void *out, struct err *err)
{
    (void)out, (void)err;
    raise(*(const int *)user);
    return true;
}

static bool
leave(void *user, void *out, struct err *err)
{
    (void)user, (void)out, (void)err;
    exit(0); /* like a library that exits with status 0 before the work is done */
}

static bool
write_to(void *user, void *out, struct err *err)
{
    (void)out, (void)err;
    return write(*(const int *)user, "mice", 4) == 4;
}

TEST(a_subprocess_returns_its_answer_and_nothing_else)
{
    char out[4] = "";
    struct err err;
    changed = 0;
    assert_ok(subprocess_run(answer, "mice", out, sizeof out, "work", &err), err);
    assert_memory_equal(out, "mice", 4);
    assert_int_equal(changed, 0);
}

TEST(a_subprocess_returns_its_error)
{
    struct err err;
    assert_false(subprocess_run(refuse, "no mice", NULL, 0, "work", &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.text, "no mice");
}

TEST(a_signal_ends_the_work_alone_and_is_named)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct err err = {0};
        void (*before)(int) = signal(signals[i], handle);
        handled = 0;
        assert_false(subprocess_run(end_by_signal, (void *)&signals[i], NULL, 0, "work", &err));
        signal(signals[i], before);
        assert_int_equal(handled, 0);
        assert_int_equal(err.kind, ERR_WORK);
        assert_contains(err.text, strsignal(signals[i]));
        assert_memory_equal(err.text, "work: ", 6);
    }
}

TEST(an_interruption_and_the_time_limit_have_messages_of_their_own)
{
    struct err err = {0};
    assert_false(subprocess_run(end_by_signal, &(int){SIGINT}, NULL, 0, "work", &err));
    assert_int_equal(err.kind, ERR_CANCELLED);
    assert_string_equal(err.text, "work: interrupted");
    assert_false(subprocess_run(end_by_signal, &(int){SIGALRM}, NULL, 0, "work", &err));
    assert_int_equal(err.kind, ERR_WORK);
    assert_contains(err.text, "did not finish within");
}

TEST(work_that_leaves_did_not_succeed)
{
    struct err err = {0};
    assert_false(subprocess_run(leave, NULL, NULL, 0, "work", &err));
    assert_int_equal(err.kind, ERR_WORK);
}

TEST(open_files_are_shared)
{
    int ends[2];
    char got[5] = "";
    struct err err;
    assert_int_equal(pipe(ends), 0);
    assert_ok(subprocess_run(write_to, &ends[1], NULL, 0, "work", &err), err);
    assert_int_equal(read(ends[0], got, 4), 4);
    assert_string_equal(got, "mice");
    close(ends[0]);
    close(ends[1]);
}
