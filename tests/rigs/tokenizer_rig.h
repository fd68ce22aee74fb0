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

#define TOKENIZERS "tests/golden/tokenizers/"

/* A file of such a folder, with a NUL behind it, the caller's. */
char *golden_text(const char *family, const char *name, size_t *len);
/* The ids of the folder's ids.tsv, of at least so many texts, with control tokens and with their names as text. */
void assert_golden_ids(const struct tokenizer *, const char *family, size_t at_least);

/* A seed that is printed, another one each time. */
uint64_t random_seed(void);
/* Characters of all kinds, spaces and letters more often; no U+2581, which a SentencePiece vocabulary cannot tell from a
 * space. At most four bytes each; returns how many bytes. */
size_t random_text(uint64_t *random, char *out, size_t characters);

#endif
