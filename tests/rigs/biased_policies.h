/* Policies whose tokens have another distribution than the target's, and fair ones that look like them: for tests that
 * must tell them apart. */
#ifndef TESTS_RIGS_BIASED_POLICIES_H
#define TESTS_RIGS_BIASED_POLICIES_H

#include "engine/events/policy.h"

enum { BIASED_POLICIES = 6 };

struct biased_policies {
    struct policy_ops ops[BIASED_POLICIES];
    const struct policy_ops *list[BIASED_POLICIES + 1]; /* of them, NULL-terminated: a registry */
    bool fair[BIASED_POLICIES];
};

void biased_policies(struct biased_policies *);

#endif
