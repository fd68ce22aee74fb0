/* SentencePiece's precompiled map from segments of characters to what they are normalised to: the number of bytes of a
 * double-array trie (little-endian, 32 bits), the trie, and texts that each end in a NUL. */
#ifndef ENGINE_TOKENIZER_TOKENIZER_NORMALIZE_H
#define ENGINE_TOKENIZER_TOKENIZER_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/slice.h"

struct charsmap {
    const char *units; /* (n_units) 32 bits each, little-endian, not aligned */
    size_t n_units;
    struct slice texts;
};

/* The bytes stay the caller's. False: they are no such map. None at all map nothing. */
bool charsmap_read(struct charsmap *, struct slice);

/* Byte-level BPE writes each byte as a printable character, so that its vocabulary is text: bytes that are printable in
 * Latin-1 (33..126, 161..172, 174..255) stand for themselves, the other 68 in order are U+0100, U+0101, … (GPT-2). */

/* The character of a byte, as 1 or 2 bytes of UTF-8; returns how many. */
size_t byte_char_put(char out[2], unsigned char byte);
/* The byte that a code point stands for; -1 if none. */
int byte_of_char(uint32_t code);
/* Characters back to bytes: returns the number written to out (room for len), or SIZE_MAX if one of them stands for no
 * byte. */
size_t byte_chars_read(char *out, const char *text, size_t len);

#endif
