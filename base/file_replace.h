/* Writes a file completely or not at all: to a temporary file in the same folder, which is then renamed. A reader sees
 * the old or the new content, also after a crash, and never a part. A symbolic link stays, and its target is
 * replaced. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

/* A kind of output, recognised by the beginning of its files. */
struct file_kind {
    const char *what;     /* for the error message: "results of specscope as JSON" */
    size_t skipped;       /* any bytes before `begins` */
    const char *begins;   /* additional white space in the file is ignored; "": anything */
    const char *holds[4]; /* the first 16 KiB contain one of these; all NULL: anything */
};
extern const struct file_kind svg_file; /* of saved screens and of figures */

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
 * open(); an existing file keeps its own. Files that are not regular (/dev/null) are refused. After success,
 * file_replace_end() must follow. */
bool file_replace_begin(struct file_replace *, int folder, const char *path, mode_t mode, struct err *);
/* Writes all n bytes, also after interruptions. errno is set after a failure. */
bool file_replace_put(struct file_replace *, const void *bytes, size_t n, struct err *);
/* If ok, syncs the temporary file and renames it; returns false with an error if that fails. If not ok, removes it,
 * leaves *err unchanged and returns false. */
bool file_replace_end(struct file_replace *, bool ok, struct err *);

/* Checks that the temporary file can be created, and removes it. */
bool file_replace_possible(int folder, const char *path, struct err *);
/* Creates the missing folders of a file's path. */
bool file_folders_make(const char *path, struct err *);
/* Replaces a file by a text. */
bool file_replace_text(int folder, const char *path, mode_t mode, const char *text, size_t n, struct err *);

/* An output whose path the user chose: "-" is stdout, a regular file is replaced, and a pipe or a device is written as
 * it is. */
struct output {
    FILE *f;          /* write here; errors are reported by output_close() */
    const char *path; /* borrowed */
    struct file_replace file;
};

/* Returns whether the output is stdout, by "-" or by another name, so that nothing else may be printed there. NULL:
 * none. */
bool output_is_stdout(const char *path);
/* Returns whether both paths are of the same regular file, or both are stdout. */
bool output_same(const char *a, const char *b);
/* Checks before the work whether an output of this kind can be written after it. Changes no file. NULL: there is
 * none. */
bool output_possible(const char *path, const struct file_kind *, struct err *);
/* Fails if the file is of another kind. After success, output_close() must follow. */
bool output_open(struct output *, const char *path, const struct file_kind *, struct err *);
/* If ok, completes the output and reports errors of earlier writes, too. If not ok, an existing file stays as it was,
 * *err is unchanged, and it returns false. */
bool output_close(struct output *, bool ok, struct err *);
/* Flushes stdout, or closes another stream, and reports errors of earlier writes, too. */
bool stream_close(FILE *, const char *path, struct err *);

/* Writes all n bytes to a descriptor. Returns false with errno set. */
bool file_put(int fd, const void *bytes, size_t n);
