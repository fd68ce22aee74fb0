/* Looks up and frees the declarations of a run. */
#include "engine/events/run_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/events/sampling_knobs.h"

const char *
run_info_kind(const struct run_info *info, uint32_t layer)
{
    const size_t n = strlen(info->layer_kinds);
    const char kind = layer >= 1 && layer <= n ? info->layer_kinds[layer - 1] : '\0';
    return kind == 'r' ? "recurrent" : kind == 'w' ? "window" : kind == 'a' ? "attention" : "";
}

const struct policy_info *
run_info_policy(const struct run_info *info, const char *name)
{
    for (uint32_t i = 0; i < info->n_policies; i++)
        if (strcmp(info->policies[i].name, name) == 0)
            return &info->policies[i];
    return NULL;
}

bool
run_info_common(const struct control_event *c)
{
    switch (c->kind) {
    case RECORDED_PACE:
    case RECORDED_PROBE:
    case RECORDED_BASELINE:
    case RECORDED_BASELINE_SE:
    case RECORDED_BASELINE_SLICE:
    case RECORDED_LOSSLESS: return true;
    case RECORDED_KNOB: return sampling_knob_index(c->knob) >= 0;
    default: return false;
    }
}

bool
run_info_concerns(const struct run_info *info, uint32_t seq, const struct event *control)
{
    return (control->seq == 1) == (seq == 1) || (!run_info_apart(info) && run_info_common(&control->control));
}

void
run_info_begin(struct run_info *info, const struct sampling *sampling, uint64_t seed, uint32_t tokens,
               const char *policy)
{
    const time_t now = time(NULL);
    struct tm utc;
    info->format = TRACE_FORMAT;
    snprintf(info->version, sizeof info->version, "%s", SPECSCOPE_VERSION);
    if (gethostname(info->host, sizeof info->host) != 0)
        info->host[0] = '\0';
    info->host[sizeof info->host - 1] = '\0';
    strftime(info->started, sizeof info->started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    info->sampling = *sampling;
    info->seed = seed;
    info->tokens = tokens;
    info->sequences = info->prompts = 1;
    snprintf(info->policy, sizeof info->policy, "%s", policy);
}

void
run_info_free(struct run_info *info)
{
    free(info->prompt);
    free(info->asked.system);
    free(info->policies);
    free(info->start_values);
    free(info->choice_memory);
    info->prompt = info->asked.system = NULL;
    info->prompt_len = 0;
    info->policies = NULL;
    info->n_policies = 0;
    info->start_values = NULL;
    info->choice_memory = NULL;
}

uint32_t
run_info_layers(const struct run_info *run, enum layer_model model)
{
    if (model == MODEL_TARGET)
        return run->layers;
    return model < LAYER_MODELS ? run->aux[model - LAYERS_OF(0)].layers : 0;
}
