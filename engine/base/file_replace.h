/* A file written whole or not at all: beside its place first, then renamed onto it. Who opens it meanwhile, or after a
 * crash, finds what stood there before or what was written, never a part. A file that is not a regular one (/dev/null)
 * is refused; of a symbolic link the file that it points to is replaced. */
#ifndef ENGINE_BASE_FILE_REPLACE_H
#define ENGINE_BASE_FILE_REPLACE_H

#include <stddef.h>
#include <sys/types.h>

#include "kernels/base/err.h"

/* The kind of file that an output is, by how such a file begins. */
struct file_kind {
    const char *what;     /* for the error line: "results of specscope as JSON" */
    size_t skipped;       /* bytes before `begins`, whatever they are */
    const char *begins;   /* white space in the file that is not in this text does not count; "": anything */
    const char *holds[4]; /* one of these is in the first 16 KiB; all NULL: anything */
};

/* Whether an output of this kind may be written to `path`, relative to the open folder. Nothing there, an empty file, a file of
 * this kind, or one that is not regular (a pipe, /dev/null): true. Any other file: false, an ERR_USAGE that names it, and the
 * file is not touched. Every output whose path the user chose asks this before it is opened. */
bool file_replaceable(int folder, const char *path, const struct file_kind *, struct err *);

struct file_replace {
    const char *name;  /* for error lines; the caller's */
    char *path, *part; /* the place, and the file beside it */
    int folder, fd;    /* what they are relative to; the file beside, -1: none */
};

/* Creates the file beside. `path` is relative to the open folder (AT_FDCWD: the working directory), mode as for open().
 * After true, file_replace_end() must follow. */
bool file_replace_begin(struct file_replace *, int folder, const char *path, mode_t mode, struct err *);
/* Writes all n bytes, also after interruptions. errno is set after a failure. */
bool file_replace_put(struct file_replace *, const void *bytes, size_t n, struct err *);
/* ok: what was put is on the disk and in its place, or false. Not ok: the file beside is removed, *err stays as it is,
 * false. */
bool file_replace_end(struct file_replace *, bool ok, struct err *);

/* All three for one text. */
bool file_replace_text(int folder, const char *path, mode_t mode, const char *text, size_t n, struct err *);

/* write() of all n bytes; false: errno is set. */
bool file_put(int fd, const void *bytes, size_t n);

#endif
