#include "traces/trace_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file_read.h"
#include "base/file_replace.h"
#include "traces/run_json.h"
#include "traces/schema.h"

#define RUN_JSON_MOST ((size_t)64 << 20) /* bytes: it contains the prompt */

bool
trace_folder_make(const char *folder, struct err *err)
{
    char file[PATH_MAX];
    if ((size_t)snprintf(file, sizeof file, "%s/%s", folder, RUN_JSON) >= sizeof file)
        return err_set(err, ERR_WORK, "%.200s: the folder's name is too long for a trace", folder);
    return file_folders_make(file, err);
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
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- copying ---- */

/* Copies a file; a table that the trace does not have is skipped. */
static bool
copy_file(int from, int to, const char *name, struct err *err)
{
    char block[16384];
    const int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0)
        return errno == ENOENT || err_set(err, ERR_WORK, "%s: cannot be read: %s", name, strerror(errno));
    const int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    ssize_t n = 0;
    bool ok = out >= 0;
    while (ok && (n = read(in, block, sizeof block)) > 0)
        ok = file_put(out, block, (size_t)n);
    ok = ok && n == 0;
    const int why = errno;
    close(in);
    if (out >= 0)
        close(out);
    return ok || err_set(err, ERR_WORK, "%s: cannot be copied: %s", name, strerror(why));
}

static bool
copy_files(int from, int to, const char *run_json, struct err *err)
{
    bool ok = true;
    for (unsigned i = 0; i < TABLES && ok; i++)
        ok = copy_file(from, to, trace_tables[i].file, err);
    if (!ok || run_json == NULL)
        return ok && copy_file(from, to, RUN_JSON, err);
    return file_replace_text(to, RUN_JSON, 0666, run_json, strlen(run_json), err);
}

bool
trace_copy(const char *from, const char *to, const char *run_json, struct err *err)
{
    const int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0)
        return err_set(err, ERR_WORK, "%s: cannot be read: %s", from, strerror(errno));
    const bool made = mkdir(to, 0777) == 0;
    int out = -1;
    bool ok = made || errno == EEXIST || err_set(err, ERR_WORK, "%s: %s; choose another folder", to, strerror(errno));
    ok = ok && trace_folder_open(&out, to, err);
    if (ok) {
        struct err why;
        sigset_t before;
        trace_signals_block(&before);
        ok = copy_files(in, out, run_json, &why) ||
             err_set(err, ERR_WORK, "nothing is exported to %s: %s", to, why.text);
        trace_signals_restore(&before);
        for (unsigned i = 0; i < TABLES && !ok; i++)
            unlinkat(out, trace_tables[i].file, 0);
        if (!ok)
            unlinkat(out, RUN_JSON, 0);
        close(out);
    }
    close(in);
    if (made && !ok)
        rmdir(to);
    return ok;
}
