/* Names of the events' enumerations in a trace. */
#include "engine/events/event.h"

#include <stdio.h>
#include <string.h>

const char *const token_source_names[TOKEN_SOURCES] = {"prompt", "prefill", "draft", "correction", "bonus"};
const char *const probed_by_names[PROBED_BY] = {"policy", "verify", "scope"};
const char *const layer_model_names[LAYER_MODELS] = {"", "draft", "companion"};

const char *const recorded_names[RECORDED_KINDS] = {
    [RECORDED_KNOB] = "",
    [RECORDED_RUN] = "run",
    [RECORDED_PROMPT] = "prompt",
    [RECORDED_VERSUS] = "versus",
    [RECORDED_POLICY] = "policy",
    [RECORDED_STATE] = "state",
    [RECORDED_PROBE] = "probe",
    [RECORDED_HEAD] = "head",
    [RECORDED_BREAK] = "break",
    [RECORDED_UNTIL] = "until",
    [RECORDED_JOINED] = "joined",
    [RECORDED_LEFT] = "left",
    [RECORDED_BACK] = "back",
    [RECORDED_PREFILL] = "prefill",
    [RECORDED_END] = "end",
    [RECORDED_PACE] = "pace",
    [RECORDED_BASELINE_SE] = "baseline_se",
    [RECORDED_BASELINE] = "baseline",
    [RECORDED_LOSSLESS] = "lossless",
    [RECORDED_NOTE] = "note",
    [RECORDED_DEVICE] = "device",
};

const char *
control_event_name(const struct control_event *c)
{
    return c->kind == RECORDED_KNOB ? c->knob : recorded_names[c->kind];
}

void
control_event_set_name(struct control_event *c, const char *name)
{
    c->kind = RECORDED_KINDS - 1;
    while (c->kind > RECORDED_KNOB && strcmp(recorded_names[c->kind], name) != 0)
        c->kind--;
    snprintf(c->knob, sizeof c->knob, "%s", c->kind == RECORDED_KNOB ? name : "");
}
