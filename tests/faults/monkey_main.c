/* Sends random keys, mouse events, commands and sizes to the scope in a terminal of its own. The program must survive
 * all of them, and end well in every way: by a key, by a signal, by the loss of its terminal. A build with sanitizers
 * finds most.
 *
 * usage: monkey BUILD [--events N] [--seed S] [--seconds S] [--life NAME]
 *
 * It prints the seed, and for each finding the last events. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/faults/cases.h"
#include "tests/faults/child.h"
#include "tests/faults/draws.h"
#include "tests/faults/events.h"
#include "tests/faults/folder.h"

#define STUCK_MS 300000 /* only a scope that hangs takes so long */
#define KEPT     4000   /* the last bytes that were sent */

static const struct fault_case lives[] = {
    {"live", .words = {"-t", "1", "-n", "300", "--pace", "0", "@models/fables-draft-q8_0.gguf"}, .terminal = true},
    {"live with heads and auxiliary models", .words = {"-t", "1", "-n", "200", "@models/fables-q8_0.gguf"},
     .terminal = true},
    {"a batch", .words = {"-t", "1", "-n", "40", "--batch", "3", "@models/fables-draft-q8_0.gguf"}, .terminal = true},
    {"versus", .words = {"-t", "1", "-n", "60", "--versus", "ar", "--trace", "trace", "@models/fables-draft-q8_0.gguf"},
     .terminal = true},
    {"a replay", .words = {"replay", "@tests/screens/traces/sv"}, .terminal = true},
    {"a replay of a batch", .words = {"replay", "@tests/screens/traces/batch"}, .terminal = true},
    {"two replays", .words = {"diff", "--scope", "@tests/screens/traces/sv", "@tests/screens/traces/specdecpp"},
     .terminal = true},
};

#define N_LIVES (sizeof lives / sizeof *lives)

enum farewell { BYE_KEY, BYE_TERM, BYE_HUP, BYE_INT, BYE_TERMINAL, FAREWELLS };
static const char *const farewells[] = {"q", "SIGTERM", "SIGHUP", "SIGINT", "the terminal closed"};

struct monkey {
    struct bench bench;
    struct command command;
    struct child child;
    struct draws draws;
    uint64_t rng, events, resizes, lives[N_LIVES], ends[FAREWELLS + 1];
    uint64_t findings, drawn; /* bytes that came from it */
    unsigned cols, rows;
    char kept[KEPT];
    size_t n_kept;
};

static void
keep(struct monkey *m, const char *bytes, size_t n)
{
    if (m->n_kept + n > KEPT) {
        const size_t gone = m->n_kept + n - KEPT;
        memmove(m->kept, m->kept + gone, m->n_kept - gone);
        m->n_kept -= gone;
    }
    memcpy(m->kept + m->n_kept, bytes, n);
    m->n_kept += n;
}

static void
finding(struct monkey *m, const struct fault_case *k, const char *what)
{
    size_t n;
    char *err = whole_file(m->bench.err, &n);
    m->findings++;
    printf("FINDING in %s after %llu events: %s\n%.3000s\nsent last: ", k->name, (unsigned long long)m->events, what,
           err != NULL ? err : "");
    for (size_t i = m->n_kept > 400 ? m->n_kept - 400 : 0; i < m->n_kept; i++) {
        const unsigned char c = (unsigned char)m->kept[i];
        printf(c >= ' ' && c < 0x7f ? "%c" : "\\x%02x", c);
    }
    printf("\n");
    fflush(stdout);
    free(err);
}

/* Returns false if the program has ended, or reads no more input. */
static bool
type_in(struct monkey *m, const struct fault_case *k, const char *bytes, size_t n)
{
    for (int waited = 0; n > 0;) {
        const ssize_t wrote = write(m->child.master, bytes, n);
        if (wrote > 0) {
            bytes += wrote;
            n -= (size_t)wrote;
            continue;
        }
        if (child_wait(&m->child, 20))
            return false;
        waited += 20;
        if (waited > STUCK_MS) {
            finding(m, k, "takes no keys any more");
            return false;
        }
    }
    child_drain(&m->child);
    return true;
}

/* Waits until all input has been read, because the terminal's queue would hold thousands of keys. Returns false if the
 * program has ended, or reads no more input. */
