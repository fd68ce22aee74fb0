/* Tests commands with faults: every nth call of a kind fails, once or from then on, for all n up to the run's number of
 * such calls. Each run must end with one line and status 1 or 2, or with the result of a run without faults.
 *
 * usage: faults BUILD [--case NAME] [--kind KIND] [--how HOW] [--every N] [--from N] [--faults N] [--seed S]
 *
 * With --faults it draws N faults at random instead. It prints a table, and for each finding the command that repeats
 * it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/faults/cases.h"
#include "tests/faults/folder.h"
#include "tests/faults/judge.h"
#include "tests/faults/page.h"

#define LIMIT_MS 300000 /* only a command that hangs takes so long */

static const char *const kinds[] = FAULT_KIND_NAMES, *const hows[] = FAULT_HOW_NAMES;

struct faults {
    struct bench bench;
    const char *only_case, *only_kind, *only_how;
    uint64_t every, from, faults, seed;
    struct command command;
    struct reference reference;
    uint64_t calls[FAULT_KINDS]; /* in a run without faults */
    uint64_t ended[ENDINGS], all[ENDINGS];
};

/* Runs the case once. Sets *hit if the fault occurred. */
static bool
run_once(struct faults *s, const struct fault_case *k, const char *fault, struct child *c, struct left *left, bool *hit)
{
    for (int i = 0; i < FAULT_KINDS; i++)
        s->bench.page->calls[i] = 0;
    s->bench.page->hits = 0;
    folder_empty(s->bench.run);
    command_make(&s->command, &s->bench, k, fault);
    const bool ended = child_run(c, &s->command.plan, LIMIT_MS);
    *hit = s->bench.page->hits > 0;
    left_of(left, &s->bench);
    return ended;
}

/* Runs the case twice without faults; both runs must succeed. */
static bool
make_reference(struct faults *s, const struct fault_case *k)
{
    static struct left left[2];
    struct child c;
    bool hit, fine = true;
    for (int i = 0; i < 2; i++) {
        fine = run_once(s, k, "none", &c, &left[i], &hit) && c.status == 0 && fine;
        for (int j = 0; j < FAULT_KINDS; j++)
            s->calls[j] = s->bench.page->calls[j];
    }
    if (!fine) {
        const struct left_file *err = left_find(&left[1], ">2");
        printf("%s: does not work without faults (status %x): %s\n", k->name, (unsigned)c.status,
               err != NULL ? err->bytes : "");
    }
    reference_make(&s->reference, k, &left[0], &left[1]);
    left_free(&left[1]);
    return fine;
}

/* Returns false if the fault never occurred, because the run ended before. */
static bool
try_fault(struct faults *s, const struct fault_case *k, int kind, int how, uint64_t n)
{
    static struct left left;
    struct child c;
    char fault[64], why[300];
    bool hit;
    snprintf(fault, sizeof fault, "%s:%llu:%s", kinds[kind], (unsigned long long)n, hows[how]);
    const bool ended = run_once(s, k, fault, &c, &left, &hit);
    enum ending e = judge(&s->reference, k, &c, ended, (enum fault_kind)kind, &left, why);
    if (e == ENDED_LINE && (how == HOW_SHORT || how == HOW_EINTR)) {
        snprintf(why, sizeof why, "takes it for a failure");
        e = ENDED_BADLY;
    }
    if (hit || e == ENDED_BADLY) {
        s->ended[e]++;
        s->all[e]++;
    }
    if (e == ENDED_BADLY) {
        printf("FINDING %s, %s: %s\n", k->name, fault, why);
        command_print(&s->command, k, &s->bench, fault);
        fflush(stdout);
    }
    left_free(&left);
    return hit;
}

static bool
sensible(int kind, int how)
{
    if (how == HOW_SHORT)
        return kind == FAULT_READ || kind == FAULT_WRITE;
    return how != HOW_EINTR || kind == FAULT_READ || kind == FAULT_WRITE;
}

static bool
wanted(const char *only, const char *name)
{
    return only == NULL || strcmp(only, name) == 0;
}

