/* specscope info --draft, --companion: a helper beside the model that it helps. */
#ifndef CLI_INFO_COMPARE_H
#define CLI_INFO_COMPARE_H

#include <cjson/cJSON.h>

#include "engine/events/policy.h"
#include "engine/model/model.h"

/* Into `json` when that is there, else to stdout. Different vocabularies are a finding, not a failure. False: *err. */
bool info_compare(const struct model *target, enum helper_role, const char *path, cJSON *json, struct err *);

#endif
