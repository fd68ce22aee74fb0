/* What the tokenizer's files share: the vocabulary's tables. */
#ifndef ENGINE_TOKENIZER_INTERNAL_H
#define ENGINE_TOKENIZER_INTERNAL_H

#include "engine/tokenizer.h"

#define SPACE_MARK     "\xe2\x96\x81" /* ▁ U+2581, which stands for a space inside pieces */
#define SPACE_MARK_LEN 3

/* Writes ▁ without a NUL; returns the place behind it. */
static inline char *
put_space_mark(char *at)
{
    *at++ = SPACE_MARK[0];
    *at++ = SPACE_MARK[1];
    *at++ = SPACE_MARK[2];
    return at;
}

/* A user-defined or control token as it is looked for in text: spaces written as ▁. */
struct special {
    struct gguf_string text;
    token_t id;
    bool control;
};

struct tokenizer {
    uint32_t n;                /* vocabulary */
    struct gguf_string *text;  /* (n) as in the file, where the bytes stay */
    struct gguf_string *plain; /* (n) with ▁ as spaces; a byte token's byte; a control token's name */
    float *score;              /* (n) */
    unsigned char *kind;       /* (n) enum token_kind */
    bool *end;                 /* (n) generation stops after it */
    char *plain_bytes;         /* what `plain` points into */
    token_t byte[256];         /* byte tokens; TOKEN_NONE where there is none */
    token_t bos, eos, unknown;
    bool add_bos, add_space_prefix;

    uint32_t longest_piece; /* bytes */
    uint32_t mask;          /* of the hash table of normal pieces: slots - 1 */
    token_t *slots;         /* (mask + 1), TOKEN_NONE when empty */

    struct special *specials; /* (n_specials) sorted by their bytes */
    uint32_t n_specials;
    char *special_bytes;
};

bool tokenizer_index(struct tokenizer *, struct err *); /* fills the hash table and the specials */
/* The normal piece with these bytes (the lowest id if there are several), or TOKEN_NONE. */
token_t tokenizer_find(const struct tokenizer *, const char *bytes, size_t len);
/* The longest special that `bytes` starts with, control tokens only if `control`; NULL if none does. */
const struct special *tokenizer_match_special(const struct tokenizer *, const char *bytes, size_t len, bool control);

#endif
