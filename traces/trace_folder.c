#include "traces/trace_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/file_read.h"
#include "engine/base/file_replace.h"
#include "traces/run_json.h"
#include "traces/schema.h"

#define RUN_JSON_MOST ((size_t)64 << 20) /* bytes: it contains the prompt */

bool
trace_folder_make(const char *folder, struct err *err)
{
    char *path = strdup(folder);
    if (path == NULL)
        return err_set(err, ERR_WORK, "out of memory for the trace");
    bool ok = true;
    for (char *slash = path + 1; ok && slash[-1] != '\0'; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        const char was = *slash;
        *slash = '\0';
        ok = mkdir(path, 0777) == 0 || errno == EEXIST || errno == EISDIR;
        if (!ok)
            err_set(err, ERR_WORK, "cannot make the folder %s for a trace: %s", path, strerror(errno));
        *slash = was;
    }
    free(path);
    return ok;
}

bool
trace_folder_open(int *fd, const char *folder, struct err *err)
{
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return err_set(err, ERR_WORK, "cannot open the folder %s for a trace: %s", folder, strerror(errno));
    bool found = faccessat(*fd, RUN_JSON, F_OK, 0) == 0;
    for (unsigned i = 0; i < TABLES; i++)
        found = found || faccessat(*fd, trace_tables[i].file, F_OK, 0) == 0;
    if (!found)
        return true;
    close(*fd);
    *fd = -1;
    return err_set(err, ERR_USAGE, "%s already holds a trace: give another folder, or delete that one", folder);
}

bool
trace_folder_run_json(const char *folder, char **text, size_t *n, struct err *err)
{
    *text = NULL;
    const size_t room = strlen(folder) + sizeof "/" RUN_JSON;
    char *path = malloc(room);
    if (path == NULL)
        return err_set(err, ERR_WORK, "out of memory for reading %s", folder);
    snprintf(path, room, "%s/" RUN_JSON, folder);
    const bool ok = file_text(path, RUN_JSON_MOST, text, n, err);
    free(path);
    return ok;
}

