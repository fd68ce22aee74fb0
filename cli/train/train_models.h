/* The models that training is about: an engine with those that help it, as generation has them. */
#ifndef CLI_TRAIN_TRAIN_MODELS_H
#define CLI_TRAIN_TRAIN_MODELS_H

#include "cli/options/options.h"
#include "cli/train/train_partial.h"
#include "cli/train/train_prompts.h"

/* With all roles in `needs` (NEEDS()) played: by those that were given, the target's own first layers among them, or by the
 * files beside the target. */
bool train_engine(const struct options *, unsigned needs, struct engine **, struct err *);

/* "target fables-14m 0123456789abcdef", and so on for each role in `needs`. */
void train_settings_models(struct train_settings *, const struct engine *, unsigned needs);
/* How answers are made from the prompts. */
void train_settings_answers(struct train_settings *, const struct options *, const struct train_prompts *);

#endif
