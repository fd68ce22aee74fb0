/* Tokenizers for tests, and texts that nobody wrote. What fails here fails the test. */
#ifndef TESTS_RIGS_TOKENIZER_RIG_H
#define TESTS_RIGS_TOKENIZER_RIG_H

#include "engine/tokenizer/tokenizer.h"
#include "tests/golden/tinymodel.h"

struct opened {
    unsigned char *bytes; /* of `file`, or NULL */
    struct gguf *file;    /* or NULL */
    struct tokenizer *tokenizer;
};

struct opened open_tiny_tokenizer(const struct tinymodel *);
struct opened open_gguf_tokenizer(const char *path);
void close_opened(struct opened *);

/* *n ids, the caller's. */
token_t *encode(const struct tokenizer *, const char *text, size_t len, struct tokenize_options, size_t *n);
void assert_ids(const struct tokenizer *, const char *text, struct tokenize_options, const token_t *expected, size_t n);
/* `name` tells which tokenizer it was. */
void assert_round_trip(const struct tokenizer *, const char *name, const char *text, size_t len);

/* A seed that is printed, another one each time. */
uint64_t random_seed(void);
/* Characters of all kinds, spaces and letters more often; no U+2581, which a SentencePiece vocabulary cannot tell from a
 * space. At most four bytes each; returns how many bytes. */
size_t random_text(uint64_t *random, char *out, size_t characters);

#endif
