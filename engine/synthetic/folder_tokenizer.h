/* The tokenizer of a Hugging Face folder: tokenizer.json, or else tokenizer.model. */
#ifndef ENGINE_SYNTHETIC_FOLDER_TOKENIZER_H
#define ENGINE_SYNTHETIC_FOLDER_TOKENIZER_H

#include "engine/tokenizer/tokenizer.h"

bool folder_tokenizer_open(struct tokenizer **, const char *folder, struct err *);

#endif
