/* The models that training is about, each an engine of its own. */
#ifndef CLI_TRAIN_MODELS_H
#define CLI_TRAIN_MODELS_H

#include "cli/options/options.h"
#include "cli/train/train_partial.h"
#include "cli/train/train_prompts.h"

bool train_target(const struct options *, struct engine **, struct err *);
/* The one that was given for the role, or the file beside the target. `what` it does is said where there is none. */
bool train_helper(const struct options *, enum helper_role, const char *what, struct engine **, struct err *);

/* "draft fables-draft-1m 0123456789abcdef" */
void train_settings_model(struct train_settings *, const char *role, const struct engine *);
/* How answers are made from the prompts. */
void train_settings_answers(struct train_settings *, const struct options *, struct train_prompts *);

#endif
