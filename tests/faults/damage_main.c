/* Damages files of a saved trace at random: cuts them off, flips bits, overwrites bytes, doubles, removes or swaps
 * lines, or gives a file the tail of another. Every command that reads the trace must end well, or with one line.
 *
 * usage: damage BUILD [--cases N] [--seed S] [--seconds S] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "tests/faults/cases.h"
#include "tests/faults/child.h"
#include "tests/faults/draws.h"
#include "tests/faults/folder.h"

#define LIMIT_MS 300000 /* only a command that hangs takes so long */

static const struct fault_case readers[] = {
    {"replay", .words = {"replay", "--script", "%end.script", "trace"}, .terminal = true},
    {"diff --scope",
     .words = {"diff", "--scope", "--script", "%end.script", "trace", "@tests/screens/traces/specbound"},
     .terminal = true},
    {"replay --follow", .words = {"replay", "--follow", "--script", "%replay.script", "trace"}, .terminal = true},
    {"plot exits", .words = {"plot", "trace", "exits", "-o", "x.svg"}},
    {"plot layers", .words = {"plot", "trace", "layers", "-o", "x.svg"}},
    {"plot series", .words = {"plot", "trace", "series", "-o", "x.svg"}},
    {"diff", .words = {"diff", "trace", "@tests/screens/traces/sv"}},
    {"diff --json", .words = {"diff", "--json", "-", "@tests/screens/traces/specdecpp", "trace"}},
};
#define READERS (sizeof readers / sizeof *readers)

static const char *const sources[] = {"sv", "specdecpp", "specbound"};

struct damage {
    struct bench bench;
    struct command command;
    uint64_t rng, done[READERS], worked[READERS], refused[READERS], findings;
    char how[300]; /* what was done to the trace */
};

static uint64_t
below(struct damage *d, uint64_t n)
{
    return n > 0 ? splitmix64(&d->rng) % n : 0;
}

static bool
put(const char *folder, const struct left_file *f, const char *bytes, size_t n)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, f->name);
    FILE *out = fopen(path, "wb");
    const bool ok = out != NULL && fwrite(bytes, 1, n, out) == n;
    return out != NULL && fclose(out) == 0 && ok;
}

/* Returns the first line that begins at or after `at`, with its end. */
static size_t
line_at(const struct left_file *f, size_t at, size_t *n)
{
    while (at > 0 && f->bytes[at - 1] != '\n')
        at--;
    const char *end = memchr(f->bytes + at, '\n', f->n_bytes - at);
    *n = end != NULL ? (size_t)(end - f->bytes) + 1 - at : f->n_bytes - at;
    return at;
}

/* Replaces the file by another one; the caller owns the memory. */
static char *
damaged(struct damage *d, const struct left_file *f, const struct left_file *other, size_t *n)
{
    static const char *const words[] = {"-1",        "99999999999999999999", "nan", "", "\"", "0", "1e309", "\\xff",
                                        "4294967296"};
    char *out = malloc(2 * f->n_bytes + other->n_bytes + 64);
    size_t at = (size_t)below(d, f->n_bytes), length;
    if (out == NULL)
        abort();
    memcpy(out, f->bytes, f->n_bytes);
    *n = f->n_bytes;
    const unsigned what = (unsigned)below(d, 8);
    snprintf(d->how, sizeof d->how, "%s, way %u at %zu", f->name, what, at);
    switch (what) {
    case 0: *n = at; break;
    case 1:
        for (uint64_t i = 1 + below(d, 8); i > 0; i--, at = (size_t)below(d, f->n_bytes))
            out[at] = (char)(out[at] ^ (1 << below(d, 8)));
        break;
    case 2:
        for (size_t i = at; i < f->n_bytes && i < at + 64; i++)
            out[i] = (char)below(d, 256);
        break;
    case 3: /* a line twice */
        at = line_at(f, at, &length);
        memcpy(out + at + length, f->bytes + at, f->n_bytes - at);
        *n += length;
        break;
    case 4: /* a missing line */
        at = line_at(f, at, &length);
        memcpy(out + at, f->bytes + at + length, f->n_bytes - at - length);
        *n -= length;
        break;
    case 5: { /* a field replaced */
        const char *word = words[below(d, sizeof words / sizeof *words)];
        while (at > 0 && strchr(",\n:", f->bytes[at - 1]) == NULL)
            at--;
        length = strcspn(f->bytes + at, ",\n");
        memcpy(out + at, word, strlen(word));
        memcpy(out + at + strlen(word), f->bytes + at + length, f->n_bytes - at - length);
        *n = f->n_bytes - length + strlen(word);
        break;
    }
    case 6: /* zeros to the end, as a file system may leave it */ memset(out + at, 0, f->n_bytes - at); break;
    default: /* the beginning of another file, after this one's own */
        memcpy(out + at, other->bytes, other->n_bytes < f->n_bytes ? other->n_bytes : f->n_bytes);
        *n = at + (other->n_bytes < f->n_bytes ? other->n_bytes : f->n_bytes);
    }
    return out;
}

