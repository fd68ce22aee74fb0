/* The config file: any bytes become options that can be used, or are refused in one line. */
#include "cli/options/options.h"
#include "tests/fuzz/mutate.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prompt files are read when they are named, and "-" would wait for standard input: those inputs are left out. */
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
    bool ok = options_config(&o, "config.json", json, len, &err);
    if (!ok && (err.kind == ERR_NONE || err.text[0] == '\0' || strpbrk(err.text, "\n\033\r") != NULL))
        __builtin_trap();
    if (o.finished || o.n_set > OPTIONS_MOST || o.policies.n > OPTIONS_MOST || !(o.sampling.temperature >= 0) ||
        !(o.sampling.top_p > 0 && o.sampling.top_p <= 1) || (command == COMMAND_BENCH && o.repeat == 0) ||
        o.probe >= PROBE_MODES)
        __builtin_trap();
    for (size_t i = 0; i < o.n_set; i++)
        if (o.set[i].name[0] == '\0' || memchr(o.set[i].name, '\0', sizeof o.set[i].name) == NULL ||
            memchr(o.set[i].text, '\0', sizeof o.set[i].text) == NULL)
            __builtin_trap();
    for (size_t i = 0; i < o.policies.n; i++)
        if (o.policies.at[i] == NULL)
            __builtin_trap();
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

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return mutate_json(data, size, max_size, seed);
}
