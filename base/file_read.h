/* Maps model files read-only, reads small files into memory, and finds the files embedded in a static build. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Maps a regular file that is not empty; the caller calls file_unmap(). `wanted` ends the message if the path is no
 * file: "give the path of a .gguf file". If the file shrinks while it is mapped, reading it raises SIGBUS. */
bool file_map(const char *path, const char *wanted, const unsigned char **map, uint64_t *bytes, struct err *);
void file_unmap(const unsigned char *map, uint64_t bytes); /* may be NULL */
/* Allocates the zeroed struct of a file, of `size` bytes, and a copy of the file's path. Returns NULL if out of
 * memory. */
void *file_struct(size_t size, const char *path, char **copy, struct err *);

/* ---- small files, read into memory with a zero byte after the last byte ---- */

/* Reads the regular file `path`, of at most `most` bytes. The caller frees *text (*n bytes and a zero), which is NULL
 * after a failure; the error contains the path and the reason (ERR_WORK). */
bool file_text(const char *path, size_t most, char **text, size_t *n, struct err *);

/* Does the same, and accepts a pipe that a shell opened (`prog <(…)` is `prog /dev/fd/63`). Named pipes are refused
 * like devices, because possibly no process writes to them. */
bool file_text_or_pipe(const char *path, size_t most, char **text, size_t *n, struct err *);

/* Reads an open descriptor of any kind up to its end. `name` is for error messages. */
bool file_text_from(int fd, const char *name, size_t most, char **text, size_t *n, struct err *);

/* Embedded files: a program of `make static` contains its model, themes and other files. Their names begin with
 * "builtin:/" and are accepted wherever file names are. Other builds have none. */

/* Returns the bytes of an embedded file, page-aligned and constant for the life of the process; false if there is
 * none. */
bool embedded_file(const char *path, const unsigned char **bytes, size_t *n);
/* Returns the name of the i-th embedded file, or NULL after the last one. */
const char *embedded_name(size_t i);
/* Returns whether `path` is an embedded file or exists on disk; if not, errno is that of access(). */
bool file_exists(const char *path);
