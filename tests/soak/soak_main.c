/* soak: runs drawn at random, compared with autoregressive decoding (soak.h).
 * usage: soak [--minutes N | --seconds N] [--seed S] [--case N] [--cases N] [--spoil]
 * Ends with 1 at the first difference, after the command that repeats it. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernels/plugin.h"
#include "tests/soak/soak.h"

#define LOOK_SECONDS 60
#define STILL_LOOKS  5   /* inspections without processor time after which a case counts as hanging */
#define CASE_SECONDS 900 /* seconds of processor time after which a case counts as endless */
#define EMULATED     "specscope-cuda-emulated.so"

static const char usage[] =
    "usage: soak [--minutes N | --seconds N] [--seed S] [--cases N] [--case N] [--spoil]\n"
    "draws models, policies, knobs, prompts and batches, and compares what comes with autoregressive decoding\n"
    "  --seed S      of all that is drawn (the time)\n"
    "  --minutes N   for so long; --seconds N; --cases N: so many cases, numbered from 0\n"
    "  --case N      that one alone: what repeats a failure\n"
    "  --spoil       the reference is changed in one place: a difference must be found\n";

/* The description of the current case, printed by signal handlers after a crash or a timeout. */
static char repeat_by[400];

static struct {
    double begun, last; /* seconds of processor time */
    int still;
} watched;

static double
processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Measures processor time instead of real time, because the machine may have other work. */
static bool
stands_still(void)
{
    const double now = processor_seconds();
    watched.still = now - watched.last < 0.02 ? watched.still + 1 : 0;
    watched.last = now;
    return watched.still >= STILL_LOOKS || now - watched.begun > CASE_SECONDS;
}

static void
die(int signal_number)
{
    static const char slow[] = "soak: a case stands still, or does not end\n";
    ssize_t n = 0;
    if (signal_number == SIGALRM && !stands_still()) {
        alarm(LOOK_SECONDS);
        return;
    }
    if (signal_number == SIGALRM)
        n += write(STDERR_FILENO, slow, sizeof slow - 1);
    n += write(STDERR_FILENO, repeat_by, strlen(repeat_by));
    signal(signal_number, SIG_DFL);
    raise(n < 0 ? SIGKILL : signal_number);
}

/* Uses an emulated GPU in this program's folder, if one was built; otherwise the plug-in that SPECSCOPE_CUDA_PLUGIN
 * names. */
static bool
find_cuda(void)
{
    const struct backend_ops *ops;
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof EMULATED);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL && getenv("SPECSCOPE_CUDA_PLUGIN") == NULL) {
        memcpy(slash + 1, EMULATED, sizeof EMULATED);
        setenv("SPECSCOPE_CUDA_PLUGIN", access(path, R_OK) == 0 ? path : "", 1);
    }
    return plugin_load(&ops, NULL) == PLUGIN_LOADED;
}

static bool
number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

struct wanted {
    uint64_t seconds, cases, first;
    bool one;
};

static bool
read_options(int argc, char **argv, struct soak *soak, struct wanted *w)
{
    static const struct option options[] = {
        {"minutes", 1, NULL, 'm'}, {"seconds", 1, NULL, 's'}, {"seed", 1, NULL, 'S'}, {"cases", 1, NULL, 'n'},
        {"case", 1, NULL, 'c'},    {"spoil", 0, NULL, 'x'},   {NULL, 0, NULL, 0}};
    uint64_t minutes = 0;
    int id;
    bool ok = true;
    while (ok && (id = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (id) {
        case 'm': ok = number(optarg, &minutes); break;
        case 's': ok = number(optarg, &w->seconds); break;
        case 'S': ok = number(optarg, &soak->seed); break;
        case 'n': ok = number(optarg, &w->cases); break;
        case 'c': ok = w->one = number(optarg, &w->first); break;
        case 'x': soak->spoil = true; break;
        default: ok = false; break;
        }
    w->seconds += 60 * minutes;
    if (w->one)
        w->cases = 1;
    return ok && optind == argc && (w->seconds > 0 || w->cases > 0);
}

static void
report(const struct soak *soak, unsigned differences)
{
    const struct soak_count *c = &soak->count;
    printf("# seed %" PRIu64 ": %" PRIu64 " cases, %" PRIu64 " runs, %" PRIu64 " turns\n", soak->seed, c->cases,
           c->runs, c->turns);
    printf("# %" PRIu64 " greedy tokens compared with autoregressive ones, %" PRIu64
           " sampled ones with the same run again: %u differences\n",
           c->tokens, c->repeated, differences);
}

int
main(int argc, char **argv)
{
    struct soak soak = {.seed = clock_us()};
    struct wanted w = {0};
    struct err err = {0};
    if (!read_options(argc, argv, &soak, &w)) {
        fputs(usage, stderr);
        return 2;
    }
    soak.cuda = find_cuda();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %" PRIu64 "\n", soak.seed);
    for (size_t i = 0; i < 5; i++)
        signal((const int[]){SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}[i], die);
    const uint64_t end = w.seconds > 0 ? clock_us() + w.seconds * 1000000 : UINT64_MAX;
    uint64_t said = clock_us();
    for (uint64_t i = 0; (w.cases == 0 || i < w.cases) && clock_us() < end; i++) {
        snprintf(repeat_by, sizeof repeat_by, "soak: repeat it by: %.200s --seed %" PRIu64 " --case %" PRIu64 "%s\n",
                 argv[0], soak.seed, w.first + i, soak.spoil ? " --spoil" : "");
        watched.begun = watched.last = processor_seconds();
        watched.still = 0;
        alarm(LOOK_SECONDS);
        if (!soak_case(&soak, w.first + i, &err)) {
            fprintf(stderr, "soak: %s\nsoak: %s\n%s", soak.about, err.text, repeat_by);
            report(&soak, 1);
            return 1;
        }
        if (clock_us() - said > 60000000) {
            said = clock_us();
            report(&soak, 0);
        }
    }
    report(&soak, 0);
    return 0;
}
