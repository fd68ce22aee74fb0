/* Presets are untrusted files: any bytes are refused in one line, or become words that fit. */
#include "engine/tune/preset.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct preset p;
    struct err err = {0};
    if (!preset_parse(&p, "fuzz", (const char *)data, size, &err)) {
        must_refuse(&err);
        return 0;
    }
    MUST(p.policy[0] != '\0' && p.n_set <= POLICY_KNOBS);
    MUST(strnlen(p.policy, sizeof p.policy) < sizeof p.policy && strnlen(p.head, sizeof p.head) < sizeof p.head);
    for (uint32_t i = 0; i < p.n_set; i++) {
        const size_t name = strnlen(p.set[i].name, sizeof p.set[i].name);
        const size_t text = strnlen(p.set[i].text, sizeof p.set[i].text);
        MUST(name > 0 && name < sizeof p.set[i].name && text > 0 && text < sizeof p.set[i].text);
    }
    return 0;
}

MUTATOR(mutate_json(data, size, max_size, seed));
