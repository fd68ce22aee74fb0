#include "base/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct file_kind svg_file = {.what = "an SVG picture", .begins = "<", .holds = {"<svg"}};

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

#define LINKS_MOST 40

static void
forget(struct file_replace *r)
{
    free(r->path);
    free(r->part);
    *r = (struct file_replace){.fd = -1};
}

/* Returns the path without symbolic links at its end, also if their target does not exist; NULL with errno set. */
static char *
link_target(const char *path)
{
    char *at = strdup(path), link[PATH_MAX];
    for (int i = 0; at != NULL && i < LINKS_MOST; i++) {
        const ssize_t n = readlink(at, link, sizeof link);
        if (n < 0 || n == sizeof link)
            return at;
        const char *slash = link[0] != '/' ? strrchr(at, '/') : NULL;
        const size_t folder = slash != NULL ? (size_t)(slash - at) + 1 : 0;
        char *next = malloc(folder + (size_t)n + 1);
        if (next != NULL) {
            memcpy(next, at, folder);
            memcpy(next + folder, link, (size_t)n);
            next[folder + (size_t)n] = '\0';
        }
        free(at);
        at = next;
    }
    if (at != NULL)
        errno = ELOOP;
    free(at);
    return NULL;
}

bool
file_replace_begin(struct file_replace *r, int folder, const char *path, mode_t mode, struct err *err)
{
    *r = (struct file_replace){.name = path, .folder = folder, .fd = -1};
    struct stat about;
    const bool there = fstatat(folder, path, &about, 0) == 0;
    if (there && !S_ISREG(about.st_mode))
        return err_set(err, ERR_WORK, "%s: is not a regular file, and is left alone", path);
    r->path = folder == AT_FDCWD ? link_target(path) : strdup(path);
    const size_t room = r->path != NULL ? strlen(r->path) + 32 : 0;
    r->part = room > 0 ? malloc(room) : NULL;
    if (r->part == NULL) {
        err_set(err, ERR_WORK, "%s: cannot be created: %s", path, strerror(errno));
        forget(r);
        return false;
    }
    snprintf(r->part, room, "%s.%ld.part", r->path, (long)getpid());
    unlinkat(folder, r->part, 0); /* of a process of the same number that was killed */
    r->fd = openat(folder, r->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (r->fd >= 0) {
        if (there)
            fchmod(r->fd, about.st_mode & 0777);
        return true;
    }
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
file_replace_possible(int folder, const char *path, struct err *err)
{
    struct file_replace r;
    if (!file_replace_begin(&r, folder, path, 0600, err))
        return false;
    file_replace_end(&r, false, NULL);
    return true;
}

bool
file_folders_make(const char *path, struct err *err)
{
    char folder[PATH_MAX];
    const size_t n = strlen(path);
    bool ok =
        n < sizeof folder || err_set(err, ERR_WORK, "%.200s: cannot be created: %s", path, strerror(ENAMETOOLONG));
    for (size_t i = 0; i < n && ok; i++) {
        folder[i] = '\0';
        if (i > 0 && path[i] == '/' && mkdir(folder, 0777) != 0 && errno != EEXIST && errno != EISDIR) {
            const int why = errno; /* some systems check the rights first */
            ok =
                access(folder, F_OK) == 0 || err_set(err, ERR_WORK, "%s: cannot be created: %s", folder, strerror(why));
        }
        folder[i] = path[i];
    }
    return ok;
}

bool
file_replace_text(int folder, const char *path, mode_t mode, const char *text, size_t n, struct err *err)
{
    struct file_replace r;
    return file_replace_begin(&r, folder, path, mode, err) &&
           file_replace_end(&r, file_replace_put(&r, text, n, err), err);
}

/* ---- outputs ---- */

static bool
same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool
output_is_stdout(const char *path)
{
    struct stat file, standard;
    if (path == NULL || strcmp(path, "-") == 0)
        return path != NULL;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &standard) == 0 && same_file(&file, &standard) &&
           !S_ISCHR(file.st_mode); /* /dev/null is no name of stdout */
}

/* Describes the folder of a path, and returns the name in it. */
static const char *
split(char *path, struct stat *folder)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return stat(".", folder) == 0 ? path : NULL;
    const bool root = slash == path;
    *slash = '\0';
    const bool there = stat(root ? "/" : path, folder) == 0;
    return there ? slash + 1 : NULL;
}

bool
output_same(const char *a, const char *b)
{
    struct stat about, folder_a, folder_b;
    if (a == NULL || b == NULL || output_is_stdout(a) || output_is_stdout(b))
        return output_is_stdout(a) && output_is_stdout(b);
    if (stat(a, &about) == 0 && !S_ISREG(about.st_mode))
        return false;
    char *path_a = link_target(a), *path_b = link_target(b);
    const char *name_a = path_a != NULL ? split(path_a, &folder_a) : NULL,
               *name_b = path_b != NULL ? split(path_b, &folder_b) : NULL;
    const bool same =
        name_a != NULL && name_b != NULL && strcmp(name_a, name_b) == 0 && same_file(&folder_a, &folder_b);
    free(path_a);
    free(path_b);
    return same;
}

/* Opens a regular file, or one that does not exist, for replacement; output->file.fd is -1 for another one. */
static bool
open_file(struct output *o, const char *path, const struct file_kind *kind, struct err *err)
{
    struct stat about;
    const bool there = stat(path, &about) == 0;
    *o = (struct output){.path = path, .file.fd = -1};
    errno = there && S_ISDIR(about.st_mode) ? EISDIR : 0;
    if (there && (errno != 0 || access(path, W_OK) != 0))
        return err_set(err, ERR_WORK, "%s: cannot be written: %s", path, strerror(errno));
    return (there && !S_ISREG(about.st_mode)) ||
           (file_replaceable(AT_FDCWD, path, kind, err) && file_replace_begin(&o->file, AT_FDCWD, path, 0666, err));
}

bool
output_possible(const char *path, const struct file_kind *kind, struct err *err)
{
    struct output o;
    if (path == NULL || output_is_stdout(path))
        return true;
    if (!open_file(&o, path, kind, err))
        return false;
    if (o.file.fd >= 0)
        file_replace_end(&o.file, false, NULL);
    return true;
}

bool
output_open(struct output *o, const char *path, const struct file_kind *kind, struct err *err)
{
    *o = (struct output){.f = stdout, .path = "stdout", .file.fd = -1};
    if (output_is_stdout(path))
        return true;
    if (!open_file(o, path, kind, err))
        return false;
    const int fd = o->file.fd >= 0 ? fcntl(o->file.fd, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CLOEXEC);
    o->f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (o->f != NULL)
        return true;
    err_set(err, ERR_WORK, "%s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (o->file.fd >= 0)
        file_replace_end(&o->file, false, NULL);
    return false;
}

bool
stream_close(FILE *f, const char *path, struct err *err)
{
    bool ok = fflush(f) == 0 && ferror(f) == 0;
    int why = errno != 0 ? errno : EIO; /* the number of an earlier error is lost */
    if (f != stdout && fclose(f) != 0 && ok) {
        ok = false;
        why = errno;
    }
    return ok || err_set(err, ERR_WORK, "%s: %s", path, strerror(why));
}

bool
output_close(struct output *o, bool ok, struct err *err)
{
    ok = stream_close(o->f, o->path, ok ? err : NULL) && ok;
    return o->file.fd < 0 ? ok : file_replace_end(&o->file, ok, err);
}
