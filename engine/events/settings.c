#include "engine/events/settings.h"

#include <stdio.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"

const char *const probe_mode_names[PROBE_MODES] = {"off", "policy", "all"};
const char *const head_mode_names[HEAD_MODES] = {"policy", "lens", "trained"};

const char *
settings_print(const struct settings *s, const struct run_info *info, const char *name, char *out, size_t n)
{
    const struct policy_info *policy = &info->policies[s->policy];
    const int sampling = sampling_knob_index(name), knob = policy_knob_index(policy, name);
    if (strcmp(name, "policy") == 0) {
        snprintf(out, n, "%s", policy->name);
        return "policy";
    }
    if (strcmp(name, "head") == 0) {
        snprintf(out, n, "%s", head_mode_names[s->head]);
        return "head";
    }
    if (sampling >= 0) {
        sampling_knob_text(&s->sampling, s->seed, sampling, out, n);
        return sampling_knobs[sampling].name;
    }
    if (knob < 0)
        return NULL;
    knob_format(&policy->knobs[knob], s->value[s->policy][knob], out, n);
    return policy->knobs[knob].name;
}
