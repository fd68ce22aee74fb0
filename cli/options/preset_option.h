/* Presets on the command line: settings that were saved under a name (engine/events/preset.h). */
#ifndef CLI_OPTIONS_PRESET_OPTION_H
#define CLI_OPTIONS_PRESET_OPTION_H

#include "cli/options/option_table.h"

/* The preset's policy, knobs and head, in place of those before; what follows it counts more. */
bool set_preset(struct options *, const struct option_row *, const char *name, struct err *);
void presets_list(void); /* to stdout, a line each; of a bad one what is wrong with it */

#endif
