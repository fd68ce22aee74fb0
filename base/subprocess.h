/* Runs a function in a child process, for libraries that end the process, or hang, when memory runs out. */
#pragma once

#include <stddef.h>

#include "base/err.h"

typedef bool (*subprocess_fn)(void *user, void *answer, struct err *);

/* Forks and calls work(user, answer) in the child, which has no signal handlers, prints nothing, and gets an error from
 * write() instead of SIGXFSZ. Only changes of open files and of the n bytes of `answer` (zero at first) are visible in
 * the parent. Fails with the error of work(); or with ERR_WORK and `what` in front if fork() failed, a signal ended the
 * child, or it took longer than 30 s. */
bool subprocess_run(subprocess_fn work, void *user, void *answer, size_t n, const char *what, struct err *err);
