/* The server of tests/servers/hostile.py for test programs. */
#ifndef TESTS_RIGS_HOSTILE_SERVER_H
#define TESTS_RIGS_HOSTILE_SERVER_H

#include "engine/remote/launch.h"

/* Starts it with these further words of a shell; skips the test if there is no python3. launch_close() ends it. */
struct launch *hostile_server(const char *words);
/* Opens a connection to it that lets it play this part. */
struct http *hostile_part(const struct launch *, const char *part, struct http_options);

#endif
