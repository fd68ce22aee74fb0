/* The scope in a terminal. It reads every byte, however many arrive at once. It exits when a signal asks for it, also
 * while it is exiting and at a terminal that no longer accepts output. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/rigs/test.h"
#include "traces/replay.h"
#include "tui/app/app_state.h"

#define TRACE      "tests/screens/traces/sv"
#define PATIENT_MS 300000

static int
take_nothing(struct app *app)
{
    while (!app->quit) {
        app->screen.repaint = app->screen.dirty = true; /* each cycle draws a frame, until the terminal is full */
        app_cycle(app, 0);
    }
    return 0;
}

/* Raises the signal after the loop, when the program could open another model. */
static int
signalled_on_the_way_out(struct app *app)
{
    app_cycle(app, 0);
    app->quit = true;
    return raise(SIGINT);
}

/* Starts a replay in a new process with its own terminal, and stores the terminal's master side in *master. */
static pid_t
scope_that(int (*does)(struct app *), int *master)
{
    static struct app app;
    const struct winsize size = {.ws_row = 60, .ws_col = 200};
    const pid_t pid = forkpty(master, NULL, NULL, &size);
    assert_at_least(pid, 0);
    if (pid > 0)
        return pid;
    struct err err = {0};
    struct replay *replay;
    for (int s = 1; s <= SIGRTMAX; s++) /* a shell makes background jobs ignore some signals */
        if (s != SIGCHLD)
            signal(s, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    setenv("TERM", "xterm-256color", 1);
    setenv("COLORTERM", "truecolor", 1); /* the scope then does not query the terminal and wait for its answer */
    if (!replay_open(&replay, TRACE, false, &err))
        _exit(99);
    const struct source source = {.replay = replay};
    if (!app_begin(&app, &source, &(struct app_options){.data_dir = "."}) || does(&app) != 0)
        _exit(98);
    const int status = app_end(&app, &err);
    replay_close(replay);
    _exit(status);
}

/* Returns the exit status, 128 + the signal that ended it, or 1000 at a timeout. If `reading`, reads its output. */
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

/* The terminal is like an ssh connection that hangs: the program must not wait for it when it has to exit. */
TEST(a_terminal_that_reads_nothing_does_not_block_the_exit)
{
    int master;
    const pid_t pid = scope_that(take_nothing, &master);
    struct pollfd wait = {.fd = master, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENT_MS), 1); /* wait until the scope draws */
    struct pollfd full = {.fd = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), .events = POLLOUT};
    assert_at_least(full.fd, 0);
    for (int left = PATIENT_MS / 10; left > 0 && poll(&full, 1, 0) > 0; left--)
        poll(NULL, 0, 10);
    assert_int_equal(poll(&full, 1, 0), 0); /* and until the terminal is full */
    close(full.fd);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGTERM);
    assert_int_equal(ending(pid, master, false), 128 + SIGTERM);
    close(master);
}

/* Returns whether the terminal edits lines again, and the mouse and the second screen are off in what was drawn
 * last. */
static bool
given_back(int master, const char *drawn)
{
    static const char *const modes[] = {"\033[?1000", "\033[?1049", "\033[?2004"};
    struct termios now;
    bool back = tcgetattr(master, &now) == 0 && (now.c_lflag & ICANON) != 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const char *last = NULL;
        for (const char *at = drawn; (at = strstr(at, modes[i])) != NULL; at++)
            last = at;
        back = back && last != NULL && last[strlen(modes[i])] == 'l';
    }
    return back;
}

/* Reads until the process ends, and keeps the last bytes. */
static void
read_drawn(int master, char *drawn, size_t size)
{
    size_t n = 0;
    for (ssize_t got; (got = read(master, drawn + n, size - 1 - n)) > 0 || (got < 0 && errno == EINTR);) {
        n += got > 0 ? (size_t)got : 0;
        if (n == size - 1) {
            memmove(drawn, drawn + n / 2, n - n / 2);
            n -= n / 2;
        }
    }
    drawn[n] = '\0';
}

