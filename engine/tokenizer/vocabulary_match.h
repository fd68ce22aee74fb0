/* Whether two models speak of the same tokens: what a draft model says must mean the same to the target. */
#ifndef ENGINE_TOKENIZER_VOCABULARY_MATCH_H
#define ENGINE_TOKENIZER_VOCABULARY_MATCH_H

#include "engine/tokenizer/tokenizer.h"

/* Every id that both have is of the same kind and stands for the same bytes. One may have more (padding, added tokens): to
 * the other these have probability 0. False: one line that names the first id which differs. */
bool vocabularies_match(const struct tokenizer *target, const char *target_name, const struct tokenizer *other,
                        const char *other_name, struct err *);

#endif
