#include "policies/registry.h"

#include <stddef.h>

#define POLICIES(P)                                                                                                    \
    P(policy_ar)                                                                                                       \
    P(policy_layerskip)                                                                                                \
    P(policy_fsm)                                                                                                      \
    P(policy_dv)                                                                                                       \
    P(policy_del)                                                                                                      \
    P(policy_specbound)                                                                                                \
    P(policy_swift)                                                                                                    \
    P(policy_ngram)                                                                                                    \
    P(policy_suffix)                                                                                                   \
    P(policy_sd)                                                                                                       \
    P(policy_ngram_sd)                                                                                                 \
    P(policy_specdecpp)                                                                                                \
    P(policy_sv)                                                                                                       \
    P(policy_eagle)                                                                                                    \
    P(policy_dspark)                                                                                                   \
    P(policy_dflash)                                                                                                   \
    P(policy_mtp)

#define DECLARE(policy) extern const struct policy_ops policy;
POLICIES(DECLARE)

#define ADDRESS(policy) &(policy),
const struct policy_ops *const policy_registry[] = {POLICIES(ADDRESS) NULL};
