/* Files that a fuzz target writes for the code under test to read: in memory, where the machine has a file system for that. */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/file_replace.h"
#include "tests/fuzz/must.h"

/* Makes a folder of its own for a target; its path into out, of `size` bytes. */
static inline void
scratch_folder(char *out, size_t size, const char *target)
{
    snprintf(out, size, "%s/fuzz-%s-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", target);
    MUST(mkdtemp(out) != NULL);
}

static inline void
scratch_put(const char *path, const void *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    MUST(fd >= 0 && (n == 0 || file_put(fd, bytes, n)));
    close(fd);
}

#endif
