/* Kills the program with SIGKILL at random instants, and checks the files that it leaves: a trace is readable up to its
 * last whole round, or has not begun; no other file is incomplete.
 *
 * usage: kills BUILD [--kills N] [--seed S] [--seconds S] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/rng.h"
#include "tests/faults/cases.h"
#include "tests/faults/child.h"
#include "tests/faults/draws.h"
#include "tests/faults/folder.h"
#include "traces/reader.h"

#define LIMIT_MS 300000 /* only a command that hangs takes so long */
#define HISTORY  "one\ntwo\nthree\n"

static const struct fault_case killed[] = {
    {"run --trace", .words = {"run", "-t", "1", "-n", "200", "--policy", "layerskip", "--probe", "all", "--trace",
                              "trace", "-p", "Three mice", "@models/fables-draft-q8_0.gguf"}},
    {"run --batch --trace", .words = {"run", "-t", "1", "-n", "60", "--batch", "3", "--policy", "layerskip", "--trace",
                                      "trace", "-p", "Three mice", "@models/fables-draft-q8_0.gguf"}},
    {"scope",
     .words = {"-t", "1", "-n", "100", "--pace", "0", "--quit-at-end", "--trace", "trace", "-p", "Three mice",
               "@models/fables-draft-q8_0.gguf"},
     .terminal = true},
    {"train heads",
     .words = {"train", "heads", "-t", "1", "--model", "@models/fables-draft-q8_0.gguf", "--text", "%text", "--out",
               "out.safetensors", "--tokens", "96", "--batch", "32", "--window", "16"}},
};
#define KILLED (sizeof killed / sizeof *killed)

struct kills {
    struct bench bench;
    struct command command;
    uint64_t rng;
    double lasts_ms[KILLED]; /* of a run that is not killed */
    size_t whole[KILLED];    /* size in bytes of what it trains */
    uint64_t done[KILLED], ended[KILLED], findings;
    uint64_t rounds;
};

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void
finding(struct kills *k, const struct fault_case *c, double ms, const char *what)
{
    k->findings++;
    printf("FINDING %s, killed after %.2f ms: %s\n", c->name, ms, what);
}

/* Counts the whole lines of rounds.csv, without its header. */
static uint64_t
whole_rounds(const struct left_file *f)
{
    uint64_t n = 0;
    for (size_t i = 0; f != NULL && i < f->n_bytes; i++)
        n += f->bytes[i] == '\n';
    return n > 0 ? n - 1 : 0;
}

/* Checks that a trace has not begun, or is readable to its end with all rounds whose lines are whole. */
static bool
trace_holds(struct kills *k, const struct left *l, char what[500])
{
    char path[400];
    struct trace_reader *r;
    struct event e;
    struct err err = {0};
    uint64_t rounds = 0;
    if (left_find(l, "trace/run.json") == NULL)
        return true;
    snprintf(path, sizeof path, "%s/trace", k->bench.run);
    if (!trace_reader_open(&r, path, false, &err)) {
        snprintf(what, 500, "the trace can't be opened: %s", err.text);
        return false;
    }
    while (trace_reader_next(r, &e, &err))
        rounds += e.type == EVENT_ROUND;
    trace_reader_close(r);
    const uint64_t lines = whole_rounds(left_find(l, "trace/rounds.csv"));
    k->rounds += rounds;
    if (err.kind != ERR_NONE)
        snprintf(what, 500, "the trace can't be read: %s", err.text);
    else if (rounds != lines)
        snprintf(what, 500, "of %llu whole rounds %llu are read", (unsigned long long)lines,
                 (unsigned long long)rounds);
    return err.kind == ERR_NONE && rounds == lines;
}

