/* The server of tests/servers/hostile.py for test programs. */
#pragma once

#include "engine/remote/launch.h"

/* Starts it with these further words of a shell; skips the test if there is no python3. launch_close() ends it. */
struct launch *hostile_server(const char *words);
/* Opens a connection to it that lets it play this part. */
struct http *hostile_part(const struct launch *, const char *part, struct http_options);
