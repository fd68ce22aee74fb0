/* Settings under a name: a policy, its knobs, which head looks at layers, and how tokens are drawn, in a JSON file of their
 * own, in the words of the config file:
 *
 *     {"policy": "specbound", "set": ["tau=0.7", "d_max=5"], "head": "trained", "temp": 0.7, "top-k": 0, "top-p": 1, "seed": 1}
 */
#ifndef ENGINE_EVENTS_PRESET_H
#define ENGINE_EVENTS_PRESET_H

#include "engine/events/sampling_knobs.h"
#include "engine/events/segments.h"

#define PRESET_NAME 48

struct preset {
    char policy[16], head[8]; /* "": it doesn't say */
    struct preset_knob {
        char name[16], text[32];
    } set[POLICY_KNOBS];
    uint32_t n_set;
    char sampling[SAMPLING_KNOBS][24]; /* numbers; "": it doesn't say */
};
extern const char *const preset_sampling[SAMPLING_KNOBS]; /* "temp", "top-k", …: the options' names */

/* What a segment ran with; false: its policy is not known. */
bool preset_of_segment(struct preset *, const struct segment *, const struct run_info *);

/* FOLDER/NAME.json. A name has letters, digits, '-', '_' and '.', and begins with no dot. False with one line: it is no
 * name, there is no such file (then which there are), it is not what is above. Policies, knobs and
 * numbers are not checked. */
bool preset_read(struct preset *, const char *folder, const char *name, struct err *);
bool preset_parse(struct preset *, const char *path, const char *json, size_t n, struct err *);
bool preset_write(const struct preset *, const char *folder, const char *name, struct err *); /* makes the folder */

struct preset_names {
    char (*name)[PRESET_NAME]; /* (n) sorted; owned */
    size_t n;
};
/* Those that lie in a folder, in place of those before; one that isn't there has none. False: out of memory. */
bool preset_list(struct preset_names *, const char *folder, struct err *);
void preset_names_free(struct preset_names *);

#endif
