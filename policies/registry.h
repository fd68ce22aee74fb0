/* The registry: every policy of the program, in the order in which lists show them. */
#pragma once

#include "engine/events/policy.h"

extern const struct policy_ops *const policy_registry[]; /* NULL-terminated */
