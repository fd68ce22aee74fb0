/* Runs a server as a child of this program: on a free port of the loopback interface, in a session of its own, so that
 * no key of the terminal reaches it. A guard process ends it at launch_close(), and also if this program ends in any
 * other way: the guard waits for the end of a pipe that this program holds. The guard is a copy of this program, whose
 * memory it shares until either writes to it. */
#ifndef ENGINE_REMOTE_LAUNCH_H
#define ENGINE_REMOTE_LAUNCH_H

#include "engine/remote/http.h"

#define LAUNCH_START_S 900 /* that a server may take to be healthy */
#define LAUNCH_END_S   10  /* that it may take to end */

struct launch;

/* Starts "COMMAND --host 127.0.0.1 --port PORT" (a command of a shell) and waits until GET /health has status 200. Fails
 * in one line, with the last line of its output, if the server ends or takes longer than limit_s; with ERR_CANCELLED if
 * *cancel is set (NULL: never). Nothing runs after a failure. */
bool launch_open(struct launch **, const char *command, double limit_s, const atomic_bool *cancel, struct err *);
const char *launch_url(const struct launch *); /* "http://127.0.0.1:PORT" */
/* Ends the server and all its children: SIGTERM, after LAUNCH_END_S SIGKILL; waits for them. NULL does nothing. */
void launch_close(struct launch *);

#endif
