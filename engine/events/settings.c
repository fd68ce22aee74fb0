#include "engine/events/settings.h"

const char *const probe_mode_names[PROBE_MODES] = {"off", "policy", "all"};
const char *const head_mode_names[HEAD_MODES] = {"policy", "lens", "trained"};
