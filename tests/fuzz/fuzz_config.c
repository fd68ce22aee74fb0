/* The config file: any bytes become usable options, or are refused in one line. */
#include "cli/options/options.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Skips inputs that name prompt files, because options read them, and "-" would wait for standard input. */
static bool
names_a_file(const char *json, size_t len)
{
    return memmem(json, len, "file", 4) != NULL || memmem(json, len, "\\u", 2) != NULL;
}

static void
read_as(enum command command, const char *json, size_t len)
{
    struct options o;
    struct err err = {0};
    options_init(&o, command);
    if (!options_config(&o, "config.json", json, len, &err))
        must_refuse(&err);
    MUST(!o.finished && o.n_set <= OPTIONS_MOST && o.policies.n <= OPTIONS_MOST && o.sampling.temperature >= 0);
    MUST(o.sampling.top_p > 0 && o.sampling.top_p <= 1 && o.probe < PROBE_MODES);
    MUST(command != COMMAND_BENCH || o.repeat > 0);
    for (size_t i = 0; i < o.n_set; i++)
        MUST(o.set[i].name[0] != '\0' && memchr(o.set[i].name, '\0', sizeof o.set[i].name) != NULL &&
             memchr(o.set[i].text, '\0', sizeof o.set[i].text) != NULL);
    for (size_t i = 0; i < o.policies.n; i++)
        MUST(o.policies.at[i] != NULL);
    options_free(&o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    if (names_a_file(json, size))
        return 0;
    read_as(COMMAND_SCOPE, json, size);
    read_as(COMMAND_RUN, json, size);
    read_as(COMMAND_BENCH, json, size);
    return 0;
}

MUTATOR(mutate_json(data, size, max_size, seed));
