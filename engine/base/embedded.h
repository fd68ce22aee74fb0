/* Files that are part of the program: those of `make static`, which has its model, themes and all else in one file. Their
 * names begin with "builtin:/" and go wherever names of files go. Other builds have none. */
#ifndef ENGINE_BASE_EMBEDDED_H
#define ENGINE_BASE_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of such a file, constant for the life of the process, aligned to a page; false: it is none of them. */
bool embedded_file(const char *path, const unsigned char **bytes, size_t *n);
/* The i-th one's name; NULL: there are no more. */
const char *embedded_name(size_t i);
bool embedded_at(const unsigned char *bytes); /* are they one's? */
/* Is there a file of this name, of either kind? access() otherwise, errno and all. */
bool embedded_or_there(const char *path);

#endif
