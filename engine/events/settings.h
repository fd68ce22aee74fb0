/* All settings that a sequence generates with. A session stores them twice for each sequence: as requested, and as the
 * running round uses them (docs/design-engine.md: A session). */
#ifndef ENGINE_EVENTS_SETTINGS_H
#define ENGINE_EVENTS_SETTINGS_H

#include "engine/events/run_info.h"

/* Which layers are probed for the pictures: none, those that the policy reads anyway, all in a share of the time, or
 * all. */
enum probe_mode { PROBE_OFF, PROBE_POLICY, PROBE_SHARE, PROBE_ALL, PROBE_MODES };
extern const char *const probe_mode_names[PROBE_MODES]; /* "off", "policy", "N%", "all" */

/* The head that reads a layer: the one of the policy's paper, always the lens, or always the trained one. */
enum head_mode { HEADS_POLICY, HEADS_LENS, HEADS_TRAINED, HEAD_MODES };
extern const char *const head_mode_names[HEAD_MODES]; /* "policy", "lens", "trained" */

#define SETTINGS_MOST 2 /* different settings of the sequences of one run */

struct settings {
    uint32_t policy;                           /* index of the policy in force; n_policies: unknown */
    double value[POLICIES_MOST][POLICY_KNOBS]; /* the knobs of all policies */
    enum head_mode head;
    enum probe_mode probe;  /* this and the following are equal for all sequences of a session */
    uint32_t probe_percent; /* PROBE_SHARE: of the time, 1 to 99 */
    struct sampling sampling;
    uint64_t seed; /* of the first sequence; the seeds of others follow from it */
};

/* Reads "off", "policy", "all" or a share such as "10%"; false: it is none of them. Prints the same; "": unknown. */
bool probe_parse(const char *text, enum probe_mode *, uint32_t *percent);
bool probe_is_share(const char *text);
#define PROBE_TEXT_MOST 8
const char *probe_print(enum probe_mode, uint32_t percent, char out[PROBE_TEXT_MOST]);

/* The settings that a run begins with. A run_info has no head and no probe: they are HEADS_POLICY and PROBE_MODES until
 * a control records them. */
void settings_begin(struct settings *, const struct run_info *);
/* Applies a recorded change of policy, head, probe, sampling or of a knob of the policy. Returns false if the control
 * changes none of these, or its new value is unknown. */
bool settings_apply(struct settings *, const struct run_info *, const struct control_event *);

/* The text of a RECORDED_VERSUS: "layerskip exit_layer=4". Reading it changes the first setting into the second: it
 * sets the policy (n_policies: unknown) and skips unknown knobs. */
void settings_read_versus(struct settings *, const struct run_info *, const char *text);
/* Writes the policy of the second setting and the knobs of this policy that differ. */
#define VERSUS_TEXT_MOST (16 + POLICY_KNOBS * 56 + 16) /* with " head=MODE" after it */
void settings_print_versus(const struct settings *first, const struct settings *second, const struct run_info *,
                           char out[VERSUS_TEXT_MOST]);

/* Writes the value of a policy, a head or a knob as the text of a control. RECORDED_KNOB: `knob` is the name or symbol
 * of a knob of the policy or of sampling. Returns the name of the setting, or NULL for other kinds and unknown
 * knobs. */
const char *settings_print(const struct settings *, const struct run_info *, enum recorded, const char *knob, char *out,
                           size_t n);

#endif
