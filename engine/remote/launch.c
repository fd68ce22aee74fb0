#include "engine/remote/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/utf8.h"

#define CANNOT       "the server did not start"
#define COMMAND_MOST 16384
#define OUTPUT_KEPT  4096      /* bytes of the server's output */
#define PIPE_MOST    (1 << 20) /* bytes that a pipe may hold */
#define TICK_MS      50
#define HEALTH_S     2 /* of one request */

struct launch {  /* memory that the guard shares */
    pid_t guard; /* 0: it has ended */
    int life;    /* the pipe that the guard watches */
    char url[32];
    /* written by the guard */
    int status; /* of waitpid(); -1: the server did not end by itself */
    size_t n;
    char output[OUTPUT_KEPT]; /* the server's last bytes */
};

/* ---- the guard: between fork() and _exit() it calls only functions that are safe there ---- */

struct guard {
    struct launch *launch;
    int life, output; /* -1: it has ended */
    pid_t server;     /* also its process group */
    bool reaped;
};

/* In the server's process. */
static void
become_server(const char *command, int output)
{
    sigset_t none;
    output = fcntl(output, F_DUPFD, 3);
    const int nowhere = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(nowhere, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    platform_close_from(STDERR_FILENO + 1);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Keeps the last bytes of the server's output: the pipe must not fill up. Waits one tick at most; returns whether there
 * were bytes. */
static bool
read_output(struct guard *g)
{
    char bytes[1024];
    struct launch *l = g->launch;
    struct pollfd both[2] = {{g->output, POLLIN, 0}, {g->life, POLLIN, 0}};
    poll(both, 2, TICK_MS);
    const ssize_t n = both[0].revents != 0 ? read(g->output, bytes, sizeof bytes) : 0;
    if (both[0].revents != 0 && n <= 0)
        g->output = -1; /* poll() ignores it */
    if (both[1].revents != 0)
        g->life = -1;
    if (n <= 0)
        return false;
    const size_t kept = l->n + (size_t)n <= OUTPUT_KEPT ? l->n : OUTPUT_KEPT - (size_t)n;
    memmove(l->output, l->output + l->n - kept, kept);
    memcpy(l->output + kept, bytes, (size_t)n);
    l->n = kept + (size_t)n;
    return true;
}

/* Returns false if no child is left. */
static bool
reap(struct guard *g)
{
    int s;
    pid_t got;
    while ((got = waitpid(-1, &s, WNOHANG)) > 0)
        if (got == g->server) {
            g->reaped = true;
            g->launch->status = s;
        }
    return got == 0;
}

/* Ends the server's group, then the processes that have left it, where the system gives them to the guard. */
static void
end_server(struct guard *g)
{
    const uint64_t begun = clock_us();
    bool group = kill(-g->server, SIGTERM) == 0;
    /* no signal ends a process that waits for a broken disk */
    for (uint64_t s = 0; s < 2 * LAUNCH_END_S && (reap(g) || group); s = (clock_us() - begun) / 1000000) {
        read_output(g);
        group = group && kill(-g->server, s >= LAUNCH_END_S ? SIGKILL : 0) == 0;
        if (!group || s >= LAUNCH_END_S)
            platform_kill_children();
    }
    for (int i = 0; i < PIPE_MOST / 1024 && read_output(g); i++) {}
}

static void
run_guard(struct launch *l, int life, const int output[2], const char *command)
{
    struct guard g = {.launch = l, .life = 0, .output = 1};
    setsid();
    platform_adopt_orphans();
    g.server = fork();
    if (g.server == 0)
        become_server(command, output[1]);
    if (g.server < 0)
        _exit(1);
    setpgid(g.server, g.server);
    const int life_copy = fcntl(life, F_DUPFD, 3), output_copy = fcntl(output[0], F_DUPFD, 3);
    dup2(life_copy, g.life);
    dup2(output_copy, g.output);
    platform_close_from(2); /* also this process's copies of the pipes' other ends */
    while (!g.reaped && g.life >= 0) {
        read_output(&g);
        reap(&g);
    }
    end_server(&g);
    _exit(0);
}

/* ---- the program ---- */

/* Returns a port that was free a moment ago; 0: none. */
static unsigned
free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    const bool ok =
        s >= 0 && bind(s, (struct sockaddr *)&at, n) == 0 && getsockname(s, (struct sockaddr *)&at, &n) == 0;
    if (s >= 0)
        close(s);
    return ok ? ntohs(at.sin_port) : 0;
}

static bool
start(struct launch *l, const char *command, struct err *err)
{
    int life[2] = {-1, -1}, output[2];
    sigset_t all, before;
    const bool pipes = platform_pipe(life) && platform_pipe(output);
    l->life = life[1];
    if (!pipes) {
        close(life[0]);
        return err_set(err, ERR_WORK, CANNOT ": no pipe: %s", strerror(errno));
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the guard is deaf */
    const pid_t guard = fork();
    if (guard == 0)
        run_guard(l, life[0], output, command);
    l->guard = guard;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(life[0]);
    close(output[0]);
    close(output[1]);
    return guard > 0 || err_set(err, ERR_WORK, CANNOT ": no process can be started");
}

static bool
guard_ended(struct launch *l, int how)
{
    const pid_t got = l->guard > 0 ? waitpid(l->guard, NULL, how) : 0;
    if (got > 0 || (got < 0 && errno != EINTR))
        l->guard = 0;
    return l->guard <= 0;
}

/* The error of a failed start: `what`, and the last line of the server's output. */
static bool
failed(const struct launch *l, const char *what, struct err *err)
{
    char shown[240];
    const char *const text = l->output, *end = text + l->n, *line;
    while (end > text && (unsigned char)end[-1] <= ' ')
        end--;
    for (line = end; line > text && line[-1] != '\n' && line[-1] != '\r';)
        line--;
    printable_line(shown, sizeof shown, line, (size_t)(end - line));
    return err_set(err, ERR_WORK, CANNOT ": %s%s%s; check its command", what, shown[0] != '\0' ? ": " : "", shown);
}

static bool
wait_until_healthy(struct launch *l, struct http *http, double limit_s, const atomic_bool *cancel, struct err *err)
{
    const uint64_t begun = clock_us();
    for (;;) {
        int status = 0;
        size_t n;
        char *answer, what[80];
        const bool called = http_call(http, "/health", NULL, HEALTH_S, &status, &answer, &n, NULL);
        free(answer); /* NULL after a failure */
        if (cancel != NULL && atomic_load(cancel))
            return err_set(err, ERR_CANCELLED, "cancelled");
        if (guard_ended(l, WNOHANG)) {
            const int s = l->status;
            snprintf(what, sizeof what, "it ended with %s %d", WIFEXITED(s) ? "exit status" : "signal",
                     WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
            if (s == -1)
                snprintf(what, sizeof what, "no process could be started");
            return failed(l, what, err);
        }
        if (called && status == 200)
            return true;
        snprintf(what, sizeof what, "/health was not 200 within %g s", limit_s);
        if ((double)(clock_us() - begun) * 1e-6 > limit_s)
            return failed(l, what, err);
        poll(NULL, 0, TICK_MS);
    }
}

bool
launch_open(struct launch **out, const char *command, double limit_s, const atomic_bool *cancel, struct err *err)
{
    char whole[COMMAND_MOST];
    struct http *http = NULL;
    const unsigned port = free_port();
    struct launch *l =
        port == 0 ? MAP_FAILED : mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *out = NULL;
    if (l == MAP_FAILED)
        return err_set(err, ERR_WORK, CANNOT ": out of memory, or of ports");
    l->life = l->status = -1;
    snprintf(l->url, sizeof l->url, "http://127.0.0.1:%u", port);
    const int n = snprintf(whole, sizeof whole, "%s --host 127.0.0.1 --port %u", command, port);
    const bool ok = ((size_t)n < sizeof whole || err_set(err, ERR_USAGE, CANNOT ": its command is too long")) &&
                    http_open(&http, &(struct http_options){.url = l->url, .cancel = cancel}, err) &&
                    start(l, whole, err) && wait_until_healthy(l, http, limit_s, cancel, err);
    http_close(http);
    if (ok)
        *out = l;
    else
        launch_close(l);
    return ok;
}

const char *
launch_url(const struct launch *l)
{
    return l->url;
}

void
launch_close(struct launch *l)
{
    if (l == NULL)
        return;
    if (l->life >= 0)
        close(l->life);
    while (!guard_ended(l, 0)) {}
    munmap(l, sizeof *l);
}
