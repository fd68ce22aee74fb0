/* Finished conversations, read from a file: what `specscope score` scores drafters on. Forms of a line, or of the
 * members of one JSON list:
 *
 *     {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}
 *     {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}       ShareGPT
 *     {"request": {"messages": […]}, "response": {"choices": [{"message": {…}}]}}              a log of a server
 *     {"prompt": "…", "completion": "…"}                                     also response, output, choices[].text
 *     {"text": "…"}
 *
 * each with an optional "category". Text with a message of the user directly before it is an exchange. An answer that
 * follows a tool's message or another answer is only part of `before` of later exchanges. Content may be a list of
 * parts, of which the texts are joined.
 *
 * A file that does not begin with '{' or '[' is plain text. A conversation of it has at least 400 bytes and ends at an
 * empty line. Its prompt is its first line, or of a longer one at most 64 bytes up to a space. The same is done with
 * "text". Traces are read by traces/text_source.h. */
#pragma once

#include "base/blocks.h"
#include "base/err.h"
#include "base/slice.h"
#include "kernels/backend.h"

/* An answer and what came before it; NULL: none. */
struct exchange {
    char *before; /* JSON list of the messages before the prompt, as struct chat_dialogue has it */
    char *prompt; /* the user's message; of text without messages: the text before the answer, which continues it */
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
    struct conversation *at; /* (n) owned; all else is in `blocks` */
    size_t n, room;
    size_t skipped; /* lines without an answer; of a trace also sequences with the tokens of another one */
    /* Of a trace: (vocab) bytes of its tokens, to be compared with the model's vocabulary; NULL: not a trace */
    struct slice *piece;
    uint32_t vocab;
    struct blocks blocks;
};

/* Reads a file; "-" is stdin. Fails with one line: no such file, not one of these forms (with the line's number), no
 * answer at all. */
bool texts_read(struct texts *, const char *path, struct err *);
void texts_free(struct texts *);
/* The same from memory; name: for messages. */
bool texts_parse(struct texts *, const char *bytes, size_t len, const char *name, struct err *);

/* For other sources, which begin with zeros. Adds a conversation whose memory is in `blocks`; one without exchanges is
 * counted as skipped. Without memory `blocks` is starved. */
void texts_add(struct texts *, const struct conversation *);
/* Ends reading, of which `ok` is the result. Fails if memory ran out or there is no answer; frees the texts then. */
bool texts_finish(struct texts *, bool ok, const char *name, struct err *);
