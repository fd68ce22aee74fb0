/* The target's own answers to prompts: the text that heads and drafters are trained on. Several answers share a pass
 * over the weights; when one ends, the next prompt takes its place. */
#pragma once

#include "engine/training/reader.h"

struct answer {
    token_t *text; /* (the prompt's tokens and options.response) the prompt, then the answer; part of answers.tokens */
    uint32_t prompt; /* tokens of the prompt; the answer begins at this index */
    uint32_t n;      /* tokens of both; 0: the prompt was not answered */
};

struct answers {
    struct answer *at; /* (n) in the order of the prompts */
    size_t n;
    token_t *tokens;  /* owns all texts */
    uint64_t written; /* tokens of all answers, without prompts */
};

struct answers_options {
    uint32_t response;  /* tokens of an answer, at most */
    uint32_t sequences; /* answers at a time; 1 to READER_SEQUENCES */
    uint64_t tokens;    /* no answer is begun after so many tokens of answers; 0: no limit */
    struct sampling sampling;
    uint64_t seed; /* an answer depends on it and on the prompt's index, not on the answers that share its passes */
    void (*progress)(void *user, const struct answers *, size_t begun); /* after every pass; may be NULL */
    /* Called for every token that was read, the prompt's included: all of a text but its last. Returns false on
     * failure. May be NULL. */
    bool (*row)(void *user, struct reader *, const struct answer *, uint32_t at, slot_t);
    void *user;
};

/* Answers n prompts: prompt i is tokens[begin[i] .. begin[i + 1]), at least one token; begin has n + 1 entries. An
 * answer ends with the model's end of sequence, which is part of it, or after options.response tokens. *out is the
 * caller's, to be freed with answers_free(), also after a failure. The engine is borrowed. Fails with ERR_CANCELLED
 * during the pass in which *cancel became true (NULL: never). */
bool answers_write(struct answers *out, const struct engine *, const token_t *tokens, const size_t *begin, size_t n,
                   const struct answers_options *, const atomic_bool *cancel, struct err *);
void answers_free(struct answers *);
