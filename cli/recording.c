#include "cli/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/writer.h"

struct recording {
    struct trace_writer *writer;
    char folder[4096];
    bool asked;         /* the user named the folder */
    int lock;           /* of a temporary folder, which is locked until it is deleted; -1: it is none */
    struct err trouble; /* reason why there is no writer */
};

#define TEMPORARY "specscope-run-XXXXXX"
#define TRIES     3 /* another start may delete a folder before it is locked */

static int
open_locked(const char *folder, int how)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, how) == 0)
        return fd;
    close(fd);
    return -1;
}

static void
delete_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (d == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(folder);
}

/* Deletes the temporary folders of this user's runs that were killed: no process has their lock. */
static void
delete_orphans(const char *base)
{
    char folder[4096];
    struct stat about;
    DIR *d = opendir(base);
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;) {
        if (strlen(entry->d_name) != strlen(TEMPORARY) ||
            strncmp(entry->d_name, TEMPORARY, strcspn(TEMPORARY, "X")) != 0 ||
            (size_t)snprintf(folder, sizeof folder, "%s/%s", base, entry->d_name) >= sizeof folder)
            continue;
        const int lock = open_locked(folder, LOCK_EX | LOCK_NB);
        if (lock >= 0 && fstat(lock, &about) == 0 && about.st_uid == geteuid())
            delete_folder(folder);
        if (lock >= 0)
            close(lock);
    }
    if (d != NULL)
        closedir(d);
}

static bool
temporary_folder(struct recording *r)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/')
        base = "/tmp";
    delete_orphans(base);
    for (int i = 0; i < TRIES; i++) {
        if ((size_t)snprintf(r->folder, sizeof r->folder, "%s/" TEMPORARY, base) >= sizeof r->folder ||
            mkdtemp(r->folder) == NULL)
            break;
        r->lock = open_locked(r->folder, LOCK_EX); /* -1: this file system has no locks */
        if (access(r->folder, F_OK) == 0)
            return true;
        if (r->lock >= 0)
            close(r->lock);
        r->lock = -1;
    }
    r->folder[0] = '\0';
    return err_set(&r->trouble, ERR_WORK, "%s: no temporary folder: %s; this run cannot be exported", base,
                   strerror(errno));
}

bool
recording_open(struct recording **out, const char *trace, const struct trace_bounds *bounds, struct live *s,
               struct err *err)
{
    struct recording *r = calloc(1, sizeof *r);
    if (r == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    *out = r;
    r->lock = -1;
    r->asked = trace != NULL;
    if (r->asked) {
        snprintf(r->folder, sizeof r->folder, "%s", trace);
        if (trace_writer_open(&r->writer, trace, bounds, s->ops->info(s), s->ops->log(s), &r->trouble) ||
            (r->trouble.kind != ERR_USAGE &&
             !err_is_memory(&r->trouble))) /* an unwritable disk does not stop the run */
            return true;
        *err = r->trouble;
        free(r);
        *out = NULL;
        return false;
    }
    if (temporary_folder(r))
        trace_writer_open(&r->writer, r->folder, bounds, s->ops->info(s), s->ops->log(s), &r->trouble);
    return true;
}

const char *
recording_trouble(void *recording)
{
    struct recording *r = recording;
    return r->writer == NULL ? r->trouble.text : trace_writer_trouble(r->writer);
}

bool
recording_export(void *recording, const char *dir, struct err *err)
{
    struct recording *r = recording;
    if (r->writer == NULL)
        return err_set(err, ERR_WORK, "nothing was recorded: %s", r->trouble.text);
    return trace_writer_copy(r->writer, dir, err);
}

bool
recording_close(struct recording *r, struct err *err)
{
    if (r == NULL)
        return true;
    bool ok = r->writer != NULL && trace_writer_close(r->writer, &r->trouble);
    if (!r->asked && r->folder[0] != '\0')
        delete_folder(r->folder);
    if (r->lock >= 0)
        close(r->lock);
    ok = ok || !r->asked; /* it was not to be kept */
    if (!ok)
        *err = r->trouble;
    free(r);
    return ok;
}
