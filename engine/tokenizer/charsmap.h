/* SentencePiece's precompiled map from segments of characters to what they are normalised to: the number of bytes of a
 * double-array trie (little-endian, 32 bits), the trie, and texts that each end in a NUL. */
#ifndef ENGINE_TOKENIZER_CHARSMAP_H
#define ENGINE_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/slice.h"

struct charsmap {
    const char *units; /* (n_units) 32 bits each, little-endian, not aligned */
    size_t n_units;
    struct slice texts;
};

/* The bytes stay the caller's. False: they are no such map. None at all map nothing. */
bool charsmap_read(struct charsmap *, struct slice);
/* What a text of `len` bytes begins with, the longest of those that are mapped or the shortest: *n bytes become *to. */
bool charsmap_find(const struct charsmap *, const char *text, size_t len, bool longest, size_t *n, struct slice *to);

#endif
