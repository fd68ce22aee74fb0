/* Presets: a policy, its knobs, the head for layers and the sampling, stored by name in a JSON file with the keys of
 * the config file:
 *
 *     {"policy": "specbound", "set": ["tau=0.7", "d_max=5"], "head": "trained", "temp": 0.7, "top-k": 0, "top-p": 1, "seed": 1} */
#ifndef ENGINE_TUNE_PRESET_H
#define ENGINE_TUNE_PRESET_H

#include "engine/events/sampling_knobs.h"
#include "engine/measure/segments.h"

#define PRESET_NAME 48

struct preset {
    char policy[16], head[8]; /* "": not set */
    struct preset_knob {
        char name[16], text[32];
    } set[POLICY_KNOBS];
    uint32_t n_set;
    char sampling[SAMPLING_KNOBS][24]; /* numbers; "": not set */
};
extern const char *const preset_sampling[SAMPLING_KNOBS]; /* "temp", "top-k", …: the options' names */

/* Writes the settings of a segment to a preset. Returns false if its policy is unknown. */
bool preset_of_segment(struct preset *, const struct segment *, const struct run_info *);

/* Writes the policy and the knobs that differ from its defaults, each after `before`. Knobs are in the order of the
 * policy. Returns out. */
const char *preset_setting_text(const struct preset *, const struct policy_info *, const char *before, char *out,
                                size_t n);

/* Reads FOLDER/NAME.json. A name has letters, digits, '-', '_' and '.', and does not begin with a dot. Fails with one
 * line: an invalid name, no such file (with a list of the existing ones), or invalid content. Policies, knobs and
 * numbers are not checked. */
bool preset_read(struct preset *, const char *folder, const char *name, struct err *);
bool preset_parse(struct preset *, const char *path, const char *json, size_t n, struct err *);
bool preset_exists(const char *folder, const char *name);
/* Checks before the work whether a preset of this name can be written after it. Creates the folder. */
bool preset_possible(const char *folder, const char *name, struct err *);
/* creates the folder */
bool preset_write(const struct preset *, const char *folder, const char *name, struct err *);

struct preset_names {
    char (*name)[PRESET_NAME]; /* (n) sorted; owned */
    size_t n;
};
/* Replaces the names by those of the presets in a folder; none if there is no folder. Returns false if memory runs
 * out. */
bool preset_list(struct preset_names *, const char *folder, struct err *);
void preset_names_free(struct preset_names *);

#endif
