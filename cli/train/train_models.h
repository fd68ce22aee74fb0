/* The models that training is about, each an engine of its own. */
#ifndef CLI_TRAIN_MODELS_H
#define CLI_TRAIN_MODELS_H

#include "cli/options/options.h"

bool train_target(const struct options *, struct engine **, struct err *);
/* The one that was given for the role, or the file beside the target. `what` it does is said where there is none. */
bool train_helper(const struct options *, enum helper_role, const char *what, struct engine **, struct err *);

#endif
