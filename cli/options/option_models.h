/* Models that are named otherwise than by a path. */
#ifndef CLI_OPTIONS_OPTION_MODELS_H
#define CLI_OPTIONS_OPTION_MODELS_H

#include "cli/options/options.h"

/* The model and those that help, of commands that take models, by their paths (engine/model/model_places.h). */
bool options_find_models(struct options *, struct err *);

/* Whether a word of the command line names a model on this machine: a GGUF file, a folder with config.json, hf:…, ollama:… or
 * "bundled". */
bool word_is_model(const char *word);

#endif
