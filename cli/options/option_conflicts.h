/* Options that say nothing beside another one: given together, one of them would be passed over without a word. */
#ifndef CLI_OPTIONS_OPTION_CONFLICTS_H
#define CLI_OPTIONS_OPTION_CONFLICTS_H

#include "cli/options/option_table.h"

/* given: (n_option_rows) the rows that flags named. */
bool option_given(const bool *given, const char *name);
/* Of flags alone: the config file's defaults give way without a word. False: *err says which two (ERR_USAGE). */
bool options_agree(const struct options *, const bool *given, struct err *);

#endif
