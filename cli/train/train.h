/* Functions that the training commands share: the check of --out, the models, the device that multiplies, the order of
 * rows, and the progress bar. */
#pragma once

#include "base/file_replace.h"
#include "cli/options/options.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "engine/training/answers.h"
#include "engine/training/blas.h"

/* Fails at once if there is no text, whose use `text` describes, or if --out is missing. command: "heads". */
bool train_has_input(const struct options *, const char *command, const char *text, struct err *);
/* The same, and fails if the result could not be written after hours: --out is missing, or it exists and is not a
 * regular file of this kind. */
bool train_can_begin(const struct options *, const char *command, const char *text, const struct file_kind *,
                     struct err *);

/* Opens the model with an auxiliary model for each role in `needs` (NEEDS()): the given model, which may be the
 * target's own first layers, or the file beside the target. */
bool train_engine(const struct options *, unsigned needs, struct engine **, struct err *);

/* Returns the matrix products of the engine's device, or NULL if it has none; prints a line if they cannot be
 * opened. */
struct blas *train_blas(const struct engine *);

/* Shuffles by Fisher and Yates; *random is a SplitMix64 state. */
void train_shuffle(size_t *order, size_t n, uint64_t *random);

/* Draws "training  [#####.....]  52%  TEXT  18 s" on a terminal's stderr; elsewhere prints it as a line if `line`. */
void train_bar(const char *what, double done, bool line, const char *text, uint64_t start_us);

/* ---- prompts for the target: parts of a text, or the lines of a file ---- */

struct train_prompts {
    size_t n;
    token_t *tokens; /* (begin[n]) of all prompts, one after another; each begins with the token that begins a sequence,
                        if the model has one */
    size_t *begin;   /* (n + 1) where each prompt begins */
};

/* Opens options->prompts_file, else options->train.text: n prompts of options->answers.prompt tokens, evenly spread
 * over a text, or the first n lines of a file. Lines are chat messages if options->chat.on and the model has a
 * template; then a line that is longer with the template is left out, else its beginning is the prompt. */
bool train_prompts_open(struct train_prompts *, const struct options *, const struct tokenizer *, size_t n,
                        struct err *);
void train_prompts_close(struct train_prompts *);

/* Writes "about 14 min: answers 4 min, training 10 min", whose parts are in seconds. Returns out. */
const char *train_estimate(const char *first, double first_s, double training_s, char *out, size_t n);

struct train_answering {
    uint64_t tokens;   /* at most */
    double training_s; /* what training will take; for the estimate */
    double seconds;    /* no answer is begun after this time; INFINITY: no limit */
    bool (*row)(void *user, struct reader *, const struct answer *, uint32_t at, slot_t); /* struct answers_options */
    void *user;
};
/* Writes the target's answers to all prompts of options->prompts_file, with a bar (engine/training/answers.h). After a
 * few seconds, prints an estimate of the time of answers and training. To be freed with answers_free(), also after a
 * failure. */
bool train_answers(struct answers *, const struct options *, const struct engine *, const struct train_answering *,
                   struct err *);

/* ---- texts to train on: windows of a text, or the target's answers ---- */

struct train_text {
    size_t begin;  /* in the tokens */
    uint32_t n;    /* tokens that are read */
    uint32_t skip; /* the first ones, whose rows are not used: a window's BOS, a prompt's tokens but the last */
};

struct train_texts {
    token_t *tokens;
    struct train_text *at; /* (n + 1); the last one begins where the tokens end */
    size_t n;
    uint32_t longest; /* tokens that are read of a text, at most */
};

/* Writes answers to options->prompts_file, train.tokens at most, or else reads windows of options->train.text.
 * training_s as in struct train_answering. To be closed also after a failure. */
bool train_texts_open(struct train_texts *, const struct options *, const struct engine *, double training_s,
                      struct err *);
void train_texts_close(struct train_texts *);
