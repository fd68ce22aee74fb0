/* Normalisation tables: SentencePiece's precompiled map from segments of characters to their normalised form, and the
 * characters that represent bytes in byte-level BPE. The precompiled map consists of the number of bytes of a
 * double-array trie (little-endian, 32 bits), the trie, and NUL-terminated texts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct charsmap {
    const char *units; /* (n_units) 32 bits each, little-endian, not aligned */
    size_t n_units;
    struct slice texts;
};

/* Reads a map that points into the caller's bytes. Returns false if they are not such a map. Zero bytes are an empty
 * map. */
bool charsmap_read(struct charsmap *, struct slice);

/* Byte-level BPE represents each byte by a printable character, so that its vocabulary is text. Bytes that are
 * printable in Latin-1 (33..126, 161..172, 174..255) represent themselves; the other 68, in order, are U+0100, U+0101,
 * … (GPT-2). */

/* Writes the character of a byte as UTF-8; returns its 1 or 2 bytes. */
size_t byte_char_put(char out[2], unsigned char byte);
/* Returns the byte that a code point represents; -1 if none. */
int byte_of_char(uint32_t code);
/* Converts characters to bytes; out has room for len bytes. Returns the number of bytes written, or SIZE_MAX if a
 * character represents no byte. */
size_t byte_chars_read(char *out, const char *text, size_t len);
