/* The preloaded library replaces functions of libc. It counts their calls, and lets the requested call fail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/faults/page.h"

/* Counts a call. Returns true if it must fail; errno has the reason, and the caller returns the value of a failure. */
bool shim_fails(enum fault_kind);
/* Counts a read or write of n bytes. Returns 0 if it must fail as above, else the number of bytes that it may
 * transfer. */
size_t shim_room(enum fault_kind, size_t n);

/* Returns libc's function of this name. */
void *shim_next(const char *name);

/* Replace read() and write(). */
ssize_t shim_read(int fd, void *to, size_t n);
ssize_t shim_write(int fd, const void *from, size_t n);

/* While it is on, libraries render a figure: only writes and other changes of files are counted. */
void shim_rendering(bool);

/* Begins to count writes to the stream stdout. */
void shim_take_stdout(void);
