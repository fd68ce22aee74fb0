/* Parts of the preloaded library: it stands between the program and libc, counts calls, and fails the one that it was
 * told to. */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/faults/page.h"

/* Counts a call. True: it is to fail, and errno says why; the caller returns what a failure is. */
bool shim_fails(enum fault_kind);
/* Counts a read or write of n bytes: 0: it fails as above; else how many bytes it may be. */
size_t shim_room(enum fault_kind, size_t n);

/* libc's own, as the program would have had it. */
void *shim_next(const char *name);

/* read() and write() as the program calls them. */
ssize_t shim_read(int fd, void *to, size_t n);
ssize_t shim_write(int fd, const void *from, size_t n);

/* Libraries render: what they ask for is not counted, but for what is written and what becomes of files. */
void shim_rendering(bool);

/* From now on standard output is a stream whose writes are counted. */
void shim_take_stdout(void);

#endif
