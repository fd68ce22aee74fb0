/* Shows saved traces in the scope. */
#pragma once

#include "cli/options/options.h"
#include "tui/app/app_options.h"

bool replay_has_terminal(struct err *); /* fails with ERR_USAGE if there is none */
int replay_show(const struct options *, const struct source *, struct err *); /* the exit status; errors were printed */