static void
sweep_kind(struct faults *s, const struct fault_case *k, int kind, int how)
{
    memset(s->ended, 0, sizeof s->ended);
    for (uint64_t n = s->from; n < s->calls[kind] * 2 + 100; n += s->every)
        if (!try_fault(s, k, kind, how, n) && n > s->calls[kind])
            break;
    uint64_t runs = 0;
    for (int e = 0; e < ENDINGS; e++)
        runs += s->ended[e];
    printf("| %s | %s %s | %llu | %llu | %llu | %llu | %llu |\n", k->name, kinds[kind], hows[how],
           (unsigned long long)runs, (unsigned long long)s->ended[ENDED_SAME], (unsigned long long)s->ended[ENDED_LINE],
           (unsigned long long)s->ended[ENDED_LIBRARY], (unsigned long long)s->ended[ENDED_BADLY]);
    fflush(stdout);
}

static bool
sweep_whole(struct faults *s)
{
    bool fine = true;
    printf("| command | fault | runs | same result | one line | a library's line | findings |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n_fault_cases; i++) {
        const struct fault_case *k = &fault_cases[i];
        if (!wanted(s->only_case, k->name))
            continue;
        const bool works = make_reference(s, k);
        fine = fine && works;
        for (int kind = 0; works && kind < FAULT_KINDS; kind++)
            for (int how = 0; how < HOWS; how++)
                if (sensible(kind, how) && s->calls[kind] > 0 && wanted(s->only_kind, kinds[kind]) &&
                    wanted(s->only_how, hows[how]))
                    sweep_kind(s, k, kind, how);
        reference_free(&s->reference);
    }
    return fine;
}

/* Takes the cases in turn, and draws a few faults of each. */
static bool
sweep_sample(struct faults *s)
{
    uint64_t rng = s->seed, done = 0;
    bool fine = true;
    printf("seed %llu\n", (unsigned long long)s->seed);
    for (size_t at = (size_t)(splitmix64(&rng) % n_fault_cases); fine && done < s->faults; at++) {
        const struct fault_case *k = &fault_cases[at % n_fault_cases];
        if (!wanted(s->only_case, k->name))
            continue;
        const bool works = make_reference(s, k);
        fine = fine && works;
        for (int i = 0; works && i < 12 && done < s->faults;) {
            const int kind = i % 3 != 0 ? (int)(splitmix64(&rng) % FAULT_KINDS) : FAULT_ALLOC;
            const int how = (int)(splitmix64(&rng) % HOWS);
            if (!sensible(kind, how) || s->calls[kind] == 0)
                continue;
            try_fault(s, k, kind, how, 1 + splitmix64(&rng) % s->calls[kind]);
            i++;
            done++;
        }
        reference_free(&s->reference);
    }
    return fine;
}

static bool
read_arguments(struct faults *s, int argc, char **argv)
{
    static const char *const names[] = {"--case", "--kind", "--how", "--every", "--from", "--faults", "--seed"};
    for (int i = 2; i + 1 < argc; i += 2) {
        int which = 0;
        while (which < 7 && strcmp(argv[i], names[which]) != 0)
            which++;
        const uint64_t number = strtoull(argv[i + 1], NULL, 10);
        switch (which) {
        case 0: s->only_case = argv[i + 1]; break;
        case 1: s->only_kind = argv[i + 1]; break;
        case 2: s->only_how = argv[i + 1]; break;
        case 3: s->every = number > 0 ? number : 1; break;
        case 4: s->from = number > 0 ? number : 1; break;
        case 5: s->faults = number; break;
        case 6: s->seed = number; break;
        default: return false;
        }
    }
    return argc >= 2 && argc % 2 == 0;
}

int
main(int argc, char **argv)
{
    static struct faults s = {.every = 1, .from = 1, .seed = 1};
    if (!read_arguments(&s, argc, argv)) {
        fprintf(stderr, "usage: faults BUILD [--case NAME] [--kind KIND] [--how HOW] [--every N] [--from N] "
                        "[--faults N] [--seed S]\n");
        return 2;
    }
    bool fine = bench_open(&s.bench, argv[1]);
    fine = fine && (s.faults > 0 ? sweep_sample(&s) : sweep_whole(&s));
    bench_close(&s.bench);
    uint64_t runs = 0;
    for (int e = 0; e < ENDINGS; e++)
        runs += s.all[e];
    printf("%llu faults: %llu with the same result, %llu with one line, %llu ended by a library, %llu findings\n",
           (unsigned long long)runs, (unsigned long long)s.all[ENDED_SAME], (unsigned long long)s.all[ENDED_LINE],
           (unsigned long long)s.all[ENDED_LIBRARY], (unsigned long long)s.all[ENDED_BADLY]);
    return fine && s.all[ENDED_BADLY] == 0 && runs > 0 ? 0 : 1;
}
