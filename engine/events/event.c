/* Names of the events' enumerations, as they stand in a trace. */
#include "engine/events/event.h"

const char *const token_source_names[TOKEN_SOURCES] = {"prompt", "prefill", "draft", "correction", "bonus"};
const char *const probed_by_names[PROBED_BY] = {"policy", "verify", "scope"};