static bool
taken(struct monkey *m, const struct fault_case *k)
{
    const int other = open(ptsname(m->child.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    int waiting = 1;
    for (int waited = 0; other >= 0 && ioctl(other, FIONREAD, &waiting) == 0 && waiting > 0; waited++) {
        if (waited > STUCK_MS)
            finding(m, k, "takes no keys any more");
        if (waited > STUCK_MS || child_wait(&m->child, 1))
            break;
    }
    if (other >= 0)
        close(other);
    return waiting == 0 && !m->child.ended;
}

static void
resize(struct monkey *m, unsigned storm)
{
    for (; storm > 0; storm--) {
        m->cols = (unsigned)(splitmix64(&m->rng) % 8 == 0 ? splitmix64(&m->rng) % 6 : 1 + splitmix64(&m->rng) % 300);
        m->rows = (unsigned)(splitmix64(&m->rng) % 8 == 0 ? splitmix64(&m->rng) % 4 : 1 + splitmix64(&m->rng) % 100);
        const struct winsize size = {.ws_row = (unsigned short)m->rows, .ws_col = (unsigned short)m->cols};
        ioctl(m->child.master, TIOCSWINSZ, &size);
        m->resizes++;
        child_drain(&m->child);
    }
}

/* Returns true if the end is allowed: status 0, the signal that was sent (0: none), or the end after the loss of the
 * terminal. */
static void
look_at_end(struct monkey *m, const struct fault_case *k, const char *how, int sent)
{
    char what[200];
    size_t n = 0;
    const int status = m->child.status;
    char *err = whole_file(m->bench.err, &n);
    const bool complains = err != NULL && (strstr(err, "Sanitizer") != NULL || strstr(err, "runtime error") != NULL);
    const bool fine = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (how != NULL && WEXITSTATUS(status) > 128) ||
                                            (how == farewells[BYE_TERMINAL] && WEXITSTATUS(status) == 1));
    /* After the terminal is restored, a signal may end the process: ours, or a Ctrl-C that was typed ahead. */
    const bool late = !m->child.full_screen && WIFSIGNALED(status) &&
                      (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT || WTERMSIG(status) == sent);
    snprintf(what, sizeof what, "ended with %s %d, asked by %s", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), how != NULL ? how : "a key");
    if (complains || (!fine && !late))
        finding(m, k, what);
    else if (m->child.master >= 0 && (m->child.full_screen || !m->child.cooked)) {
        snprintf(what + strlen(what), sizeof what - strlen(what), ", and the terminal is left %s",
                 m->child.full_screen ? "full-screen" : "raw");
        finding(m, k, what);
    }
    free(err);
}

static void
say_farewell(struct monkey *m, const struct fault_case *k)
{
    const enum farewell bye = (enum farewell)(splitmix64(&m->rng) % FAREWELLS);
    static const int signals[FAREWELLS] = {0, SIGTERM, SIGHUP, SIGINT, 0};
    m->ends[bye]++;
    if (bye == BYE_KEY)
        type_in(m, k, "\033\033\033\033\003", 5); /* Ctrl-C quits everywhere */
    if (bye == BYE_KEY && !child_wait(&m->child, 300))
        type_in(m, k, "y\033\033\033\003qyq\003\003", 10); /* a second Ctrl-C quits without a question */
    if (signals[bye] != 0)
        kill(m->child.pid, signals[bye]);
    if (bye == BYE_TERMINAL) {
        close(m->child.master);
        m->child.master = -1;
    }
    if (!child_wait(&m->child, STUCK_MS)) {
        char what[100];
        snprintf(what, sizeof what, "does not end by %s", farewells[bye]);
        finding(m, k, what);
        return;
    }
    look_at_end(m, k, farewells[bye], signals[bye]);
}

/* Runs the program once, with some thousand events at most. */
static bool
live(struct monkey *m)
{
    const size_t which = (size_t)(splitmix64(&m->rng) % N_LIVES);
    const struct fault_case *k = &lives[which];
    if (m->draws.only != NULL && strcmp(m->draws.only, k->name) != 0)
        return true;
    uint64_t left = 200 + splitmix64(&m->rng) % 4000;
    m->lives[which]++;
    m->n_kept = 0;
    folder_empty(m->bench.run);
    command_make(&m->command, &m->bench, k, NULL);
    m->cols = m->command.plan.cols = 120;
    m->rows = m->command.plan.rows = 36;
    if (!child_start(&m->child, &m->command.plan))
        return false;
    for (int tries = 0; !m->child.full_screen && tries < STUCK_MS && !child_wait(&m->child, 10); tries += 10)
        ; /* earlier input would not reach the scope */
    bool alive = !m->child.ended;
    while (alive && left-- > 0 && !draws_over(&m->draws, m->events)) {
        char bytes[EVENT_BYTES];
        const size_t n = random_event(&m->rng, m->cols, m->rows, bytes);
        keep(m, bytes, n);
        if (splitmix64(&m->rng) % 60 == 0)
            resize(m, splitmix64(&m->rng) % 10 == 0 ? 50 : 1);
        alive = type_in(m, k, bytes, n);
        m->events++;
        alive = alive && (m->events % 16 != 0 || taken(m, k)) &&
                (splitmix64(&m->rng) % 60 != 0 || !child_wait(&m->child, 40)); /* gives the scope time to draw */
    }
    if (alive)
        say_farewell(m, k);
    else if (m->child.ended) {
        m->ends[FAREWELLS]++;
        look_at_end(m, k, NULL, 0);
    }
    m->drawn += m->child.seen;
    child_close(&m->child);
    return true;
}

int
main(int argc, char **argv)
{
    static struct monkey m = {
        .draws = {.program = "monkey", .counted = "--events", .chosen = "--life", .most = 10000, .seed = 1}};
    if (!draws_read(&m.draws, argc, argv))
        return 2;
    m.rng = m.draws.seed;
    signal(SIGPIPE, SIG_IGN);
    bool fine = bench_open(&m.bench, argv[1]);
    while (fine && !draws_over(&m.draws, m.events) && m.findings < 5)
        fine = live(&m);
    bench_close(&m.bench);
    for (size_t i = 0; i < N_LIVES; i++)
        printf("%s: %llu times; ", lives[i].name, (unsigned long long)m.lives[i]);
    printf("\nended by a random key %llu", (unsigned long long)m.ends[FAREWELLS]);
    for (int i = 0; i < FAREWELLS; i++)
        printf(", by %s %llu", farewells[i], (unsigned long long)m.ends[i]);
    printf("\n%llu events, %llu sizes, %llu bytes drawn, %llu findings\n", (unsigned long long)m.events,
           (unsigned long long)m.resizes, (unsigned long long)m.drawn, (unsigned long long)m.findings);
    return fine && m.findings == 0 && m.events > 0 ? 0 : 1;
}
