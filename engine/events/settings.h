/* Everything that a sequence generates with. A session holds it twice for each sequence: as requested, and as the round that runs
 * has it (docs/design.md: A session). */
#ifndef ENGINE_EVENTS_SETTINGS_H
#define ENGINE_EVENTS_SETTINGS_H

#include "engine/events/run_info.h"

#define POLICIES_MOST 32 /* that a session opens */

enum probe_mode { PROBE_OFF, PROBE_POLICY, PROBE_ALL, PROBE_MODES };
extern const char *const probe_mode_names[PROBE_MODES]; /* "off", "policy", "all" */

/* Which head looks at a layer: as the policy's paper has it, always the lens, or always the trained one. */
enum head_mode { HEADS_POLICY, HEADS_LENS, HEADS_TRAINED, HEAD_MODES };
extern const char *const head_mode_names[HEAD_MODES]; /* "policy", "lens", "trained" */

struct settings {
    uint32_t policy;                           /* index of the one that drafts */
    double value[POLICIES_MOST][POLICY_KNOBS]; /* the knobs of all policies */
    enum head_mode head;
    enum probe_mode probe;    /* the same for all sequences of a session, as are those below */
    struct sampling sampling; /* */
    uint64_t seed;            /* of the first sequence; the seeds of others follow from it */
};

/* The value of "policy", "head" or a knob (of the policy, or of sampling; names and symbols both match) as a control has it. Returns
 * the setting's name; NULL: there is no such setting. */
const char *settings_print(const struct settings *, const struct run_info *, const char *name, char *out, size_t n);

#endif
