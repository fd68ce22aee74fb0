/* Restores the terminal when a signal ends the program: cursor, colours, keyboard modes and the earlier screen. A
 * handler may not call stdio, malloc() or curses. So the bytes that undo the program's changes are composed beforehand,
 * and a handler only calls write(), poll(), fcntl() and tcsetattr(). Handlers can read only globals; all of them are in
 * this file. */
#include "tui/terminal/terminal.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static struct termios found;
static volatile sig_atomic_t have_found, tty_fd, out_fd;
static char undo[256];
static volatile sig_atomic_t undo_length;
static volatile sig_atomic_t ended_by, suspend_wanted;
/* True while this thread runs a function of a library. A crash of another thread in that time is not the library's. */
static _Thread_local volatile sig_atomic_t library;

/* Signals of faults, which are raised again after the terminal is restored. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGXCPU, SIGQUIT};
/* Signals that do not end a process by default, or never may reach a handler. All others end the program in an orderly
 * way. */
static const int harmless[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG, SIGWINCH,
                               SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ};

void
signals_give_back(void)
{
    /* The end of the program must not wait for a terminal that accepts no more bytes. */
    const int flags = fcntl((int)out_fd, F_GETFL);
    if (flags >= 0)
        fcntl((int)out_fd, F_SETFL, flags | O_NONBLOCK);
    for (size_t done = 0; done < (size_t)undo_length;) {
        const ssize_t n = write((int)out_fd, undo + done, (size_t)undo_length - done);
        struct pollfd wait = {.fd = (int)out_fd, .events = POLLOUT};
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN) || poll(&wait, 1, 200) <= 0)
            break;
    }
    if (flags >= 0)
        fcntl((int)out_fd, F_SETFL, flags);
    if (have_found)
        tcsetattr((int)tty_fd, TCSANOW, &found);
}

/* Ends the program after a crash within a library: ncurses does not check every result of malloc(), and elsewhere calls
 * exit(). */
static void
end_for_library(void)
{
    static const char words[] = "specscope: a library gave up (ncurses, or OpenMP's); memory may have run out\n";
    library = 0;
    signals_give_back();
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
        errno = 0; /* stderr is closed: the message is lost */
    _exit(1);
}

static void
on_exit_within(void)
{
    if (library != 0 || undo_length > 0) /* specscope itself restores the terminal before it exits */
        end_for_library();
}

static void
on_fatal(int number)
{
    if (library != 0 && (number == SIGSEGV || number == SIGBUS || number == SIGABRT))
        end_for_library();
    signals_give_back();
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns */
}

static void
on_ending(int number)
{
    const int saved = errno;
    if (ended_by != 0 && number != SIGHUP) { /* the second signal: the main loop does not respond */
        on_fatal(number);
        return;
    }
    ended_by = number;
    errno = saved;
}

static void
on_stop(int number)
{
    (void)number;
    suspend_wanted = 1;
}

int
terminal_ended_by(void)
{
    return ended_by;
}

bool
terminal_suspend_wanted(void)
{
    const bool wanted = suspend_wanted != 0;
    suspend_wanted = 0;
    return wanted;
}

const char *
terminal_string(const char *name)
{
    const char *value = tigetstr(name);
    return (intptr_t)value == -1 ? NULL : value;
}

static void
append(const char *sequence)
{
    if (sequence == NULL)
        return;
    /* without $<10/>, which is a pause */
    while (*sequence != '\0' && (size_t)undo_length + 1 < sizeof undo) {
        const char *end = sequence[0] == '$' && sequence[1] == '<' ? strchr(sequence, '>') : NULL;
        if (end != NULL) {
            sequence = end + 1;
            continue;
        }
        undo[undo_length] = *sequence++;
        undo_length = undo_length + 1;
    }
}

void
signals_library(bool at_work)
{
    library = at_work;
}

void
signals_undo(void)
{
    out_fd = STDOUT_FILENO;
    undo_length = 0;
    append("\033[?2026l\033[?1002l\033[?1006l\033[?1000l\033[?2004l");
    append(terminal_string("sgr0"));
    append(terminal_string("op"));
    append(terminal_string("rmkx"));
    append(terminal_string("cnorm"));
    append(terminal_string("rmcup"));
    append("\r\n");
}

/* Ours in the place of the default action only: a sanitizer's handlers, or nohup's ignored SIGHUP, stay. */
static void
handle(int number, void (*handler)(int), int flags)
{
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

static void
release(int number, void (*handler)(int))
{
    struct sigaction now, action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler == handler)
        sigaction(number, &action, NULL);
}

static bool
is_in(const int *list, size_t n, int number)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == number)
            return true;
    return false;
}

/* SIG_DFL: none. */
static void (*handler_of(int number))(int)
{
    return is_in(fatal, sizeof fatal / sizeof *fatal, number)            ? on_fatal
           : is_in(harmless, sizeof harmless / sizeof *harmless, number) ? SIG_DFL
                                                                         : on_ending;
}

/* once, because atexit() cannot be undone */
static void
watch_exit(void)
{
    static bool registered;
    if (!registered)
        registered = atexit(on_exit_within) == 0;
}

void
signals_library_alone(bool at_work)
{
    static const int deaths[] = {SIGSEGV, SIGBUS, SIGABRT};
    watch_exit();
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        if (at_work)
            handle(deaths[i], on_fatal, SA_ONSTACK);
        else
            release(deaths[i], on_fatal);
    }
    library = at_work;
}

void
signals_install(int fd)
{
    static char stack[64 * 1024]; /* a stack overflow is handled as well */
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    watch_exit();
    ended_by = 0;
    suspend_wanted = 0;
    undo_length = 0;
    tty_fd = fd;
    have_found = fd >= 0 && tcgetattr(fd, &found) == 0;
    for (int s = 1; s <= SIGRTMAX; s++) {
        void (*const handler)(int) = handler_of(s);
        if (handler != SIG_DFL)
            handle(s, handler, SA_ONSTACK);
    }
    handle(SIGTSTP, on_stop, SA_RESTART);
    handle(SIGPIPE, SIG_IGN, 0);
}

void
signals_remove(void)
{
    have_found = 0;
    undo_length = 0;
    for (int s = 1; s <= SIGRTMAX; s++) {
        void (*const handler)(int) = handler_of(s);
        if (handler != SIG_DFL)
            release(s, handler);
    }
    release(SIGTSTP, on_stop);
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
}

void
signals_stop(void)
{
    release(SIGTSTP, on_stop);
    kill(0, SIGTSTP); /* the whole job, as the terminal would: `make run` waits for us in it */
    handle(SIGTSTP, on_stop, SA_RESTART);
}
