#include "policies/policy.h"

extern const struct policy_ops policy_ar, policy_layerskip, policy_fsm, policy_dv, policy_del, policy_specbound,
    policy_swift;

const struct policy_ops *const policy_registry[] = {
    &policy_ar, &policy_layerskip, &policy_fsm, &policy_dv, &policy_del, &policy_specbound, &policy_swift, NULL,
};
