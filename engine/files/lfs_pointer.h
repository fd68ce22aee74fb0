/* A file that Git LFS left in a file's place. */
#ifndef ENGINE_FILES_LFS_POINTER_H
#define ENGINE_FILES_LFS_POINTER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/base/err.h"

/* Says what it is, if it is one: then true. */
static inline bool
lfs_pointer(const char *path, const void *bytes, size_t n, struct err *err)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    if (n < sizeof begin - 1 || memcmp(bytes, begin, sizeof begin - 1) != 0)
        return false;
    err_set(err, ERR_WORK, "%s: is a Git LFS pointer, not the file itself; run `git lfs pull` in its folder", path);
    return true;
}

#endif
