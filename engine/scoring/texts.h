/* Finished conversations, read from a file: what `specscope score` scores drafters on. Forms of a line, or of the
 * members of one JSON list:
 *
 *     {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}
 *     {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}       ShareGPT
 *     {"request": {"messages": […]}, "response": {"choices": [{"message": {…}}]}}              a log of a server
 *     {"prompt": "…", "completion": "…"}                                     also response, output, choices[].text
 *     {"text": "…"}
 *
 * each with an optional "category". A file that is not JSON is plain text, and a folder is a trace. */
#pragma once

#include "base/err.h"
#include "kernels/backend.h"

/* An answer and what came before it. Members are owned; NULL: none. */
struct exchange {
    char *before; /* JSON list of the messages before the prompt, as struct chat_dialogue has it */
    char *prompt; /* the user's message; of text without messages: the text before the answer */
    char *answer;
    token_t *ids; /* (n_ids) of a trace: the tokens themselves, of which the first n_prompt are the prompt */
    uint32_t n_ids, n_prompt;
};

struct conversation {
    struct exchange *exchange; /* (n) in order: each one's prompt continues the one before */
    uint32_t n;
    char category[32]; /* "": none */
    bool messages;     /* prompts are messages, which a chat template formats */
};

struct texts {
    struct conversation *at; /* (n) owned */
    size_t n;
    size_t skipped; /* lines without an answer */
    /* Of a trace: (vocab) bytes of its tokens, to be compared with the model's vocabulary; NULL: not a trace. Owned */
    char **piece;
    uint32_t vocab;
};

/* Reads a file; "-" is stdin. Fails with one line: no such file, not one of these forms (with the line's number), no
 * answer at all. Tokens of a trace's runs: each run is a conversation. */
bool texts_read(struct texts *, const char *path, struct err *);
void texts_free(struct texts *);
/* For tests and fuzzing: the same from memory; name: for messages. Not a trace. */
bool texts_parse(struct texts *, const char *bytes, size_t len, const char *name, struct err *);
