/* The report of a fatal signal: it is a library's lack of memory only in the thread that runs the library. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "tui/terminal/terminal.h"

static void *
die(void *unused)
{
    raise(SIGSEGV);
    return unused;
}

/* Returns the wait status of a process that gets a SIGSEGV while a library runs, in the library's thread or in another
 * one. */
static int
status_of(bool in_another_thread)
{
    int status;
    const pid_t pid = fork();
    assert_at_least(pid, 0);
    if (pid == 0) {
        pthread_t thread;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(98);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer installs its own handler */
        signals_install(-1);
        signals_library(true);
        if (!in_another_thread)
            raise(SIGSEGV);
        else if (pthread_create(&thread, NULL, die, NULL) == 0)
            pthread_join(thread, NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

TEST(a_death_in_a_library_is_its_lack_of_memory)
{
    const int status = status_of(false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

TEST(another_threads_death_meanwhile_is_that_signals)
{
    const int status = status_of(true);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}
