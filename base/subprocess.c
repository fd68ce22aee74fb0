#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without memory, fontconfig and OpenBLAS may wait forever. */
#define MOST_SECONDS 30
#define DONE         42 /* exit status of a child that finished */

struct report { /* shared memory; the answer follows */
    bool fine;
    struct err err;
};

/* Called with all signals blocked: a handler of the parent's would restore the terminal. */
static void
become_quiet(void)
{
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    alarm(MOST_SECONDS);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
}

/* Waits for the child. */
static bool
ended(pid_t child, const char *what, struct err *err)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return err_set(
            err, ERR_WORK,
            "%.200s: a library did not finish within %d s, perhaps for want of memory; free some and try again", what,
            MOST_SECONDS);
    if (got == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
        return err_set(err, ERR_CANCELLED, "%.200s: interrupted", what);
    if (got == child && WIFSIGNALED(status))
        return err_set(
            err, ERR_WORK,
            "%.200s: a library ended with signal %d (%s), perhaps for want of memory; free some and try again", what,
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    return (got == child && WIFEXITED(status) && WEXITSTATUS(status) == DONE) ||
           err_set(err, ERR_WORK,
                   "%.200s: a library ended the work, perhaps for want of memory; free some and try again", what);
}

bool
subprocess_run(subprocess_fn work, void *user, void *answer, size_t n, const char *what, struct err *err)
{
    sigset_t all, before;
    struct report *r = mmap(NULL, sizeof *r + n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        return err_set(err, ERR_WORK, "%.200s: out of memory", what);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    const int why = errno;
    if (child == 0) {
        become_quiet();
        r->fine = work(user, r + 1, &r->err);
        _exit(DONE);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    bool ok = child > 0 || err_set(err, ERR_WORK, "%.200s: no process can be started: %s", what, strerror(why));
    ok = ok && ended(child, what, err) && (r->fine || err_copy(err, &r->err));
    if (n > 0)
        memcpy(answer, r + 1, n);
    munmap(r, sizeof *r + n);
    return ok;
}
