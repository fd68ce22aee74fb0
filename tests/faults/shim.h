/* The preloaded library, in parts. It is between the program and libc, counts calls, and lets the requested one fail. */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/faults/page.h"

/* Counts a call. Returns true if it must fail; errno has the reason, and the caller returns the value of a failure. */
bool shim_fails(enum fault_kind);
/* Counts a read or write of n bytes. Returns 0 if it must fail as above, else the number of bytes that it may transfer. */
size_t shim_room(enum fault_kind, size_t n);

/* libc's functions, as the program would call them. */
void *shim_next(const char *name);

/* read() and write(), as the program calls them. */
ssize_t shim_read(int fd, void *to, size_t n);
ssize_t shim_write(int fd, const void *from, size_t n);

/* Libraries render a figure: their calls are not counted, except writes and other changes of files. */
void shim_rendering(bool);

/* From now on writes to standard output, as a stream, are counted. */
void shim_take_stdout(void);

#endif
