/* A whole file in memory, with a zero behind it: how everything small is read that is not mapped. */
#ifndef ENGINE_BASE_FILE_TEXT_H
#define ENGINE_BASE_FILE_TEXT_H

#include <stddef.h>

#include "kernels/base/err.h"

/* Reads the regular file `path`, of at most `most` bytes. *text (*n bytes, then a zero) is the caller's to free; NULL
 * after a failure, of which err says the path and why (ERR_WORK). */
bool file_text(const char *path, size_t most, char **text, size_t *n, struct err *);

/* The same; and a pipe will do, too, that a shell put there: prog <(…) is prog /dev/fd/63. A pipe with a name of its own, which
 * nobody may ever write to, is refused like a device. */
bool file_text_or_pipe(const char *path, size_t most, char **text, size_t *n, struct err *);

/* The same of what is open already, up to its end, whatever it is: a pipe, a terminal. `name` is for error lines. */
bool file_text_from(int fd, const char *name, size_t most, char **text, size_t *n, struct err *);

#endif
