#include "engine/base/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
file_put(int fd, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t wrote = write(fd, (const char *)bytes + done, n - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        done += (size_t)wrote;
    }
    return true;
}

/* Returns true if the text begins with `with`, white space aside. */
static bool
begins_with(const char *text, const char *with)
{
    for (; *with != '\0'; text++) {
        if (*text == *with)
            with++;
        else if (*text == '\0' || strchr(" \t\r\n", *text) == NULL)
            return false;
    }
    return true;
}

static bool
is_of_kind(const struct file_kind *kind, const char *head, size_t n)
{
    if (n < kind->skipped || !begins_with(head + kind->skipped, kind->begins))
        return false;
    bool holds = kind->holds[0] == NULL;
    for (size_t i = 0; i < sizeof kind->holds / sizeof *kind->holds && kind->holds[i] != NULL; i++)
        holds = holds || strstr(head, kind->holds[i]) != NULL;
    return holds;
}

bool
file_replaceable(int folder, const char *path, const struct file_kind *kind, struct err *err)
{
    struct stat about;
    char head[(16 << 10) + 1];
    if (fstatat(folder, path, &about, 0) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0)
        return true;
    const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 ? read(fd, head, sizeof head - 1) : -1;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return err_set(err, ERR_WORK, "%s: is not replaced, for it cannot be read: %s; choose another file", path,
                       strerror(why));
    head[n] = '\0';
    return is_of_kind(kind, head, (size_t)n) ||
           err_set(err, ERR_USAGE, "%s: is not replaced, for it does not hold %s; choose another file, or remove it",
                   path, kind->what);
}

static void
forget(struct file_replace *r)
{
    free(r->path);
    free(r->part);
    *r = (struct file_replace){.fd = -1};
}

bool
file_replace_begin(struct file_replace *r, int folder, const char *path, mode_t mode, struct err *err)
{
    *r = (struct file_replace){.name = path, .folder = folder, .fd = -1};
    struct stat about;
    if (fstatat(folder, path, &about, 0) == 0 && !S_ISREG(about.st_mode))
        return err_set(err, ERR_WORK, "%s: is not a file, and is left alone", path);
    r->path = folder == AT_FDCWD ? realpath(path, NULL) : NULL;
    if (r->path == NULL)
        r->path = strdup(path);
    const size_t room = r->path != NULL ? strlen(r->path) + 32 : 0;
    r->part = room > 0 ? malloc(room) : NULL;
    if (r->part == NULL) {
        forget(r);
        return err_set(err, ERR_WORK, "%s: out of memory", path);
    }
    snprintf(r->part, room, "%s.%ld.part", r->path, (long)getpid());
    unlinkat(folder, r->part, 0); /* of a process of the same number that was killed */
    r->fd = openat(folder, r->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (r->fd >= 0)
        return true;
    err_set(err, ERR_WORK, "%s: cannot be created: %s", path, strerror(errno));
    forget(r);
    return false;
}

bool
file_replace_put(struct file_replace *r, const void *bytes, size_t n, struct err *err)
{
    return file_put(r->fd, bytes, n) || err_set(err, ERR_WORK, "%s: cannot be written: %s", r->name, strerror(errno));
}

bool
file_replace_end(struct file_replace *r, bool ok, struct err *err)
{
    const bool wanted = ok;
    ok = ok && fsync(r->fd) == 0;
    int why = errno;
    if (close(r->fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && renameat(r->folder, r->part, r->folder, r->path) != 0) {
        ok = false;
        why = errno;
    }
    if (wanted && !ok)
        err_set(err, ERR_WORK, "%s: cannot be written: %s", r->name, strerror(why));
    if (!ok)
        unlinkat(r->folder, r->part, 0);
    forget(r);
    return ok;
}

bool
file_replace_text(int folder, const char *path, mode_t mode, const char *text, size_t n, struct err *err)
{
    struct file_replace r;
    return file_replace_begin(&r, folder, path, mode, err) &&
           file_replace_end(&r, file_replace_put(&r, text, n, err), err);
}
