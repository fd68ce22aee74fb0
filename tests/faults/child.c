#include "tests/faults/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

static void
onto(int fd, const char *path, int flags)
{
    const int file = open(path, flags | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(126);
}

static void
become(const struct child_plan *p)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGTSTP};
    const struct rlimit none = {0, 0};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL); /* a shell lets background processes ignore some signals */
    setrlimit(RLIMIT_CORE, &none);
    if (chdir(p->folder) != 0)
        _exit(126);
    for (const char *const *v = p->variables; v != NULL && *v != NULL; v++)
        putenv((char *)*v);
    if (p->err != NULL)
        onto(STDERR_FILENO, p->err, O_WRONLY | O_CREAT | O_TRUNC);
    if (!p->terminal) {
        onto(STDIN_FILENO, p->in != NULL ? p->in : "/dev/null", O_RDONLY);
        if (p->out != NULL)
            onto(STDOUT_FILENO, p->out, O_WRONLY | O_CREAT | O_TRUNC);
    }
    execv(p->argv[0], p->argv);
    _exit(127);
}

static void
settings(int fd, char out[64])
{
    struct termios t;
    memset(out, 0, 64);
    if (tcgetattr(fd, &t) == 0)
        snprintf(out, 64, "%x %x %x %x", t.c_iflag, t.c_oflag, t.c_cflag, t.c_lflag);
}

/* Forks a process on a new terminal. Returns as fork() does. Keys that were typed ahead are still in the terminal's
 * input when the program restores the terminal's settings. The line discipline must neither stop the output at a Ctrl-S
 * among them nor discard pending output at a Ctrl-C. */
static pid_t
fork_at_terminal(struct child *c, const struct child_plan *p)
{
    const struct winsize size = {.ws_row = p->rows, .ws_col = p->cols};
    struct termios t;
    int slave;
    if (openpty(&c->master, &slave, NULL, NULL, &size) != 0)
        return -1;
    if (tcgetattr(slave, &t) == 0) {
        t.c_iflag &= ~(tcflag_t)IXON;
        t.c_lflag |= NOFLSH;
        tcsetattr(slave, TCSANOW, &t);
    }
    settings(slave, c->was); /* before the program can change them */
    const pid_t pid = fork();
    if (pid != 0) {
        close(slave);
        return pid;
    }
    close(c->master);
    if (login_tty(slave) != 0)
        _exit(126);
    return 0;
}

bool
child_start(struct child *c, const struct child_plan *p)
{
    *c = (struct child){.master = -1, .alive_fd = -1};
    c->pid = p->terminal ? fork_at_terminal(c, p) : fork();
    if (c->pid == 0)
        become(p);
    if (c->pid < 0) {
        fprintf(stderr, "%s: cannot be started: %s\n", p->argv[0], strerror(errno));
        return false;
    }
    if (c->master >= 0) {
        fcntl(c->master, F_SETFL, fcntl(c->master, F_GETFL) | O_NONBLOCK);
        fcntl(c->master, F_SETFD, FD_CLOEXEC);
    }
    c->alive_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    return true;
}

/* Stores in full_screen which of the two escapes, entering or leaving the alternate screen, came last. */
static void
look(struct child *c, const char *bytes, size_t n)
{
    static const char take[] = "\033[?1049h", leave[] = "\033[?1049l";
    const size_t length = sizeof take - 1;
    c->seen += n;
    if (n < length)
        return;
    for (size_t i = 0; i + length <= n; i++) {
        if (memcmp(bytes + i, take, length) == 0)
            c->full_screen = true;
        if (memcmp(bytes + i, leave, length) == 0)
            c->full_screen = false;
    }
}

void
child_drain(struct child *c)
{
    char bytes[16 + 8192];
    while (c->master >= 0) {
        memcpy(bytes, c->tail, c->n_tail);
        const ssize_t n = read(c->master, bytes + c->n_tail, 8192);
        if (n <= 0)
            return;
        const size_t all = c->n_tail + (size_t)n;
        look(c, bytes, all);
        c->n_tail = all < 7 ? all : 7;
        memcpy(c->tail, bytes + all - c->n_tail, c->n_tail);
    }
}

static int64_t
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool
reap(struct child *c, int flags)
{
    if (!c->ended && waitpid(c->pid, &c->status, flags) == c->pid) {
        c->ended = true;
        for (int i = 0; i < 50 && c->master >= 0; i++) { /* its last output may not have arrived yet */
            struct pollfd last = {.fd = c->master, .events = POLLIN};
            poll(&last, 1, 10);
            child_drain(c);
            if ((last.revents & POLLIN) == 0 && (last.revents & POLLHUP) != 0)
                break;
        }
        if (c->master >= 0) {
            char now[64];
            settings(c->master, now);
            c->cooked = strcmp(now, c->was) == 0;
        }
    }
    return c->ended;
}

bool
child_wait(struct child *c, int ms)
{
    const int64_t end = now_ms() + ms;
    for (;;) {
        if (reap(c, WNOHANG))
            return true;
        const int64_t left = end - now_ms();
        if (left <= 0)
            return false;
        struct pollfd fds[2] = {{.fd = c->alive_fd, .events = POLLIN}, {.fd = c->master, .events = POLLIN}};
        const int wait = c->alive_fd < 0 && left > 5 ? 5 : (int)left;
        poll(fds, 2, wait);
        if ((fds[1].revents & POLLIN) != 0)
            child_drain(c);
        else if ((fds[1].revents & (POLLHUP | POLLERR)) != 0)
            /* no process has the terminal open: the child will end soon, or it closed the terminal */
            poll(fds, 1, wait < 20 ? wait : 20);
    }
}

void
child_close(struct child *c)
{
    if (!c->ended && c->pid > 0) {
        kill(c->pid, SIGKILL);
        reap(c, 0);
    }
    if (c->master >= 0)
        close(c->master);
    if (c->alive_fd >= 0)
        close(c->alive_fd);
    c->master = c->alive_fd = -1;
}

bool
child_run(struct child *c, const struct child_plan *p, int ms)
{
    const bool ended = child_start(c, p) && child_wait(c, ms);
    child_close(c);
    return ended;
}
