/* Presets are files that others may have written: any bytes are refused in one line, or are words that fit. */
#include "engine/events/preset.h"
#include "tests/fuzz/mutate.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must_end(const char *text, size_t size)
{
    if (memchr(text, '\0', size) == NULL)
        __builtin_trap();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct preset p;
    struct err err = {0};
    if (!preset_parse(&p, "fuzz", (const char *)data, size, &err)) {
        if (err.kind != ERR_USAGE || err.text[0] == '\0' || strpbrk(err.text, "\n\033\r") != NULL)
            __builtin_trap();
        return 0;
    }
    must_end(p.policy, sizeof p.policy);
    must_end(p.head, sizeof p.head);
    if (p.policy[0] == '\0' || p.n_set > POLICY_KNOBS)
        __builtin_trap();
    for (uint32_t i = 0; i < p.n_set; i++) {
        must_end(p.set[i].name, sizeof p.set[i].name);
        must_end(p.set[i].text, sizeof p.set[i].text);
        if (p.set[i].name[0] == '\0' || p.set[i].text[0] == '\0')
            __builtin_trap();
    }
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return mutate_json(data, size, max_size, seed);
}
