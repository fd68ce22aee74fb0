/* The policies with their knobs, for those who have no model yet: as they are on one of a 7B model's shape. */
#ifndef CLI_OPTIONS_POLICY_LIST_H
#define CLI_OPTIONS_POLICY_LIST_H

#include "policies/policy.h"

/* look() gets every policy of the registry, in order. */
void policies_each(void (*look)(void *user, const struct policy_ops *, const struct policy_info *), void *user);
void policies_list(void); /* --list-policies, to stdout */

#endif
