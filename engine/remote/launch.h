/* Runs a server as a child of this program: on a free port of the loopback interface, in a process group of its own,
 * which ends with launch_close(), and also if this program is killed: a guard process waits for the end of a pipe that
 * this program holds. The server's output is stored in a file, whose last line explains a failed start. */
#ifndef ENGINE_REMOTE_LAUNCH_H
#define ENGINE_REMOTE_LAUNCH_H

#include "engine/remote/http.h"

#define LAUNCH_START_S 900 /* that a server may take to be healthy */

struct launch;

/* Starts "COMMAND --host 127.0.0.1 --port PORT" (a command of a shell) and waits until GET /health has status 200. Fails
 * in one line, with the last line of its output, if the server ends or takes too long; with ERR_CANCELLED if *cancel is
 * set. Nothing runs after a failure. */
bool launch_open(struct launch **, const char *command, const atomic_bool *cancel, struct err *);
const char *launch_url(const struct launch *); /* "http://127.0.0.1:PORT" */
double launch_start_s(const struct launch *);  /* the time that the start took */
/* Ends the server and all its children: SIGTERM, after 10 s SIGKILL; waits for them. NULL does nothing. */
void launch_close(struct launch *);

#endif