static void
look(struct kills *k, size_t which, double ms)
{
    static struct left l;
    char what[500];
    folder_read(&l, k->bench.run);
    const struct left_file *history = left_find(&l, ".local/state/specscope/prompts");
    const struct left_file *heads = left_find(&l, "out.safetensors");
    if (!trace_holds(k, &l, what))
        finding(k, &killed[which], ms, what);
    if (history == NULL || strncmp(history->bytes, HISTORY, sizeof HISTORY - 1) != 0 ||
        history->bytes[history->n_bytes - 1] != '\n')
        finding(k, &killed[which], ms, "the history is half of one");
    if (heads != NULL && heads->n_bytes != k->whole[which])
        finding(k, &killed[which], ms, "the heads are half of a file");
    left_free(&l);
}

static bool
prepare(struct kills *k, const struct fault_case *c)
{
    char path[500];
    static const char *const folders[] = {"/.local", "/.local/state", "/.local/state/specscope"};
    folder_empty(k->bench.run);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", k->bench.run, folders[i]);
        mkdir(path, 0700);
    }
    strcat(path, "/prompts");
    FILE *f = fopen(path, "w");
    const bool ok = f != NULL && fputs(HISTORY, f) >= 0;
    command_make(&k->command, &k->bench, c, NULL);
    return f != NULL && fclose(f) == 0 && ok;
}

/* Measures how long each command takes without being killed, and what it writes. */
static bool
measure(struct kills *k)
{
    for (size_t i = 0; i < KILLED; i++) {
        struct child c;
        struct left l;
        const bool ready = prepare(k, &killed[i]);
        const double start = now_ms();
        if (!ready || !child_run(&c, &k->command.plan, LIMIT_MS) || c.status != 0) {
            printf("%s does not work: status %x\n", killed[i].name, (unsigned)c.status);
            return false;
        }
        k->lasts_ms[i] = now_ms() - start;
        folder_read(&l, k->bench.run);
        const struct left_file *heads = left_find(&l, "out.safetensors");
        k->whole[i] = heads != NULL ? heads->n_bytes : 0;
        left_free(&l);
        look(k, i, k->lasts_ms[i]);
    }
    return true;
}

static bool
kill_one(struct kills *k, size_t which)
{
    struct child c;
    const double ms = k->lasts_ms[which] * 1.05 * (double)(splitmix64(&k->rng) >> 11) * 0x1p-53;
    if (!prepare(k, &killed[which]) || !child_start(&c, &k->command.plan))
        return false;
    const double start = now_ms(), until = start + ms;
    bool over = child_wait(&c, (int)ms);
    while (!over && now_ms() < until)
        ; /* child_wait() counts whole milliseconds */
    if (over && now_ms() - start < k->lasts_ms[which])
        k->lasts_ms[which] = now_ms() - start; /* the first measurement was too long, because the machine was busy */
    if (!over)
        kill(c.pid, SIGKILL);
    over = over || child_wait(&c, LIMIT_MS);
    k->done[which]++;
    k->ended[which] += over && WIFEXITED(c.status);
    if (!over || (WIFSIGNALED(c.status) ? WTERMSIG(c.status) != SIGKILL : c.status != 0))
        finding(k, &killed[which], ms, "ended in another way");
    child_close(&c);
    look(k, which, ms);
    return true;
}

int
main(int argc, char **argv)
{
    static struct kills k;
    struct draws draws = {.program = "kills", .counted = "--kills", .most = 100, .seed = 1};
    if (!draws_read(&draws, argc, argv))
        return 2;
    k.rng = draws.seed;
    bool fine = bench_open(&k.bench, argv[1]) && measure(&k);
    for (uint64_t i = 0; fine && !draws_over(&draws, i); i++)
        fine = kill_one(&k, (size_t)(i % KILLED));
    bench_close(&k.bench);
    uint64_t all = 0;
    for (size_t i = 0; i < KILLED; i++) {
        all += k.done[i];
        printf("%s: lasts %.0f ms, killed %llu times, %llu of them over before\n", killed[i].name, k.lasts_ms[i],
               (unsigned long long)k.done[i], (unsigned long long)k.ended[i]);
    }
    printf("%llu kills, %llu rounds read back, %llu findings\n", (unsigned long long)all, (unsigned long long)k.rounds,
           (unsigned long long)k.findings);
    return fine && k.findings == 0 && all > 0 ? 0 : 1;
}
