/* Shows saved traces in the scope. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/options/options.h"
#include "tui/app/app_options.h"

bool replay_has_terminal(struct err *); /* fails with ERR_USAGE if there is none */
int replay_show(const struct options *, const struct source *, struct err *); /* the exit status; errors were printed */

#endif
