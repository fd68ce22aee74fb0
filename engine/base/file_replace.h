/* Writes a file completely or not at all: to a temporary file in the same folder, which is then renamed. A reader sees
 * the old or the new content, also after a crash, and never a part. Files that are not regular (/dev/null) are refused;
 * a symbolic link stays, and its target is replaced. */
#ifndef ENGINE_BASE_FILE_REPLACE_H
#define ENGINE_BASE_FILE_REPLACE_H

#include <stddef.h>
#include <sys/types.h>

#include "kernels/base/err.h"

/* A kind of output, recognised by the beginning of its files. */
struct file_kind {
    const char *what;     /* for the error message: "results of specscope as JSON" */
    size_t skipped;       /* any bytes before `begins` */
    const char *begins;   /* additional white space in the file is ignored; "": anything */
    const char *holds[4]; /* the first 16 KiB contain one of these; all NULL: anything */
};

/* Returns true if an output of this kind may be written to `path`, relative to the open folder: no file, an empty file,
 * a file of this kind, or one that is not regular (a pipe, /dev/null). Otherwise fails with ERR_USAGE. Called for every
 * output whose path the user chose, before it is opened. */
bool file_replaceable(int folder, const char *path, const struct file_kind *, struct err *);

struct file_replace {
    const char *name;  /* for error messages; borrowed */
    char *path, *part; /* the file, and the temporary file */
    int folder, fd;    /* the folder of relative paths; the temporary file, -1: none */
};

/* Creates the temporary file. `path` is relative to the open folder (AT_FDCWD: the working directory), mode as for
 * open(). After success, file_replace_end() must follow. */
bool file_replace_begin(struct file_replace *, int folder, const char *path, mode_t mode, struct err *);
/* Writes all n bytes, also after interruptions. errno is set after a failure. */
bool file_replace_put(struct file_replace *, const void *bytes, size_t n, struct err *);
/* If ok, syncs the temporary file and renames it; returns false with an error if that fails. If not ok, removes it,
 * leaves *err unchanged and returns false. */
bool file_replace_end(struct file_replace *, bool ok, struct err *);

/* Replaces a file by a text. */
bool file_replace_text(int folder, const char *path, mode_t mode, const char *text, size_t n, struct err *);

/* Writes all n bytes to a descriptor. Returns false with errno set. */
bool file_put(int fd, const void *bytes, size_t n);

#endif
