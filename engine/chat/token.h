/* A template cut into tokens, once, before anything else: what is outside of {{ }} and {% %} is data, inside are names,
 * literals and signs. White space control (trim_blocks, lstrip_blocks, "-" and "+") is done here. */
#ifndef ENGINE_CHAT_TOKEN_H
#define ENGINE_CHAT_TOKEN_H

#include "engine/chat/node.h"

enum token_type {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN, /* {{ */
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN, /* {% */
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_CONST, /* a string or a number */
    TOKEN_SIGN
};

struct token {
    enum token_type type;
    unsigned line;
    unsigned sign;
    struct slice text; /* of data (no comments, newlines are \n), of a name, as it is written */
    struct value constant;
};

struct tokens {
    size_t n, room;
    struct token *at; /* (n), the last one a TOKEN_END */
};

bool tokens_read(struct render *, struct slice source, struct tokens *);

/* ---- between the lexer's files ---- */
struct lexer {
    struct render *r;
    struct slice source;
    size_t at;
    unsigned line;
    bool line_starts; /* what was read last ended a line */
    struct tokens *out;
};
bool lexer_add(struct lexer *, struct token);
/* The rest behind {{ or {%, with its end. */
bool lexer_inside(struct lexer *, bool block);
/* At the end of {% %}, {# #} or {{ }}: goes behind it and the white space that it takes along. */
void lexer_behind_end(struct lexer *, size_t end, char control, bool trims_newline);
static inline struct slice
lexer_rest(const struct lexer *l)
{
    return (struct slice){l->source.data + l->at, l->source.len - l->at};
}

#endif
