#include "tests/faults/judge.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

void
left_of(struct left *l, const struct bench *b)
{
    folder_read(l, b->run);
    const char *const said[] = {b->out, b->err}, *const names[] = {">1", ">2"};
    for (int i = 0; i < 2 && l->n < LEFT_MOST; i++) {
        struct left_file *f = &l->file[l->n];
        f->bytes = whole_file(said[i], &f->n_bytes);
        snprintf(f->name, sizeof f->name, "%s", names[i]);
        l->n += f->bytes != NULL;
    }
}

static bool
same_bytes(const struct left_file *a, const struct left_file *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

static bool
same_but_numbers(const struct left_file *a, const struct left_file *b)
{
    char *one = without_numbers(a->bytes, a->n_bytes), *two = without_numbers(b->bytes, b->n_bytes);
    const bool same = strcmp(one, two) == 0;
    free(one);
    free(two);
    return same;
}

/* Returns true if the text has no time, speed or amount of memory, so that it is the same in every run. */
static bool
is_timeless(const struct fault_case *k, const char *name)
{
    const bool said = strcmp(name, ">1") == 0;
    return strstr(name, ".safetensors") != NULL || strstr(name, ".svg") != NULL ||
           (said && strncmp(k->name, "info", 4) != 0 && strncmp(k->name, "bench", 5) != 0 &&
            strncmp(k->name, "train", 5) != 0 && strcmp(k->name, "doctor") != 0);
}

void
reference_make(struct reference *r, const struct fault_case *k, struct left *first, const struct left *second)
{
    r->left = *first;
    r->noise = NULL;
    for (size_t i = 0; i < r->left.n; i++) {
        const struct left_file *f = &r->left.file[i], *other = left_find(second, f->name);
        r->sameness[i] = SAME_NAME;
        if (k->terminal && strcmp(f->name, "trace/controls.csv") == 0)
            continue; /* it contains the times of keys */
        if (other != NULL && same_bytes(f, other) && is_timeless(k, f->name))
            r->sameness[i] = SAME_BYTES;
        else if (other != NULL && same_but_numbers(f, other))
            r->sameness[i] = SAME_BUT_NUMBERS;
        if (strcmp(f->name, ">2") == 0)
            r->noise = without_numbers(f->bytes, f->n_bytes);
    }
    if (r->noise == NULL)
        r->noise = strdup("");
}

void
reference_free(struct reference *r)
{
    left_free(&r->left);
    free(r->noise);
}

/* Returns the name of a file that is wrong; NULL: all are right. */
static const char *
differs(const struct reference *r, const struct left *l)
{
    for (size_t i = 0; i < r->left.n; i++) {
        const struct left_file *f = &r->left.file[i], *now = left_find(l, f->name);
        if (strcmp(f->name, ">2") == 0 || strncmp(f->name, ".local/", 7) == 0)
            continue; /* the history of typed commands may be lost, with a message */
        if (now == NULL || (r->sameness[i] == SAME_BYTES && !same_bytes(f, now)) ||
            (r->sameness[i] == SAME_BUT_NUMBERS && !same_but_numbers(f, now)))
            return f->name;
    }
    return NULL;
}

/* Part of the line that compares two speeds, which differs from run to run; without its spaces. */
static const char who_was_faster[] = ";thetextsarethesame";

/* Returns how many lines on standard error a run without faults does not print. Stores the last of them, and how many
 * are not the program's. */
static unsigned
new_lines(const struct reference *r, const struct left *l, char last[300], unsigned *foreign)
{
    const struct left_file *err = left_find(l, ">2");
    unsigned n = 0;
    last[0] = '\0';
    *foreign = 0;
    for (const char *at = err != NULL ? err->bytes : ""; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        char *plain = without_numbers(at, length);
        if (length > 0 && strstr(r->noise, plain) == NULL && strstr(plain, who_was_faster) == NULL) {
            n++;
            *foreign += length <= 11 || strncmp(at, "specscope: ", 11) != 0;
            snprintf(last, 300, "%.*s", (int)length, at);
        }
        free(plain);
        at += length + (at[length] == '\n');
    }
    return n;
}

/* Returns the number of a table's last event; 0: it has none. Sets *cut if its last line is incomplete. */
static unsigned long long
last_event(const struct left_file *f, bool *cut)
{
    size_t end = f->n_bytes;
    *cut = end == 0 || f->bytes[end - 1] != '\n';
    end -= end > 0 && !*cut;
    while (end > 0 && f->bytes[end - 1] != '\n')
        end--;
    return strtoull(f->bytes + end, NULL, 10);
}

/* Checks that a trace that is marked as complete has all events up to the one that it names. */
static bool
traces_hold(const struct left *l, char why[300])
{
    const struct left_file *json = left_find(l, "trace/run.json");
    const char *closed = json != NULL ? strstr(json->bytes, "\"closed_event\"") : NULL;
    unsigned long long newest = 0;
    if (closed == NULL)
        return true;
    const unsigned long long named = strtoull(closed + strcspn(closed, "0123456789"), NULL, 10);
    for (size_t i = 0; i < l->n; i++) {
        const struct left_file *f = &l->file[i];
        bool cut;
        if (strncmp(f->name, "trace/", 6) != 0 || strstr(f->name, ".csv") == NULL)
            continue;
        const unsigned long long here = last_event(f, &cut);
        newest = here > newest ? here : newest;
        if (cut) {
            snprintf(why, 300, "%s is cut and the trace says that it is complete", f->name);
            return false;
        }
    }
    if (newest != named)
        snprintf(why, 300, "the trace says that it is complete up to event %llu and has %llu", named, newest);
    return newest == named;
}

/* Checks that each file of results is either whole or missing, and that no part is left. */
static bool
files_hold(const struct reference *r, const struct left *l, bool failed, char why[300])
{
    for (size_t i = 0; i < l->n; i++) {
        const struct left_file *f = &l->file[i];
        if (strstr(f->name, ".part") != NULL) {
            snprintf(why, 300, "%s is left behind", f->name);
            return false;
        }
        const size_t n = strlen(f->name);
        if (!failed || n < 12 || strcmp(f->name + n - 12, ".safetensors") != 0)
            continue;
        const struct left_file *whole = left_find(&r->left, f->name);
        if (whole == NULL || whole->n_bytes != f->n_bytes) {
            snprintf(why, 300, "%s isn't whole", f->name);
            return false;
        }
    }
    return traces_hold(l, why);
}

/* Appends the first line that differs to `why`. */
static void
say_first_difference(const struct left_file *a, const struct left_file *b, bool numbers, char why[300])
{
    const size_t used = strlen(why);
    size_t i = 0;
    if (b == NULL)
        return;
    char *one = numbers ? strdup(a->bytes) : without_numbers(a->bytes, a->n_bytes);
    char *two = numbers ? strdup(b->bytes) : without_numbers(b->bytes, b->n_bytes);
    while (one[i] != '\0' && one[i] == two[i])
        i++;
    while (i > 0 && two[i - 1] != '\n')
        i--;
    snprintf(why + used, 300 - used, "; %zu of %zu bytes: %.*s", b->n_bytes, a->n_bytes, (int)strcspn(two + i, "\n"),
             two + i);
    free(one);
    free(two);
}

static unsigned
times_in(const char *text, const char *word)
{
    unsigned n = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

/* The list of models and doctor's findings are reports. A line of a report may name what could not be read, and why. */
static bool
report_says_why(const struct fault_case *k, const struct reference *r, const struct left *l)
{
    static const char *const whys[] = {"out of memory", "want of memory", "allocate memory", "Too many open files",
                                       "Input/output error"};
    const struct left_file *was = left_find(&r->left, ">1"), *now = left_find(l, ">1");
    const bool models = strcmp(k->name, "models") == 0;
    if ((!models && strcmp(k->name, "doctor") != 0) || was == NULL || now == NULL ||
        (models && times_in(was->bytes, "\n") != times_in(now->bytes, "\n")))
        return false;
    bool says = false;
    for (size_t i = 0; i < sizeof whys / sizeof *whys; i++)
        says = says || times_in(now->bytes, whys[i]) > times_in(was->bytes, whys[i]);
    return says;
}

static enum ending
judge_failure(const struct reference *r, const struct left *l, int status, enum fault_kind kind, char why[300])
{
    char last[300];
    unsigned foreign;
    const struct left_file *err = left_find(l, ">2");
    const unsigned lines = new_lines(r, l, last, &foreign);
    /* Before the line with the reason there may be one about something that the program continues without: a trace, an
     * auxiliary model beside the model. It does not continue without memory. */
    const unsigned most = kind == FAULT_ALLOC ? 1 : 2;
    /* libgfortran, which OpenBLAS needs, prints one of two lines, and may then crash: */
    if ((lines == 1 && foreign == 1 && strchr(last, ':') != NULL) ||
        ((lines == 2 || (lines == 3 && strstr(last, "gave up") != NULL)) && foreign == lines &&
         times_in(err->bytes, "Operating system error: ") > 0) ||
        (lines <= 2 && foreign < lines && strstr(last, "gave up") != NULL))
        return ENDED_LIBRARY;
    if (lines == 0 || lines > most)
        snprintf(why, 300, "status %d with %u lines, the last: %.200s", status, lines, last);
    else if (status > 2)
        snprintf(why, 300, "status %d: %.200s", status, last);
    else if (foreign > 0)
        snprintf(why, 300, "status %d and another's words: %.200s", status, last);
    else if (kind == FAULT_ALLOC && !(err != NULL && times_in(err->bytes, "emory") > times_in(r->noise, "emory")))
        snprintf(why, 300, "status %d, and not for want of memory: %.200s", status, last);
    else
        return ENDED_LINE;
    return ENDED_BADLY;
}

enum ending
judge(const struct reference *r, const struct fault_case *k, const struct child *c, bool ended, enum fault_kind kind,
      const struct left *l, char why[300])
{
    why[0] = '\0';
    if (!ended) {
        snprintf(why, 300, "hangs");
        return ENDED_BADLY;
    }
    if (WIFSIGNALED(c->status)) {
        snprintf(why, 300, "dies of signal %d (%s)", WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
        return ENDED_BADLY;
    }
    const int status = WEXITSTATUS(c->status);
    if (!files_hold(r, l, status != 0, why))
        return ENDED_BADLY;
    if (k->terminal && ((c->full_screen && kind != FAULT_WRITE) || !c->cooked)) {
        snprintf(why, 300, "status %d, and the terminal is left %s", status, c->full_screen ? "full-screen" : "raw");
        return ENDED_BADLY;
    }
    if (status != 0)
        return judge_failure(r, l, status, kind, why);
    const char *other = differs(r, l);
    if (other == NULL)
        return ENDED_SAME;
    if (strcmp(other, ">1") == 0 && report_says_why(k, r, l))
        return ENDED_LINE;
    char last[300];
    unsigned foreign;
    new_lines(r, l, last, &foreign);
    snprintf(why, 300, "status 0, but %s is another; said: %.100s", other, last);
    say_first_difference(left_find(&r->left, other), left_find(l, other), is_timeless(k, other), why);
    return ENDED_BADLY;
}
