/* A policy whose drafts come from no layer: it copies what followed the last token earlier, in this text or in the one
 * before it. For tests of NO_LAYER and of drafts that were not drawn (engine/session/round.h). */
#ifndef TESTS_RIGS_COPYING_POLICY_H
#define TESTS_RIGS_COPYING_POLICY_H

#include "engine/events/policy.h"

extern const struct policy_ops policy_copying;

/* The program's policies, that one, and suffix decoding and EAGLE heads that draft trees ("suffixtree", "eagletree");
 * NULL-terminated. Not for several threads at once. */
const struct policy_ops *const *registry_with_copying(void);

#endif