void
trace_signals_block(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void
trace_signals_restore(const sigset_t *before)
{
    sigset_t too_large;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    if (!sigismember(before, SIGXFSZ)) /* a pending one was caused by this thread */
        sigtimedwait(&too_large, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* The order in which the lengths of the tables are read. Data that the writer had written before a round's line, and
 * before a control's, is also in the tables that follow in this order. Tables are copied in the same order, except
 * that controls are last: the number of their lines depends on all others. */
static const enum table_id order[TABLES] = {TABLE_ROUNDS,  TABLE_CONTROLS, TABLE_TOKENS, TABLE_LAYERS,
                                            TABLE_EXPERTS, TABLE_SERIES,   TABLE_VOCAB};

struct copy {
    const char *from;
    int from_fd, to_fd;
    FILE *in[TABLES];
    bool there[TABLES];
    off_t bytes[TABLES]; /* sizes at the beginning of the copy */
    uint64_t lines[TABLES];
    uint64_t last_round; /* number of the last complete round's event, 0: none */
    uint64_t run, round; /* the run of this event, and its round in the run */
    uint64_t following;  /* the lowest number after it in tables other than controls */
    uint64_t last;       /* number of the last event to copy */
};

static bool
inspect(struct copy *c, struct err *err)
{
    for (unsigned i = 0; i < TABLES; i++) {
        const enum table_id id = order[i];
        struct stat about;
        const int fd = openat(c->from_fd, trace_tables[id].file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT && !trace_tables[id].required)
            continue;
        c->in[id] = fd < 0 ? NULL : fdopen(fd, "r");
        if (c->in[id] == NULL || fstat(fd, &about) != 0) {
            err_set(err, ERR_WORK, "%s/%s: cannot be read: %s", c->from, trace_tables[id].file, strerror(errno));
            if (fd >= 0 && c->in[id] == NULL)
                close(fd);
            return false;
        }
        if (!S_ISREG(about.st_mode))
            return err_set(err, ERR_WORK, "%s/%s: is not a file", c->from, trace_tables[id].file);
        c->bytes[id] = about.st_size;
        c->there[id] = true;
    }
    return true;
}

/* Does the line belong to the copy? Lines ascend, so the first one that does not ends its table. */
static bool
belongs(struct copy *c, enum table_id id, const char *line)
{
    uint64_t number[5] = {0}; /* event,t_us,run,seq,round */
    for (int i = 0; i < 5; i++) {
        char *end;
        number[i] = strtoull(line, &end, 10);
        line = end + (*end == ',');
    }
    const uint64_t event = number[0], run = number[2], round = number[4];
    if (id == TABLE_ROUNDS) {
        c->last = c->last_round = event;
        c->run = run;
        c->round = round;
        return true;
    }
    if (event <= c->last_round)
        return true;
    if (id == TABLE_CONTROLS && run == c->run && round == c->round && event < c->following) {
        c->last = event;
        return true;
    }
    if (event < c->following)
        c->following = event;
    return false;
}

static bool
copy_lines(struct copy *c, enum table_id id, FILE *out, struct err *err)
{
    const char *file = trace_tables[id].file;
    char *line = NULL;
    size_t room = 0;
    off_t left = c->bytes[id];
    bool written = true, header = true;
    errno = 0;
    ssize_t n = 0;
    while (written && (n = getline(&line, &room, c->in[id])) > 0 && n <= left && line[n - 1] == '\n') {
        if (!header && !belongs(c, id, line))
            break;
        header = false;
        left -= n;
        c->lines[id] += strspn(line, " \t\r\n") < (size_t)n; /* a blank line does not count */
        written = fwrite(line, 1, (size_t)n, out) == (size_t)n;
    }
    const int why = errno;
    const bool read = n > 0 || feof(c->in[id]);
    const bool half = n > 0 && (n > left ? left > 0 : line[n - 1] != '\n');
    if (half) /* an incomplete line, without a number */
        c->following = c->last_round + 1;
    free(line);
    if (!read)
        return err_set(err, ERR_WORK, "%s/%s: cannot be read: %s", c->from, file, strerror(why));
    if (!written)
        return err_set(err, ERR_WORK, "%s: cannot be written: %s", file, strerror(why));
    return !header || err_set(err, ERR_WORK, "%s/%s: has no header", c->from, file);
}

static bool
copy_table(struct copy *c, enum table_id id, struct err *err)
{
    if (c->in[id] == NULL)
        return true;
    const char *file = trace_tables[id].file;
    const int fd = openat(c->to_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out == NULL) {
        err_set(err, ERR_WORK, "%s: cannot be created: %s", file, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    const bool ok = copy_lines(c, id, out, err);
    if (fclose(out) != 0 && ok)
        return err_set(err, ERR_WORK, "%s: cannot be written: %s", file, strerror(errno));
    return ok;
}

static bool
copy_run_json(const struct copy *c, struct err *err)
{
    char *text, *closed = NULL;
    size_t n;
    if (!trace_folder_run_json(c->from, &text, &n, err))
        return false;
    struct trace_end end = {.closed_event = c->last};
    for (unsigned i = 0; i < TABLES; i++)
        end.lines[i] = c->lines[i] > 0 ? c->lines[i] - 1 : LINES_NOT_SAID; /* without the header */
    const bool ok = c->last == 0 || run_json_close(text, &end, false, &closed, err);
    const char *put = closed != NULL ? closed : text;
    const bool done = ok && file_replace_text(c->to_fd, RUN_JSON, 0666, put, strlen(put), err);
    free(closed);
    free(text);
    return done;
}

static bool
copy_all(struct copy *c, struct err *err)
{
    c->following = UINT64_MAX;
    bool ok = inspect(c, err);
    for (unsigned i = 0; ok && i < TABLES; i++)
        ok = order[i] == TABLE_CONTROLS || copy_table(c, order[i], err);
    ok = ok && copy_table(c, TABLE_CONTROLS, err) && copy_run_json(c, err);
    for (unsigned i = 0; i < TABLES; i++)
        if (c->in[i] != NULL)
            fclose(c->in[i]);
    return ok;
}

static const char *
file_name(unsigned i) /* i: one of TABLES + 1 files, run.json last */
{
    return i < TABLES ? trace_tables[i].file : RUN_JSON;
}

static void
remove_files(int folder, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        unlinkat(folder, file_name(i), 0);
}

/* Renames the files after all of them are complete. Tables that the trace lacks are skipped. */
static bool
put_into_place(const struct copy *c, int part, int to, struct err *err)
{
    for (unsigned i = 0; i <= TABLES; i++)
        if ((i == TABLES || c->there[i]) && renameat(part, file_name(i), to, file_name(i)) != 0) {
            err_set(err, ERR_WORK, "%s: cannot be put into place: %s", file_name(i), strerror(errno));
            remove_files(to, i);
            return false;
        }
    return true;
}

static bool
copy_into(struct copy *c, int to, struct err *err)
{
    char part[40];
    snprintf(part, sizeof part, ".part-%ld", (long)getpid());
    if (mkdirat(to, part, 0777) != 0 && errno != EEXIST)
        return err_set(err, ERR_WORK, "cannot be written into: %s", strerror(errno));
    c->to_fd = openat(to, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = c->to_fd >= 0 || err_set(err, ERR_WORK, "cannot be written into: %s", strerror(errno));
    if (ok) {
        remove_files(c->to_fd, TABLES + 1); /* left by a killed process with the same process id */
        ok = copy_all(c, err) && put_into_place(c, c->to_fd, to, err);
        remove_files(c->to_fd, TABLES + 1);
        close(c->to_fd);
    }
    unlinkat(to, part, AT_REMOVEDIR);
    return ok;
}

bool
trace_copy(const char *from, const char *to, struct err *err)
{
    struct copy c = {.from = from, .from_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (c.from_fd < 0)
        return err_set(err, ERR_WORK, "%s: cannot be read: %s", from, strerror(errno));
    const bool made = mkdir(to, 0777) == 0;
    int fd = -1;
    bool ok = made || errno == EEXIST || err_set(err, ERR_WORK, "%s: %s; choose another folder", to, strerror(errno));
    ok = ok && trace_folder_open(&fd, to, err);
    if (ok) {
        struct err why;
        sigset_t before;
        trace_signals_block(&before);
        ok = copy_into(&c, fd, &why) || err_set(err, ERR_WORK, "nothing is exported to %s: %s", to, why.text);
        trace_signals_restore(&before);
        close(fd);
    }
    close(c.from_fd);
    if (made && !ok)
        rmdir(to);
    return ok;
}