static int cycle_until_left(struct app *app);

TEST(every_signal_that_ends_the_program_gives_the_terminal_back)
{
    static char drawn[1 << 16];
    static const int others[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
                                 SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ,  /* these do not end it */
                                 SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,  SIGABRT}; /* sanitizers handle these */
    for (int s = 1; s <= SIGRTMAX; s++) {
        bool ends = s < 32 || s >= SIGRTMIN; /* the C library reserves some */
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            ends = ends && s != others[i];
        if (!ends)
            continue;
        int master;
        const pid_t pid = scope_that(cycle_until_left, &master);
        struct pollfd wait = {.fd = master, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, PATIENT_MS), 1);
        const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC); /* the terminal outlives the process */
        kill(pid, s);
        int status = 0;
        struct termios now;
        const pid_t reader = fork();
        if (reader == 0) {
            close(slave);
            read_drawn(master, drawn, sizeof drawn);
            _exit(tcgetattr(master, &now) == 0 && given_back(master, drawn) ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), 128 + s);
        close(slave);
        assert_int_equal(waitpid(reader, &status, 0), reader);
        if (status != 0)
            fail_msg("after signal %d the terminal is not as it was", s);
        close(master);
    }
}

/* ---- bursts of input ---- */

#define LONGEST 6000

static size_t pasted; /* characters of the next paste */

static int
cycle_until_left(struct app *app)
{
    while (!app->quit)
        app_cycle(app, 10);
    return 0;
}

/* Returns 0 if the line got the whole paste, and the Enter after it started the search. */
static int
cycle_until_left_after_a_paste(struct app *app)
{
    cycle_until_left(app);
    const struct history *h = &app->line.history[LINE_SEARCH];
    return h->n == 1 && strlen(h->line[0]) == pasted ? 0 : 1;
}

static int
status_after(int (*does)(struct app *), const char *bytes)
{
    int master;
    const size_t n = strlen(bytes);
    const pid_t pid = scope_that(does, &master);
    struct pollfd wait = {.fd = master, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENT_MS), 1); /* it draws only after line editing is off */
    const pid_t typist = fork(); /* the terminal takes no more than 4096 bytes before the scope reads */
    if (typist == 0) {
        for (size_t done = 0; done < n;) {
            const ssize_t wrote = write(master, bytes + done, n - done);
            done += wrote > 0 ? (size_t)wrote : 0;
        }
        _exit(0);
    }
    const int status = ending(pid, master, true);
    assert_int_equal(waitpid(typist, NULL, 0), typist);
    close(master);
    return status;
}

TEST(a_key_after_any_number_of_keys_is_read)
{
    static const size_t counts[] = {255, 256, 257, 511, 512, 1000};
    char keys[LONGEST];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memset(keys, 'l', counts[i]);
        strcpy(keys + counts[i], "q");
        assert_int_equal(status_after(cycle_until_left, keys), 0);
    }
}

TEST(a_paste_of_any_length_is_read_whole)
{
    static const size_t lengths[] = {1, 254, 255, 256, 4500};
    char keys[LONGEST];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        pasted = lengths[i];
        const size_t n = (size_t)snprintf(keys, sizeof keys, "\033[200~");
        memset(keys + n, 'l', pasted);
        strcpy(keys + n + pasted, "\033[201~\rq");
        assert_int_equal(status_after(cycle_until_left_after_a_paste, keys), 0);
    }
}

/* "q" in a paste is no command: neither where no line takes the text, nor after a control character in it. */
TEST(a_paste_is_never_a_command)
{
    pasted = 5;
    assert_int_equal(status_after(cycle_until_left_after_a_paste, "\033[200~a\033q\003\001qqq\033[201~\rq"), 0);
    pasted = 1;
    assert_int_equal(status_after(cycle_until_left_after_a_paste, "?\033[200~qq\rqq\033[201~/a\rq"), 0);
}
