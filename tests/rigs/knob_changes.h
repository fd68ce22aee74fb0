/* Changes of knobs while a session runs, as a user's. */
#pragma once

#include "tests/rigs/session_rig.h"

/* Posts a value of the knob to sequence seq; `which` is that of session_rig_knob_value(). Returns false if it was
 * refused. */
bool knob_change(struct live *, const struct knob *, int which, uint32_t seq, uint64_t *random, struct err *);
/* Writes a value for each knob of a policy, in the form of the options; returns their number. */
size_t knob_settings(const struct policy_info *, int which, uint64_t *random, struct knob_setting *out);
