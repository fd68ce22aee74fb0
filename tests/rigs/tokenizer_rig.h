/* Tokenizers and random texts for tests. An error in one of these functions fails the test. */
#pragma once

#include "engine/model/tokenizer/tokenizer.h"
#include "tests/golden/tinymodel.h"

struct opened {
    unsigned char *bytes; /* of `file`, or NULL */
    struct gguf *file;    /* or NULL */
    struct tokenizer *tokenizer;
};

struct opened open_tiny_tokenizer(const struct tinymodel *);
struct opened open_gguf_tokenizer(const char *path);
void close_opened(struct opened *);

/* Returns *n ids; the caller frees them. */
token_t *encode(const struct tokenizer *, const char *text, size_t len, struct tokenize_options, size_t *n);
void assert_ids(const struct tokenizer *, const char *text, struct tokenize_options, const token_t *expected, size_t n);
/* `name` identifies the tokenizer in messages. */
void assert_round_trip(const struct tokenizer *, const char *name, const char *text, size_t len);

#define TOKENIZERS "tests/golden/tokenizers/"

/* Reads a file of a family's folder; returns it with a NUL after its end. The caller frees it. */
char *golden_text(const char *family, const char *name, size_t *len);
/* Compares with the ids in the folder's ids.tsv, of at least so many texts, with control tokens and with their names as
 * text. */
void assert_golden_ids(const struct tokenizer *, const char *family, size_t at_least);

/* Writes characters of all kinds, with spaces and letters more often. U+2581 is not among them, because a SentencePiece
 * vocabulary does not distinguish it from a space. A character has at most four bytes. Returns the number of bytes. */
size_t random_text(uint64_t *random, char *out, size_t characters);
