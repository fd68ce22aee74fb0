/* A whole file as memory, read-only: what model files are read through. */
#ifndef ENGINE_BASE_FILE_MAP_H
#define ENGINE_BASE_FILE_MAP_H

#include <stdint.h>

#include "kernels/base/err.h"

/* Maps a regular file that is not empty. `wanted` ends the message when it is none: "give the path of a .gguf file". The
 * map is the caller's, until file_unmap(). A file that shrinks while it is mapped is the one thing that no check of its
 * bytes can catch (SIGBUS). */
bool file_map(const char *path, const char *wanted, const unsigned char **map, uint64_t *bytes, struct err *);
void file_unmap(const unsigned char *map, uint64_t bytes); /* NULL: nothing */

#endif
