/* The prompts that the target answers: cut out of a text, or the lines of a file. */
#ifndef CLI_TRAIN_TRAIN_PROMPTS_H
#define CLI_TRAIN_TRAIN_PROMPTS_H

#include "cli/options/options.h"
#include "engine/tokenizer/tokenizer.h"

struct train_prompts {
    size_t n;
    uint32_t length; /* of a prompt, at most */
    bool bos;        /* each begins with the token that begins a sequence */
    token_t *tokens; /* (n_tokens) of the text; or of all lines, one after another */
    size_t n_tokens;
    size_t *line; /* (n + 1) where each line's tokens begin; NULL: a text */
};

/* Reads options->prompts_file, else options->train.text: n prompts, evenly spread over a text; of a file the first lines,
 * n at most. */
bool train_prompts_open(struct train_prompts *, const struct options *, const struct tokenizer *, size_t n,
                        struct err *);
void train_prompts_close(struct train_prompts *);
/* Copies prompt i < n to `to` (length) and returns its number of tokens. */
size_t train_prompts_copy(const struct train_prompts *, size_t i, token_t *to);

#endif
