/* Work in a copy of this process, for libraries that end the process, or hang, when they run out of memory. */
#ifndef ENGINE_BASE_SUBPROCESS_H
#define ENGINE_BASE_SUBPROCESS_H

#include <stddef.h>

#include "kernels/base/err.h"

typedef bool (*subprocess_fn)(void *user, void *answer, struct err *);

/* Forks and calls work(user, answer) in the copy, which has no signal handlers, prints nothing, and gets an error from write() instead
 * of SIGXFSZ. Of what the copy changes only open files and the n bytes of `answer` (zero at first) come back. False: the work failed
 * with *err; or, as ERR_WORK with `what` in front, no copy could be made, a signal ended it, or it took longer than half a minute. */
bool subprocess_run(subprocess_fn work, void *user, void *answer, size_t n, const char *what, struct err *err);

#endif
