/* Prompts for training: cut out of a text, or the lines of a file. */
#ifndef CLI_TRAIN_TRAIN_PROMPTS_H
#define CLI_TRAIN_TRAIN_PROMPTS_H

#include "cli/options/options.h"
#include "engine/tokenizer/tokenizer.h"

struct train_prompts {
    size_t n;
    uint32_t length; /* of a prompt, at most */
    bool bos;        /* each begins with the token that begins a sequence */
    token_t *tokens; /* (n_tokens) of the text; or of all lines, one behind another */
    size_t n_tokens;
    size_t *line; /* (n + 1) where each line's begin; NULL: a text */
};

/* From options->prompts_file, else options->train.text: about `n` of them, evenly spread (of lines, no more than there are). */
bool train_prompts_open(struct train_prompts *, const struct options *, const struct tokenizer *, size_t n,
                        struct err *);
void train_prompts_close(struct train_prompts *);
/* Prompt i < n, into `to` (length); returns how many tokens it has. */
size_t train_prompts_copy(const struct train_prompts *, size_t i, token_t *to);
/* A number that tells these prompts from others. */
uint64_t train_prompts_hash(const struct train_prompts *);

/* "responses [#####.....]  52%  TEXT  18 s" on a terminal's stderr; elsewhere a line where `line` says so. */
void train_bar(const char *what, double done, bool line, const char *text, uint64_t start_us);

#endif
