/* Counts calls for files. libc's streams do not call read() and write() by their public names, so the functions of
 * streams are implemented here. */
#include "tests/faults/shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t
shim_read(int fd, void *to, size_t n)
{
    const size_t room = shim_room(FAULT_READ, n);
    return n > 0 && room == 0 ? -1 : syscall(SYS_read, fd, to, room);
}

ssize_t
shim_write(int fd, const void *from, size_t n)
{
    const size_t room = shim_room(FAULT_WRITE, n);
    return n > 0 && room == 0 ? -1 : syscall(SYS_write, fd, from, room);
}

ssize_t
read(int fd, void *to, size_t n)
{
    return shim_read(fd, to, n);
}

ssize_t
__read_chk(int fd, void *to, size_t n, size_t room) /* called in place of read() if _FORTIFY_SOURCE is defined */
{
    return shim_read(fd, to, n < room ? n : room);
}

ssize_t
write(int fd, const void *from, size_t n)
{
    return shim_write(fd, from, n);
}

ssize_t
pread(int fd, void *to, size_t n, off_t at)
{
    const size_t room = shim_room(FAULT_READ, n);
    return n > 0 && room == 0 ? -1 : syscall(SYS_pread64, fd, to, room, at);
}

ssize_t
pread64(int fd, void *to, size_t n, off64_t at)
{
    return pread(fd, to, n, at);
}

ssize_t
pwrite(int fd, const void *from, size_t n, off_t at)
{
    const size_t room = shim_room(FAULT_WRITE, n);
    return n > 0 && room == 0 ? -1 : syscall(SYS_pwrite64, fd, from, room, at);
}

ssize_t
pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    return pwrite(fd, from, n, at);
}

int
fsync(int fd)
{
    return shim_fails(FAULT_FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
    return shim_fails(FAULT_FSYNC) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int
renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return shim_fails(FAULT_RENAME) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int
renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return renameat2(from_folder, from, to_folder, to, 0);
}

int
rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* ---- opening ---- */

static int
open_counted(int folder, const char *path, int flags, mode_t mode)
{
    return shim_fails(FAULT_OPEN) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t
mode_of(int flags, va_list args)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int
openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_counted(folder, path, flags, mode);
}

int
open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_counted(AT_FDCWD, path, flags, mode);
}

int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
int open64(const char *, int, ...) __attribute__((alias("open")));

DIR *
opendir(const char *path)
{
    static DIR *(*next)(const char *);
    if (shim_fails(FAULT_OPEN))
        return NULL;
    if (next == NULL)
        *(void **)&next = shim_next("opendir");
    return next(path);
}

/* ---- streams ---- */

#define STREAMS 256
static struct stream {
    FILE *file; /* NULL: free */
    int fd;
} streams[STREAMS];

static ssize_t
stream_read(void *cookie, char *to, size_t n)
{
    const int fd = ((struct stream *)cookie)->fd;
    ssize_t got = shim_read(fd, to, n);
    while (got < 0 && errno == EINTR) /* a stream would report EINTR as an error */
        got = shim_read(fd, to, n);
    return got;
}

/* Writes all bytes, as libc does, with more than one write if necessary. Returns the number of bytes written. */
static ssize_t
stream_write(void *cookie, const char *from, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t wrote = shim_write(((struct stream *)cookie)->fd, from + done, n - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    return (ssize_t)done;
}

static int
stream_seek(void *cookie, off64_t *at, int from)
{
    const off_t now = lseek(((struct stream *)cookie)->fd, *at, from);
    if (now < 0)
        return -1;
    *at = now;
    return 0;
}

static int
stream_close(void *cookie)
{
    struct stream *s = cookie;
    const int fd = s->fd;
    s->file = NULL;
    return close(fd);
}

static FILE *
stream_of(int fd, const char *mode)
{
    static const cookie_io_functions_t how = {stream_read, stream_write, stream_seek, stream_close};
    struct stream *s = streams;
    while (s < streams + STREAMS - 1 && s->file != NULL)
        s++;
    s->fd = fd;
    s->file = fopencookie(s, mode, how);
    return s->file;
}

FILE *
fdopen(int fd, const char *mode)
{
    return stream_of(fd, mode);
}

FILE *
fopen(const char *path, const char *mode)
{
    const bool both = strchr(mode, '+') != NULL;
    const int flags = (both             ? O_RDWR
                       : mode[0] == 'r' ? O_RDONLY
                                        : O_WRONLY) |
                      (mode[0] == 'w'   ? O_CREAT | O_TRUNC
                       : mode[0] == 'a' ? O_CREAT | O_APPEND
                                        : 0) |
                      (strchr(mode, 'x') != NULL ? O_EXCL : 0) | (strchr(mode, 'e') != NULL ? O_CLOEXEC : 0);
    const int fd = open_counted(AT_FDCWD, path, flags, 0666);
    FILE *f = fd < 0 ? NULL : stream_of(fd, mode);
    if (fd >= 0 && f == NULL) {
        const int why = errno;
        close(fd);
        errno = why;
    }
    return f;
}

FILE *fopen64(const char *, const char *) __attribute__((alias("fopen")));

int
fileno(FILE *f)
{
    static int (*next)(FILE *);
    for (struct stream *s = streams; s < streams + STREAMS; s++)
        if (s->file == f)
            return s->fd;
    if (next == NULL)
        *(void **)&next = shim_next("fileno");
    return next(f);
}

void
shim_take_stdout(void)
{
    FILE *ours = stream_of(STDOUT_FILENO, "w");
    if (ours == NULL)
        return;
    if (isatty(STDOUT_FILENO))
        setvbuf(ours, NULL, _IOLBF, 0);
    stdout = ours;
}
