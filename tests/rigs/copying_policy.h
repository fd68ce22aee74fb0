/* A policy whose drafts come from no layer: it copies the tokens that followed an earlier occurrence of the last token,
 * in this text or in the previous one. For tests of NO_LAYER and of drafts that were not drawn
 * (engine/session/round.h). */
#pragma once

#include "engine/events/policy.h"

extern const struct policy_ops policy_copying;

/* Returns a NULL-terminated registry of the program's policies, the copying policy, and suffix decoding and EAGLE heads
 * that draft trees ("suffixtree", "eagletree"). Only one thread may call it. */
const struct policy_ops *const *registry_with_copying(void);
