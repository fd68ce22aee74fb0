#include "engine/events/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/events/sampling_knobs.h"

const char *const probe_mode_names[PROBE_MODES] = {"off", "policy", "N%", "all"};
const char *const head_mode_names[HEAD_MODES] = {"policy", "lens", "trained"};

bool
probe_parse(const char *text, enum probe_mode *mode, uint32_t *percent)
{
    char *end;
    for (enum probe_mode m = 0; m < PROBE_MODES; m++)
        if (m != PROBE_SHARE && strcmp(text, probe_mode_names[m]) == 0) {
            *mode = m;
            return true;
        }
    const unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || strcmp(end, "%") != 0 || n > 99)
        return false;
    *mode = PROBE_SHARE;
    *percent = (uint32_t)n;
    return true;
}

bool
probe_is_share(const char *text)
{
    enum probe_mode mode;
    uint32_t percent;
    return probe_parse(text, &mode, &percent) && mode == PROBE_SHARE;
}

const char *
probe_print(enum probe_mode mode, uint32_t percent, char out[PROBE_TEXT_MOST])
{
    if (mode == PROBE_SHARE)
        snprintf(out, PROBE_TEXT_MOST, "%u%%", (unsigned)percent);
    else
        snprintf(out, PROBE_TEXT_MOST, "%s", mode < PROBE_MODES ? probe_mode_names[mode] : "");
    return out;
}

void
settings_begin(struct settings *s, const struct run_info *info)
{
    const struct policy_info *p = run_info_policy(info, info->policy);
    *s = (struct settings){.policy = p != NULL ? (uint32_t)(p - info->policies) : info->n_policies,
                           .head = HEADS_POLICY,
                           .probe = PROBE_MODES,
                           .sampling = info->sampling,
                           .seed = info->seed};
    for (uint32_t i = 0; i < info->n_policies; i++)
        for (uint32_t k = 0; k < POLICY_KNOBS; k++)
            s->value[i][k] =
                info->start_values != NULL ? info->start_values[i * POLICY_KNOBS + k] : info->policies[i].knobs[k].def;
}

static bool
apply_knob(struct settings *s, const struct run_info *info, const struct control_event *c)
{
    const struct policy_info *p = s->policy < info->n_policies ? &info->policies[s->policy] : NULL;
    const int sampling = sampling_knob_index(c->knob), knob = p != NULL ? policy_knob_index(p, c->knob) : -1;
    double value;
    if (sampling >= 0 && knob_parse(&sampling_knobs[sampling], c->new_text, &value, NULL))
        sampling_knob_set(&s->sampling, &s->seed, sampling, value);
    else if (knob >= 0 && knob_parse(&p->knobs[knob], c->new_text, &value, NULL))
        s->value[s->policy][knob] = value;
    else
        return false;
    return true;
}

bool
settings_apply(struct settings *s, const struct run_info *info, const struct control_event *c)
{
    const struct policy_info *p;
    enum probe_mode probe;
    if (c->new_text == NULL)
        return false;
    switch (c->kind) {
    case RECORDED_POLICY:
        p = run_info_policy(info, c->new_text);
        s->policy = p != NULL ? (uint32_t)(p - info->policies) : s->policy;
        return p != NULL;
    case RECORDED_HEAD:
        s->head = strcmp(c->new_text, head_mode_names[HEADS_TRAINED]) == 0 ? HEADS_TRAINED : HEADS_LENS;
        return true;
    case RECORDED_PROBE:
        if (!probe_parse(c->new_text, &probe, &s->probe_percent))
            return false;
        s->probe = probe;
        return true;
    case RECORDED_KNOB: return apply_knob(s, info, c);
    default: return false;
    }
}

void
settings_read_versus(struct settings *s, const struct run_info *info, const char *text)
{
    char word[64];
    int used = 0;
    const struct policy_info *p = sscanf(text, "%63s%n", word, &used) == 1 ? run_info_policy(info, word) : NULL;
    s->policy = p != NULL ? (uint32_t)(p - info->policies) : info->n_policies;
    if (p == NULL)
        return;
    for (text += used; sscanf(text, "%63s%n", word, &used) == 1; text += used) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        const int k = policy_knob_index(p, word);
        if (k >= 0)
            knob_parse(&p->knobs[k], equals + 1, &s->value[s->policy][k], NULL);
    }
}

void
settings_print_versus(const struct settings *first, const struct settings *second, const struct run_info *info,
                      char out[VERSUS_TEXT_MOST])
{
    const struct policy_info *p = &info->policies[second->policy];
    const double *a = first->value[second->policy], *b = second->value[second->policy];
    size_t used = (size_t)snprintf(out, VERSUS_TEXT_MOST, "%s", p->name);
    for (uint32_t k = 0; k < p->n_knobs; k++) {
        char value[32];
        if (a[k] == b[k])
            continue;
        knob_format(&p->knobs[k], b[k], value, sizeof value);
        used += (size_t)snprintf(out + used, VERSUS_TEXT_MOST - used, " %s=%s", p->knobs[k].name, value);
    }
}

const char *
settings_print(const struct settings *s, const struct run_info *info, enum recorded kind, const char *knob, char *out,
               size_t n)
{
    const struct policy_info *policy = &info->policies[s->policy];
    if (kind == RECORDED_POLICY) {
        snprintf(out, n, "%s", policy->name);
        return recorded_names[kind];
    }
    if (kind == RECORDED_HEAD) {
        snprintf(out, n, "%s", head_mode_names[s->head]);
        return recorded_names[kind];
    }
    const int sampling = kind == RECORDED_KNOB ? sampling_knob_index(knob) : -1,
              own = kind == RECORDED_KNOB ? policy_knob_index(policy, knob) : -1;
    if (sampling >= 0) {
        sampling_knob_text(&s->sampling, s->seed, sampling, out, n);
        return sampling_knobs[sampling].name;
    }
    if (own < 0)
        return NULL;
    knob_format(&policy->knobs[own], s->value[s->policy][own], out, n);
    return policy->knobs[own].name;
}
