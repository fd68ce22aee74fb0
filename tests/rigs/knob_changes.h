/* Knobs turned while a session runs, as a hand on a slider would. */
#ifndef TESTS_RIGS_KNOB_CHANGES_H
#define TESTS_RIGS_KNOB_CHANGES_H

#include "tests/rigs/session_rig.h"

/* Posts a value of the knob, `which` as session_rig_knob_value() has it, to sequence seq. False: it was refused. */
bool knob_change(struct session *, const struct knob *, int which, uint32_t seq, uint64_t *random, struct err *);
/* A value for each knob of a policy, as options have them; returns how many. */
size_t knob_settings(const struct policy_info *, int which, uint64_t *random, struct knob_setting *out);

#endif