static bool
make_trace(struct damage *d)
{
    static struct left good;
    char folder[400], from[1200];
    const char *source = sources[below(d, sizeof sources / sizeof *sources)];
    snprintf(from, sizeof from, "%s/tests/screens/traces/%s", d->bench.tree, source);
    snprintf(folder, sizeof folder, "%s/trace", d->bench.run);
    folder_empty(d->bench.run);
    folder_read(&good, from);
    bool ok = good.n > 0 && mkdir(folder, 0700) == 0;
    const size_t which = (size_t)below(d, good.n), other = (size_t)below(d, good.n);
    for (size_t i = 0; i < good.n && ok; i++) {
        size_t n = good.file[i].n_bytes;
        char *bytes = i == which ? damaged(d, &good.file[i], &good.file[other], &n) : NULL;
        ok = put(folder, &good.file[i], bytes != NULL ? bytes : good.file[i].bytes, n);
        free(bytes);
    }
    left_free(&good);
    const size_t used = strlen(d->how);
    snprintf(d->how + used, sizeof d->how - used, " of the trace %s", source);
    return ok;
}

static unsigned
lines_of(const char *text)
{
    unsigned n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void
read_it(struct damage *d, size_t reader)
{
    const struct fault_case *k = &readers[reader];
    struct child c;
    size_t n = 0;
    command_make(&d->command, &d->bench, k, NULL);
    const bool ended = child_run(&c, &d->command.plan, LIMIT_MS);
    char *err = whole_file(d->bench.err, &n);
    const bool well = ended && WIFEXITED(c.status) && !(k->terminal && (c.full_screen || !c.cooked));
    const bool one_line = err != NULL && lines_of(err) == 1 && strncmp(err, "specscope: ", 11) == 0;
    d->done[reader]++;
    d->worked[reader] += well && WEXITSTATUS(c.status) == 0;
    d->refused[reader] += well && (WEXITSTATUS(c.status) == 1 || WEXITSTATUS(c.status) == 2) && one_line;
    if (!well || (WEXITSTATUS(c.status) != 0 && (!one_line || WEXITSTATUS(c.status) > 2))) {
        d->findings++;
        printf("FINDING %s of %s: %s %x%s%s\n%.600s\n", k->name, d->how, !ended ? "hangs" : "status or signal",
               !ended ? 0u : (unsigned)c.status, k->terminal && c.full_screen ? ", left full-screen" : "",
               k->terminal && !c.cooked ? ", left raw" : "", err != NULL ? err : "");
    }
    free(err);
}

int
main(int argc, char **argv)
{
    static struct damage d;
    struct draws draws = {.program = "damage", .counted = "--cases", .most = 200, .seed = 1};
    if (!draws_read(&draws, argc, argv))
        return 2;
    d.rng = draws.seed;
    bool fine = bench_open(&d.bench, argv[1]);
    for (uint64_t i = 0; fine && !draws_over(&draws, i); i++)
        if ((fine = make_trace(&d)))
            read_it(&d, (size_t)(i % READERS));
    bench_close(&d.bench);
    uint64_t all = 0;
    printf("| reader | damaged traces | read | refused in a line |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < READERS; i++) {
        all += d.done[i];
        printf("| %s | %llu | %llu | %llu |\n", readers[i].name, (unsigned long long)d.done[i],
               (unsigned long long)d.worked[i], (unsigned long long)d.refused[i]);
    }
    printf("%llu cases, %llu findings\n", (unsigned long long)all, (unsigned long long)d.findings);
    return fine && d.findings == 0 && all > 0 ? 0 : 1;
}
