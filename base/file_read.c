#include "base/file_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array_grow.h"

struct embedded {
    const char *name;
    const unsigned char *bytes;
    uint64_t n;
};

#ifdef SPECSCOPE_STATIC
extern const struct embedded embedded_files[]; /* made by the Makefile; ends with a name NULL */
#else
static const struct embedded embedded_files[] = {{0}};
#endif

bool
embedded_file(const char *path, const unsigned char **bytes, size_t *n)
{
    for (const struct embedded *e = embedded_files; e->name != NULL; e++)
        if (strcmp(e->name, path) == 0) {
            *bytes = e->bytes;
            *n = (size_t)e->n;
            return true;
        }
    return false;
}

const char *
embedded_name(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (embedded_files[k].name == NULL)
            return NULL;
    return embedded_files[i].name;
}

/* Returns true for the bytes of an embedded file. */
static bool
embedded_at(const unsigned char *bytes)
{
    for (const struct embedded *e = embedded_files; e->name != NULL; e++)
        if (e->bytes == bytes)
            return true;
    return false;
}

bool
file_exists(const char *path)
{
    const unsigned char *bytes;
    size_t n;
    return embedded_file(path, &bytes, &n) || access(path, F_OK) == 0;
}

static bool
map_descriptor(int fd, const char *path, const char *wanted, const unsigned char **map, uint64_t *bytes,
               struct err *err)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return err_set(err, ERR_WORK, "%s: cannot look at it: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return err_set(err, ERR_WORK, "%s: is not a file; %s", path, wanted);
    if (about.st_size <= 0 || (uint64_t)about.st_size > SIZE_MAX)
        return err_set(err, ERR_WORK, "%s: is empty or too large to map; fetch it again", path);
    void *at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return err_set(err, ERR_WORK, "%s: cannot be mapped: %s", path, strerror(errno));
    *map = at;
    *bytes = (uint64_t)about.st_size;
    return true;
}

bool
file_map(const char *path, const char *wanted, const unsigned char **map, uint64_t *bytes, struct err *err)
{
    size_t n;
    *map = NULL;
    *bytes = 0;
    if (embedded_file(path, map, &n)) {
        *bytes = n;
        return true;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not block */
    if (fd < 0)
        return err_set(err, ERR_WORK, "%s: cannot be opened: %s", path, strerror(errno));
    bool ok = map_descriptor(fd, path, wanted, map, bytes, err);
    close(fd);
    return ok;
}

void *
file_struct(size_t size, const char *path, char **copy, struct err *err)
{
    void *file = calloc(1, size);
    *copy = file != NULL ? strdup(path) : NULL;
    if (*copy != NULL)
        return file;
    free(file);
    err_set(err, ERR_WORK, "%s: out of memory", path);
    return NULL;
}

void
file_unmap(const unsigned char *map, uint64_t bytes)
{
    if (map != NULL && !embedded_at(map))
        munmap((void *)map, (size_t)bytes);
}

/* Allocates the file's reported size, so that most files are read at once. */
static size_t
first_room(int fd, size_t most)
{
    struct stat about;
    const bool known = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
    const size_t size = known && (uint64_t)about.st_size <= most ? (size_t)about.st_size : 4096;
    return size + 2; /* one more shows that nothing follows; and the zero */
}

bool
file_text_from(int fd, const char *name, size_t most, char **text, size_t *n, struct err *err)
{
    size_t used = 0, room = first_room(fd, most);
    char *all = malloc(room);
    const char *wrong = all == NULL ? "out of memory" : NULL;
    char too_large[64];
    snprintf(too_large, sizeof too_large, "larger than it can be (%zu bytes)", most);
    *text = NULL;
    *n = 0;
    while (wrong == NULL) {
        const ssize_t got = read(fd, all + used, room - used - 1);
        if (got == 0)
            break;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            wrong = strerror(errno);
            break;
        }
        used += (size_t)got;
        if (used > most)
            wrong = too_large;
        else if (!array_grow(&all, &room, used + 2, 1))
            wrong = "out of memory";
    }
    if (wrong != NULL) {
        free(all);
        return err_set(err, ERR_WORK, "%s: cannot be read: %s", name, wrong);
    }
    all[used] = '\0';
    *text = all;
    *n = used;
    return true;
}

static bool
copy_embedded(const char *path, const unsigned char *inside, char **text, size_t n, struct err *err)
{
    *text = malloc(n + 1);
    if (*text == NULL)
        return err_set(err, ERR_WORK, "%s: cannot be read: out of memory", path);
    memcpy(*text, inside, n);
    (*text)[n] = '\0';
    return true;
}

/* Returns true for paths of open descriptors, as shells pass them for <(…). */
static bool
names_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 || strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* Returns true for files that end: not for devices, folders, and pipes that possibly have no writer. */
static bool
readable(int fd, const char *path, bool pipes)
{
    struct stat about, nothing;
    if (fstat(fd, &about) != 0)
        return false;
    if (S_ISREG(about.st_mode) || !pipes)
        return S_ISREG(about.st_mode);
    if (S_ISCHR(about.st_mode) && stat("/dev/null", &nothing) == 0 && nothing.st_rdev == about.st_rdev)
        return true; /* the only device that ends */
    return names_descriptor(path) && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) || isatty(fd));
}

static bool
read_path(const char *path, bool pipes, size_t most, char **text, size_t *n, struct err *err)
{
    const unsigned char *inside;
    *text = NULL;
    *n = 0;
    if (embedded_file(path, &inside, n))
        return copy_embedded(path, inside, text, *n, err);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not block */
    if (fd < 0)
        return err_set(err, ERR_WORK, "%s: cannot be read: %s", path, strerror(errno));
    bool ok = readable(fd, path, pipes);
    if (!ok)
        err_set(err, ERR_WORK, "%s: is not a file but a directory, a device or a pipe", path);
    if (ok && pipes)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    ok = ok && file_text_from(fd, path, most, text, n, err);
    close(fd);
    return ok;
}

bool
file_text(const char *path, size_t most, char **text, size_t *n, struct err *err)
{
    return read_path(path, false, most, text, n, err);
}

bool
file_text_or_pipe(const char *path, size_t most, char **text, size_t *n, struct err *err)
{
    return read_path(path, true, most, text, n, err);
}
