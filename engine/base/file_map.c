#include "engine/base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/embedded.h"

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
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hold us up */
    if (fd < 0)
        return err_set(err, ERR_WORK, "%s: cannot be opened: %s", path, strerror(errno));
    bool ok = map_descriptor(fd, path, wanted, map, bytes, err);
    close(fd);
    return ok;
}

void
file_unmap(const unsigned char *map, uint64_t bytes)
{
    if (map != NULL && !embedded_at(map))
        munmap((void *)map, (size_t)bytes);
}
