#include "tests/rigs/hostile_server.h"

#include "tests/rigs/test.h"

struct launch *
hostile_server(const char *words)
{
    char command[400];
    struct launch *l;
    struct err err = {0};
    if (system("command -v python3 >/dev/null") != 0)
        skip();
    snprintf(command, sizeof command, "exec python3 tests/servers/hostile.py %s", words);
    assert_ok(launch_open(&l, command, 60, NULL, &err), err);
    return l;
}

struct http *
hostile_part(const struct launch *l, const char *part, struct http_options o)
{
    char url[100];
    struct http *h;
    struct err err = {0};
    snprintf(url, sizeof url, "%s/%s", launch_url(l), part);
    o.url = url;
    assert_ok(http_open(&h, &o, &err), err);
    return h;
}
