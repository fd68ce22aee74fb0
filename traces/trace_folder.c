#include "traces/trace_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/file_text.h"
#include "traces/run_json.h"
#include "traces/schema.h"

#define RUN_JSON_MOST ((size_t)64 << 20) /* bytes: the prompt is in it */

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
    if (!sigismember(before, SIGXFSZ)) /* one that came meanwhile was this thread's own doing */
        sigtimedwait(&too_large, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
