/* Maps model files read-only, reads small files into memory, and finds the files embedded in a static build. */
#ifndef ENGINE_BASE_FILE_READ_H
#define ENGINE_BASE_FILE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/base/err.h"

/* Maps a regular file that is not empty. `wanted` ends the message when it is none: "give the path of a .gguf file". The
 * map is the caller's, until file_unmap(). A file that shrinks while it is mapped is the one thing that no check of its
 * bytes can catch (SIGBUS). */
bool file_map(const char *path, const char *wanted, const unsigned char **map, uint64_t *bytes, struct err *);
void file_unmap(const unsigned char *map, uint64_t bytes); /* NULL: nothing */

/* ---- small files, read into memory with a zero byte after the last byte ---- */

/* Reads the regular file `path`, of at most `most` bytes. *text (*n bytes, then a zero) is the caller's to free; NULL
 * after a failure; *err then contains the path and the reason (ERR_WORK). */
bool file_text(const char *path, size_t most, char **text, size_t *n, struct err *);

/* The same, and accepts a pipe that a shell opened: prog <(…) is prog /dev/fd/63. A named pipe, to which no process may ever write,
 * is refused like a device. */
bool file_text_or_pipe(const char *path, size_t most, char **text, size_t *n, struct err *);

/* The same of what is open already, up to its end, whatever it is: a pipe, a terminal. `name` is for error lines. */
bool file_text_from(int fd, const char *name, size_t most, char **text, size_t *n, struct err *);

/* Files that are part of the program: those of `make static`, which has its model, themes and all else in one file. Their
 * names begin with "builtin:/" and go wherever names of files go. Other builds have none. */

/* Returns the bytes of an embedded file, page-aligned and constant for the life of the process; false if there is none. */
bool embedded_file(const char *path, const unsigned char **bytes, size_t *n);
/* Returns the name of the i-th embedded file, or NULL after the last one. */
const char *embedded_name(size_t i);
/* Returns whether `path` is an embedded file or exists on disk; if not, errno is that of access(). */
bool embedded_or_there(const char *path);

#endif
