/* How the scope ends when a signal asks for it: on its way out, and at a terminal that takes nothing any more. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "tests/rigs/test.h"
#include "traces/replay.h"
#include "tui/app/app_cycle.h"

#define TRACE      "tests/screens/traces/sv"
#define PATIENT_MS 300000

static int
take_nothing(struct app *app)
{
    while (!app->quit) {
        app->screen.repaint = app->screen.dirty = true; /* a frame each, until no more goes in */
        app_cycle(app, 0);
    }
    return 0;
}

/* The signal comes when the loop is over: behind it another model might be opened. */
static int
signalled_on_the_way_out(struct app *app)
{
    app_cycle(app, 0);
    app->quit = true;
    return raise(SIGINT);
}

/* A replay in a terminal of its own, in another process. Its side of the terminal is in *master. */
static pid_t
scope_that(int (*does)(struct app *), int *master)
{
    static struct app app;
    const struct winsize size = {.ws_row = 60, .ws_col = 200};
    const pid_t pid = forkpty(master, NULL, NULL, &size);
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    struct err err = {0};
    struct replay *replay;
    signal(SIGINT, SIG_DFL); /* which a shell has what it runs in the background ignore */
    setenv("TERM", "xterm-256color", 1);
    setenv("COLORTERM", "truecolor", 1); /* it is not asked, and so not waited for */
    if (!replay_open(&replay, TRACE, &err))
        _exit(99);
    const struct source source = {.replay = replay};
    if (!app_begin(&app, &source, &(struct app_options){.data_dir = "."}) || does(&app) != 0)
        _exit(98);
    const int status = app_end(&app, &err);
    replay_close(replay);
    _exit(status);
}

/* Its exit status, or 128 + the signal that took it; 1000: it would not end. `reading`: what it draws is read. */
static int
ending(pid_t pid, int master, bool reading)
{
    int status = 0, left = PATIENT_MS / 10;
    char bytes[4096];
    while (left-- > 0 && waitpid(pid, &status, WNOHANG) != pid) {
        struct pollfd wait = {.fd = master, .events = reading ? POLLIN : 0};
        if (poll(&wait, 1, 10) > 0 && (!reading || read(master, bytes, sizeof bytes) <= 0))
            poll(NULL, 0, 10);
    }
    if (left < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return 1000;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(a_signal_on_the_way_out_counts)
{
    int master;
    const pid_t pid = scope_that(signalled_on_the_way_out, &master);
    assert_int_equal(ending(pid, master, true), 128 + SIGINT);
    close(master);
}

/* As an ssh connection that hangs: the program must not wait for it once it was told to end. */
TEST(a_terminal_that_reads_nothing_does_not_block_the_exit)
{
    int master;
    const pid_t pid = scope_that(take_nothing, &master);
    struct pollfd wait = {.fd = master, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENT_MS), 1); /* it draws, */
    struct pollfd full = {.fd = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), .events = POLLOUT};
    assert_true(full.fd >= 0);
    for (int left = PATIENT_MS / 10; left > 0 && poll(&full, 1, 0) > 0; left--)
        poll(NULL, 0, 10);
    assert_int_equal(poll(&full, 1, 0), 0); /* until nothing goes in any more */
    close(full.fd);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGTERM);
    assert_int_equal(ending(pid, master, false), 128 + SIGTERM);
    close(master);
}
