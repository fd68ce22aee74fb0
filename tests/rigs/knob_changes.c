#include "tests/rigs/knob_changes.h"

bool
knob_change(struct live *s, const struct knob *k, int which, uint32_t seq, uint64_t *random, struct err *err)
{
    char text[32];
    struct control c = {.kind = CONTROL_KNOB, .text = text, .seq = seq};
    knob_format(k, session_rig_knob_value(k, which, random), text, sizeof text);
    snprintf(c.name, sizeof c.name, "%s", k->name);
    return s->ops->post(s, &c, err);
}

size_t
knob_settings(const struct policy_info *info, int which, uint64_t *random, struct knob_setting *out)
{
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        snprintf(out[k].name, sizeof out[k].name, "%s", info->knobs[k].name);
        knob_format(&info->knobs[k], session_rig_knob_value(&info->knobs[k], which, random), out[k].text,
                    sizeof out[k].text);
    }
    return info->n_knobs;
}
