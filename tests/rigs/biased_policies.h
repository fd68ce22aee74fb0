/* Policies whose tokens have another distribution than the target's, and fair policies that resemble them. Tests must
 * reject the former and accept the latter. */
#pragma once

#include "engine/events/policy.h"

enum { BIASED_POLICIES = 6 };

struct biased_policies {
    struct policy_ops ops[BIASED_POLICIES];
    const struct policy_ops *list[BIASED_POLICIES + 1]; /* a NULL-terminated registry of them */
    bool fair[BIASED_POLICIES];
};

void biased_policies(struct biased_policies *);
